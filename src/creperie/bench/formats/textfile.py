"""Functions that find the files of a published benchmark in a folder and interpret their names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from creperie.core import DataError, UsageError, sha256_of, unreadable


def file_digest(path: Path) -> str:
    """Return the sha256 of a file; raise a DataError if it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as e:
        raise unreadable(path, e) from None


def find_files(path: Path, accepts: Callable[[str], bool], what: str, *, deep: bool = False) -> list[tuple[str, Path]]:
    """Return a sorted list of (relative path, path) of the files for whose names `accepts` returns True. If `path` is a
    file, the list contains only that file. `what` describes the files in errors. With `deep`, subfolders are searched,
    too.

    If a folder contains no such file, its subfolder `data` is searched, since many repositories keep their data there.
    """
    try:
        if path.is_file():
            return [(path.name, path)]
        if not path.is_dir():
            raise UsageError("there is no such file or folder", where=path, hint="check the path")
        for root in (path, path / "data"):
            files = [(name, root / name) for name in sorted(_names(root, deep), key=_natural) if accepts(name)]
            if files:
                return files
    except (OSError, ValueError) as e:
        raise unreadable(path, e) from None
    raise DataError(
        f"this folder contains no {what}", where=path, hint="give the folder or the file that contains them"
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers in names by value: 4, 8, 12."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,15})", name)]


def _names(root: Path, deep: bool) -> Iterator[str]:
    """Yield the relative paths of the files in a folder, except hidden ones; with `deep`, include subfolders."""
    if not root.is_dir():
        return
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if deep and not s.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


def is_data_json(name: str) -> bool:
    """Return whether a file name looks like a JSON file with records. Names of descriptions, such as
    `dataset_info.json`, do not.
    """
    stem = name.rsplit("/", 1)[-1].lower()
    about = ("croissant", "creperie.json", "layout.json", "dataset_info", "package.json", "corpus.json")
    return stem.endswith(".json") and not stem.startswith(about) and "metadata" not in stem


def stem_of(name: str) -> str:
    """Return a relative path without its extension.

    >>> stem_of("random/dev.jsonl")
    'random/dev'
    """
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.rsplit('.', 1)[0] if '.' in last[1:] else last}"
