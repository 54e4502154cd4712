"""Results: one row per task and subset, with its ties, its interval and its chance level."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.core import UsageError, packaged
from creperie.metrics.layout import Layout, codes_of
from creperie.metrics.measured import Estimate, Measured, measure
from creperie.metrics.rules import HIT, TIE, VOID
from creperie.metrics.settings import DEFAULT, TIE_WEIGHTS, MetricSettings, Ties
from creperie.metrics.tasks import Task, applicable, task

ALL, MACRO = "all", "macro"


@dataclass(frozen=True)
class Result:
    """A task over a subset.

    `n` counts what is covered, in `unit`s (items, captions, images or pairs of captions); `void` the items that are
    not covered, of which `vacuous` had nothing to compare. `accuracy` is the task's value: (hits + w·ties) / n for
    shares, a rank for mean-rank and median-rank. `interval` names the method, `clusters` the independent units.
    """

    task: str
    subset: str
    n: int
    hits: int
    ties: int
    void: int
    accuracy: float
    low: float
    high: float
    chance: float
    interval: str
    clusters: int
    vacuous: int = 0
    unit: str = "items"
    tie_rule: Ties = "wrong"
    groups: int = 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not a number stays NaN."""
        return asdict(self)


@dataclass(frozen=True)
class MacroRule:
    """Which groups a macro mean is taken over: those with enough items, but not the excluded ones."""

    minimum: int = 1
    exclude: frozenset[Hashable] = frozenset()


EVERY_GROUP = MacroRule()


@cache
def aro_relations() -> MacroRule:
    """ARO's VG-Relation headline: without the fixed list of relations that its authors' notebook drops."""
    lines = packaged("creperie.metrics", "aro_dropped_relations.txt")
    return MacroRule(exclude=frozenset(line for line in lines.splitlines() if line and not line.startswith("#")))


#: ARO's VG-Attribution headline: pairs of attributes with at least 25 cases.
ARO_ATTRIBUTES = MacroRule(minimum=25)


def accuracy(outcomes: np.ndarray, ties: Ties = "wrong") -> float:
    """The share of hits among the covered items, ties worth what the rule says; NaN where none is covered.

    >>> accuracy(np.array([HIT, TIE, 0, VOID]), ties="half")
    0.5
    """
    covered = int((outcomes != VOID).sum())
    right = (outcomes == HIT).sum() + TIE_WEIGHTS[ties] * (outcomes == TIE).sum()
    return float(right / covered) if covered else math.nan


def evaluate(
    which: Task | str,
    layout: Layout,
    scores: np.ndarray,
    *,
    subsets: Sequence[Hashable] | np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    swap: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> list[Result]:
    """A task's results for every subset, for all items together and, with several subsets, their macro mean.

    `scores` is the flat column that the task needs, NaN where an item was not scored; `clusters` one whole number per
    item (`clusters_of`).

    >>> from creperie.metrics.layout import layout_of
    >>> two = layout_of([[[1, 0]], [[1, 0]]])
    >>> for row in evaluate("itt", two, np.array([0.3, 0.1, 0.2, 0.2]), subsets=["a", "b"]):
    ...     print(row.subset, row.n, row.hits, row.ties, row.accuracy, row.chance)
    a 1 1 0 1.0 0.5
    b 1 0 1 0.0 0.5
    all 2 1 1 0.5 0.5
    macro 2 1 1 0.5 0.5
    """
    chosen = task(which) if isinstance(which, str) else which
    measured = measure(chosen, layout, scores, swap, settings)
    if len(layout) and not measured.applies.any():
        raise UsageError(
            f"task {chosen.name!r} has nothing to compare in any of the {len(layout)} items",
            hint=f"tasks that have: {', '.join(applicable(layout))}",
        )
    return summarise(measured, subsets=subsets, clusters=clusters, settings=settings)


def summarise(
    measured: Measured,
    *,
    subsets: Sequence[Hashable] | np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> list[Result]:
    """Results by subset, for all, and the macro mean over the subsets that are covered."""
    size = len(measured.applies)
    own = _clusters(clusters, size)
    everything = np.arange(size)
    if subsets is None:
        return [_result(measured, ALL, everything, own, settings)]
    groups = _groups(subsets, size)
    rows = [_result(measured, str(name), items, own, settings) for name, items in groups.items()]
    rows.append(_result(measured, ALL, everything, own, settings))
    if len(groups) > 1:
        rows.append(macro(measured, subsets, clusters=clusters, settings=settings))
    return rows


def macro(
    measured: Measured,
    groups: Sequence[Hashable] | np.ndarray,
    *,
    rule: MacroRule = EVERY_GROUP,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Result:
    """The mean over groups of the task's value, each group worth the same, with an interval of its own.

    Groups without a covered item are left out; `groups` in the result says how many were averaged.
    """
    size = len(measured.applies)
    kept = [g for name, g in _groups(groups, size).items() if len(g) >= rule.minimum and name not in rule.exclude]
    everything = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    covered = [own for own in (g[measured.covered[g]] for g in kept) if len(own)]
    if not covered:
        return _result(measured, MACRO, everything, _clusters(clusters, size), settings)
    own = _clusters(clusters, size)
    found = measured.macro(covered, own, settings)
    return _row(measured, MACRO, everything, own, settings, found, len(covered))


def _groups(labels: Sequence[Hashable] | np.ndarray, size: int) -> dict[Hashable, np.ndarray]:
    """Items by label, labels in order of first appearance."""
    if len(labels) != size:
        raise UsageError(f"{len(labels)} labels for {size} items")
    codes, names = codes_of(labels)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True)) if names else {}


def _clusters(clusters: np.ndarray | None, size: int) -> np.ndarray:
    if clusters is None:
        return np.arange(size)
    if len(clusters) != size:
        raise UsageError(f"{len(clusters)} clusters for {size} items")
    return np.asarray(clusters)


def _result(
    measured: Measured, subset: str, items: np.ndarray, clusters: np.ndarray, settings: MetricSettings
) -> Result:
    found = measured.estimate(items[measured.covered[items]], clusters, settings)
    return _row(measured, subset, items, clusters, settings, found)


def _row(
    measured: Measured,
    subset: str,
    items: np.ndarray,
    clusters: np.ndarray,
    settings: MetricSettings,
    found: Estimate,
    groups: int = 1,
) -> Result:
    covered = items[measured.covered[items]]
    return Result(
        task=measured.task,
        subset=subset,
        n=found.n,
        hits=found.hits,
        ties=found.ties,
        void=len(items) - len(covered),
        accuracy=found.value,
        low=found.interval.low,
        high=found.interval.high,
        chance=found.chance,
        interval=found.interval.method,
        clusters=len(np.unique(clusters[covered])),
        vacuous=int((~measured.applies[items] & ~measured.covered[items]).sum()),
        unit=measured.unit,
        tie_rule=settings.ties,
        groups=groups,
    )
