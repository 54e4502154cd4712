"""Comparing models on the same items: paired tests, paired intervals, and correction for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.core import UsageError
from creperie.metrics.intervals import difference_confidence, inflation, mean_over_groups, tango
from creperie.metrics.layout import cluster_labels
from creperie.metrics.rules import VOID
from creperie.metrics.settings import DEFAULT, MetricSettings
from creperie.metrics.special import fair_coin_tail

#: Fewest images from which the widening of a mean over subsets, for items that share images, is estimated.
MANY = 30


@dataclass(frozen=True)
class McNemar:
    """The result of McNemar's test. `only_a` and `only_b` count the items that only one of two models gets right."""

    only_a: int
    only_b: int
    p: float
    method: str


@dataclass(frozen=True)
class Comparison:
    """A comparison of model a with model b on the items that both cover.

    `difference` is a's accuracy minus b's, with an interval that takes clusters into account. `p` is one minus the
    confidence level at which that interval just touches 0, so the interval and the p-value always agree. `mcnemar`
    treats items as independent. `p_holm` is the p-value with Holm's correction, if it belongs to a family of tests.
    """

    a: str
    b: str
    n: int
    clusters: int
    accuracy_a: float
    accuracy_b: float
    difference: float
    low: float
    high: float
    p: float
    mcnemar: McNemar
    p_holm: float = math.nan


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """Return McNemar's exact two-sided test, a binomial test, given the numbers of items that only one of the two
    models gets right.

    >>> print(f"{mcnemar(2, 9).p:.6f}")
    0.065430
    """
    p = min(1.0, 2 * fair_coin_tail(min(only_a, only_b), only_a + only_b))
    return McNemar(only_a, only_b, p, "exact")


def compare(
    a: np.ndarray,
    b: np.ndarray,
    *,
    clusters: np.ndarray | None = None,
    names: tuple[str, str] = ("a", "b"),
    settings: MetricSettings = DEFAULT,
) -> Comparison:
    """Return the comparison of two models' outcomes on the same items, in the same order.

    The interval and the p-value come from a statistical model of the difference (`difference_confidence`). In this
    model, clusters are independent, and the items of a cluster have the same intra-class correlation. Which of the two
    models is better in a cluster may depend on the size of the cluster. The field `mcnemar` holds McNemar's test. It
    treats all items as independent and uses only those on which the two outcomes differ. If the settings count ties as
    half, a tie is better than a miss and worse than a hit.
    """
    first, second = names
    if len(a) != len(b):
        raise UsageError(f"{first} has {len(a)} items, {second} has {len(b)}", hint="compare runs on the same items")
    own = cluster_labels(clusters, len(a))
    both = (a != VOID) & (b != VOID)
    worth_a, worth_b = (settings.worth(x[both]) for x in (a, b))
    n = int(both.sum())
    if not n:
        raise UsageError(
            f"{first} and {second} have no covered item in common",
            hint="compare runs on the same items, or name another task",
        )
    confidence = difference_confidence(worth_a, worth_b, own[both])
    interval = confidence.interval(settings.level)
    return Comparison(
        a=first,
        b=second,
        n=n,
        clusters=len(np.unique(own[both])),
        accuracy_a=float(worth_a.mean()),
        accuracy_b=float(worth_b.mean()),
        difference=confidence.value,
        low=interval.low,
        high=interval.high,
        p=confidence.p_against(0.0),
        mcnemar=mcnemar(int((worth_a > worth_b).sum()), int((worth_a < worth_b).sum())),
    )


def compare_subsets(
    a: np.ndarray,
    b: np.ndarray,
    subsets: np.ndarray,
    *,
    clusters: np.ndarray,
    names: tuple[str, str] = ("a", "b"),
    settings: MetricSettings = DEFAULT,
) -> Comparison:
    """Return the comparison of two models' macro accuracies, which are unweighted means over the subsets."""
    whole = compare(a, b, clusters=clusters, names=names, settings=settings)
    both = (a != VOID) & (b != VOID)
    worth_a, worth_b, own, subset = settings.worth(a[both]), settings.worth(b[both]), clusters[both], subsets[both]
    members = [np.flatnonzero(subset == name) for name in np.unique(subset)]
    parts = [difference_confidence(worth_a[m], worth_b[m], own[m]) for m in members]
    gaps = [(worth_a - worth_b)[m] - part.value for m, part in zip(members, parts, strict=True)]
    pulled = [gap / len(gap) for gap in gaps]
    confidence = mean_over_groups(parts, pulled, [own[m] for m in members], (-1, 1))
    images, apart = len(np.unique(own)), worth_a - worth_b
    if confidence.ends is not None and images >= MANY and bool((apart == np.rint(apart)).all()):
        widening = inflation(np.concatenate(pulled), own[np.concatenate(members)])
        ends = tango(apart, np.unique(subset, return_inverse=True)[1], widening, images - 1)
        confidence = replace(confidence, method="score (wins, losses)", ends=ends)
    interval = confidence.interval(settings.level)
    of_a, of_b = (float(np.mean([worth[m].mean() for m in members])) for worth in (worth_a, worth_b))
    return replace(
        whole,
        accuracy_a=of_a,
        accuracy_b=of_b,
        difference=confidence.value,
        low=interval.low,
        high=interval.high,
        p=confidence.p_against(0.0),
        mcnemar=McNemar(whole.mcnemar.only_a, whole.mcnemar.only_b, math.nan, "none (a mean of subsets)"),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of a family of tests with Holm's correction, in the same order. NaN is ignored and stays NaN.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [math.nan] * len(p_values)
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    highest = 0.0
    for place, (p, i) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - place)))
        adjusted[i] = highest
    return adjusted
