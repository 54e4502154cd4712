"""Deciding each caption by itself: values of counts on both sides of a threshold, and the area under the ROC curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from creperie.metrics.intervals import Confidence, over, pulled_confidence


def balanced(sums: np.ndarray) -> np.ndarray:
    """Mean of p_c and p_f, from sums of (right captions, right foils, captions, foils)."""
    return (over(sums[..., 0], sums[..., 2]) + over(sums[..., 1], sums[..., 3])) / 2


def lower(sums: np.ndarray) -> np.ndarray:
    """The lower of p_c and p_f."""
    return np.minimum(over(sums[..., 0], sums[..., 2]), over(sums[..., 1], sums[..., 3]))


def precision(sums: np.ndarray) -> np.ndarray:
    """True captions among those above the threshold; NaN where none is."""
    return over(sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1])


def f1(sums: np.ndarray) -> np.ndarray:
    """Harmonic mean of precision and recall; NaN where there is no true caption and none is taken for one."""
    return over(2 * sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1] + sums[..., 2])


def coin_precision(sums: np.ndarray) -> np.ndarray:
    """The precision of coin flips: the share of true captions, from sums of (captions, foils)."""
    return over(sums[..., 0], sums[..., 0] + sums[..., 1])


def coin_f1(sums: np.ndarray) -> np.ndarray:
    """The F1 of coin flips."""
    share = coin_precision(sums)
    return over(share, share + 0.5)


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


def auroc_confidence(area: Area, item: np.ndarray, clusters: np.ndarray) -> Confidence:
    """How sure an AUROC is whose cells belong to items and clusters: DeLong's placement values summed within items and
    clusters (Obuchowski 1997), read as a share."""
    if math.isnan(area.value):
        return Confidence(math.nan, "none (only true or only false captions)")
    _, first, codes = np.unique(item, return_index=True, return_inverse=True)
    pull = np.bincount(codes, area.pull)
    return pulled_confidence(area.value, pull, np.ones(len(pull)), clusters[first])
