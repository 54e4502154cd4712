"""Rows of records in whatever table a file is: JSON, JSON Lines, CSV, TSV or Parquet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from creperie.bench.formats.delimited import DelimitedStyle
from creperie.bench.formats.jsontext import JsonStyle
from creperie.bench.formats.layout import Style
from creperie.bench.formats.record import Record
from creperie.bench.formats.textfile import read_text
from creperie.core import DataError, UsageError

#: Endings of the files that hold rows.
TABLES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")


def style_of(path: Path) -> Style:
    """How the rows of a text file are written, by its ending."""
    ending = path.suffix.lower()
    if ending == ".json":
        return JsonStyle("list")
    if ending in (".jsonl", ".ndjson"):
        return JsonStyle("lines")
    if ending in (".csv", ".tsv"):
        return DelimitedStyle("," if ending == ".csv" else "\t", True, ())
    raise UsageError("is not a table that can be read", where=str(path), hint=f"expected one of {', '.join(TABLES)}")


def read_rows(path: Path, first: int = 0) -> list[Record]:
    """The rows of one file. `first` is the number of rows in earlier files of the same data set."""
    if path.suffix.lower() == ".parquet":
        return _parquet_rows(path, first)
    records = style_of(path).scan(read_text(path), str(path))
    if not records:
        raise DataError("holds no records", where=str(path))
    return records


def _parquet_rows(path: Path, first: int) -> list[Record]:
    """Rows of a Parquet file. Of image columns only the path is read, the pictures stay where they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from creperie.bench.stores import image_columns

    try:
        file = pq.ParquetFile(path)
        pictures = image_columns(file.schema_arrow)
        columns = [f"{n}.path" if n in pictures else n for n in file.schema_arrow.names]
        rows = file.read(columns=columns).to_pylist()
    except (OSError, pa.ArrowException, ValueError, OverflowError) as e:
        raise DataError(f"is not a Parquet file that can be read ({str(e)[:120]})", where=str(path)) from None
    keys = {name: [picture_key(row.get(name), name, first + i) for i, row in enumerate(rows)] for name in pictures}
    times = Counter(key for column in keys.values() for key in column)
    for name, column in keys.items():
        for i, key in enumerate(column):
            rows[i][name] = key if times[key] == 1 else f"{name}/{first + i}"
    return [Record(str(i), row, row, str(path), "", 0, 0, 0) for i, row in enumerate(rows)]


def picture_key(cell: Any, column: str, row: int) -> str:
    """The key of a picture in an image column: the path it was stored with, else its column and row."""
    path = cell.get("path") if isinstance(cell, dict) else None
    return path or f"{column}/{row}"
