"""Digests of values and files. They decide whether a stored result may be used again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creperie.core.checksums import sha256_of, sha256_of_text
from creperie.core.files import cache_home, write_text

#: a file changed more recently than this could change again with the same timestamps
RACY_SECONDS = 2.0
#: files of at least this many bytes have their digest remembered
LARGE = 2**24


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of named values. Their order does not matter. Arrays are hashed with all their elements.

    >>> digest_of({"a": 1, "b": [2]}) == digest_of({"b": (2,), "a": 1}) != digest_of({"a": "1", "b": [2]})
    True
    """
    return sha256_of_text(json.dumps(content, sort_keys=True, default=_as_json))


def _as_json(value: Any) -> Any:
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # the text of a large array leaves values out
        return [str(value.dtype), list(getattr(value, "shape", ())), sha256_of_text(value.tobytes())]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return str(value)


def file_state(path: Path, stat: os.stat_result | None = None) -> str:
    """Return a string that changes whenever the file's content does. It is empty if a change could go unnoticed.

    The string consists of the path, the inode, the size, and the times when content and status last changed. Programs
    cannot set the status time. It therefore changes even if a file is replaced by one with the same size and
    modification time. The string is empty for two seconds after a change, because the clock of a file system may be
    that coarse.
    """
    known = stat or path.stat()
    if time.time() - max(known.st_mtime, known.st_ctime) < RACY_SECONDS:
        return ""
    return f"{path}|{known.st_ino}|{known.st_size}|{known.st_mtime_ns}|{known.st_ctime_ns}"


def remembered_sha256(file: Path) -> str:
    """Return the SHA-256 of a file's content. For large files it is cached until the file's state changes."""
    state = file_state(file.resolve()) if file.stat().st_size >= LARGE else ""
    if not state:
        return sha256_of(file)
    memo = cache_home() / "digests" / sha256_of_text(state)
    if not memo.is_file():
        digest = sha256_of(file)
        if file_state(file.resolve()) != state:  # it changed while it was read
            return digest
        write_text(memo, digest)
    return memo.read_text()


def path_digest(path: Path) -> str:
    """Return the SHA-256 of a file or, for a folder, of the names and contents of all files in it."""
    if not path.is_dir():
        return remembered_sha256(path)
    files = (p for p in sorted(path.rglob("*")) if p.is_file())
    return digest_of({p.relative_to(path).as_posix(): remembered_sha256(p) for p in files})
