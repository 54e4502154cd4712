"""Read a model's answer strictly: it is what was asked for, or it is malformed. Nothing is guessed."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

MOST_CHARACTERS = 2_000
#: Kinds of fields: a text of one line, a list of such (may be empty), a text or NA, yes or no.
KINDS = ("text", "texts", "text-or-na", "yesno")
_FENCE = re.compile(r"\A```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)

Fields = dict[str, Any]


class MalformedError(ValueError):
    """An answer that cannot be read; its message says why in a few words."""


def read_answer(text: str, wanted: Mapping[str, str]) -> Fields:
    """The fields of an answer. It must hold exactly one JSON object with exactly the wanted fields.

    A code fence or a sentence around the object is let pass, for they leave no doubt about what the answer is.

    >>> read_answer('Here you are: {"new": "owl"}', {"new": "text"})
    {'new': 'owl'}
    >>> read_answer('{"new": "owl"} {"new": "cat"}', {"new": "text"})
    Traceback (most recent call last):
    creperie.making.llm.parse.MalformedError: more than one JSON object
    """
    found = _one_object(text.strip())
    missing, extra = [n for n in wanted if n not in found], [n for n in found if n not in wanted]
    if missing:
        raise MalformedError(f"lacks the field {missing[0]!r}")
    if extra:
        raise MalformedError("a field that was not asked for")
    return {name: _value(name, found[name], kind) for name, kind in wanted.items()}


def _one_object(text: str) -> dict[str, Any]:
    fenced = _FENCE.match(text)
    text = fenced.group(1).strip() if fenced else text
    start = text.find("{")
    if start < 0:
        raise MalformedError("no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_once_each, parse_constant=_no_constant)
    try:
        found, end = decoder.raw_decode(text, start)
    except MalformedError:
        raise
    except (ValueError, RecursionError):
        raise MalformedError("broken JSON") from None
    if "{" in text[end:] or "}" in text[end:]:
        raise MalformedError("more than one JSON object")
    assert isinstance(found, dict)
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError("a field said twice")
    return found


def _no_constant(name: str) -> Any:
    raise MalformedError(f"{name} is not a JSON value")


def _value(name: str, value: Any, kind: str) -> Any:
    if kind == "texts":
        if not isinstance(value, list):
            raise MalformedError(f"the field {name!r} is not a list")
        return [_text(name, v) for v in value]
    text = _text(name, value)
    if kind == "yesno":
        said = text.strip().casefold()
        if re.match(r"yes\b", said):  # published: whatever begins with yes accepts
            return "yes"
        if re.match(r"no\b", said):
            return "no"
        raise MalformedError(f"the field {name!r} is neither yes nor no")
    if is_na(text) and kind != "text-or-na":
        raise MalformedError(f"the field {name!r} is NA")
    return text


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedError(f"the field {name!r} is not text")
    if not value.strip():
        raise MalformedError(f"the field {name!r} is empty")
    if len(value) > MOST_CHARACTERS:
        raise MalformedError(f"the field {name!r} is too long")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in value):
        raise MalformedError(f"the field {name!r} has line breaks or control characters")
    return value


def is_na(text: str) -> bool:
    """
    >>> is_na("NA"), is_na("n/a"), is_na("a nap")
    (True, True, False)
    """
    return text.strip().rstrip(".").casefold() in ("na", "n/a")


def schema_of(wanted: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of the wanted fields, for servers that hold a model to one."""
    text = {"type": "string"}
    types: dict[str, Any] = {
        "text": text,
        "text-or-na": text,
        "texts": {"type": "array", "items": text},
        "yesno": {"type": "string", "enum": ["yes", "no"]},
    }
    properties = {name: types[kind] for name, kind in wanted.items()}
    return {"type": "object", "properties": properties, "required": list(wanted), "additionalProperties": False}
