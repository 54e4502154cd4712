"""The result of a run in a column of a table: value, interval and counts, in the column's unit."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from creperie.metrics import MacroRule, Measured, MetricSettings, Result, macro, measure, of_outcomes, summarise, task
from creperie.reporting.tables.published import Column, stands_for
from creperie.scoring import Run, compare


@dataclass(frozen=True)
class MeasuredCell:
    """The result of a run in a column. `low` and `high` are NaN if there is no interval, for example for a standard
    deviation.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    ties: int = 0
    task: str = ""
    run: str = ""
    level: float = 0.95
    published: bool = False  #: computed on the published items that the column is about
    tie_rule: str = ""  #: how ties were counted: wrong, half or right
    people: int = 0  #: how many people's shares it is the mean of
    clusters: int = 0  #: how many images (or groups of items that share images) the interval is over
    chance: float = math.nan  #: what random scores would reach, in percent


def measured_cell(
    run: Run, column: Column, published: Collection[str], any_benchmark: bool = False
) -> MeasuredCell | str:
    """Return the run's result in a column, or the reason why there is none.

    `published` are the names of benchmarks with the published items of the column. A run on another benchmark has a
    result only with `any_benchmark`.
    """
    own = run.benchmark in published
    if not own and not column.subsets:  # a stand-in benchmark: use the subset with the column's name
        column = replace(column, subsets=(column.name,))
    subsets = _subsets(run, column)
    if not own and not (any_benchmark and subsets):
        return f"it is a run on {run.benchmark!r}, the column needs {column.benchmark!r}"
    if not subsets:
        return f"it has no items of {', '.join(column.subsets)}"
    missing = [s for s in column.subsets if not any(fnmatchcase(stands_for(w), s) for w in subsets)]
    if missing and column.over != "items":
        return f"it has no items of {', '.join(missing)}"
    settings = replace(run.settings, ties="right") if column.ties == "right" else run.settings
    measured = _measured(run, column, settings)
    if isinstance(measured, str):
        return measured
    cell = _figure(run, column, measured, subsets, settings)
    if isinstance(cell, MeasuredCell) and cell.ties and column.ties is None:
        return f"{cell.ties:,} of its {cell.n:,} items are ties, which the source counts by a rule of its own"
    return cell if isinstance(cell, str) else replace(cell, published=own)


def average(own: Sequence[tuple[Run, MeasuredCell]], column: Column) -> MeasuredCell:
    """Return the unweighted mean of several people's results in a column, from their runs.

    `n` counts answers. The interval says how much the mean would vary if the same people answered other items. It
    allows for the dependence of answers to one item.
    """
    judged: list[np.ndarray] = []
    labels: list[tuple[int, str] | None] = []  # one group per person, or per person and subset; None: not asked for
    numbers: dict[tuple[str, int], int] = {}
    clusters: list[int] = []
    for person, (run, cell) in enumerate(own):
        subsets = _subsets(run, column)
        judged.append(run.outcomes(cell.task))
        labels += [(person, s if column.over == "subsets" else "") if s in subsets else None for s in run.subsets]
        clusters += [numbers.setdefault((run.hash, int(c)), len(numbers)) for c in run.clusters]
    run, cell = own[0]
    measured = of_outcomes(np.concatenate(judged), cell.task, how=run.settings)
    rule = MacroRule(exclude=frozenset([None]))
    result = macro(measured, labels, rule=rule, clusters=np.array(clusters), settings=run.settings)
    mean = _figure_of(run, result, *(100 * part for part in (result.accuracy, result.low, result.high)))
    return replace(mean, published=all(cell.published for _, cell in own), people=len(own))


def change(cell: MeasuredCell, run: Run, base: Run) -> MeasuredCell:
    """Return how a model's result in a column changes from `base` to `run`, on the items that both have."""
    (row,) = [r for r in compare(run, base, tasks=(cell.task,), common=True).rows if r.subset == "all"]
    gap = row.comparison
    value, low, high = (100 * part for part in (gap.difference, gap.low, gap.high))
    return replace(cell, value=value, low=low, high=high, n=gap.n, ties=0, task="", chance=math.nan)


def _subsets(run: Run, column: Column) -> list[str]:
    names = dict.fromkeys(run.subsets)
    if not column.subsets:
        return list(names)
    return [name for name in names if any(fnmatchcase(stands_for(name), pattern) for pattern in column.subsets)]


def _measured(run: Run, column: Column, settings: MetricSettings) -> Measured | str:
    """Measure the run on the first of the column's tasks for which it has scores. If it has scores for none of them,
    return the reason.
    """
    reason = ""
    for name in column.tasks:
        chosen = task(name)
        if chosen.needs not in run.inputs:
            reason = reason or f"it has no {chosen.needs} scores, which task {chosen.name!r} needs"
        elif chosen.swapped and run.swap is None:
            reason = f"it does not say how P1 and P2 are reordered: score with --task {chosen.name}"
        else:
            measured = measure(chosen, run.layout, run.scores(chosen.needs), run.swap, settings)
            if measured.applies.any():
                return measured
            reason = f"task {chosen.name!r} has nothing to compare in its items"
    return reason


def _figure(
    run: Run, column: Column, measured: Measured, subsets: Sequence[str], settings: MetricSettings
) -> MeasuredCell | str:
    labels = np.asarray(run.subsets, dtype=object)
    inside = np.isin(labels, list(subsets))
    if column.over == "items":
        labels = np.where(inside, "in", "out")
        rows = summarise(measured, subsets=labels, clusters=run.clusters, settings=settings)
        result = next(r for r in rows if r.subset == "in")
    else:
        rule = MacroRule(exclude=frozenset(set(run.subsets) - set(subsets)))
        result = macro(measured, labels, rule=rule, clusters=run.clusters, settings=settings)
    if not result.n:
        return "none of its items is covered"
    scale = 100.0 if column.unit in ("%", "points") else 1.0
    if column.over == "sd":
        rows = summarise(measured, subsets=labels, clusters=run.clusters, settings=run.settings)
        values = [r.accuracy for r in rows if r.subset in subsets]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
        return replace(_figure_of(run, result, spread * scale), n=len(subsets))  # of the subsets' figures
    return _figure_of(run, result, result.accuracy * scale, result.low * scale, result.high * scale)


def _figure_of(run: Run, result: Result, value: float, low: float = math.nan, high: float = math.nan) -> MeasuredCell:
    beside = (result.n, result.ties, result.task, str(run.path or run.name), run.settings.level)
    chance = 100 * result.chance
    return MeasuredCell(value, low, high, *beside, tie_rule=result.tie_rule, clusters=result.clusters, chance=chance)
