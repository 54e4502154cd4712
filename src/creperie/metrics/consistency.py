"""Models and people on the same items: do they err on the same ones, and does a whole follow from its parts?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from creperie.core import UsageError
from creperie.metrics.agreement import cohen_kappa
from creperie.metrics.comparison import Comparison, compare
from creperie.metrics.intervals import difference_confidence
from creperie.metrics.rules import HIT, MISS, TIE, VOID
from creperie.metrics.settings import DEFAULT, MetricSettings


@dataclass(frozen=True)
class PairAgreement:
    """Two models (or people) on the items that both answered.

    `agree` is the share of items that both get right or both wrong, `expected` what two models of these accuracies have
    in common by chance, `kappa` the agreement beyond that: 0 where errors are independent, 1 where they are the same.
    """

    a: str
    b: str
    n: int
    agree: float
    expected: float
    kappa: float
    low: float
    high: float


def pair_agreements(
    outcomes: Mapping[str, np.ndarray], clusters: np.ndarray | None = None, settings: MetricSettings = DEFAULT
) -> list[PairAgreement]:
    """How far every two of these agree on which items are right; ties count as right only if they do in full."""
    rows = []
    for a, b in combinations(outcomes, 2):
        both = (outcomes[a] != VOID) & (outcomes[b] != VOID)
        left, right = (settings.worth(outcomes[name][both]) == 1 for name in (a, b))
        found = cohen_kappa(left, right, clusters=None if clusters is None else clusters[both], settings=settings)
        shares = (left.mean(), right.mean()) if both.any() else (np.nan, np.nan)
        expected = float(shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1]))
        agree = float((left == right).mean()) if both.any() else np.nan
        rows.append(PairAgreement(a, b, int(both.sum()), agree, expected, found.value, found.low, found.high))
    return rows


def integration_gap(
    whole: np.ndarray,
    parts: np.ndarray,
    owner: np.ndarray,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Comparison:
    """Decomposed against composed captions: how much more often all parts of an item are right than its whole.

    `whole` holds one outcome per composed item, `parts` one per decomposed caption, and `owner` the composed item that
    each belongs to. All parts must be hit; a tied part ties the item. Chance is that of the parts together, so it is
    lower than the whole's: a gap above 0 is not luck.

    >>> integration_gap(np.array([HIT, MISS]), np.array([HIT, HIT, HIT, HIT]), np.array([0, 0, 1, 1])).difference
    0.5
    """
    if len(parts) != len(owner) or (len(owner) and int(owner.max()) >= len(whole)):
        raise UsageError(f"{len(owner)} owners for {len(parts)} parts of {len(whole)} items")
    counts = [np.bincount(owner[parts == kind], minlength=len(whole)) for kind in (VOID, MISS, TIE, HIT)]
    void, miss, tie, _ = (count > 0 for count in counts)
    void |= sum(counts) == 0
    together = np.where(void, VOID, np.where(miss, MISS, np.where(tie, TIE, HIT)))
    return compare(together, whole, clusters=clusters, names=("parts", "whole"), settings=settings)


class Equivalence(NamedTuple):
    """A difference with the 90 % interval of two one-sided tests, and whether it is surely smaller than the margin."""

    difference: float
    low: float
    high: float
    p: float
    equivalent: bool


def equivalence(
    a: np.ndarray,
    b: np.ndarray,
    margin: float,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Equivalence:
    """Two one-sided tests (TOST): are two models' accuracies not different by more than the margin?

    `p` is the larger of the two one-sided p-values, from the interval that `compare` gives; equivalent: below 0.05.
    """
    both = (a != VOID) & (b != VOID)
    own = np.arange(len(a)) if clusters is None else clusters
    found = difference_confidence(settings.worth(a[both]), settings.worth(b[both]), own[both])
    interval = found.interval(0.9)
    p = max(found.p_against(-margin), found.p_against(margin)) / 2
    p = p if abs(found.value) < margin else 1 - p
    return Equivalence(found.value, interval.low, interval.high, p, p < 0.05)
