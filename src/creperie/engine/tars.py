"""Captions in WebDataset tars: `000017.txt` beside `000017.jpg`. Images are passed over, never unpacked to disk."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

import pyarrow as pa

from creperie.core import DataError, UsageError
from creperie.engine.files import open_file
from creperie.engine.lines import CAPTIONS
from creperie.engine.pieces import ROWS, Placed

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
