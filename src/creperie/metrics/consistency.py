"""Models and people on the same items: do they err on the same ones, and does a whole follow from its parts?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from creperie.core import UsageError
from creperie.metrics.agreement import cohen_kappa
from creperie.metrics.comparison import Comparison, compare
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
