"""JSON, atomic writes, checksums, and folders locked by one process at a time. An atomic write leaves either the
complete file or none. Only here, NaN, numpy numbers and paths become JSON values.
"""

from __future__ import annotations

import json
import math
import os
import pkgutil
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from creperie.core.checksums import checked, sha256_of, with_checksums
from creperie.core.errors import DataError, UsageError
from creperie.core.limits import parse_json, read_text

#: A JSON object (a document, or a row of one), or the values that a template shows.
Json = dict[str, Any]
#: The same, only to be read.
Document = Mapping[str, Any]
BUSY_HINT = "wait for it, or write to another folder"


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a hidden path beside `path`, to write a file or folder to.

    When the block ends, this draft is flushed to disk and replaces `path`. If the block fails, the draft is removed and
    `path` is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield draft
        if draft.is_file():
            _flush(draft)
        draft.replace(path)
        _flush(path.parent)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with draft_of(path) as draft:
        draft.write_bytes(data)


def write_json(
    path: Path, document: Any, *, indent: int | None = 2, files: Iterable[str] = (), plain: bool = False
) -> None:
    """Write a JSON document atomically. `json_value` says how NaN, numpy numbers and paths are written.

    An object is written with its checksum and those of `files`, which are in the same folder; `read_json` verifies
    them. With `plain`, it is written without checksums, for formats that others define.
    """
    if isinstance(document, Mapping) and not plain:
        document = with_checksums(json_value(document), {name: sha256_of(path.parent / name) for name in files})
    write_bytes(path, json_bytes(document, indent=indent))


def json_bytes(document: Any, *, indent: int | None = None) -> bytes:
    """Return a JSON document in UTF-8, ending with a newline. Lone surrogates, which UTF-8 cannot encode, are written
    as escapes.

    >>> json_bytes({"a": "é"}), len(json_bytes("\\ud83e"))
    (b'{"a": "\\xc3\\xa9"}\\n', 9)
    """
    return (json_text(document, indent=indent) + "\n").encode("utf-8", "backslashreplace")


def packaged(package: str, *path: str) -> str:
    """Return the text of the data file at `path` inside an installed package."""
    return str(pkgutil.get_data(package, "/".join(path)) or b"", "utf-8")


def packaged_toml(package: str, *path: str) -> dict[str, Any]:
    """Return the content of the TOML file at `path` inside an installed package."""
    import tomllib

    return tomllib.loads(packaged(package, *path))


def read_json(path: Path, *, strict: bool = False, again: str = "") -> Any:
    """Return the content of a JSON file.

    Raise a DataError with file, line and column if it is not valid JSON, or if its checksum does not match. `again` is
    the hint on how to make the file again. With `strict`, repeated keys, NaN and Infinity are errors too; use it for
    files that creperie did not write.
    """
    return parse_json(read_text(path), str(path), strict=True) if strict else read_checked(path, again)[0]


def read_checked(path: Path, again: str = "") -> tuple[Any, dict[str, str] | None]:
    """Return the content of a JSON file, and the checksums of the files beside it. If the document has no checksums,
    the second value is None.
    """
    try:
        document = parse_json(read_text(path), str(path))
    except DataError as e:
        raise DataError(e.what, where=e.where, hint=again or e.hint) from None
    return checked(document, path, again)


def check_target(folder: Path, force: bool, written: Iterable[str]) -> None:
    """Raise a UsageError unless `folder` is new, is empty or may be replaced. A file is never replaced.

    A folder may be replaced only with `force`, and only if creperie wrote it: it must contain a file with one of the
    names in `written`.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("expected a folder, found a file", where=str(folder), hint="give the path of a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not force:
        raise UsageError("this folder is not empty", where=str(folder), hint="choose another, or pass `force=True`")
    if not any((folder / name).exists() for name in written):
        what = "this folder holds something that creperie did not write, so it is not replaced"
        raise UsageError(what, where=str(folder), hint="choose another, or empty it yourself")


@contextmanager
def locked(lock: Path, busy: str, *, where: Path, hint: str = BUSY_HINT) -> Iterator[None]:
    """Hold the lock file `lock` during the block. The system releases the lock if the process dies.

    If another process holds the lock, raise a UsageError with the message `busy`, the location `where` and the hint
    `hint`.
    """
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as file:
            if not lock_file(file.fileno()):
                raise UsageError(busy, where=str(where), hint=hint)
            if not _is_file_of(file.fileno(), lock):
                continue  # the previous holder removed the file: lock the new one
            try:
                yield
            finally:
                with suppress(PermissionError):  # Windows: another process has it open, waiting
                    lock.unlink(missing_ok=True)
            return


def lock_file(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if another process holds the lock."""
    try:
        import fcntl
    except ImportError:
        return _lock_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_windows(descriptor: int) -> bool:
    try:
        import msvcrt
    except ImportError:  # a platform without file locks: report success
        return True
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return False
    return True


def _is_file_of(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _flush(path: Path) -> None:
    """Flush a file or folder to disk. Folders are skipped on Windows, which cannot flush them."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_home() -> Path:
    """Return the cache folder: $CREPERIE_CACHE, else $XDG_CACHE_HOME/creperie, else ~/.cache/creperie."""
    if own := os.environ.get("CREPERIE_CACHE"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).expanduser() / "creperie"
    return Path.home() / ".cache" / "creperie"


def json_value(value: Any) -> Any:
    """Return a copy of the value that JSON can represent. NaN and infinities become null, numpy numbers plain numbers,
    and other objects text.

    >>> json_value({"accuracy": float("nan"), 1: (2, None)})
    {'accuracy': None, '1': [2, None]}
    """
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return json_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return the value as a JSON document.

    >>> json_text([float("inf"), "é"], indent=None)
    '[null, "é"]'
    """
    return json.dumps(json_value(value), ensure_ascii=False, indent=indent, allow_nan=False)
