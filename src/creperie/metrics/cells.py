"""Statistics of cells (single image–caption pairs) instead of items: accuracy with one threshold for all items,
calibration, and the highest accuracy that is possible without word order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from creperie.core import UsageError
from creperie.metrics.intervals import Interval, share_interval, wilson
from creperie.metrics.layout import Layout, cluster_labels
from creperie.metrics.settings import DEFAULT, MetricSettings


@dataclass(frozen=True)
class OneThreshold:
    """The result of strict classification, with one threshold for all items. An item is right if all its true cells
    (image–caption pairs) are above the threshold and all its false cells are below it. A score equal to the threshold
    is wrong.

    `best` is the fraction of right items at the best threshold. It is too optimistic, because this threshold is fitted
    to the same items. For `accuracy`, the threshold of each cluster is fitted to the other clusters. `chance` is the
    fraction expected if a coin decides every cell.
    """

    threshold: float
    best: float
    accuracy: float
    interval: Interval
    chance: float
    n: int


def one_threshold(
    layout: Layout, scores: np.ndarray, clusters: np.ndarray | None = None, settings: MetricSettings = DEFAULT
) -> OneThreshold:
    """Classify all pairs of image and caption by one threshold. Return a `OneThreshold`, which includes the best
    threshold and the fraction of items in which it classifies every pair correctly.

    >>> from creperie.metrics.layout import layout_of
    >>> result = one_threshold(layout_of([[[1, 0]]] * 4), np.array([0.8, 0.1, 0.9, 0.2, 0.7, 0.3, 0.2, 0.1]))
    >>> result.best, round(result.threshold, 2)
    (0.75, 0.5)
    """
    low, high = np.full((2, len(layout)), np.nan)
    for group, cells in layout.blocks("image_text", scores):
        true = group.match.ravel()
        if len(true):
            low[group.items] = cells[~true].max(axis=0, initial=-np.inf)
            high[group.items] = cells[true].min(axis=0, initial=np.inf)
    covered = ~np.isnan(low + high) & (layout.widths("image_text") > 0)
    low, high = low[covered], high[covered]
    own = cluster_labels(clusters, len(layout))[covered]
    if not len(low):
        raise UsageError(
            "no item has scores for all of its pairs of image and caption",
            hint="score the run again without leaving pairs out, or choose another task",
        )
    places = np.unique(np.concatenate([low, high]))
    places = (places[1:] + places[:-1])[np.isfinite(places[1:] + places[:-1])] / 2
    places = places if len(places) else np.zeros(1)
    # The thresholds strictly between low and high are places[first:last].
    first, last = np.searchsorted(places, low, side="right"), np.searchsorted(places, high, side="left")
    good = first < last
    steps = np.bincount(first[good], minlength=len(places) + 1) - np.bincount(last[good], minlength=len(places) + 1)
    hits = np.cumsum(steps)[:-1]
    right = np.zeros(len(low))
    order = np.argsort(own, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
        others = hits.copy()
        for n in members[good[members]]:
            others[first[n] : last[n]] -= 1
        place = int(others.argmax())
        right[members] = (first[members] <= place) & (place < last[members])
    top = int(hits.argmax())
    return OneThreshold(
        threshold=float(places[top]),
        best=float(hits[top] / len(low)),
        accuracy=float(right.mean()),
        interval=share_interval(right, own, settings.level),
        chance=float((0.5 ** layout.widths("image_text")[covered]).mean()),
        n=len(low),
    )


@dataclass(frozen=True)
class ReliabilityBin:
    """A bin of answers with similar confidence: their number, their mean confidence, and their accuracy with its Wilson
    interval.
    """

    n: int
    confidence: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class CalibrationError:
    """The expected calibration error, computed in bins with equal numbers of answers, and the Brier score.

    `expected` is the calibration error that sampling noise alone would cause if the model were perfectly calibrated.
    """

    error: float
    expected: float
    brier: float
    n: int
    bins: tuple[ReliabilityBin, ...]


def calibration(probabilities: np.ndarray, truth: np.ndarray, bins: int = 15) -> CalibrationError:
    """Return the calibration error of probabilities, in bins with equal numbers of answers; NaNs are ignored.

    >>> result = calibration(np.array([0.9] * 10), np.array([1] * 5 + [0] * 5), bins=1)
    >>> round(result.error, 3), round(result.brier, 3)
    (0.4, 0.41)
    """
    p, right = np.asarray(probabilities, np.float64), np.asarray(truth, np.float64)
    known = ~(np.isnan(p) | np.isnan(right))
    p, right = p[known], right[known]
    if not len(p) or p.min() < 0 or p.max() > 1:
        raise UsageError(
            "calibration needs probabilities between 0 and 1",
            hint="compute them from scores with `choice_probabilities`",
        )
    order = np.argsort(p, kind="stable")
    rows, error, noise = [], 0.0, 0.0
    for members in np.array_split(order, min(bins, len(p))):
        n, sure, share = len(members), float(p[members].mean()), float(right[members].mean())
        rows.append(ReliabilityBin(n, sure, share, *wilson(right[members].sum(), n)))
        error += n * abs(share - sure)
        noise += math.sqrt(2 / math.pi * float((p[members] * (1 - p[members])).sum()))
    return CalibrationError(error / len(p), noise / len(p), float(((p - right) ** 2).mean()), len(p), tuple(rows))


def choice_probabilities(layout: Layout, scores: np.ndarray, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with one value per image: the softmax probability of its highest-scoring caption, and whether
    that caption is true.

    Scores are multiplied by `scale` before the softmax. For a model whose scores are cosines, this is the logit scale.
    If a true and a false caption share the highest score, the false one counts as preferred.
    """
    sure, right = [], []
    for group, cells in layout.blocks("image_text", scores):
        by_row = scale * cells.astype(np.float64).reshape(*group.match.shape, -1)
        for row, match in zip(by_row, group.match, strict=True):
            if match.any() and not match.all():
                top = row.max(axis=0)
                sure.append(1 / np.exp(row - top).sum(axis=0))
                right.append(np.where(np.isnan(top), np.nan, row[~match].max(axis=0) < top))
    return (np.concatenate(sure), np.concatenate(right)) if sure else (np.zeros(0), np.zeros(0))


def scores_blind_to(layout: Layout, keys: np.ndarray) -> np.ndarray:
    """Return the best scores (images × captions) that a model can give without distinguishing captions of an item that
    have the same key.

    `keys` holds one number per caption, item after item. If captions with the same bag of words have the same key,
    `evaluate` on these scores gives the highest accuracy without word order.
    """
    layout.check("text", keys)
    best_scores = np.zeros(len(layout.match), np.float32)
    starts, begin = layout.starts("text"), layout.starts("image_text")
    for group in layout.groups:
        rows, columns = group.match.shape
        own = keys[starts[group.items][:, None] + np.arange(columns)]
        alike = own[:, :, None] == own[:, None, :]
        best = np.einsum("rc,ncd->nrd", group.match.astype(np.float32), alike.astype(np.float32)) > 0
        best_scores[begin[group.items][:, None] + np.arange(rows * columns)] = best.reshape(len(own), -1)
    return best_scores
