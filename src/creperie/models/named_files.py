"""Compute a digest of files without loading them. A path, a `format:path` or a model URI names the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

from creperie.core import CreperieError, digest_of, path_digest
from creperie.models.hub import package_folder

_KIND = re.compile(r"^[\w+.-]{2,}:")


def named_content(spec: str) -> str:
    """Return a digest of all files that `spec` names. `spec` is a path, a `format:path`, or a model URI, whose options
    can name files too.

    The digest is empty if there are no files, for example for a model behind a server or a benchmark of the catalog.
    """
    place, _, query = spec.partition("?")
    options = [value for _, value in parse_qsl(query)]
    named = {text: path_digest(path) for text in (place, *options) for path in _existing_paths(text)}
    return digest_of(named) if named else ""


def _existing_paths(text: str) -> Iterator[Path]:
    """Yield the file or folder that `text` names, if there is one. `text` is a path, KIND:PATH, the name of an
    installed package, or the name of a model on the hub.
    """
    name = _KIND.sub("", text)
    for spelling in dict.fromkeys((text, name)):
        if _exists(file := spelling.partition("#")[0]):
            yield Path(file).expanduser()
            return
    if name.startswith("pkg:"):
        try:
            yield package_folder(name.removeprefix("pkg:"), uri=text)
        except CreperieError:
            return  # whoever uses the model says that it is not installed
    elif name != text and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        yield from _snapshot(name)


def _exists(file: str) -> bool:
    try:
        return bool(file) and Path(file).expanduser().exists()
    except (OSError, RuntimeError):  # too long for a name, or ~ of nobody: a prompt, not a path
        return False


def _snapshot(name: str) -> Iterator[Path]:
    """Yield the folder of a model from the hub if it has been downloaded."""
    try:
        from huggingface_hub import snapshot_download

        yield Path(snapshot_download(name, local_files_only=True))
    except (ImportError, OSError, ValueError):
        return
