"""Numbers about cells rather than items: one threshold for all, calibration, what a model blind to word order gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from creperie.core import UsageError
from creperie.metrics.intervals import Interval, share_interval, wilson
from creperie.metrics.layout import Layout
from creperie.metrics.settings import DEFAULT, MetricSettings


@dataclass(frozen=True)
class OneThreshold:
    """Strict classification: an item is right when all its true cells lie above one threshold and all false ones below.

    `best` is the highest share that any threshold reaches on these items, an upper bound; `accuracy` that of thresholds
    chosen without the cluster that they are applied to. `chance` is that of a coin for every cell. A score at the
    threshold is wrong.
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
    """Classify every image–caption pair with one threshold for the whole set, and count the items that are all right.

    >>> from creperie.metrics.layout import layout_of
    >>> found = one_threshold(layout_of([[[1, 0]]] * 4), np.array([0.8, 0.1, 0.9, 0.2, 0.7, 0.3, 0.2, 0.1]))
    >>> found.best, round(found.threshold, 2)
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
    own = (np.arange(len(layout)) if clusters is None else np.asarray(clusters))[covered]
    if not len(low):
        raise UsageError("no item has scores for all of its pairs")
    places = np.unique(np.concatenate([low, high]))
    places = (places[1:] + places[:-1])[np.isfinite(places[1:] + places[:-1])] / 2
    places = places if len(places) else np.zeros(1)
    # Thresholds strictly between low and high, as first and one past the last place.
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
        interval=share_interval(right, np.ones(len(right)), own, settings),
        chance=float((0.5 ** layout.widths("image_text")[covered]).mean()),
        n=len(low),
    )


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers of similar confidence: how many, how sure they were, how many were right, with Wilson's interval."""

    n: int
    confidence: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class CalibrationError:
    """Expected calibration error over bins of equal size, and the Brier score.

    `expected` is the error that a perfectly calibrated model would show on as many answers: noise, not miscalibration.
    """

    error: float
    expected: float
    brier: float
    n: int
    bins: tuple[ReliabilityBin, ...]


def calibration(probabilities: np.ndarray, truth: np.ndarray, bins: int = 15) -> CalibrationError:
    """Compare probabilities with what is true, in bins that hold as many answers each; NaN is left out.

    >>> found = calibration(np.array([0.9] * 10), np.array([1] * 5 + [0] * 5), bins=1)
    >>> round(found.error, 3), round(found.brier, 3)
    (0.4, 0.41)
    """
    p, right = np.asarray(probabilities, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    known = ~(np.isnan(p) | np.isnan(right))
    p, right = p[known], right[known]
    if not len(p) or p.min() < 0 or p.max() > 1:
        raise UsageError("calibration needs probabilities between 0 and 1", hint="see `choice_probabilities`")
    order = np.argsort(p, kind="stable")
    rows, error, noise = [], 0.0, 0.0
    for members in np.array_split(order, min(bins, len(p))):
        n, sure, share = len(members), float(p[members].mean()), float(right[members].mean())
        rows.append(ReliabilityBin(n, sure, share, *wilson(right[members].sum(), n)))
        error += n * abs(share - sure)
        noise += math.sqrt(2 / math.pi * float((p[members] * (1 - p[members])).sum()))
    return CalibrationError(error / len(p), noise / len(p), float(((p - right) ** 2).mean()), len(p), tuple(rows))


def choice_probabilities(layout: Layout, scores: np.ndarray, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The probability that each image's preferred caption has in a softmax over its captions, and whether it is true.

    `scale` multiplies scores before the softmax (the logit scale of a model whose scores are cosines). One value per
    image; among equal scores the false one counts as preferred.
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
    """The best image × caption scores of a model that cannot tell captions of an item with one key apart.

    `keys` holds a number per caption, all items in a row: with one number per bag of words, `evaluate` gives the
    highest accuracy that a model without word order can reach, ties as the tie rule says.
    """
    layout.check("text", keys)
    found = np.zeros(len(layout.match), dtype=np.float32)
    starts, begin = layout.starts("text"), layout.starts("image_text")
    for group in layout.groups:
        rows, columns = group.match.shape
        own = keys[starts[group.items][:, None] + np.arange(columns)]
        alike = own[:, :, None] == own[:, None, :]
        best = np.einsum("rc,ncd->nrd", group.match.astype(np.float32), alike.astype(np.float32)) > 0
        found[begin[group.items][:, None] + np.arange(rows * columns)] = best.reshape(len(own), -1)
    return found
