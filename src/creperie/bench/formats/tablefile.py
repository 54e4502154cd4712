"""Tables with a column of captions, in a file or in memory, read row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from creperie.bench.formats.record import kind_of
from creperie.bench.images import ImageStore
from creperie.core import (
    DataError,
    UsageError,
    check_columns,
    csv_rows,
    first_line,
    json_lines,
    open_parquet,
    read_json,
    reading_parquet,
)

#: Number of records of a JSON Lines file that are read to collect the column names.
_LOOKED_AT = 65_536
#: Separators that are recognised in a table with another ending.
DELIMITERS = (";", "\t", ",", "|")
Rows = Iterator[tuple[str, Sequence[Any]]]


@dataclass(frozen=True)
class TableSource:
    """A table: its location, its column names, and a function that yields its rows. The function takes the names of
    columns, and yields each row's location and values in these columns.

    `text` is True if all cells are text, so that an empty cell means a missing value. `images` is the store of the
    images that the table contains.
    """

    where: str
    names: list[str]
    text: bool
    rows: Callable[[Sequence[str]], Rows]
    images: ImageStore | None = None


def open_table(path: Path, kind: str, *, delimiter: str = "", quotes: bool = True) -> TableSource:
    """Return the table in a file. `kind` is the type of the file: csv, tsv, jsonl or parquet."""
    if kind in ("csv", "tsv"):
        return _delimited(path, delimiter or _delimiter(path, "," if kind == "csv" else "\t", quotes), quotes)
    return table_of_records(str(path), lambda: _json_records(path)) if kind == "jsonl" else _parquet(path)


def _delimiter(path: Path, usual: str, quotes: bool) -> str:
    """Return the separator of a table file. If the header line contains `usual`, this is the separator. Otherwise it is
    the separator that occurs most often in the header line.
    """
    # Some spreadsheets write semicolons, because their decimal mark is a comma.
    heading = first_line(path)
    plain = re.sub('"[^"]*"', "", heading) if quotes else heading
    return usual if usual in plain else max((usual, *DELIMITERS), key=plain.count)


def _delimited(path: Path, delimiter: str, quotes: bool) -> TableSource:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"{delimiter!r} cannot separate cells", hint="give one character, for example ;")
    _, header = next(csv_rows(path, delimiter, quotes=quotes))

    def rows(columns: Sequence[str]) -> Rows:
        places = [header.index(name) for name in columns]
        for line, row in islice(csv_rows(path, delimiter, quotes=quotes), 1, None):
            yield f"{path}:{line}", [row[i] for i in places]

    return TableSource(str(path), header, True, rows)


def table_of_records(where: str, records: Callable[[], Iterable[tuple[str, Mapping[str, Any]]]]) -> TableSource:
    """Return a table of JSON objects. Its columns are the keys that occur in the first objects (at most 65,536)."""
    names: dict[str, None] = {}
    for _, record in islice(records(), _LOOKED_AT):
        names.update(dict.fromkeys(record))
        check_columns(len(names), where)
    if not names:
        raise DataError("holds no records", where=where, hint="give at least one")

    def rows(columns: Sequence[str]) -> Rows:
        for place, record in records():
            yield place, [record.get(name) for name in columns]

    return TableSource(where, list(names), False, rows)


def _json_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (location, record) for the records of a JSON file. The file has one object per line, or a single list of
    objects.
    """
    opening = first_line(path).strip()
    if opening == "{":
        raise DataError(
            "is one object over several lines, expected a list, or one object per line",
            where=path,
            hint="if it is a published benchmark, name its format: `format='NAME'`",
        )
    located: Iterable[tuple[str, Any]] = json_lines(path)
    if opening.startswith("["):
        located = ((f"{path} (record {i})", value) for i, value in enumerate(read_json(path, strict=True)))
    yield from (_object(value, where) for where, value in located)


def _object(value: Any, where: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        raise DataError(f"is {kind_of(value)}, expected an object", where=where, hint="write one JSON object per row")
    return where, value


def _parquet(path: Path) -> TableSource:
    """Return the table in a Parquet file. For image columns, only the paths are read, not the images."""
    from creperie.bench.stores import ParquetStore, image_columns

    with reading_parquet(path):
        file = open_parquet(path)
        schema = file.schema_arrow
    check_columns(len(schema.names), str(path))
    store = ParquetStore(path, (path,))
    pictures = set(image_columns(schema))

    def rows(asked: Sequence[str]) -> Rows:
        number = 0
        names = {column: store.row_names(column) for column in pictures & set(asked)}
        others = [column for column in asked if column not in pictures]
        with reading_parquet(path):
            for batch in file.iter_batches(batch_size=8192, columns=others):
                places = range(number, number + batch.num_rows)
                columns = [
                    [names[n][i] for i in places] if n in pictures else batch.column(n).to_pylist() for n in asked
                ]
                for i, values in zip(places, zip(*columns, strict=True), strict=True):
                    yield f"{path} (row {i})", values
                number += batch.num_rows

    return TableSource(str(path), list(schema.names), False, rows, store if pictures else None)
