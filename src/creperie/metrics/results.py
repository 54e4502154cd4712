"""The results of tasks: one row per task and subset, with counts, interval and chance level."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.core import UsageError, packaged
from creperie.metrics.layout import Layout, cluster_labels, codes_of
from creperie.metrics.measured import Measured, measure
from creperie.metrics.rules import HIT, TIE, VOID
from creperie.metrics.settings import DEFAULT, TIE_WEIGHTS, MetricSettings, Ties
from creperie.metrics.tasks import Task, applicable, as_task

ALL, MACRO = "all", "macro"


@dataclass(frozen=True)
class Result:
    """The result of a task on a subset.

    `n` is the number of `unit`s (items, captions, images or pairs of captions) that the result covers. `void` counts
    the items that are not covered, and `vacuous` how many of them have nothing to compare. `clusters` is the number of
    independent units.

    `accuracy` is the value of the task. For mean-rank and median-rank it is a rank, otherwise the proportion (hits +
    w·ties) / n, with the weight w from the tie rule. `interval` names the method, or says why `low` and `high` are NaN.
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
        """Return the fields as a dictionary for JSON; missing numbers stay NaN."""
        return asdict(self)


@dataclass(frozen=True)
class MacroRule:
    """The groups that a macro mean covers: those with at least `minimum` items, except the excluded ones."""

    minimum: int = 1
    exclude: frozenset[Hashable] = frozenset()


EVERY_GROUP = MacroRule()


@cache
def aro_relations() -> MacroRule:
    """Return the rule for the main result of ARO's VG-Relation. Like the authors' notebook, it excludes some
    relations.
    """
    lines = packaged("creperie.metrics", "aro_dropped_relations.txt")
    return MacroRule(exclude=frozenset(line for line in lines.splitlines() if line and not line.startswith("#")))


#: The rule for ARO's VG-Attribution headline: pairs of attributes with at least 25 items.
ARO_ATTRIBUTES = MacroRule(minimum=25)


def accuracy(outcomes: np.ndarray, ties: Ties = "wrong") -> float:
    """Return the fraction of hits among the items that are not VOID. Ties are counted by the tie rule. The result is
    NaN if all items are VOID.

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
    """Return the results of a task for every subset and for all items together. If there are several subsets, the macro
    mean is included.

    `scores` is the flat array of the scores that the task needs, with NaN for items that were not scored. `clusters`
    holds one integer per item (see `clusters_of`). `swap` says for which items the true captions P1 and P2 are swapped
    (see `outcomes`).

    >>> from creperie.metrics.layout import layout_of
    >>> two = layout_of([[[1, 0]], [[1, 0]]])
    >>> for row in evaluate("itt", two, np.array([0.3, 0.1, 0.2, 0.2]), subsets=["a", "b"]):
    ...     print(row.subset, row.n, row.hits, row.ties, row.accuracy, row.chance)
    a 1 1 0 1.0 0.5
    b 1 0 1 0.0 0.5
    all 2 1 1 0.5 0.5
    macro 2 1 1 0.5 0.5
    """
    chosen = as_task(which)
    measured = measure(chosen, layout, scores, swap, settings)
    if len(layout) and not measured.applies.any():
        raise UsageError(
            f"task {chosen.name!r} has nothing to compare in any of the {len(layout)} items",
            hint=f"choose among: {', '.join(applicable(layout))}",
        )
    return summarise(measured, subsets=subsets, clusters=clusters, settings=settings)


def summarise(
    measured: Measured,
    *,
    subsets: Sequence[Hashable] | np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> list[Result]:
    """Return the results for each subset, for all items together, and for the macro mean over the subsets. Subsets in
    which all items are void are left out of the mean.
    """
    size = len(measured.applies)
    own = cluster_labels(clusters, size)
    groups = {} if subsets is None else _groups(subsets, size)
    named = [*((str(name), items) for name, items in groups.items()), (ALL, np.arange(size))]
    rows = [_result(measured, name, items, own, settings) for name, items in named]
    if subsets is not None and len(groups) > 1:
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
    """Return the unweighted mean of the task's value over groups, with its interval.

    Groups in which all items are void are left out; the field `groups` of the result says how many were averaged.
    """
    size = len(measured.applies)
    own = cluster_labels(clusters, size)
    chosen = [g for name, g in _groups(groups, size).items() if len(g) >= rule.minimum and name not in rule.exclude]
    everything = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    covered = [part for part in (g[measured.covered[g]] for g in chosen) if len(part)]
    return _result(measured, MACRO, everything, own, settings, covered)


def _groups(labels: Sequence[Hashable] | np.ndarray, size: int) -> dict[Hashable, np.ndarray]:
    """Return the indices of the items with each label; labels are in order of first appearance."""
    if len(labels) != size:
        raise UsageError(f"given {len(labels)} subset labels for {size} items", hint="give one label per item")
    codes, names = codes_of(labels)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True)) if names else {}


def _result(
    measured: Measured,
    subset: str,
    items: np.ndarray,
    clusters: np.ndarray,
    settings: MetricSettings,
    groups: Sequence[np.ndarray] = (),
) -> Result:
    """Return the result on some items. With `groups` of covered items, the value is the mean over them."""
    covered = items[measured.covered[items]]
    estimate = measured.estimate(groups or [covered], clusters, settings)
    return Result(
        task=measured.task,
        subset=subset,
        n=estimate.n,
        hits=estimate.hits,
        ties=estimate.ties,
        void=len(items) - len(covered),
        accuracy=estimate.value,
        low=estimate.interval.low,
        high=estimate.interval.high,
        chance=estimate.chance,
        interval=estimate.interval.method,
        clusters=len(np.unique(clusters[covered])),
        vacuous=int((~measured.applies[items] & ~measured.covered[items]).sum()),
        unit=measured.unit,
        tie_rule=settings.ties,
        groups=len(groups) or 1,
    )
