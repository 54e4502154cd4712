"""Tables in files: rows of records whatever the file is (JSON, JSON Lines, CSV, TSV, Parquet), or a chunk at a time.

A chunk is read with which columns there are, and the values of those that are wanted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from creperie.bench.formats.columns import CHUNK
from creperie.bench.formats.delimited import DelimitedStyle
from creperie.bench.formats.jsontext import JsonStyle, decode_json, decode_line
from creperie.bench.formats.layout import Style
from creperie.bench.formats.record import Record, kind_of
from creperie.bench.formats.textfile import BOM, read_lines, read_text
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


@dataclass(frozen=True)
class Chunk:
    """Some rows: their columns by name, and where each row stands, as a number that `Table.where` understands."""

    columns: dict[str, list[Any]]
    places: Sequence[int]


@dataclass(frozen=True)
class TableFile:
    """A table in a file. In tables of text an empty cell is a missing one (`text` is true)."""

    path: Path
    names: list[str]
    text: bool
    unit: str
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]

    def where(self, place: int) -> str:
        return f"{self.path}:{place}" if self.unit == "line" else f"{self.path} ({self.unit} {place})"


def open_table(path: Path, kind: str, *, delimiter: str = "", quotes: bool = True) -> TableFile:
    """The table in a file of one of the kinds csv, tsv, jsonl, parquet."""
    if kind in ("csv", "tsv"):
        return _delimited(path, delimiter or ("," if kind == "csv" else "\t"), quotes)
    return _json_lines(path) if kind == "jsonl" else _parquet(path)


# -- CSV and TSV -----------------------------------------------------------------------------------------------------


def _delimited(path: Path, delimiter: str, quotes: bool) -> TableFile:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"{delimiter!r} cannot separate cells", hint="give one character, for example ;")
    rows = _csv_rows(path, delimiter, quotes)
    _, header = next(rows, (1, []))
    if not header:
        raise DataError("is empty", where=str(path), hint="the first line must name the columns")
    for i, name in enumerate(header):
        if name in header[:i]:
            raise DataError(f"names the column {name[:60]!r} twice", where=f"{path}:1")

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        at = [header.index(name) for name in wanted]
        body = islice(_csv_rows(path, delimiter, quotes), 1, None)
        while some := list(islice(body, CHUNK)):
            for line, row in some:
                if len(row) != len(header):
                    what = f"has {len(row)} cells, expected {len(header)} as in the header"
                    raise DataError(what, where=f"{path}:{line}", hint="put a cell that holds a separator in quotes")
            yield Chunk({n: [row[i] for _, row in some] for n, i in zip(wanted, at, strict=True)}, [p for p, _ in some])

    return TableFile(path, header, True, "line", chunks)


def _csv_rows(path: Path, delimiter: str, quotes: bool) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line they start on; lines without a character are not rows."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if quotes:
                reader = csv.reader(file, delimiter=delimiter, strict=True)
            else:
                reader = csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", where=f"{path}:{line} or below", hint="save the file as UTF-8") from None
    except csv.Error as e:
        hint = "if quotation marks are ordinary characters, pass `no_quotes=True` (or ?quotes=no)" if quotes else ""
        raise DataError(f"is not a table that can be read ({e})", where=f"{path}:{line}", hint=hint) from None
    except OSError as e:
        raise DataError(f"cannot be read ({e.strerror})", where=str(path)) from None


# -- JSON Lines ------------------------------------------------------------------------------------------------------


def _json_lines(path: Path) -> TableFile:
    names: dict[str, None] = {}
    for _, row in islice(_json_rows(path), CHUNK):
        names.update(dict.fromkeys(row))
    if not names:
        raise DataError("holds no records", where=str(path))

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        rows = _json_rows(path)
        while some := list(islice(rows, CHUNK)):
            yield Chunk({name: [row.get(name) for _, row in some] for name in wanted}, [place for place, _ in some])

    return TableFile(path, list(names), False, "record" if _is_list(path) else "line", chunks)


def _is_list(path: Path) -> bool:
    """Is the file one JSON list, rather than lines?"""
    for _, line in read_lines(path):
        text = line.removeprefix(BOM).strip()
        if text:
            return text.startswith("[")
    return False


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is_list(path):
        rows = decode_json(read_text(path), str(path))
        for number, row in enumerate(rows if isinstance(rows, list) else [rows]):
            if not isinstance(row, dict):
                raise DataError(f"is {kind_of(row)}, expected an object", where=f"{path} (record {number})")
            yield number, row
        return
    first = True
    for number, line in read_lines(path):
        text = line.removeprefix(BOM) if number == 1 else line
        if not text or text.isspace():
            continue
        if first and text.strip() == "{":
            hint = "a published benchmark? say which: `format='NAME'`"
            raise DataError(
                "is one object over several lines, expected a list, or one object per line", where=str(path), hint=hint
            )
        first = False
        row = decode_line(text, str(path), number)
        if not isinstance(row, dict):
            raise DataError(f"is {kind_of(row)}, expected an object", where=f"{path}:{number}")
        yield number, row


# -- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet(path: Path) -> TableFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from creperie.bench.stores import image_columns

    def failed(e: Exception) -> DataError:
        return DataError(f"is not a Parquet file that can be read ({str(e)[:120]})", where=str(path))

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except (OSError, pa.ArrowException, ValueError) as e:
        raise failed(e) from None
    pictures = set(image_columns(schema))

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        first = 0
        columns = [f"{n}.path" if n in pictures else n for n in wanted]
        try:
            for batch in file.iter_batches(batch_size=CHUNK, columns=columns):
                values = {n: batch.column(n).to_pylist() for n in wanted}
                for name in pictures & set(wanted):
                    values[name] = [picture_key(cell, name, first + i) for i, cell in enumerate(values[name])]
                yield Chunk(values, range(first, first + batch.num_rows))
                first += batch.num_rows
        except (OSError, pa.ArrowException, ValueError, OverflowError) as e:
            raise failed(e) from None

    return TableFile(path, list(schema.names), False, "row", chunks)
