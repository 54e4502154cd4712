"""Ranks of the true caption among the false ones: mean, median, and what chance gives."""

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
    """Rows with something to compare, of the items that are covered: their item, and the rank of their best true
    caption with ties resolved for it (`best`) and against it (`worst`), from 1."""

    item: np.ndarray
    best: np.ndarray
    worst: np.ndarray

    def under(self, tie_weight: float) -> np.ndarray:
        """The ranks under a tie rule: 0 against the true caption, 1 for it, 1/2 the middle."""
        value: np.ndarray = self.worst + tie_weight * (self.best - self.worst)
        return value


def ranked(layout: Layout, scores: np.ndarray) -> Ranked:
    """The rank of the best true caption of every image.

    >>> from creperie.metrics.layout import layout_of
    >>> found = ranked(layout_of([[[1, 0, 0]]]), np.array([0.5, 0.5, 0.9]))
    >>> found.best.tolist(), found.worst.tolist()
    ([2], [3])
    """
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for group, cells in layout.blocks("image_text", scores):
        best, worst, void = ranks(group.match, cells)
        kept = ~void
        rows = best.shape[0]
        parts.append((np.tile(group.items[kept], rows), best[:, kept].ravel(), worst[:, kept].ravel()))
    if not parts:
        return Ranked(*(np.zeros(0, dtype=np.int64),) * 3)
    item, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ranked(item, low, high)


def median_of(values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The statistic that reads the median off counts (…, values) of sorted values; NaN where nothing is counted."""

    def median(sums: np.ndarray) -> np.ndarray:
        below = np.cumsum(sums, axis=-1)
        half = below[..., -1:] / 2
        # Chance levels are sums of shares, so "exactly half" allows for rounding.
        low = (below < half - 1e-9).sum(axis=-1)
        high = (below <= half + 1e-9).sum(axis=-1)
        middle: np.ndarray = (values[low.clip(max=len(values) - 1)] + values[high.clip(max=len(values) - 1)]) / 2
        return np.where(below[..., -1] > 0, middle, np.nan)

    return median


def median_confidence(counts: np.ndarray, values: np.ndarray, median: float, clusters: np.ndarray) -> Confidence:
    """How sure a median is (Woodruff), of counts (items, values): the interval of the share that lies below or at it,
    read back as values."""
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
    """By chance, summed over an item's rows: the expected rank, the rows, and (items, ranks) how often each rank."""
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
