"""What each item contributes to the result of a task, such as hits and ties. `summarise` computes values, intervals and
chance levels from these contributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.metrics import detection
from creperie.metrics.intervals import (
    NOTHING,
    Confidence,
    Interval,
    Statistic,
    mean_over_groups,
    pulled_confidence,
    pulls,
    ratio,
    share_confidence,
    two_share_confidence,
)
from creperie.metrics.layout import Layout
from creperie.metrics.ranking import chance_ranks, median_confidence, median_of, ranked
from creperie.metrics.rules import HIT, TIE, VOID, CountRule
from creperie.metrics.settings import DEFAULT, MetricSettings
from creperie.metrics.tasks import Task, applies, as_task, chances, outcomes

#: Maximum items × ranks for which the interval of a median is computed.
MOST_RANKS = 20_000_000


@dataclass(frozen=True)
class Estimate:
    """The value of a task, with its interval, its chance level, and the counts of hits and ties."""

    value: float
    interval: Interval
    chance: float
    n: int
    hits: int
    ties: int


@dataclass(frozen=True, eq=False)
class Sums:
    """The contributions of the items to a task's value. `columns` has one row per item, and `statistic` computes the
    value from the sums of the columns. `share` is True if this value is a proportion, right / n.
    """

    task: str
    unit: str
    applies: np.ndarray
    counts: np.ndarray  #: (items, 3): hits, ties, n
    columns: np.ndarray
    statistic: Statistic
    chance_columns: np.ndarray
    chance_statistic: Statistic = ratio
    share: bool = True
    bounds: tuple[float, float] = (0, 1)
    values: np.ndarray | None = None  #: for a median: the values that the columns count

    @property
    def covered(self) -> np.ndarray:
        return self.counts[:, 2] > 0

    def confidence(self, items: np.ndarray, clusters: np.ndarray) -> Confidence:
        columns = self.columns[items]
        if not len(items):
            return Confidence(math.nan, NOTHING)
        if self.share:
            return share_confidence(columns[:, 0], columns[:, 1], clusters[items])
        value = float(self.statistic(columns.sum(axis=0)))
        if len(items) * columns.shape[1] > MOST_RANKS:
            return Confidence(value, "none (too large)")
        if self.values is not None:
            return median_confidence(columns, self.values, value, clusters[items])
        if self.statistic is detection.f1:
            return two_share_confidence(columns, self.statistic, clusters[items])
        return pulled_confidence(value, self._pulls(items), self.counts[items, 2], clusters[items], self.bounds)

    def _pulls(self, items: np.ndarray) -> np.ndarray:
        return pulls(self.columns[items], self.statistic, self.counts[items, 2])

    def estimate(self, groups: Sequence[np.ndarray], clusters: np.ndarray, how: MetricSettings) -> Estimate:
        """Return the unweighted mean of the groups' values. A single group's value is its own mean."""
        parts = [self.confidence(items, clusters) for items in groups]
        pulled = [self._pulls(items) for items in groups] if len(groups) > 1 else []
        whole = mean_over_groups(parts, pulled, [clusters[items] for items in groups], self.bounds)
        chance = np.mean([self.chance_statistic(self.chance_columns[items].sum(axis=0)) for items in groups])
        hits, ties, n = self.counts[np.concatenate(groups)].sum(axis=0).tolist()
        return Estimate(whole.value, whole.interval(how.level), float(chance), n, hits, ties)


@dataclass(frozen=True, eq=False)
class Cells:
    """The contributions of the items to an AUROC: the scores of all cells of all items in one array. `item` holds the
    item number of each cell.
    """

    task: str
    unit: str
    applies: np.ndarray
    covered: np.ndarray
    item: np.ndarray
    values: np.ndarray
    truth: np.ndarray

    def estimate(self, groups: Sequence[np.ndarray], clusters: np.ndarray, how: MetricSettings) -> Estimate:
        """Return the unweighted mean of the groups' areas."""
        areas = [self._area(g) for g in groups]
        known = [(area, own) for area, own in areas if area.pairs] or areas[:1]
        own = [clusters[self.item[cells]] for _, cells in known]
        parts = [detection.auroc_confidence(a, self.item[o], c) for (a, o), c in zip(known, own, strict=True)]
        whole = mean_over_groups(parts, [area.pull for area, _ in known], own, (0, 1))
        pairs, won, tied = (sum(getattr(a, name) for a, _ in known) for name in ("pairs", "won", "tied"))
        return Estimate(whole.value, whole.interval(how.level), 0.5, pairs, won, tied)

    def _area(self, items: np.ndarray) -> tuple[detection.Area, np.ndarray]:
        chosen = np.zeros(len(self.covered), bool)
        chosen[items] = True
        own = np.flatnonzero(chosen[self.item])
        return detection.auroc(self.values[own], self.truth[own]), own


#: The measurements of a task on every item. `covered`: the item is not void; `applies`: it has something to compare.
Measured = Sums | Cells


