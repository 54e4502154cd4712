"""Compare two runs of a recipe stage by stage: which stages have the same content, and which differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import Document, UsageError, digest_of, read_json
from creperie.recipes.kitchen import RECORD, output_digest, read_card, without_folder


@dataclass(frozen=True)
class StageMatch:
    """The comparison of one stage. It says whether the stage's output and numbers are the same in both runs; `why` says
    what differs.
    """

    stage: str
    same: bool
    why: str = ""


def verify_runs(one: Path, two: Path) -> list[StageMatch]:
    """Compare two runs of a recipe, and return one StageMatch per stage, in order."""
    runs = [(folder, read_card(folder)) for folder in (one, two)]
    recipes = [card["recipe"] for _, card in runs]
    if recipes[0] != recipes[1]:
        raise UsageError(
            f"expected two runs of one recipe, got: {', '.join(recipes)}",
            where=two,
            hint="name two runs of the same recipe",
        )
    return [_match(name, runs) for name in dict.fromkeys(name for _, card in runs for name in card["stages"])]


def run_digest(folder: Path) -> str:
    """Return eight characters that are the same for two runs of a recipe if all their stages have the same content."""
    # The version of creperie does not identify a run: makers change between commits of one version, and with them the
    # numbers of a run.
    card = read_card(folder)
    stages = [name for name in card["stages"] if (folder / name / RECORD).is_file()]
    return digest_of({name: _content(name, folder, card) for name in stages})[:8]


def _content(name: str, folder: Path, card: Document) -> tuple[str, dict[str, Any]]:
    """Return a digest of a stage's output, and its summary, both without the path of the run's folder."""
    places = [str(folder), str(folder.absolute()), *card.get("places", ())]
    text = json.dumps(read_json(folder / name / RECORD)["summary"], ensure_ascii=False)
    return output_digest(str(folder / name), places), json.loads(without_folder(text.encode(), places))


def _match(name: str, runs: Sequence[tuple[Path, Document]]) -> StageMatch:
    cooked = [folder for folder, _ in runs if (folder / name / RECORD).is_file()]
    if not cooked:
        return StageMatch(name, True, "skipped in both")
    if len(cooked) == 1:
        return StageMatch(name, False, f"only in {cooked[0]}")
    (one, left), (two, right) = (_content(name, folder, card) for folder, card in runs)
    if one != two:
        return StageMatch(name, False, "different content")
    differing = sorted(key for key in {*left, *right} if left.get(key) != right.get(key))
    return StageMatch(name, not differing, f"different numbers: {', '.join(differing)}" if differing else "")
