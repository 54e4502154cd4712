"""Word lists and tables for makers."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_data(name: str) -> Any:
    """Return the content of a table: the JSON file `name`.json in this folder."""
    return json.loads((files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
