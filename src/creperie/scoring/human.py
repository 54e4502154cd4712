"""What people reach on a benchmark, where a paper prints it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
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


def people_note(document: Mapping[str, Any]) -> str:
    """How many people a run stands for and how far they agree; empty for the run of a model.

    >>> people_note({"people": {"number": 3, "alpha": 0.61}}), people_note({})
    ('3 people, α = 0.61', '')
    """
    people = document.get("people")
    if not people:
        return "people" if str(document.get("model", {}).get("uri", "")).startswith("human:") else ""
    count = "1 person" if people["number"] == 1 else f"{people['number']} people"
    return count if people["alpha"] is None else f"{count}, α = {people['alpha']:.2f}"


def human_source(benchmark: str, task: str) -> str:
    """Which table says so; empty where none does."""
    return next((str(t["source"]) for t in _tables() if (t["benchmark"], t["task"]) == (benchmark, task)), "")
