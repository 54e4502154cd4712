"""Reading and writing files of records: a JSON object or list, JSON Lines, CSV or TSV; Parquet is only read."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from creperie.bench.formats.record import Record, kind_of, record_of
from creperie.bench.item import is_unicode
from creperie.core import (
    DataError,
    UsageError,
    csv_rows,
    json_bytes,
    json_lines,
    open_parquet,
    read_json,
    reading_parquet,
)

#: The container of the records in a file. In a plain TSV file a quotation mark is an ordinary character.
RecordKind = Literal["object", "list", "lines", "csv", "tsv", "plain-tsv"]
KIND_OF_ENDING: dict[str, RecordKind] = {
    ".json": "list",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "tsv",
}
#: Endings of files that contain rows.
TABLES = (*KIND_OF_ENDING, ".parquet")
_CONTAINERS: dict[str, tuple[Any, str]] = {"object": (dict, "an object"), "list": (list, "a list")}


def read_records(path: Path, kind: RecordKind | None = None, first: int = 0) -> list[Record]:
    """Return the records in a file.

    In Parquet files, an image without a path is named by its column and row. Rows are counted from `first`, the number
    of records in earlier files of the same data set.
    """
    if kind is None and path.suffix.lower() == ".parquet":
        return _parquet_records(path, first)
    kind = kind or KIND_OF_ENDING.get(path.suffix.lower())
    if kind is None:
        raise UsageError("is not a table that can be read", where=path, hint=f"expected one of {', '.join(TABLES)}")
    if kind in _CONTAINERS:
        records = _json_records(path, kind)
    elif kind == "lines":
        lines = enumerate(json_lines(path))
        records = [record_of(str(n), value, f"{where} (record '{n}')") for n, (where, value) in lines]
    else:
        records = _table_records(path, kind)
    if not records:
        raise DataError("holds no records", where=path, hint="give a file with at least one")
    return records


def _json_records(path: Path, kind: str) -> list[Record]:
    value = read_json(path, strict=True)
    container, name = _CONTAINERS[kind]
    if not isinstance(value, container):
        raise DataError(
            f"is {kind_of(value)}, expected {name} of records",
            where=path,
            hint="if the file has another format, write FORMAT:PATH; `creperie data list` shows the formats",
        )
    pairs = value.items() if isinstance(value, dict) else zip(map(str, range(len(value))), value, strict=True)
    records = [record_of(key, inner, f"{path} (record {key[:80]!r})") for key, inner in pairs]
    for record in records:
        if not is_unicode(record.key):
            raise DataError("has a key with an unpaired surrogate", where=path, hint="write the file again as UTF-8")
    return records


def _table_records(path: Path, kind: str) -> list[Record]:
    """Return one record per row below the header. The key of a record is its row number, counted from 0."""
    rows = csv_rows(path, "," if kind == "csv" else "\t", quotes=kind != "plain-tsv")
    _, names = next(rows)
    return [
        record_of(str(number), dict(zip(names, row, strict=True)), f"{path}:{line} (record '{number}')")
        for number, (line, row) in enumerate(rows)
    ]


def _parquet_records(path: Path, first: int) -> list[Record]:
    """Return one record per row of a Parquet file. For image columns, only the paths are read, not the images.

    An image without a path is named by its column and row. Rows are counted from `first`, the number of records in
    earlier files of the same data set.
    """
    import pyarrow as pa

    from creperie.bench.stores import image_columns

    with reading_parquet(path):
        file = open_parquet(path)
        pictures = [n for n in image_columns(file.schema_arrow) if pa.types.is_struct(file.schema_arrow.field(n).type)]
        columns = [f"{n}.path" if n in pictures else n for n in file.schema_arrow.names]
        rows = file.read(columns=columns).to_pylist()
    names = {n: [(row[n] or {}).get("path") or f"{n}/{first + i}" for i, row in enumerate(rows)] for n in pictures}
    times = Counter(key for column in names.values() for key in column)
    for name, column in names.items():
        for i, key in enumerate(column):
            rows[i][name] = key if times[key] == 1 else f"{name}/{first + i}"
    return [Record(str(i), row, row, f"{path} (row {i})") for i, row in enumerate(rows)]


def write_records(kind: RecordKind, records: Sequence[tuple[str, Any]], columns: Sequence[str] = ()) -> bytes:
    """Return the content of a file with these (key, record) pairs.

    A table has the given columns. Without `columns`, it has the columns of the first record.
    """
    if kind == "lines":
        return b"".join(json_bytes(value) for _, value in records)
    if kind in _CONTAINERS:
        return json_bytes(dict(records) if kind == "object" else [value for _, value in records], indent=2)
    columns = columns or list(records[0][1])
    cells = [[record.get(name, "") for name in columns] for _, record in records]
    rows = [columns, *([cell if isinstance(cell, str) else repr(cell) for cell in row] for row in cells)]
    if kind == "plain-tsv":
        for text in (text for row in rows for text in row if any(mark in text for mark in "\t\r\n")):
            raise UsageError(
                f"the text {text[:60]!r} holds a tab or a line end, which this table cannot", hint="export as jsonl"
            )
        return "".join("\t".join(row) + "\n" for row in rows).encode()
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="," if kind == "csv" else "\t").writerows(rows)
    return file.getvalue().encode()
