"""How attackers do before and after a refinement, measured as the audit measures them.

A selection that was made with an attacker's answers says little when it is judged by the same answers. So the items are
split into two halves that share no image and no caption, and each half is selected on its own wherever answers are
learned. `after` comes from the audit of what stays; without an audit it is what attackers reach that were trained on
the other refined half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing import (
    Attacker,
    AttackerMargins,
    Audit,
    Pairs,
    calibrated,
    item_gaps,
    item_mean,
    learns,
    measure_attacker,
)
from creperie.core import Progress, silent

ALL = "all"


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
    before: dict[str, AttackerFigure]
    after: dict[str, AttackerFigure]
    repaired: dict[str, AttackerFigure]  #: once captions have one style, before any item is removed
    leaks: tuple[str, ...] = ()  #: the subsets (or "all") on which the final audit says that it leaks

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


def figures_in(audit: Audit) -> dict[str, dict[str, AttackerFigure]]:
    """By attacker and subset: the figures of an audit."""
    found: dict[str, dict[str, AttackerFigure]] = {}
    for row in audit.rows:
        m = row.measure
        found.setdefault(row.attacker, {})[row.subset] = AttackerFigure(m.n, m.accuracy, m.low, m.high, m.p)
    return found


def sureness(pairs: Pairs, log_odds: np.ndarray) -> np.ndarray:
    """The gap of every item from log-odds: the mean of 2p − 1, within [-1, 1]; 0 where there is no answer.

    Log-odds have no largest value; 2p − 1 has, so one very sure answer does not squeeze all others into one bin.
    """
    return np.nan_to_num(item_mean(pairs, np.nan_to_num(np.tanh(np.asarray(log_odds, dtype=np.float64) / 2))))


def gap_of(pairs: Pairs, attacker: Attacker, progress: Progress) -> np.ndarray:
    """An attacker's gap for every item; no opinion is not a gap."""
    margins = attacker.margins(pairs, progress)
    if attacker.directed:
        return sureness(pairs, margins)
    return np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))).astype(np.float64)


def _figure(answers: AttackerMargins) -> AttackerFigure:
    measured = measure_attacker(answers)
    return AttackerFigure(measured.n, measured.accuracy, measured.low, measured.high, measured.p)
