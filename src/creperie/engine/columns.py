"""Captions in any number of Parquet files. A piece lies within one row group, and only that row group is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from creperie.core import DataError, UsageError, open_parquet, unknown
from creperie.engine.files import open_file
from creperie.engine.lines import CAPTIONS
from creperie.engine.pieces import ROWS

RowsPlace = tuple[int, int, int, int]  #: file, row group, first row in it, rows


@dataclass(frozen=True)
class Columnar:
    """Parquet files as a source of pieces. Ids are a column, or built from file, row group and row."""

    files: tuple[str, ...]
    places: tuple[RowsPlace, ...]
    text: str
    id: str = ""
    image: str = ""

    @property
    def rows(self) -> int:
        return sum(self.counts)

    @property
    def counts(self) -> Sequence[int]:
        return [rows for *_, rows in self.places]

    def __len__(self) -> int:
        return len(self.places)

    def piece(self, number: int) -> pa.Table:
        file, group, first, rows = self.places[number]
        names = [n for n in (self.text, self.id, self.image) if n]
        table = _row_group(self.files[file], group, tuple(names)).slice(first, rows)
        ids = table.column(self.id) if self.id else pa.array([f"{file}.{group}.{first + k}" for k in range(rows)])
        image = self._images(table, number) if self.image else pa.nulls(rows, pa.string())
        try:
            return pa.table([ids.cast(pa.string()), table.column(self.text).cast(pa.string()), image], schema=CAPTIONS)
        except (pa.ArrowException, ValueError, TypeError) as e:
            raise DataError(f"has a column that is not text ({str(e)[:80]})", where=self.files[file]) from None

    def _images(self, table: pa.Table, number: int) -> pa.Array:
        """Return the names of images: a column of paths or URLs; of pictures, their paths or `COLUMN/ROW`, as image
        stores name them.
        """
        column = table.column(self.image)
        if not pa.types.is_struct(column.type):
            return column
        first = sum(self.counts[:number])
        paths = [(cell or {}).get("path") for cell in table.column(self.image).to_pylist()]
        return pa.array([path or f"{self.image}/{first + k}" for k, path in enumerate(paths)], pa.string())


def open_columnar(
    files: list[str], *, size: int = ROWS, text: str = "caption", id: str = "", image: str = ""
) -> Columnar:
    """Return Parquet files as a source of captions; only the footers of the files are read."""
    places: list[RowsPlace] = []
    for number, path in enumerate(files):
        with open_file(path) as file:
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
    return Columnar(tuple(files), tuple(places), text, id, image)


def _opened(file: Any, path: str) -> Any:
    try:
        return open_parquet(file)
    except (pa.ArrowException, OSError) as e:
        raise DataError(f"is not a complete Parquet file ({str(e)[:80]})", where=path, hint="fetch it again") from None


@lru_cache(maxsize=1)  # pieces are read in order: the next one is usually in the same row group
def _row_group(path: str, group: int, names: tuple[str, ...]) -> pa.Table:
    with open_file(path) as file:
        try:
            return _opened(file, path).read_row_group(group, columns=list(names))
        except (pa.ArrowException, OSError) as e:
            raise DataError(f"cannot be read ({str(e)[:80]})", where=f"{path} row group {group}") from None
