"""One published record: its fields, where it stands, and what its fields must be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import Item, Tag, is_unicode
from creperie.core import DataError

_EXACT = 2**53


@dataclass(slots=True)
class Record:
    """A published record: its key or number in its file, its value, its fields by name, and where it stands."""

    key: str
    value: Any
    fields: Mapping[str, Any]
    where: str

    def error(self, what: str, hint: str = "") -> DataError:
        return DataError(what, where=self.where, hint=hint)


def record_of(key: str, value: Any, where: str) -> Record:
    """Return a record with the fields of its value: an object's by name, a list's by number."""
    fields: Mapping[str, Any] = {}
    if isinstance(value, dict):
        fields = value
    elif isinstance(value, list):
        fields = {str(i): inner for i, inner in enumerate(value)}
    return Record(key, value, fields, where)


def kind_of(value: Any) -> str:
    """Return what a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def text_of(record: Record, name: str) -> str:
    """Return a field that is text."""
    if name not in record.fields:
        raise record.error(f"has no field {name!r}", f"its fields are: {_listed(record)}")
    return checked_text(record, name, record.fields[name])


def checked_text(record: Record, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise record.error(f"{name!r} is {kind_of(value)}, expected text")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise record.error(f"{name!r} holds an unpaired surrogate, which is not a character") from None
    return value


def image_of(record: Record, name: str) -> str:
    """Return a field that names an image, as an image reference."""
    key = text_of(record, name)
    return image_reference(key) if "#" in key else key


def image_key(item: Item, number: int = 0) -> str:
    """Return the name of an item's image, without a crop box."""
    reference = item.images[number]
    return split_reference(reference)[0] if "#" in reference else reference


def texts_of(record: Record, name: str, least: int = 1) -> list[str]:
    """Return a field that is a list of texts."""
    if name not in record.fields:
        raise record.error(f"has no field {name!r}", f"its fields are: {_listed(record)}")
    values = record.fields[name]
    if not isinstance(values, list):
        raise record.error(f"{name!r} is {kind_of(values)}, expected a list of texts")
    if len(values) < least:
        raise record.error(f"{name!r} holds {len(values)} texts, expected at least {least}")
    return [checked_text(record, name, value) for value in values]


def number_of(record: Record, name: str) -> float:
    """Return a field that is a finite number, written as one or as text."""
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
    """Return the field `id`, a whole number or text; the record's key where there is none."""
    value = record.fields.get("id", record.key)
    return str(value) if type(value) is int else checked_text(record, "id", value)


def whole_id(text: str) -> int | str:
    """Return an id as a number where it is written as one, else as text: the way back of `id_of`."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 and str(int(text)) == text else text


def tag_of(value: Any) -> Tag | None:
    """Return a scalar as a tag; None for what is not a tag. Integers that a float cannot hold become text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str) and (value.isascii() or is_unicode(value)):
        return value
    return None


def tags_of(record: Record, names: Sequence[str]) -> dict[str, Tag]:
    """Return those of these fields that the record has and that are scalars."""
    tags: dict[str, Tag] = {}
    for name in names:
        tag = tag_of(record.fields.get(name))
        if tag is not None:
            tags[name] = tag
    return tags


def numeric_tag(text: str) -> Tag:
    """Return a cell of a table as a number where it is one, else as it is.

    >>> numeric_tag("4"), numeric_tag("four")
    (4.0, 'four')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _listed(record: Record) -> str:
    return ", ".join(str(n)[:40] for n in list(record.fields)[:20]) or "none"
