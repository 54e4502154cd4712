"""Checksums of the files that creperie writes. They show whether a file was damaged or edited later.

A JSON document holds the SHA-256 of its own content, in canonical form, and of the files beside it:

    "creperie_checksums": {"this document": "5c1d…", "scores.parquet": "e0b7…"}

Documents written by older versions have no checksums. They can be read too, without verification.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creperie.core.errors import DataError

CHECKSUMS, OWN = "creperie_checksums", "this document"
MISMATCH = "does not match its checksum: the file was damaged or edited after it was written"
#: added to the name of what was read from files without checksums
UNCHECKED = "unchecked (written by an older version, without checksums)"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str | bytes) -> str:
    """Return the SHA-256 checksum of a text in UTF-8, or of bytes, as hexadecimal digits."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def with_checksums(document: Mapping[str, Any], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a copy of a JSON document with checksums added: its own, and those of `files` (name → checksum). The files
    are in the same folder as the document.

    >>> marked = with_checksums({"accuracy": 0.5})
    >>> checked(marked, "run.json")
    ({'accuracy': 0.5}, {})
    >>> checked(marked | {"accuracy": 0.6}, "run.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    creperie.core.errors.DataError: run.json: does not match its checksum: ...
    """
    files = dict(files or {})
    return {**document, CHECKSUMS: {OWN: _digest(document, files), **files}}


def checked(document: Any, where: object, again: str = "") -> tuple[Any, dict[str, str] | None]:
    """Verify the checksum of a document. Return the document without checksums, and the checksums of the other files in
    its folder, by name. If the document has no checksum, it is not verified, and the second value is None.

    If the content does not match the checksum, raise a DataError with `where` as its location. The error's hint says
    how to make the document again: by the command stored in it or, if there is none, as `again` says.
    """
    # Damage to one of the two names must not make the document look like one of an older version.
    marked = isinstance(document, dict) and (
        CHECKSUMS in document or any(isinstance(value, dict) and OWN in value for value in document.values())
    )
    if not marked:
        return document, None
    content = {key: value for key, value in document.items() if key != CHECKSUMS}
    sums = document.get(CHECKSUMS)
    files = {str(k): str(v) for k, v in sums.items() if k != OWN} if isinstance(sums, dict) else {}
    if not isinstance(sums, dict) or sums.get(OWN) != _digest(content, files):
        edited = f"if you edited it on purpose, remove {CHECKSUMS!r} from it: it is then read as unchecked"
        raise DataError(MISMATCH, where=where, hint=f"{how_again(content, again)}; {edited}")
    return content, files


def check_files(folder: Path, sums: Mapping[str, str] | None, again: str = "") -> None:
    """Raise a DataError if one of the files in `sums` (name → checksum) is missing from the folder or has another
    checksum. `again` is the error's hint.
    """
    for name, digest in (sums or {}).items():
        path = folder / name
        try:
            same = sha256_of(path) == digest
        except OSError as e:
            raise DataError(f"cannot be read ({e.strerror})", where=str(path), hint=again or how_again({})) from None
        if not same:
            raise DataError(MISMATCH, where=str(path), hint=again or how_again({}))


def how_again(document: Mapping[str, Any], otherwise: str = "") -> str:
    """Return a hint on how to make a file again. The hint names the command that is stored in the file's document. If
    the document has no command, the hint is `otherwise`.

    >>> how_again({"command": "creperie score mine --model blind:length"})
    'make it again: creperie score mine --model blind:length'
    """
    command = document.get("command")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    if isinstance(command, str) and command:
        return f"make it again: {command}"
    return otherwise or "restore it from a copy, or repeat the command that wrote it"


def _digest(document: Mapping[str, Any], files: Mapping[str, str]) -> str:
    # as ASCII: two lone surrogates are read back as one character, and both have the same escapes
    return sha256_of_text(json.dumps([document, files], sort_keys=True, separators=(",", ":")))
