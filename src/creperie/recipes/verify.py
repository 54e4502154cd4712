"""Two recipe runs compared stage by stage: the same content, or which stages differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import UsageError, read_json
from creperie.recipes.kitchen import RECORD, digest_of, read_card, without_folder


@dataclass(frozen=True)
class StageMatch:
    """Whether a stage has the same output and the same numbers in both runs; `why` says what differs."""

    stage: str
    same: bool
    why: str = ""


def verify_runs(one: Path, two: Path) -> list[StageMatch]:
    """Compare every stage of two runs of a recipe, in order."""
    cards = [read_card(folder) for folder in (one, two)]
    if cards[0]["recipe"] != cards[1]["recipe"]:
        raise UsageError(f"runs of different recipes: {cards[0]['recipe']}, {cards[1]['recipe']}", where=str(two))
    return [_match(name, one / name, two / name) for name in dict.fromkeys([*cards[0]["stages"], *cards[1]["stages"]])]


def _match(name: str, one: Path, two: Path) -> StageMatch:
    there = [(place / RECORD).is_file() for place in (one, two)]
    if there == [False, False]:
        return StageMatch(name, True, "skipped in both")
    if not all(there):
        return StageMatch(name, False, f"only in {(one if there[0] else two).parent}")
    if digest_of(str(one), one.parent) != digest_of(str(two), two.parent):
        return StageMatch(name, False, "other content")
    left, right = (_summary(place) for place in (one, two))
    differing = sorted(key for key in {*left, *right} if left.get(key) != right.get(key))
    return StageMatch(name, not differing, f"other numbers: {', '.join(differing)}" if differing else "")


def _summary(place: Path) -> dict[str, Any]:
    """Return a stage's numbers; models that the run trained are named without its folder."""
    text = json.dumps(read_json(place / RECORD)["summary"], ensure_ascii=False)
    summary: dict[str, Any] = json.loads(without_folder(text.encode(), place.parent))
    return summary
