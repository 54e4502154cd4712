"""The form of a question, and the checks on what the page sends back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from creperie.core import DataError, Json

#: The longest caption that an annotator can write.
LONGEST = 2000


class AnswerError(DataError):
    """Raised for an answer that does not fit the form of the question."""


@dataclass(frozen=True)
class AnswerOption:
    """An option to choose from. `quote` marks a label that is a caption."""

    value: str
    label: str
    hint: str = ""
    quote: bool = False


@dataclass(frozen=True)
class Field:
    """A field of a form: a `choice` of one option, a `text`, or a `scale` from `low` to `high`.

    `when` is (name of another field, value). This field is required if the other field has that value.
    """

    name: str
    kind: str
    label: str
    options: tuple[AnswerOption, ...] = ()
    value: str = ""
    when: tuple[str, str] | None = None
    low: int = 0
    high: int = 0
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class PageForm:
    """A question as the page shows it: pictures, sentences to read, and fields to fill in."""

    ask: str
    fields: tuple[Field, ...]
    texts: tuple[tuple[str, str], ...] = ()
    pictures: tuple[str, ...] = ()  #: one label per picture; the page requests them by number


def read_form(form: PageForm, given: Mapping[str, Any]) -> Json:
    """Return the fields of an answer after checking them; raise an AnswerError if the answer does not fit the form."""
    known = {f.name for f in form.fields}
    if extra := sorted(set(given) - known):
        raise AnswerError(f"the question has no field {extra[0][:40]!r}; load the page again")
    read: Json = {}
    for field in form.fields:
        if field.when is not None and read.get(field.when[0]) != field.when[1]:
            continue
        read[field.name] = _READERS[field.kind](field, given.get(field.name))
    return read


def _read_choice(field: Field, value: Any) -> str:
    if not isinstance(value, str) or value not in {o.value for o in field.options}:
        raise AnswerError(f"{field.name!r} must be one of {', '.join(o.value for o in field.options)}")
    return value


def _read_text(field: Field, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise AnswerError(f"{field.name!r} is empty")
    if len(value) > LONGEST:
        raise AnswerError(f"{field.name!r} has {len(value)} characters, more than {LONGEST}")
    if not is_storable(value):
        raise AnswerError(f"{field.name!r} contains characters that cannot be stored; paste it again as plain text")
    return value


def _read_scale(field: Field, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,6}", value):  # as the form of a page sends it
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not field.low <= value <= field.high:
        raise AnswerError(f"{field.name!r} must be a whole number from {field.low} to {field.high}")
    return value


_READERS = {"choice": _read_choice, "text": _read_text, "scale": _read_scale}


def is_storable(text: str) -> bool:
    """Return True if every database can store the text: it has no NUL and no unpaired surrogate.

    >>> is_storable("crêpe"), is_storable("a\\0b"), is_storable("\\ud800")
    (True, False, False)
    """
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
