"""Parsing of cells that contain a Python list or set of strings. Some benchmarks publish their negatives in this
way.
"""

from __future__ import annotations

import ast
import re
import warnings

from creperie.bench.formats.record import Record, checked_text

#: Maximum length of such a cell, in characters.
LONGEST_LITERAL = 1_000_000
_STRING = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_TOKEN = re.compile(rf"\s*({_STRING})\s*(,|$)")


def _string(literal: str) -> str | None:
    """Return the value of a Python string literal. Return None if it is not valid Python, for example because of a bad
    escape.
    """
    if "\\" not in literal:
        return literal[1:-1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes such as \\d
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return None


def literal_texts(text: str, record: Record, name: str) -> list[str]:
    """Return the strings in a cell that is a Python list or set literal. The strings of a set are sorted."""
    # Only brackets and string literals are accepted, so that nothing is ever executed.
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
        token = _TOKEN.match(body, position)
        value = _string(token[1]) if token else None
        if token is None or value is None:
            shown = body[position : position + 40]
            raise record.error(f"{name!r} holds {shown!r}, expected strings in quotes with commas between them")
        values.append(checked_text(record, name, value))
        position = token.end()
    if is_set and not body:  # {} is a dictionary
        raise record.error(f"{name!r} is {{}}, expected a Python list or set of strings")
    return sorted(values) if is_set else values
