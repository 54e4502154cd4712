"""Agreement of models or people on the same items: the errors that they share, and the difference in accuracy between
whole items and their parts.
"""

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
from creperie.metrics.layout import cluster_labels
from creperie.metrics.rules import HIT, MISS, TIE, VOID
from creperie.metrics.settings import DEFAULT, MetricSettings


@dataclass(frozen=True)
class PairAgreement:
    """The agreement of two models (or people) on the items that both answered.

    `agree` is the fraction of items that both get right or both get wrong. `expected` is the fraction expected by
    chance for two models with these accuracies. `kappa` is the agreement beyond chance: 0 if errors are independent, 1
    if they are the same.
    """

    a: str
    b: str
    n: int
    agree: float
    expected: float
    kappa: float
    low: float
    high: float


def pair_agreements(outcomes: Mapping[str, np.ndarray], clusters: np.ndarray | None = None) -> list[PairAgreement]:
    """Return, for each pair of models, how often they get the same items right or wrong. A tie counts as wrong."""
    rows = []
    for a, b in combinations(outcomes, 2):
        both = (outcomes[a] != VOID) & (outcomes[b] != VOID)
        left, right = (outcomes[name][both] == HIT for name in (a, b))
        kappa = cohen_kappa(left, right, clusters=None if clusters is None else clusters[both])
        n = int(both.sum())
        one, two, agree = (float(hits.mean()) if n else np.nan for hits in (left, right, left == right))
        expected = one * two + (1 - one) * (1 - two)
        rows.append(PairAgreement(a, b, n, agree, expected, kappa.value, kappa.low, kappa.high))
    return rows


def integration_gap(
    whole: np.ndarray,
    parts: np.ndarray,
    owner: np.ndarray,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Comparison:
    """Return how much more often a model is right on all parts of an item (decomposed captions) than on the whole
    (composed) item.

    `whole` holds one outcome per composed item, and `parts` one per decomposed caption. `owner` holds the index of each
    part's composed item. The parts of an item count as a hit if all are hits, and as a miss if any is a miss; otherwise
    they count as a tie. With random scores the result is negative, so a value above 0 is not due to chance.

    >>> integration_gap(np.array([HIT, MISS]), np.array([HIT, HIT, HIT, HIT]), np.array([0, 0, 1, 1])).difference
    0.5
    """
    if len(parts) != len(owner):
        raise UsageError(
            f"`owner` has {len(owner)} values for {len(parts)} parts",
            hint="give, for each part, the index of the composed item that it belongs to",
        )
    if len(owner) and int(owner.max()) >= len(whole):
        raise UsageError(
            f"`owner` has the index {owner.max()}, but there are {len(whole)} items", hint="number the items from 0"
        )
    counts = [np.bincount(owner[parts == kind], minlength=len(whole)) for kind in (VOID, MISS, TIE, HIT)]
    void, miss, tie, _ = (count > 0 for count in counts)
    void |= sum(counts) == 0
    together = np.where(void, VOID, np.where(miss, MISS, np.where(tie, TIE, HIT)))
    return compare(together, whole, clusters=clusters, names=("parts", "whole"), settings=settings)


class Equivalence(NamedTuple):
    """The result of two one-sided tests of equivalence: the difference of two accuracies, its 90 % interval, and the
    p-value. The last field says whether the difference is significantly smaller than the margin.
    """

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
    """Test whether two models' accuracies differ by less than the margin. Return the result of two one-sided tests
    (TOST).

    `p` is the larger of the two one-sided p-values. They are derived from the interval of `compare`. The models are
    equivalent if `p` is below 0.05.
    """
    both = (a != VOID) & (b != VOID)
    own = cluster_labels(clusters, len(a))
    confidence = difference_confidence(settings.worth(a[both]), settings.worth(b[both]), own[both])
    interval = confidence.interval(0.9)
    p = max(confidence.p_against(-margin), confidence.p_against(margin)) / 2
    p = p if abs(confidence.value) < margin else 1 - p
    return Equivalence(confidence.value, interval.low, interval.high, p, p < 0.05)
