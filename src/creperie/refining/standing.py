"""The results of attackers before and after a refinement, measured as in an audit.

If a selection was made with an attacker's answers, the same answers cannot be used to judge it. The items are therefore
split into two halves that share no image and no caption. If attackers learn, the items to keep are chosen in each half
separately.

The results after the refinement come from the audit of the kept items. Without an audit, attackers learn from the kept
items of one half and are measured on those of the other.
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
from creperie.core import Progress

ALL = "all"
#: The figures of a measure that are shown.
FIGURES = ("n", "accuracy", "low", "high", "p")


@dataclass(frozen=True)
class AttackerStanding:
    """The results of one attacker before and after a refinement, on every subset and on all items."""

    name: str
    held_out: bool  #: True if the selection did not use the attacker
    before: dict[str, Measure]
    after: dict[str, Measure]
    repaired: dict[str, Measure]  #: figures with all captions in one style, before any item is removed
    leaks: tuple[str, ...] = ()  #: the subsets (or "all") on which it leaks in the final audit

    @property
    def silent(self) -> bool:
        """True if the attacker shows no preference on any subset, before the refinement and after it: its accuracy is
        exactly one half, and its p-value is 1.
        """
        figures = (*self.before.values(), *self.after.values())
        return all(f.accuracy == 0.5 and f.p == 1.0 for f in figures)


def figures_for_json(measure: Measure | None) -> dict[str, float]:
    """Return the figures of a measure that reports show, as a dictionary for JSON. If `measure` is None, all figures
    are NaN.
    """
    return {name: getattr(measure, name, float("nan")) for name in FIGURES}


def figures_of(
    pairs: Pairs, attackers: Sequence[Attacker], seed: int, progress: Progress
) -> dict[str, dict[str, Measure]]:
    """Return the results of attackers on the pairs, by attacker and subset. They include the accuracy as in an audit,
    its interval, and the p-value against chance.
    """
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


def figures_from_audit(audit: Audit) -> dict[str, dict[str, Measure]]:
    """Return the results of an audit, by attacker and subset."""
    by_attacker: dict[str, dict[str, Measure]] = {}
    for row in audit.rows:
        by_attacker.setdefault(row.attacker, {})[row.subset] = row.measure
    return by_attacker


def gaps_from_odds(pairs: Pairs, log_odds: np.ndarray) -> np.ndarray:
    """Return each item's gap: the mean of 2p − 1 over its pairs of captions, where p is the probability of the true
    caption according to the log-odds. A pair without an answer counts as 0.
    """
    # The log-odds themselves are not used because they have no limits: beside one very confident answer, all other gaps
    # would look alike.
    return np.nan_to_num(item_mean(pairs, np.nan_to_num(np.tanh(np.asarray(log_odds, np.float64) / 2))))


def attacker_gaps(pairs: Pairs, attacker: Attacker, progress: Progress) -> np.ndarray:
    """Return an attacker's gap on every item. The gap is 0 if the attacker has no preference."""
    margins = attacker.margins(pairs, progress)
    if attacker.directed:
        return gaps_from_odds(pairs, margins)
    return np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))).astype(np.float64)
