"""Files wherever they lie: paths of this machine, or of an object store through fsspec (`s3://…`, `gs://…`)."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from pathlib import Path
from typing import IO, Any, cast

from creperie.core import DataError, UsageError, cache_home, draft_of, missing_extra

BLOCK = 1 << 20
#: Compressed files may grow by this much and no more: beyond it they are bombs, not captions.
MOST_GROWTH = 200


def is_remote(path: str) -> bool:
    """
    >>> is_remote("s3://bucket/captions.tsv"), is_remote("captions.tsv")
    (True, False)
    """
    return "://" in path


def open_file(path: str) -> IO[bytes]:
    """Return a file to read from and seek in."""
    if is_remote(path):
        return cast("IO[bytes]", _filesystem(path).open(path, "rb"))
    try:
        return Path(path).open("rb")
    except OSError as e:
        raise UsageError(f"cannot be read ({e.strerror})", where=path, hint="check the path") from None


def listed(path: str) -> list[str]:
    """Return the files that a path names: itself, those of a folder, or those that a pattern fits; in order."""
    if is_remote(path):
        if not any(c in path for c in "*?["):
            return [path]
        system = _filesystem(path)
        return [system.unstrip_protocol(p) for p in sorted(system.glob(path))]
    if Path(path).is_dir():
        return sorted(str(p) for p in Path(path).iterdir() if p.is_file() and not p.name.startswith("."))
    if not Path(path).exists() and any(c in path for c in "*?["):
        from glob import glob

        return sorted(glob(path))  # noqa: PTH207  Path.glob takes no absolute patterns
    return [path]


def spooled(path: str) -> str:
    """Return a gzip file unpacked into the cache, once: pieces are read from anywhere in it, which gzip cannot do."""
    with open_file(path) as packed:
        digest = hashlib.sha256()
        size = 0
        while block := packed.read(BLOCK):
            digest.update(block)
            size += len(block)
        folder = cache_home() / "spool"
        target = folder / f"{digest.hexdigest()}.txt"
        if target.exists():
            return str(target)
        packed.seek(0)
        with draft_of(target) as draft:
            _unpack(packed, draft, path, most=max(size * MOST_GROWTH, BLOCK))
    return str(target)


def _unpack(packed: IO[bytes], draft: Path, path: str, most: int) -> None:
    room = shutil.disk_usage(draft.parent).free
    written = 0
    try:
        with gzip.open(packed) as plain, draft.open("wb") as out:
            while block := plain.read(BLOCK):
                written += len(block)
                if written > most:
                    raise DataError(f"unpacks to more than {MOST_GROWTH} times its size", where=path, hint="unpack it")
                if written > room:
                    what = "unpacks to more than the disk holds"
                    raise DataError(what, where=path, hint="set CREPERIE_CACHE to a place with room")
                out.write(block)
    except (EOFError, gzip.BadGzipFile, OSError) as e:
        if isinstance(e, OSError) and not isinstance(e, gzip.BadGzipFile):
            raise
        raise DataError(f"is not a complete gzip file ({e})", where=path, hint="fetch it again") from None


def _filesystem(path: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise missing_extra("fsspec", "ray") from None
    try:
        return fsspec.core.url_to_fs(path)[0]
    except (ImportError, ValueError) as e:
        raise UsageError(f"cannot be opened ({e})", where=path, hint="install what fsspec asks for") from None
