"""Captions in Parquet files and in WebDataset tars (`000017.txt` beside `000017.jpg`), of any number and size.

A piece of Parquet lies within one row group, and only that is read. Images in tars are passed over, never unpacked.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, Any

import pyarrow as pa

from creperie.core import DataError, UsageError, unknown
from creperie.engine.files import BLOCK, open_file
from creperie.engine.lines import CAPTIONS
from creperie.engine.pieces import ROWS, Placed

RowsPlace = tuple[int, int, int, int]  #: file, row group, first row in it, rows


@dataclass(frozen=True)
class Columnar(Placed):
    """Parquet files in pieces. Ids are a column, or file and row."""

    files: tuple[str, ...]
    places: tuple[RowsPlace, ...]
    digest: str
    text: str
    id: str = ""
    image: str = ""

    def piece(self, number: int) -> pa.Table:
        file, group, first, rows = self.places[number]
        names = [n for n in (self.text, self.id, self.image) if n]
        table = _row_group(self.files[file], group, tuple(names)).slice(first, rows)
        ids = table.column(self.id) if self.id else pa.array([f"{file}.{group}.{first + k}" for k in range(rows)])
        image = table.column(self.image) if self.image else pa.nulls(rows, pa.string())
        try:
            return pa.table([ids.cast(pa.string()), table.column(self.text).cast(pa.string()), image], schema=CAPTIONS)
        except (pa.ArrowException, ValueError, TypeError) as e:
            raise DataError(f"has a column that is not text ({str(e)[:80]})", where=self.files[file]) from None


def open_columnar(
    files: list[str], *, size: int = ROWS, text: str = "caption", id: str = "", image: str = ""
) -> Columnar:
    """Parquet files, their footers read. The digest is of their whole content."""
    whole = hashlib.sha256(f"{size} {text} {id} {image}\n".encode())
    places: list[RowsPlace] = []
    for number, path in enumerate(files):
        with open_file(path) as file:
            while block := file.read(BLOCK):
                whole.update(block)
            meta = _opened(file, path).metadata
            names = meta.schema.to_arrow_schema().names
            for name in (text, id, image):
                if name and name not in names:
                    raise unknown("column", name, names, where=path)
            for group in range(meta.num_row_groups):
                rows = meta.row_group(group).num_rows
                places += [(number, group, first, min(size, rows - first)) for first in range(0, rows, size)]
    if not files:
        raise UsageError("there are no Parquet files", hint="name a file, a folder, or a pattern")
    return Columnar(tuple(files), tuple(places), whole.hexdigest(), text, id, image)


def _opened(file: Any, path: str) -> Any:
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as e:
        raise DataError(f"is not a complete Parquet file ({str(e)[:80]})", where=path, hint="fetch it again") from None


@lru_cache(maxsize=1)  # pieces come in order: the next one is most often of the same row group
def _row_group(path: str, group: int, names: tuple[str, ...]) -> pa.Table:
    with open_file(path) as file:
        try:
            return _opened(file, path).read_row_group(group, columns=list(names))
        except (pa.ArrowException, OSError) as e:
            raise DataError(f"cannot be read ({str(e)[:80]})", where=f"{path} row group {group}") from None


#: A longer text is not a caption.
LONGEST = 1 << 20
Place = tuple[int, int, int]  #: file, byte at which its first member begins, captions


@dataclass(frozen=True)
class Tars(Placed):
    """Tar files in pieces. A caption's id is its key; its image the member of that key with a picture's suffix."""

    files: tuple[str, ...]
    places: tuple[Place, ...]
    digest: str
    suffix: str = ".txt"

    def piece(self, number: int) -> pa.Table:
        file, start, count = self.places[number]
        found = []
        for _, key, text in _captions(self.files[file], self.suffix, start):
            found.append((key, _decoded(text, f"{self.files[file]}!{key}"), f"{key}.jpg"))
            if len(found) == count:
                break
        columns = zip(*found, strict=True) if found else ((), (), ())
        return pa.table([pa.array(c, pa.string()) for c in columns], schema=CAPTIONS)


def open_tars(files: list[str], *, size: int = ROWS, suffix: str = ".txt") -> Tars:
    """Tar files, their headers and captions looked through once; images are passed over."""
    whole = hashlib.sha256(f"{size} {suffix}\n".encode())
    places: list[Place] = []
    for number, path in enumerate(files):
        count = start = 0
        for position, key, text in _captions(path, suffix, 0):
            if count == size:
                places.append((number, start, count))
                count = 0
            if count == 0:
                start = position
            count += 1
            whole.update(key.encode("utf-8", "surrogateescape") + b"\0" + text + b"\0")
        if count:
            places.append((number, start, count))
    if not places:
        what = f"there are no members that end in {suffix}"
        raise UsageError(what, where=", ".join(files[:3]), hint="name WebDataset tars, or another suffix")
    return Tars(tuple(files), tuple(places), whole.hexdigest(), suffix)


def _captions(path: str, suffix: str, start: int) -> Iterator[tuple[int, str, bytes]]:
    """Where each caption's header lies, its key and its bytes, from a byte on that is the beginning of a member."""
    with open_file(path) as file:
        file.seek(start)
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                while (member := tar.next()) is not None:
                    tar.members.clear()  # type: ignore[attr-defined]  # it would remember every member for ever
                    if member.isfile() and member.name.endswith(suffix):
                        yield member.offset, member.name.removesuffix(suffix), _content(tar, member, path)
        except tarfile.TarError as e:
            hint = "unpack compressed tars first" if path.endswith("gz") else "fetch it again"
            raise DataError(f"is not a complete tar file ({e})", where=path, hint=hint) from None


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> bytes:
    where = f"{path}!{PurePosixPath(member.name).name}"
    if member.size > LONGEST:
        raise DataError(f"is a caption of {member.size:,} bytes", where=where, hint="another suffix may be meant")
    file: IO[bytes] | None = tar.extractfile(member)
    data = file.read() if file else b""
    if len(data) != member.size:
        raise DataError("is cut off", where=where, hint="fetch the tar again")
    return data


def _decoded(text: bytes, where: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", where=where) from None