def measure(
    which: Task | str, layout: Layout, scores: np.ndarray, swap: np.ndarray | None = None, how: MetricSettings = DEFAULT
) -> Measured:
    """Return what each item contributes to the result of a task; `summarise` computes the result from it.

    `scores` is the flat array of the scores that the task needs. `swap` says for which items the true captions P1 and
    P2 are swapped (see `outcomes` in tasks.py).
    """
    chosen = as_task(which)
    if chosen.is_rank:
        return _ranks(chosen, layout, scores, how)
    if chosen.value == "auroc":
        return _cells(chosen, layout, scores)
    if chosen.by_item:
        judged = outcomes(chosen, layout, scores, swap)
        return of_outcomes(judged, chosen.name, chances(chosen, layout), applies(chosen, layout), how)
    return _captions(chosen, layout, scores, how)


def of_outcomes(
    judged: np.ndarray,
    name: str,
    chance: np.ndarray | float = math.nan,
    applied: np.ndarray | None = None,
    how: MetricSettings = DEFAULT,
) -> Sums:
    """Return outcomes from any source, such as people's answers, in the form that `summarise` takes.

    `judged` holds one outcome per item, and `chance` the chance level. `applied` says to which items the task applies
    (by default to all).
    """
    n = judged != VOID
    counts = np.stack([judged == HIT, judged == TIE, n], axis=1).astype(np.int64)
    return _shares(name, "items", np.ones(len(judged), bool) if applied is None else applied, counts, chance, how)


def _shares(
    name: str, unit: str, applied: np.ndarray, counts: np.ndarray, chance: np.ndarray | float, how: MetricSettings
) -> Sums:
    right = counts[:, 0] + how.tie_weight * counts[:, 1]
    n = counts[:, 2].astype(np.float64)
    level = np.where(n > 0, np.broadcast_to(chance, n.shape), 0.0) * n
    return Sums(name, unit, applied, counts, np.stack([right, n], axis=1), ratio, np.stack([level, n], axis=1))


def _captions(chosen: Task, layout: Layout, scores: np.ndarray, how: MetricSettings) -> Sums:
    """Return the contributions of the items to a task that counts captions, either all captions
    together, or true captions and foils separately.
    """
    rule = chosen.rule
    assert isinstance(rule, CountRule)
    parts = np.zeros((len(layout), rule.parts, 3), np.int64)
    chance = np.full(len(layout), np.nan)
    for group, cells in layout.blocks(chosen.needs, scores):
        parts[group.items] = rule.counts(group.match, cells)
        chance[group.items] = rule.chance(group.match)
    applied = applies(chosen, layout)
    alone = {"captions": [0], "foils": [1], "pooled": [0, 1], "share": [0]}.get(chosen.value)
    if alone is not None:
        return _shares(chosen.name, "captions", applied, parts[:, alone].sum(axis=1), chance, how)
    statistic, coin = {
        "balanced": (detection.balanced, None),
        "lower": (detection.lower, None),
        "precision": (detection.precision, detection.coin_precision),
        "f1": (detection.f1, detection.coin_f1),
    }[chosen.value]
    pooled = _shares(chosen.name, "captions", applied, parts.sum(axis=1), chance, how)
    right = parts[..., 0] + how.tie_weight * parts[..., 1]
    columns = np.concatenate([right, parts[..., 2]], axis=1)
    counted = replace(pooled, columns=columns, statistic=statistic, share=False)
    if coin is None:
        return counted
    return replace(counted, chance_columns=parts[..., 2].astype(np.float64), chance_statistic=coin)


def _ranks(chosen: Task, layout: Layout, scores: np.ndarray, how: MetricSettings) -> Sums:
    """Return the contributions of the items to a task about the rank of the best true caption. An image
    with rank 1 counts as a hit, and an image whose rank depends on the tie rule as a tie.
    """
    ranking, size = ranked(layout, scores), len(layout)
    rank = ranking.under(how.tie_weight)
    counts = np.stack(
        [
            np.bincount(ranking.item[which], minlength=size)
            for which in (ranking.worst == 1, ranking.best < ranking.worst, slice(None))
        ],
        axis=1,
    )
    expected, rows, shares = chance_ranks(layout)
    covered = counts[:, 2:] > 0
    by_chance = np.stack([expected, rows], axis=1) * covered
    bounds = (1, max(2, shares.shape[1]))
    columns = np.stack([np.bincount(ranking.item, rank, size), counts[:, 2].astype(np.float64)], axis=1)
    applied = applies(chosen, layout)
    mean = Sums(chosen.name, "images", applied, counts, columns, ratio, by_chance, share=False, bounds=bounds)
    if chosen.value == "mean-rank":
        return mean
    values, codes = np.unique(rank, return_inverse=True)
    values = values if len(values) else np.ones(1)
    flat = np.bincount(ranking.item * len(values) + codes, minlength=size * len(values))
    return replace(
        mean,
        columns=flat.reshape(size, -1).astype(np.float64),
        statistic=median_of(values),
        chance_columns=shares * covered,
        chance_statistic=median_of(np.arange(1.0, shares.shape[1] + 1)),
        values=values,
    )


def _cells(chosen: Task, layout: Layout, scores: np.ndarray) -> Cells:
    layout.check("image_text", scores)
    item = np.repeat(np.arange(len(layout)), layout.widths("image_text"))
    whole = np.bincount(item[np.isnan(scores)], minlength=len(layout)) == 0
    covered = whole & (layout.widths("image_text") > 0)
    inside = covered[item]
    cells = (item[inside], scores[inside], layout.match[inside])
    return Cells(chosen.name, "pairs", applies(chosen, layout), covered, *cells)
