"""Conversion to JSON: the one place where NaN, numpy numbers and paths become JSON values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

#: A JSON document, or a part of one: an object by its keys.
Json = dict[str, Any]
#: The same where it is only read.
Document = Mapping[str, Any]


def json_value(value: Any) -> Any:
    """Return a copy of the value that JSON can represent. NaN and infinities become null, numpy numbers plain numbers,
    and other objects text.

    >>> json_value({"accuracy": float("nan"), 1: (2, None)})
    {'accuracy': None, '1': [2, None]}
    """
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return json_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return the value as a JSON document.

    >>> json_text([float("inf"), "é"], indent=None)
    '[null, "é"]'
    """
    return json.dumps(json_value(value), ensure_ascii=False, indent=indent, allow_nan=False)
