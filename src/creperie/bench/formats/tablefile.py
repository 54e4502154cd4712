"""Tables with a column of captions, in a file or in memory: their columns, and their rows one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from creperie.bench.formats.record import kind_of
from creperie.bench.images import ImageStore
from creperie.core import (
    BOM,
    DataError,
    UsageError,
    check_columns,
    csv_rows,
    parse_json,
    parse_json_line,
    read_lines,
    read_text,
)

#: Records of a JSON Lines file whose keys are its columns.
_LOOKED_AT = 65_536
Rows = Iterator[tuple[str, Sequence[Any]]]


@dataclass(frozen=True)
class TableSource:
    """A table: where it is, the names of its columns, and its rows as (where, values of the wanted columns).

    In tables of text an empty cell is a missing one (`text` is true). `images` are those that the table itself holds.
    """

    where: str
    names: list[str]
    text: bool
    rows: Callable[[Sequence[str]], Rows]
    images: ImageStore | None = None


def open_table(path: Path, kind: str, *, delimiter: str = "", quotes: bool = True) -> TableSource:
    """Return the table in a file of one of the kinds csv, tsv, jsonl, parquet."""
    if kind in ("csv", "tsv"):
        return _delimited(path, delimiter or ("," if kind == "csv" else "\t"), quotes)
    return _json_lines(path) if kind == "jsonl" else _parquet(path)


def _delimited(path: Path, delimiter: str, quotes: bool) -> TableSource:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"{delimiter!r} cannot separate cells", hint="give one character, for example ;")
    _, header = next(csv_rows(path, delimiter, quotes=quotes))

    def rows(wanted: Sequence[str]) -> Rows:
        places = [header.index(name) for name in wanted]
        for line, row in islice(csv_rows(path, delimiter, quotes=quotes), 1, None):
            yield f"{path}:{line}", [row[i] for i in places]

    return TableSource(str(path), header, True, rows)


def _json_lines(path: Path) -> TableSource:
    return table_of_records(str(path), lambda: _json_records(path))


def table_of_records(where: str, records: Callable[[], Iterable[tuple[str, Mapping[str, Any]]]]) -> TableSource:
    """Return a table whose rows are objects; the keys of the first of them are its columns."""
    names: dict[str, None] = {}
    for _, record in islice(records(), _LOOKED_AT):
        names.update(dict.fromkeys(record))
        check_columns(len(names), where)
    if not names:
        raise DataError("holds no records", where=where)

    def rows(wanted: Sequence[str]) -> Rows:
        for place, record in records():
            yield place, [record.get(name) for name in wanted]

    return TableSource(where, list(names), False, rows)


def _json_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the records of a file of JSON lines, or of one JSON list."""
    first = True
    for number, line in read_lines(path):
        text = line.removeprefix(BOM) if number == 1 else line
        if not text or text.isspace():
            continue
        if first and text.lstrip().startswith("["):
            values = parse_json(read_text(path), str(path), strict=True)
            yield from (_object(value, f"{path} (record {i})") for i, value in enumerate(values))
            return
        if first and text.strip() == "{":
            what = "is one object over several lines, expected a list, or one object per line"
            raise DataError(what, where=str(path), hint="a published benchmark? say which: `format='NAME'`")
        first = False
        yield _object(parse_json_line(text, str(path), number), f"{path}:{number}")


def _object(value: Any, where: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        raise DataError(f"is {kind_of(value)}, expected an object", where=where)
    return where, value


def _parquet(path: Path) -> TableSource:
    """Return a Parquet file. Of image columns only the path is read, the pictures stay where they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from creperie.bench.stores import ParquetStore, image_columns

    def failed(e: Exception) -> DataError:
        return DataError(f"is not a Parquet file that can be read ({str(e)[:120]})", where=str(path))

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except (OSError, pa.ArrowException, ValueError) as e:
        raise failed(e) from None
    check_columns(len(schema.names), str(path))
    store = ParquetStore(path, (path,))
    pictures = set(image_columns(schema))

    def rows(wanted: Sequence[str]) -> Rows:
        number = 0
        names = {column: store.row_names(column) for column in pictures & set(wanted)}
        others = [column for column in wanted if column not in pictures]
        try:
            for batch in file.iter_batches(batch_size=8192, columns=others):
                places = range(number, number + batch.num_rows)
                columns = [
                    [names[n][i] for i in places] if n in pictures else batch.column(n).to_pylist() for n in wanted
                ]
                for i, values in zip(places, zip(*columns, strict=True), strict=True):
                    yield f"{path} (row {i})", values
                number += batch.num_rows
        except (OSError, pa.ArrowException, ValueError, OverflowError) as e:
            raise failed(e) from None

    return TableSource(str(path), list(schema.names), False, rows, store if pictures else None)
