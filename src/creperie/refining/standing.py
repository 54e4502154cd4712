"""How attackers do before and after a refinement, measured as the audit measures them.

A selection that was made with an attacker's answers says little when it is judged by the same answers. So the items are
split into two halves that share no image and no caption, each half is selected on its own wherever answers are learned,
and `after` is what attackers reach that were trained on the other refined half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from creperie.auditing import Attacker, AttackerMargins, Pairs, calibrated, learns, measure_attacker
from creperie.core import Progress, silent
from creperie.metrics import holm

ALL = "all"
LEVEL = 0.05


@dataclass(frozen=True)
class AttackerFigure:
    """One attacker on one set of items."""

    n: int
    accuracy: float
    low: float
    high: float
    p: float  #: two-sided, against chance

    def document(self) -> dict[str, Any]:
        return {"n": self.n, "accuracy": self.accuracy, "low": self.low, "high": self.high, "p": self.p}


@dataclass(frozen=True)
class AttackerStanding:
    """One attacker before and after, on every subset and on all of them."""

    name: str
    held_out: bool  #: the selection never saw it
    directed: bool
    before: dict[str, AttackerFigure]
    after: dict[str, AttackerFigure]
    repaired: dict[str, AttackerFigure]  #: once captions have one style, before any item is removed
    wins: tuple[str, ...] = ()  #: the subsets (or "all") where it is still told from chance, after correction

    @property
    def silent(self) -> bool:
        """It has no opinion on any item, before or after."""
        figures = (*self.before.values(), *self.after.values())
        return all(f.accuracy == 0.5 and f.p == 1.0 for f in figures)


def figures_of(
    pairs: Pairs, attackers: Sequence[Attacker], seed: int, progress: Progress = silent
) -> dict[str, dict[str, AttackerFigure]]:
    """By attacker and subset: accuracy as the audit computes it, its interval, and p against chance."""
    found = {}
    for attacker in attackers:
        margins = attacker.margins(pairs, progress)
        answers = calibrated(pairs, margins, directed=attacker.directed, seed=seed, learned=learns(attacker))
        mine = {ALL: _figure(answers)}
        for s, name in enumerate(pairs.subsets):
            of_subset = pairs.subset == s
            if of_subset.any():
                mine[name] = _figure(answers.of_items(of_subset))
        found[attacker.name] = mine
    return found


def _figure(answers: AttackerMargins) -> AttackerFigure:
    found = measure_attacker(answers)
    return AttackerFigure(found.n, found.accuracy, found.low, found.high, found.p)


def judged(standings: Sequence[AttackerStanding]) -> list[AttackerStanding]:
    """Standings that say where an attacker still wins, corrected (Holm) for all attackers and subsets of its side.

    Attackers that the selection saw and those that were held out are two families of tests.
    """
    out = list(standings)
    for side in (False, True):
        rows = [
            (i, name, f)
            for i, s in enumerate(standings)
            if s.held_out == side
            for name, f in s.after.items()
            if f.n and not np.isnan(f.p) and not (name == ALL and len(s.after) == 2)  # one subset is all
        ]
        for (i, name, _), p in zip(rows, holm([f.p for _, _, f in rows])):
            if p < LEVEL:
                out[i] = replace(out[i], wins=(*out[i].wins, name))
    return out
