"""Ranks of the best true caption among the false ones: their mean, their median and the chance levels of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from creperie.metrics.chance import best_within
from creperie.metrics.intervals import Confidence, share_confidence
from creperie.metrics.layout import Layout
from creperie.metrics.rules import along_rows, ranks


@dataclass(frozen=True, eq=False)
class Ranked:
    """The ranks, from 1, of each image's best true caption. `best` holds the ranks if ties count in favour of that
    caption, and `worst` those if ties count against it. `item` is the number of the image's item.

    Images are left out if a score of their item is missing, or if they have only true or only false captions.
    """

    item: np.ndarray
    best: np.ndarray
    worst: np.ndarray

    def under(self, tie_weight: float) -> np.ndarray:
        """Return the ranks under a tie rule. With weight 0 ties count against the true caption, and with 1 in its
        favour. With 1/2, the ranks are halfway between.
        """
        return self.worst + tie_weight * (self.best - self.worst)


def ranked(layout: Layout, scores: np.ndarray) -> Ranked:
    """Return the rank of the best true caption for every image.

    >>> from creperie.metrics.layout import layout_of
    >>> ranks = ranked(layout_of([[[1, 0, 0]]]), np.array([0.5, 0.5, 0.9]))
    >>> ranks.best.tolist(), ranks.worst.tolist()
    ([2], [3])
    """
    parts = []
    for group, cells in layout.blocks("image_text", scores):
        best, worst, void = ranks(group.match, cells)
        covered = ~void
        rows = best.shape[0]
        parts.append((np.tile(group.items[covered], rows), best[:, covered].ravel(), worst[:, covered].ravel()))
    if not parts:
        return Ranked(*(np.zeros(0, np.int64),) * 3)
    item, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ranked(item, low, high)


def median_of(values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the median of the sorted `values`. Its argument is an array (…, values) of
    counts: how often each value occurs. It returns an array (…), with NaN where all counts are 0.
    """

    def median(sums: np.ndarray) -> np.ndarray:
        below = np.cumsum(sums, axis=-1)
        half = below[..., -1:] / 2
        # Chance levels are sums of shares, so the comparison with one half allows for rounding.
        low = (below < half - 1e-9).sum(axis=-1)
        high = (below <= half + 1e-9).sum(axis=-1)
        middle = (values[low.clip(max=len(values) - 1)] + values[high.clip(max=len(values) - 1)]) / 2
        return np.where(below[..., -1] > 0, middle, np.nan)

    return median


def median_confidence(counts: np.ndarray, values: np.ndarray, median: float, clusters: np.ndarray) -> Confidence:
    """Return a median with its interval by Woodruff's method. `counts` (items, values) holds how often each value
    occurs.
    """
    # The interval is that of the proportion of values below the median (plus half of those equal to it), translated
    # back into values.
    n = counts.sum(axis=1)
    below = counts @ ((values < median) + (values == median) / 2)
    share = share_confidence(below, n, clusters)
    reached = np.cumsum(counts.sum(axis=0)) / n.sum()
    level_ends = share.ends
    if level_ends is None:
        return Confidence(median, share.method)

    def ends(level: float) -> tuple[float, float]:
        levels = 0.5 - share.value + np.array(level_ends(level))
        low, high = values[np.searchsorted(reached, levels).clip(max=len(values) - 1)]
        return min(float(low), median), max(float(high), median)

    return Confidence(median, f"woodruff, {share.method}", ends)


def chance_ranks(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays about the rank of an image's best true caption under random scores.

    All have one entry (or row) per item. The first is the sum of the expected ranks over the item's images. The second
    is the number of its images that have a rank. The third (items × ranks) is the sum of the probabilities of each rank
    over its images.
    """
    longest = max((g.match.shape[1] for g in layout.groups), default=1)
    expected, rows = np.zeros((2, len(layout)))
    shares = np.zeros((len(layout), longest))
    for group in layout.groups:
        for contest in along_rows(group.match):
            true, false = len(contest.winners), len(contest.losers)
            within = np.array([best_within(r, true, false) for r in range(longest + 1)])
            expected[group.items] += 1 + false / (true + 1)
            rows[group.items] += 1
            shares[group.items] += np.diff(within)
    return expected, rows, shares
