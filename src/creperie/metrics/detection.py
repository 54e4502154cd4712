"""Deciding each caption by itself: values of counts on both sides of a threshold, and the area under the ROC curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from creperie.metrics.intervals import Interval, cluster_sums, pulled_interval, wilson
from creperie.metrics.settings import MetricSettings


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    value: np.ndarray = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return value


def balanced(sums: np.ndarray) -> np.ndarray:
    """Mean of p_c and p_f, from sums of (right captions, right foils, captions, foils)."""
    return (_share(sums[..., 0], sums[..., 2]) + _share(sums[..., 1], sums[..., 3])) / 2


def lower(sums: np.ndarray) -> np.ndarray:
    """The lower of p_c and p_f."""
    return np.minimum(_share(sums[..., 0], sums[..., 2]), _share(sums[..., 1], sums[..., 3]))


def precision(sums: np.ndarray) -> np.ndarray:
    """True captions among those above the threshold; NaN where none is."""
    return _share(sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1])


def f1(sums: np.ndarray) -> np.ndarray:
    """Harmonic mean of precision and recall; NaN where there is no true caption and none is taken for one."""
    return _share(2 * sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1] + sums[..., 2])


def coin_precision(sums: np.ndarray) -> np.ndarray:
    """The precision of coin flips: the share of true captions, from sums of (captions, foils)."""
    return _share(sums[..., 0], sums[..., 0] + sums[..., 1])


def coin_f1(sums: np.ndarray) -> np.ndarray:
    """The F1 of coin flips."""
    share = coin_precision(sums)
    return _share(share, share + 0.5)


# -- AUROC ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Area:
    """The area under the ROC curve, the pairs (true, false) behind it, and each cell's pull on it."""

    value: float
    won: int
    tied: int
    pairs: int
    pull: np.ndarray


def auroc(values: np.ndarray, truth: np.ndarray) -> Area:
    """How often a true cell outranks a false one, a tie worth one half; NaN where one of the two is missing.

    >>> auroc(np.array([0.9, 0.4, 0.4, 0.1]), np.array([True, True, False, False])).value
    0.875
    """
    true = int(truth.sum())
    false = len(truth) - true
    pull = np.zeros(len(values))
    if not true * false:
        return Area(math.nan, 0, 0, 0, pull)
    order = np.argsort(values)
    ordered, held = values[order], truth[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    level = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(values))))
    trues = np.add.reduceat(held.astype(np.int64), first)
    falses = np.add.reduceat((~held).astype(np.int64), first)
    under_true, under_false = np.cumsum(trues) - trues, np.cumsum(falses) - falses
    won, tied = int((trues * under_false).sum()), int((trues * falses).sum())
    value = (won + tied / 2) / (true * false)
    placed_true = (under_false + falses / 2) / false
    placed_false = 1 - (under_true + trues / 2) / true
    pull[order] = np.where(held, (placed_true[level] - value) / true, (placed_false[level] - value) / false)
    return Area(value, won, tied, true * false, pull)


def auroc_interval(
    value: float, pull: np.ndarray, truth: np.ndarray, clusters: np.ndarray, how: MetricSettings
) -> Interval:
    """The interval of an AUROC whose cells come in clusters: DeLong's placement values summed within clusters
    (Obuchowski 1997), in Wilson's equation. Where no pair is lost, or none won, Wilson's, one observation per cluster.
    """
    if math.isnan(value):
        return Interval(math.nan, math.nan, "none (only true or only false captions)")
    if value in (0.0, 1.0):
        count = min(len(np.unique(clusters[truth])), len(np.unique(clusters[~truth])))
        return Interval(*wilson(value * count, count, how.level), "wilson (clusters)")
    sums = cluster_sums(np.stack([pull, np.ones(len(pull))], axis=1), clusters)
    if len(sums) < 2:
        return Interval(math.nan, math.nan, "none (one cluster)")
    return replace(pulled_interval(value, sums[:, 0], sums[:, 1], how), method="placement values")
