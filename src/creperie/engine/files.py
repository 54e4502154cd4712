"""Files of captions: the files that a path refers to, and how one is opened."""

from __future__ import annotations

from glob import glob
from pathlib import Path
from typing import IO

from creperie.core import UsageError


def open_file(path: str) -> IO[bytes]:
    """Return a file opened for reading, with random access."""
    try:
        return Path(path).open("rb")
    except OSError as e:
        raise UsageError(f"cannot be read ({e.strerror})", where=path, hint="check the path") from None


def listed(path: str) -> list[str]:
    """Return the sorted files of a path: the file itself, those of a folder, or those that match a pattern."""
    if Path(path).is_dir():
        return sorted(str(p) for p in Path(path).iterdir() if p.is_file() and not p.name.startswith("."))
    if not Path(path).exists() and any(c in path for c in "*?["):
        return sorted(glob(path))  # noqa: PTH207  Path.glob takes no absolute patterns
    return [path]
