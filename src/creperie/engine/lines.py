"""Captions in text files: one per line, or a column of a TSV such as Conceptual Captions, with random access by piece.

Only the byte offset of every piece is kept, so that a file of any length costs eight bytes per piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from creperie.core import DataError
from creperie.engine.files import open_file
from creperie.engine.pieces import ROWS, even_counts

CAPTIONS = pa.schema([("id", pa.string()), ("text", pa.string()), ("image", pa.string())])
#: Longest line in bytes: a longer one means that the file is not text, or not one caption per line.
LONGEST = 1 << 20


@dataclass(frozen=True)
class Lines:
    """A text file in pieces. `text` and `image` are column numbers from zero; None: the whole line, no image."""

    path: str
    starts: tuple[int, ...]  #: the byte at which every piece begins
    rows: int
    size: int = ROWS
    text: int | None = None
    image: int | None = None

    @property
    def counts(self) -> Sequence[int]:
        return even_counts(self.rows, self.size)

    def __len__(self) -> int:
        return len(self.starts)

    def piece(self, number: int) -> pa.Table:
        first = number * self.size
        with open_file(self.path) as file:
            file.seek(self.starts[number])
            rows = [self._row(line, first + k) for k, line in enumerate(islice(file, self.size), 1)]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table([pa.array(c, pa.string()) for c in columns], schema=CAPTIONS)

    def _row(self, line: bytes, number: int) -> tuple[str, str, str | None]:
        where = f"{self.path}:{number}"
        try:
            content = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise DataError("is not UTF-8 text", where=where, hint="convert the file to UTF-8") from None
        if number == 1:
            content = content.removeprefix("\ufeff")
        if self.text is None:
            return str(number), content, None
        cells = content.split("\t")
        wanted = max(self.text, self.image or 0)
        if len(cells) <= wanted:
            what = f"has {len(cells)} columns, but column {wanted} is needed"
            raise DataError(what, where=where, hint="count columns from 0; tabs separate them")
        return str(number), cells[self.text], None if self.image is None else cells[self.image]


def open_lines(path: str, *, size: int = ROWS, text: int | None = None, image: int | None = None) -> Lines:
    """Return a text file as a source of pieces; one pass over the file finds where they begin."""
    starts: list[int] = []
    position = rows = 0
    for line in _bounded(path):
        if rows % size == 0:
            starts.append(position)
        position += len(line)
        rows += 1
    return Lines(path, tuple(starts), rows, size, text, image)


def _bounded(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; raise a DataError for a line of `LONGEST` bytes or more."""
    with open_file(path) as file:
        number = 1
        while line := file.readline(LONGEST):
            if len(line) == LONGEST:
                what = f"is a line of more than {LONGEST >> 20} MB"
                raise DataError(what, where=f"{path}:{number}", hint="name a text file, one caption per line")
            yield line
            number += 1
