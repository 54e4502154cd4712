"""Results of attackers before and after a refinement, measured as in an audit.

A selection that was made with an attacker's answers cannot be judged by the same answers. So the items are split into
two halves that share no image and no caption, and each half is selected separately wherever answers are learned.
`after` comes from the audit of the kept items; without an audit, from attackers that were trained on the other refined
half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing import (
    Attacker,
    Audit,
    Measure,
    Pairs,
    answers_of,
    item_gaps,
    item_mean,
    measure_attacker,
)
from creperie.core import Progress, silent

ALL = "all"
#: The figures of a measure that are shown.
FIGURES = ("n", "accuracy", "low", "high", "p")


@dataclass(frozen=True)
class AttackerStanding:
    """One attacker's results before and after a refinement, on every subset and on all items."""

    name: str
    held_out: bool  #: True if the selection did not use the attacker
    before: dict[str, Measure]
    after: dict[str, Measure]
    repaired: dict[str, Measure]  #: figures with all captions in one style, before any item is removed
    leaks: tuple[str, ...] = ()  #: the subsets (or "all") on which it leaks in the final audit

    @property
    def silent(self) -> bool:
        """True if the attacker prefers neither caption of any item, before or after."""
        figures = (*self.before.values(), *self.after.values())
        return all(f.accuracy == 0.5 and f.p == 1.0 for f in figures)


def shown(measure: Measure | None) -> dict[str, float]:
    """Return an attacker's results on one set of items, for JSON; NaN for every figure if there is no result."""
    return {name: getattr(measure, name, float("nan")) for name in FIGURES}


def figures_of(
    pairs: Pairs, attackers: Sequence[Attacker], seed: int, progress: Progress = silent
) -> dict[str, dict[str, Measure]]:
    """Return results by attacker and subset: accuracy as in an audit, its interval, and the p-value against chance."""
    by_attacker = {}
    for attacker in attackers:
        answers = answers_of(attacker, pairs, seed, progress)
        by_subset = {ALL: measure_attacker(answers)}
        for s, name in enumerate(pairs.subsets):
            of_subset = pairs.subset == s
            if of_subset.any():
                by_subset[name] = measure_attacker(answers.of_items(of_subset))
        by_attacker[attacker.name] = by_subset
    return by_attacker


def figures_in(audit: Audit) -> dict[str, dict[str, Measure]]:
    """Return the results that an audit has, by attacker and subset."""
    by_attacker: dict[str, dict[str, Measure]] = {}
    for row in audit.rows:
        by_attacker.setdefault(row.attacker, {})[row.subset] = row.measure
    return by_attacker


def sureness(pairs: Pairs, log_odds: np.ndarray) -> np.ndarray:
    """Return each item's gap, computed from log-odds: the mean of 2p − 1 over its pairs; 0 if there is no answer.

    Log-odds are unbounded, but 2p − 1 is within [-1, 1], so one very confident answer does not squeeze all others into
    one bin.
    """
    return np.nan_to_num(item_mean(pairs, np.nan_to_num(np.tanh(np.asarray(log_odds, dtype=np.float64) / 2))))


def gap_of(pairs: Pairs, attacker: Attacker, progress: Progress) -> np.ndarray:
    """Return an attacker's gap on every item; 0 if the attacker has no preference."""
    margins = attacker.margins(pairs, progress)
    if attacker.directed:
        return sureness(pairs, margins)
    return np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))).astype(np.float64)
