"""TSV and CSV files of records, with the place of every cell, so that they can be written back as they were."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from creperie.bench.formats.record import Record, checked_text
from creperie.bench.formats.textfile import BOM, line_of
from creperie.core import DataError, UsageError

#: Longest list of texts that one cell may hold, in characters.
LONGEST_LITERAL = 1_000_000
_STRING = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_TOKEN = re.compile(rf"\s*({_STRING})\s*(,|$)")


@dataclass(frozen=True)
class DelimitedStyle:
    """How a table of text is written. Without `quoted`, a quotation mark is a character like any other."""

    delimiter: str
    quoted: bool
    columns: tuple[str, ...]
    newline: str = "\n"
    end: str = "\n"

    def scan(self, text: str, file: str) -> list[Record]:
        """All rows below the header. A row's key is its number, from 0."""
        rows = _rows(text, file, self.delimiter, self.quoted)
        header = next(rows, None)
        if header is None:
            raise DataError("is empty", where=file, hint="the first line must name the columns")
        names = _column_names(header[0], file)
        records = []
        for number, (cells, start, end) in enumerate(rows):
            if len(cells) != len(names):
                what = f"has {len(cells)} cells, expected {len(names)} as in the header"
                raise DataError(what, where=f"{file}:{line_of(text, start)}")
            fields = dict(zip(names, cells, strict=True))
            records.append(Record(str(number), fields, fields, file, text, start, end, start))
        return records

    def spans(self, record: Record) -> list[tuple[str, int, int]]:
        """Where a row's cells stand."""
        places = _cells(record.text, record.file, record.start, _cell_pattern(self.delimiter, self.quoted))[1]
        return [(name, *place) for name, place in zip(record.fields, places, strict=True)]

    def fitted(self, text: str) -> DelimitedStyle:
        """This style with the columns that a file has."""
        header = next(_rows(text, "", self.delimiter, self.quoted), None)
        return self if header is None else replace(self, columns=tuple(header[0]))

    def details(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    def encode(self, value: Any) -> str:
        """A cell's text: numbers as Python prints them, lists as Python literals."""
        text = value if isinstance(value, str) else repr(value)
        if self.quoted and any(mark in text for mark in (self.delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        if not self.quoted and any(mark in text for mark in (self.delimiter, "\n", "\r")):
            raise UsageError(
                f"the text {text[:60]!r} holds a tab or a line end, which this table cannot", hint="export as jsonl"
            )
        return text

    @property
    def head(self) -> str:
        return self.delimiter.join(self.encode(name) for name in self.columns) + self.newline

    @property
    def gap(self) -> str:
        return self.newline

    @property
    def tail(self) -> str:
        return self.end

    def record(self, fields: Mapping[str, Any]) -> str:
        """A row that was in no file; columns that nothing is known of stay empty."""
        return self.delimiter.join(self.encode(fields.get(name, "")) for name in self.columns)


def _column_names(names: list[str], file: str) -> list[str]:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DataError(f"names the column {name[:60]!r} twice", where=f"{file}:1")
    return names


def _rows(text: str, file: str, delimiter: str, quoted: bool) -> Iterator[tuple[list[str], int, int]]:
    """Rows as (cells, start, end). Lines without a character are not rows."""
    pattern = _cell_pattern(delimiter, quoted)
    position = len(BOM) if text.startswith(BOM) else 0
    size = len(text)
    while position < size:
        line_end = text.find("\n", position)
        end = size if line_end < 0 else line_end
        line = text[position:end].removesuffix("\r")
        if "\r" in line or (quoted and '"' in line):
            raw, places, after = _cells(text, file, position, pattern)
            cells = [r[1:-1].replace('""', '"') if quoted and r.startswith('"') else r for r in raw]
            span = (places[0][0], places[-1][1])
        else:
            cells, span, after = line.split(delimiter), (position, position + len(line)), end + 1
        position = after
        if len(cells) > 1 or cells[0]:
            yield cells, *span


@lru_cache(maxsize=8)
def _cell_pattern(delimiter: str, quoted: bool) -> re.Pattern[str]:
    quote = '"(?:[^"]|"")*+"|' if quoted else ""
    first = f'[^"{delimiter}\r\n]' if quoted else f"[^{delimiter}\r\n]"
    return re.compile(f"({quote}{first}[^{delimiter}\r\n]*+|)({delimiter}|\r\n|\n|\r|\\Z)")


def _cells(
    text: str, file: str, position: int, pattern: re.Pattern[str]
) -> tuple[list[str], list[tuple[int, int]], int]:
    """The raw cells of the row that starts here, their places, and where the next row starts."""
    raw: list[str] = []
    places: list[tuple[int, int]] = []
    while True:
        found = pattern.match(text, position)
        if not found:
            what = "holds a quoted cell that does not end, or goes on after its end"
            hint = 'write a quotation mark inside a quoted cell twice ("")'
            raise DataError(what, where=f"{file}:{line_of(text, position)}", hint=hint)
        raw.append(found[1])
        places.append(found.span(1))
        position = found.end()
        if found[2] in ("\r\n", "\n", "\r", ""):
            return raw, places, position


def _string(literal: str) -> str | None:
    """The value of a Python string literal that the pattern above let through."""
    if "\\" not in literal:
        return literal[1:-1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that mean nothing, such as \\d
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return None


def literal_texts(text: str, record: Record, name: str) -> list[str]:
    """A Python list or set of strings, as published in a cell; sets are sorted, since theirs is not an order.

    Only brackets and string literals are taken, so nothing else is ever evaluated.
    """
    inside = text.strip()
    if inside == "set()":
        return []
    is_set = inside.startswith("{") and inside.endswith("}")
    if len(text) > LONGEST_LITERAL or not (is_set or (inside.startswith("[") and inside.endswith("]"))):
        raise record.error(f"{name!r} is {text[:40]!r}, expected a Python list or set of strings")
    body = inside[1:-1].strip()
    values: list[str] = []
    position = 0
    while position < len(body):
        found = _TOKEN.match(body, position)
        value = _string(found[1]) if found else None
        if found is None or value is None:
            shown = body[position : position + 40]
            raise record.error(f"{name!r} holds {shown!r}, expected strings in quotes with commas between them")
        values.append(checked_text(record, name, value))
        position = found.end()
    if is_set and not body:  # {} is a dictionary
        raise record.error(f"{name!r} is {{}}, expected a Python list or set of strings")
    return sorted(values) if is_set else values
