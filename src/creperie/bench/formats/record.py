"""One published record, and functions that read its fields and check their types."""

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
