"""The page about metrics: its example runs, and it names every task."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from creperie.metrics import FAMILIES, TASKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_the_example_runs() -> None:
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/metrics.md", str(PAGE), 0)
    assert len(example.examples) >= 7
    assert doctest.DocTestRunner().run(example).failed == 0


def test_every_task_is_on_the_page() -> None:
    named = set(re.findall(r"`([^`]+)`", PAGE.read_text(encoding="utf-8")))
    written = {f"preference-{n}" for n in range(2, 5)}  # between `preference-1` … `preference-5`
    assert (set(TASKS) | set(FAMILIES)) - written <= named
