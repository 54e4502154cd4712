"""Files of captions: the files that a path stands for, and functions that open local, remote or compressed files."""

from __future__ import annotations

import gzip
import io
from glob import glob
from pathlib import Path
from typing import IO, Any

from creperie.core import DataError, UsageError

#: Bytes that are skipped at a time.
CHUNK = 1 << 20
#: The last compressed file that was read, by path: where it stands, and the open file. Pieces are mostly read in order.
_LEFT_OPEN: dict[str, tuple[int, IO[bytes]]] = {}


def open_file(path: str) -> IO[bytes]:
    """Open a file for reading. Unless it is compressed, it has random access.

    Paths such as hf://… and s3://… are opened by fsspec.
    """
    try:
        file: Any = _remote(path).open(path, "rb") if is_remote(path) else Path(path).open("rb")  # noqa: SIM115
    except OSError as e:
        raise UsageError(f"cannot be read ({e.strerror or e})", where=path, hint="check the path") from None
    if path.endswith(".gz"):
        return io.BufferedReader(gzip.GzipFile(fileobj=file))
    if path.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(file, "zstd"))
    return file


def is_remote(path: str) -> bool:
    """Return whether a path is a remote address, such as s3://…, which fsspec opens.

    >>> is_remote("s3://bucket/a.parquet"), is_remote("a.parquet")
    (True, False)
    """
    return "://" in path


def _remote(path: str) -> Any:
    import fsspec

    return fsspec.core.url_to_fs(path)[0]


def open_at(path: str, position: int) -> IO[bytes]:
    """Open a file at a byte position of its uncompressed contents."""
    # To reach the position in a compressed file, decompression continues where the last read of the file ended, if that
    # is not beyond the position; otherwise it starts at the beginning.
    if not is_compressed(path):
        file = open_file(path)
        file.seek(position)
        return file
    place, file = _LEFT_OPEN.pop(path, (0, None))  # type: ignore[assignment]
    if file is None or place > position:
        place, file = 0, open_file(path)
    try:
        while place < position and (skipped := len(file.read(min(CHUNK, position - place)))):
            place += skipped
    except (OSError, EOFError) as e:
        raise DataError(f"cannot be unpacked ({str(e)[:80]})", where=path, hint="fetch it again") from None
    return file


def leave_open(path: str, position: int, file: IO[bytes]) -> None:
    """Keep a compressed file open at `position`, so that the next piece can be read from there."""
    if is_compressed(path):
        _LEFT_OPEN.clear()
        _LEFT_OPEN[path] = position, file
    else:
        file.close()


def is_compressed(path: str) -> bool:
    return path.endswith((".gz", ".zst"))


def listed(path: str) -> list[str]:
    """Return the files that a path stands for, sorted. A path stands for itself, the files in a folder, or the files
    that match a pattern.
    """
    if is_remote(path):
        system = _remote(path)
        scheme = path.partition("://")[0]
        folder = path if any(c in path for c in "*?[") else f"{path.rstrip('/')}/*" if system.isdir(path) else ""
        return sorted(f"{scheme}://{name}" for name in map(str, system.glob(folder))) if folder else [path]
    if Path(path).is_dir():
        return sorted(str(p) for p in Path(path).iterdir() if p.is_file() and not p.name.startswith("."))
    if not Path(path).exists() and any(c in path for c in "*?["):
        return sorted(glob(path))  # noqa: PTH207  Path.glob takes no absolute patterns
    return [path]
