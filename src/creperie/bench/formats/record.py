"""One published record, functions that read its fields and check their types, and files of records: a JSON object or
list, JSON Lines, CSV or TSV; Parquet is only read.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import Item, Tag, is_unicode
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

_EXACT = 2**53


@dataclass(slots=True)
class Record:
    """A published record: its key or index in the file, its value, its fields by name, and its location for error
    messages.
    """

    key: str
    value: Any
    fields: Mapping[str, Any]
    where: str

    def error(self, what: str, hint: str = "correct it, or name another format") -> DataError:
        return DataError(what, where=self.where, hint=hint)


def record_of(key: str, value: Any, where: str) -> Record:
    """Return a record for a JSON value. Its fields are the entries of an object, or the elements of a list by index."""
    fields: Mapping[str, Any] = {}
    if isinstance(value, dict):
        fields = value
    elif isinstance(value, list):
        fields = {str(i): inner for i, inner in enumerate(value)}
    return Record(key, value, fields, where)


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value in words, for error messages."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def text_of(record: Record, name: str) -> str:
    """Return a text field; raise a DataError if it is missing or not text."""
    return checked_text(record, name, _field(record, name))


def _field(record: Record, name: str) -> Any:
    if name not in record.fields:
        listed = ", ".join(str(n)[:40] for n in list(record.fields)[:20]) or "none"
        raise record.error(f"has no field {name!r}", f"its fields are: {listed}")
    return record.fields[name]


def checked_text(record: Record, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise record.error(f"{name!r} is {kind_of(value)}, expected text")
    if not is_unicode(value):
        raise record.error(f"{name!r} holds an unpaired surrogate, which is not a character")
    return value


def image_of(record: Record, name: str) -> str:
    """Return the reference to the image that a field names."""
    key = text_of(record, name)
    return image_reference(key) if "#" in key else key


def image_key(item: Item, number: int = 0) -> str:
    """Return the key of an item's image `number`, without its crop box."""
    reference = item.images[number]
    return split_reference(reference)[0] if "#" in reference else reference


def texts_of(record: Record, name: str, least: int = 1) -> list[str]:
    """Return a field that is a list of at least `least` texts; raise a DataError if it is anything else."""
    values = _field(record, name)
    if not isinstance(values, list):
        raise record.error(f"{name!r} is {kind_of(values)}, expected a list of texts")
    if len(values) < least:
        raise record.error(f"{name!r} holds {len(values)} texts, expected at least {least}")
    return [checked_text(record, name, value) for value in values]


def number_of(record: Record, name: str) -> float:
    """Return the number in a field. The field holds a finite number, or a text that can be parsed as one."""
    value = record.fields.get(name)
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        shown = f"is {value[:40]!r}" if isinstance(value, str) else f"is {kind_of(value)}"
        raise record.error(f"{name!r} {shown if name in record.fields else 'is missing'}, expected a number")
    return number


def id_of(record: Record) -> str:
    """Return the field `id` (a text or an integer) as text. Without this field, return the record's key."""
    value = record.fields.get("id", record.key)
    return str(value) if type(value) is int else checked_text(record, "id", value)


def whole_id(text: str) -> int | str:
    """Return an id as an integer if it looks like one, else as text. This is the inverse of `id_of`."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 and str(int(text)) == text else text


def tag_of(value: Any) -> Tag | None:
    """Return a scalar as a tag, and None for anything else. Integers that a float cannot represent become texts."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str) and is_unicode(value) else None


def tags_of(record: Record, names: Sequence[str]) -> dict[str, Tag]:
    """Return the named fields of a record as tags; fields that are missing or not scalars are left out."""
    tags: dict[str, Tag] = {}
    for name in names:
        tag = tag_of(record.fields.get(name))
        if tag is not None:
            tags[name] = tag
    return tags


def numeric_tag(text: str) -> Tag:
    """Return a table cell as a number if it can be parsed as a finite number, else unchanged.

    >>> numeric_tag("4"), numeric_tag("four")
    (4.0, 'four')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


# -- files of records --------------------------------------------------------------------------------------------------

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
