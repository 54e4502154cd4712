"""JSON files of records, with the place of every field, so that they can be written back as they were."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NoReturn

from creperie.bench.formats.record import KEY, Record, kind_of
from creperie.bench.formats.textfile import BOM, line_of
from creperie.core import DataError

Kind = Literal["object", "list", "lines"]
_SPACE = re.compile(r"[ \t\n\r]*")
_LINE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")
_MEMBER = re.compile(r'[ \t\n\r,]*"((?:[^"\\]|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*')
_ELEMENT = re.compile(r"[ \t\n\r,]*")


class _RefusedError(Exception):
    """A value that JSON allows, or that Python's reader does, and that we do not take."""


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(f"holds {name}, which is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _RefusedError(f"holds the number {text[:20]}, which is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _RefusedError(f"holds the key {name[:80]!r} twice")
            seen.add(name)
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def decode_json(text: str, file: str) -> Any:
    """A whole JSON document; keys that come twice, NaN and Infinity are errors."""
    reader = _Reader(text, file)
    value, end = reader.value(reader.skip(len(BOM) if text.startswith(BOM) else 0))
    reader.expect_end(reader.skip(end))
    return value


def decode_line(text: str, file: str, line: int) -> Any:
    """One line of a JSON Lines file."""
    try:
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    except (ValueError, RecursionError, _RefusedError):
        pass  # the careful way below says what is wrong, and where
    try:
        return decode_json(text, file)
    except DataError as e:
        raise DataError(e.what, where=f"{file}:{line}", hint=e.hint) from None


@dataclass(frozen=True)
class JsonStyle:
    """How a JSON file of records is written.

    `kind` is what holds the records: one object (their keys are its keys), one list, or lines.
    """

    kind: Kind
    indent: int | None = None
    colon: str = ": "
    comma: str = ", "
    end: str = ""
    ascii: bool = True
    slash: bool = False

    def scan(self, text: str, file: str) -> list[Record]:
        """All records of a file."""
        reader = _Reader(text, file)
        scanners = {"object": reader.keyed, "list": reader.listed, "lines": reader.lines}
        return list(scanners[self.kind]())

    def fitted(self, text: str) -> JsonStyle:
        """This style with the escapes that a file uses."""
        return replace(self, ascii=text.isascii(), slash="\\/" in text)

    def details(self) -> dict[str, Any]:
        return {"ascii": self.ascii, "slash": self.slash}

    def encode(self, value: Any) -> str:
        text = _encoder(self.ascii, self.comma, self.colon)(value)
        return text.replace("/", "\\/") if self.slash else text

    def spans(self, record: Record) -> list[tuple[str, int, int]]:
        """Where a record's fields stand, in their order. The record has been read, so its text is known to be right."""
        spans = [] if record.body == record.start else [(KEY, *_key_span(record))]
        position = record.body + 1
        pattern = _MEMBER if isinstance(record.value, dict) else _ELEMENT
        for name in record.fields:
            found = pattern.match(record.text, position)
            assert found is not None
            position = _DECODER.raw_decode(record.text, found.end())[1]
            spans.append((name, found.end(), position))
        return spans

    @property
    def head(self) -> str:
        return {"object": "{", "list": "[", "lines": ""}[self.kind] + self._newline

    @property
    def gap(self) -> str:
        return "\n" if self.kind == "lines" else "," + (self._newline or " ")

    @property
    def tail(self) -> str:
        if self.kind == "lines":
            return "\n"
        return ("" if self.indent is None else "\n") + ("}" if self.kind == "object" else "]") + self.end

    @property
    def _newline(self) -> str:
        return "" if self.indent is None or self.kind == "lines" else "\n" + " " * self.indent

    def record(self, fields: Mapping[str, Any]) -> str:
        """A record that was in no file, in this style."""
        plain = {name: value for name, value in fields.items() if name != KEY}
        as_list = bool(plain) and all(name.isdecimal() for name in plain)
        if self.indent is None or self.kind == "lines":
            text = self.encode(list(plain.values()) if as_list else plain)
        else:
            deeper = self._newline + " " * self.indent
            parts = [
                self._indented(v) if as_list else f"{self.encode(n)}{self.colon}{self._indented(v)}"
                for n, v in plain.items()
            ]
            text = deeper + f",{deeper}".join(parts) + self._newline if parts else ""
            text = f"[{text}]" if as_list else f"{{{text}}}"
        return f"{self.encode(fields[KEY])}{self.colon}{text}" if self.kind == "object" else text

    def _indented(self, value: Any) -> str:
        """A value inside a record, over several lines where it has parts."""
        if not isinstance(value, (dict, list)):
            return self.encode(value)
        text = json.dumps(value, ensure_ascii=self.ascii, indent=self.indent, separators=(",", self.colon))
        text = text.replace("\n", self._newline + " " * (self.indent or 0))
        return text.replace("/", "\\/") if self.slash else text


@lru_cache(maxsize=32)
def _encoder(ascii: bool, comma: str, colon: str) -> Callable[[Any], str]:
    return json.JSONEncoder(ensure_ascii=ascii, separators=(comma, colon)).encode


def _key_span(record: Record) -> tuple[int, int]:
    return record.start, _DECODER.raw_decode(record.text, record.start)[1]


class _Reader:
    """A walk over JSON text that remembers where things stand. Inner values are read by the standard library."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file

    def fail(self, position: int, what: str) -> NoReturn:
        line = line_of(self.text, position)
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        raise DataError(what, where=f"{self.file}:{line}:{column}")

    def skip(self, position: int) -> int:
        found = _SPACE.match(self.text, position)
        return found.end() if found else position

    def value(self, position: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self.text, position)
        except json.JSONDecodeError as e:
            self.fail(e.pos, f"is not JSON: {e.msg}" if self.text.strip() else "is empty")
        except _RefusedError as e:
            self.fail(position, str(e))
        except RecursionError:
            self.fail(position, "is nested too deeply")
        except ValueError:  # Python refuses to read integers of thousands of digits
            self.fail(position, "holds a number with too many digits")

    def expect(self, position: int, mark: str) -> int:
        if not self.text.startswith(mark, position):
            self.fail(position, f"is not JSON: expected {mark!r}")
        return self.skip(position + len(mark))

    def expect_end(self, position: int) -> None:
        if position != len(self.text):
            self.fail(position, "is not JSON: there is more text after its end")

    def opened(self, mark: str, name: str) -> int:
        """Where the first record starts in a file that is one object or list."""
        position = self.skip(len(BOM) if self.text.startswith(BOM) else 0)
        if self.text.startswith(mark, position):
            return self.skip(position + 1)
        value, end = self.value(position)
        self.expect_end(self.skip(end))
        hint = "is this file of another format? `creperie data list` shows them"
        raise DataError(f"is {kind_of(value)}, expected {name} of records", where=self.file, hint=hint)

    def keyed(self) -> Iterator[Record]:
        position = self.opened("{", "an object")
        seen: set[str] = set()
        while not self.text.startswith("}", position):
            if seen:
                position = self.expect(position, ",")
            start = position
            key, end = self.key(start)
            if key in seen:
                self.fail(start, f"holds the key {key[:80]!r} twice")
            seen.add(key)
            record = self.record(key, self.expect(self.skip(end), ":"))
            record.start = start
            yield record
            position = self.skip(record.end)
        self.expect_end(self.skip(position + 1))

    def listed(self) -> Iterator[Record]:
        position = self.opened("[", "a list")
        count = 0
        while not self.text.startswith("]", position):
            if count:
                position = self.expect(position, ",")
            record = self.record(str(count), position)
            count += 1
            yield record
            position = self.skip(record.end)
        self.expect_end(self.skip(position + 1))

    def lines(self) -> Iterator[Record]:
        position = self.skip(len(BOM) if self.text.startswith(BOM) else 0)
        count = 0
        while position < len(self.text):
            record = self.record(str(count), position)
            ended = _LINE_END.match(self.text, record.end)
            if not ended:
                self.fail(record.end, "is not JSON Lines: expected one JSON object on each line")
            count += 1
            yield record
            position = self.skip(ended.end())

    def key(self, position: int) -> tuple[str, int]:
        if not self.text.startswith('"', position):
            self.fail(position, "is not JSON: expected a key in double quotes")
        key, end = self.value(position)
        if not key.isascii() and key.encode("utf-8", "ignore").decode("utf-8") != key:
            self.fail(position, "holds a key with an unpaired surrogate")
        return key, end

    def record(self, key: str, start: int) -> Record:
        """The record that starts here."""
        value, end = self.value(start)
        fields: dict[str, Any] = {}
        if isinstance(value, dict):
            fields = value
        elif isinstance(value, list):
            fields = {str(i): inner for i, inner in enumerate(value)}
        return Record(key, value, fields, self.file, self.text, start, end, start)
