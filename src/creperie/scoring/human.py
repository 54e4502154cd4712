"""What people reach on a benchmark, where a paper prints it."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from typing import Any


@cache
def _tables() -> list[dict[str, Any]]:
    text = resources.files("creperie.scoring").joinpath("human.json").read_text(encoding="utf-8")
    tables: list[dict[str, Any]] = json.loads(text)
    return tables


def human_level(benchmark: str, task: str, subset: str) -> float:
    """The printed accuracy of people; NaN where no paper gives one.

    >>> human_level("sugarcrepe++", "tot", "swap_obj"), human_level("mine", "tot", "all")
    (0.9667, nan)
    """
    for table in _tables():
        if table["benchmark"] == benchmark and table["task"] == task:
            return float(table["accuracy"].get(subset, math.nan))
    return math.nan


def human_source(benchmark: str, task: str) -> str:
    """Which table says so; empty where none does."""
    return next((str(t["source"]) for t in _tables() if (t["benchmark"], t["task"]) == (benchmark, task)), "")
