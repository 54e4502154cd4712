"""Captions, or the items of a benchmark, in Parquet files. Reading a piece reads at most one row group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.bench import Benchmark, KeptRows, Parquet
from creperie.core import ROW_GROUP, DataError, UsageError, open_parquet, unknown
from creperie.engine.files import open_file
from creperie.engine.pieces import CAPTIONS, ROWS, Held, Pieces

RowsPlace = tuple[int, int, int, int]  #: file, row group, first row in it, rows


@dataclass(frozen=True)
class Columnar(Pieces):
    """Captions in Parquet files, in pieces. If there is no id column, ids are made from file, row group and row
    numbers.
    """

    files: tuple[str, ...]
    places: tuple[RowsPlace, ...]
    text: str
    id: str = ""
    image: str = ""

    @property
    def counts(self) -> Sequence[int]:
        return [rows for *_, rows in self.places]

    def piece(self, number: int) -> pa.Table:
        file, group, first, rows = self.places[number]
        names = [n for n in (self.text, self.id, self.image) if n]
        table = _row_group(self.files[file], group, tuple(names)).slice(first, rows)
        ids = table.column(self.id) if self.id else pa.array([f"{file}.{group}.{first + k}" for k in range(rows)])
        image = self._images(table, number) if self.image else pa.nulls(rows, pa.string())
        try:
            return pa.table([ids.cast(pa.string()), table.column(self.text).cast(pa.string()), image], schema=CAPTIONS)
        except (pa.ArrowException, ValueError, TypeError) as e:
            what = f"a column does not contain text ({str(e)[:80]})"
            raise DataError(what, where=self.files[file], hint="name columns of text: ?text=COLUMN") from None

    def _images(self, table: pa.Table, number: int) -> pa.Array:
        """Return the image names in piece `number`: the paths or URLs in the image column. The name of an embedded
        picture is its path or, if it has none, `COLUMN/ROW`, where ROW counts all rows of the source.
        """
        column = table.column(self.image)
        if not pa.types.is_struct(column.type):
            return column
        first = sum(self.counts[:number])
        paths = [(cell or {}).get("path") for cell in column.to_pylist()]
        return pa.array([path or f"{self.image}/{first + k}" for k, path in enumerate(paths)], pa.string())


@dataclass(frozen=True, eq=False)
class ItemPieces(Pieces):
    """Columns of a benchmark on disk, one row group per piece. If `keep` is given, it is a mask that selects items."""

    files: tuple[str, ...]
    places: tuple[RowsPlace, ...]
    names: tuple[str, ...]
    keep: np.ndarray | None = None

    @property
    def counts(self) -> Sequence[int]:
        return [len(mask) if self.keep is None else int(mask.sum()) for mask in map(self._mask, range(len(self)))]

    def __len__(self) -> int:
        return len(self.places)

    def _mask(self, number: int) -> np.ndarray:
        *_, first, rows = self.places[number]
        return np.ones(rows, bool) if self.keep is None else self.keep[first : first + rows]

    def piece(self, number: int) -> pa.Table:
        file, group, *_ = self.places[number]
        return _row_group(self.files[file], group, self.names).filter(pa.array(self._mask(number)))


def item_pieces(bench: Benchmark, columns: Sequence[str]) -> Pieces:
    """Return the named columns of a benchmark's items as pieces. If the benchmark is on disk, workers read the pieces
    directly from its files.
    """
    source = bench.source
    if not isinstance(source, Parquet):
        return Held(source.select(list(columns)), ROW_GROUP)
    places: list[RowsPlace] = []
    for number, path in enumerate(source.files):
        with open_parquet(path) as file:
            groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
        first = sum(rows for *_, rows in places)
        places += [(number, g, first + sum(groups[:g]), rows) for g, rows in enumerate(groups)]
    keep = source.keep if isinstance(source, KeptRows) else None
    return ItemPieces(tuple(map(str, source.files)), tuple(places), tuple(columns), keep)


def open_columnar(
    files: list[str], *, size: int = ROWS, text: str = "caption", id: str = "", image: str = ""
) -> Columnar:
    """Return Parquet files as a source of captions. Only the footers of the files are read."""
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
        raise UsageError("no Parquet files given", hint="name a file, a folder, or a pattern")
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
            what = f"cannot be read ({str(e)[:80]})"
            raise DataError(what, where=f"{path} row group {group}", hint="fetch the file again") from None
