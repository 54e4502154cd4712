"""Statistics of captions that are each judged against a threshold (balanced accuracy, precision, F1), and the AUROC."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from creperie.metrics.intervals import Confidence, over, pulled_confidence


def balanced(sums: np.ndarray) -> np.ndarray:
    """Return the mean of two fractions: the captions that are judged right, and the foils that are judged right. `sums`
    holds (right captions, right foils, captions, foils).
    """
    return (over(sums[..., 0], sums[..., 2]) + over(sums[..., 1], sums[..., 3])) / 2


def lower(sums: np.ndarray) -> np.ndarray:
    """Return the smaller of two fractions: the captions that are judged right, and the foils that are judged right.
    `sums` is as in `balanced`.
    """
    return np.minimum(over(sums[..., 0], sums[..., 2]), over(sums[..., 1], sums[..., 3]))


def precision(sums: np.ndarray) -> np.ndarray:
    """Return the fraction of true captions among all captions and foils above the threshold; NaN if nothing is
    above it. `sums` is as in `balanced`.
    """
    return over(sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1])


def f1(sums: np.ndarray) -> np.ndarray:
    """Return the harmonic mean of precision and recall; NaN if there is no true caption and nothing is above the
    threshold. `sums` is as in `balanced`.
    """
    return over(2 * sums[..., 0], sums[..., 0] + sums[..., 3] - sums[..., 1] + sums[..., 2])


def coin_precision(sums: np.ndarray) -> np.ndarray:
    """Return the precision of judging every caption by a coin flip, which is the fraction of true captions. `sums`
    holds (captions, foils).
    """
    return over(sums[..., 0], sums[..., 0] + sums[..., 1])


def coin_f1(sums: np.ndarray) -> np.ndarray:
    """Return the F1 of judging every caption by a coin flip. `sums` holds (captions, foils)."""
    share = coin_precision(sums)
    return over(share, share + 0.5)


# -- AUROC ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Area:
    """The area under the ROC curve, which compares the scores of true and false image–caption pairs (cells).

    `pairs` is the number of comparisons of a true cell with a false one. The true cell has the higher score in `won` of
    them, and an equal score in `tied`. `pull` is the influence of each cell on the area.
    """

    value: float
    won: int
    tied: int
    pairs: int
    pull: np.ndarray


def auroc(values: np.ndarray, truth: np.ndarray) -> Area:
    """Return the area under the ROC curve: how often a true image–caption pair has a higher score than a false one. A
    tie counts one half. The area is NaN if all image–caption pairs are true or all are false.

    >>> auroc(np.array([0.9, 0.4, 0.4, 0.1]), np.array([True, True, False, False])).value
    0.875
    """
    true = int(truth.sum())
    false = len(truth) - true
    pull = np.zeros(len(values))
    if not true * false:
        return Area(math.nan, 0, 0, 0, pull)
    order = np.argsort(values)
    ordered, labels = values[order], truth[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    level = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(values))))
    trues = np.add.reduceat(labels.astype(np.int64), first)
    falses = np.add.reduceat((~labels).astype(np.int64), first)
    under_true, under_false = np.cumsum(trues) - trues, np.cumsum(falses) - falses
    won, tied = int((trues * under_false).sum()), int((trues * falses).sum())
    value = (won + tied / 2) / (true * false)
    placed_true = (under_false + falses / 2) / false
    placed_false = 1 - (under_true + trues / 2) / true
    pull[order] = np.where(labels, (placed_true[level] - value) / true, (placed_false[level] - value) / false)
    return Area(value, won, tied, true * false, pull)


def auroc_confidence(area: Area, item: np.ndarray, clusters: np.ndarray) -> Confidence:
    """Return an AUROC with its interval, which allows for correlation within items and clusters."""
    # DeLong's placement values are summed within items and clusters (Obuchowski 1997), and the interval is that of a
    # proportion.
    if math.isnan(area.value):
        return Confidence(math.nan, "none (only true or only false captions)")
    _, first, codes = np.unique(item, return_index=True, return_inverse=True)
    pull = np.bincount(codes, area.pull)
    return pulled_confidence(area.value, pull, np.ones(len(pull)), clusters[first])
