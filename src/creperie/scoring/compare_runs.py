"""Compare runs: paired tests on the same items, ranks over benchmarks and tasks, and correlations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.core import DataError, Framed, UsageError, csv_table, html_table, option, points, unknown, with_options
from creperie.metrics import (
    VOID,
    Comparison,
    Correlation,
    MetricSettings,
    Ranking,
    accuracy,
    aligned,
    compare_subsets,
    holm,
    pearson,
    rank_table,
    spearman,
    task,
)
from creperie.metrics import compare as compare_outcomes
from creperie.scoring.header import run_notes, uncovered_note
from creperie.scoring.run import Run, load_run

ALL, MACRO = "all", "macro"
RunSpec = Run | str | Path  #: a run, or its folder


@dataclass(frozen=True)
class ComparisonRow:
    """The comparison of two runs in one task, on one subset of a benchmark."""

    benchmark: str
    task: str
    subset: str
    comparison: Comparison

    def document(self) -> dict[str, Any]:
        document = asdict(self)
        return document | document.pop("comparison")


@dataclass(frozen=True)
class Correlated:
    """The correlation of two columns, each with one value per model."""

    a: str
    b: str
    models: list[str]
    correlation: Correlation

    def document(self) -> dict[str, Any]:
        document = asdict(self)
        return document | document.pop("correlation")


@dataclass
class Comparisons(Framed):
    """The paired tests, ranks and correlations of several runs."""

    rows: list[ComparisonRow] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    ranks: list[Ranking] = field(default_factory=list)
    correlations: list[Correlated] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        models = {m for r in self.rows for m in (r.comparison.a, r.comparison.b)}
        significant = sum(r.comparison.p_holm < 0.05 for r in self.rows)
        counts = f"{len(models)} models, {len(self.rows)} tests, {significant} significant after Holm's correction"
        return f"Comparisons({counts})"

    def _repr_html_(self) -> str:
        shown = [
            (r, r.comparison, points(r.comparison.difference, r.comparison.low, r.comparison.high)) for r in self.rows
        ]
        rows = [(r.task, r.subset, c.a, c.b, c.n, gap, f"{c.p:.3g}") for r, c, gap in shown]
        return html_table(repr(self), ("task", "subset", "a", "b", "items", "a − b, points", "p"), rows)

    def frame(self) -> pa.Table:
        """Return an Arrow table with one row per test."""
        rows = [r.document() for r in self.rows]
        flat = [{f"mcnemar_{name}": value for name, value in row.pop("mcnemar").items()} for row in rows]
        return pa.Table.from_pylist([{**row, **tested} for row, tested in zip(rows, flat)])

    def document(self) -> dict[str, Any]:
        return {
            "comparisons": [r.document() for r in self.rows],
            "columns": self.columns,
            "ranks": [asdict(r) for r in self.ranks],
            "correlations": [c.document() for c in self.correlations],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class AgainstOptions:
    """Options for comparing scores with a column of a CSV file that has one value per model."""

    against: Path | None = option(None, "A CSV file with one value per model.", metavar="FILE")
    column: str = option("", "The column of `against=`, for example imagenet.")
    key: str = option("model", "The column of `against=` that holds the model's URI.")

    def values(self) -> dict[str, float]:
        """Return the value of the CSV column for each model; empty if no file is given."""
        if (self.against is None) != (not self.column):
            raise UsageError(
                "`against=` and `column=` must be given together",
                hint="pass, for instance, `against='file.csv'` and `column='imagenet'`",
            )
        return {} if self.against is None else read_column(self.against, self.column, self.key)


@dataclass(frozen=True)
class CompareOptions(AgainstOptions):
    """Options of a comparison: the tasks, the items, and an external column to correlate the scores with."""

    tasks: tuple[str, ...] = option((), "Tasks, by comma; by default those of the runs.", flags="--task -t")
    common: bool = option(False, "Runs on different contents: compare the items they share by subset and id.")


@with_options(options=CompareOptions, settings=MetricSettings)
def compare(*runs: RunSpec | Sequence[RunSpec], options: CompareOptions, settings: MetricSettings) -> Comparisons:
    """Compare runs, given one by one or as a list.

    Every two runs on the same benchmark are tested item by item; three or more models are ranked. Runs on different
    versions of a benchmark are tested only with the option `common`. These runs are then restricted to the items that
    have the same subset, id and match matrix (which captions are true) in every run.
    """
    external = options.values()
    given = [r for one in runs for r in ([one] if isinstance(one, (Run, str, Path)) else one)]
    opened = [r if isinstance(r, Run) else load_run(r) for r in given]
    loaded = list({r.path or id(r): r for r in opened}.values())  # each run once
    uncovered = [f"{run.name}: {note}" for run in loaded for note in uncovered_note(run, "no score")]
    comparisons = Comparisons(notes=[*run_notes(loaded), *uncovered])
    if options.common:
        sizes = ", ".join(f"{len(r):,}" for r in loaded)
        loaded = on_shared_items(loaded)
        note = f"compared on the {len(loaded[0]):,} items that all runs have; the runs have {sizes}"
        comparisons.notes.append(note)
    groups: dict[str, list[Run]] = {}  # by the content of their benchmarks
    for run in loaded:
        groups.setdefault("common" if options.common else run.hash, []).append(run)
    task_names = [task(t).name for t in options.tasks]
    for name in task_names:
        if not any(task(name).needs in run.inputs for run in loaded):
            loaded[0].scored_task(name)  # raises the error
    for group in groups.values():
        if len(group) > 1:
            comparisons.rows += _tested(group, task_names, settings)
    _refuse_if_nothing(groups, comparisons, options.against)
    table = _columns(loaded, task_names, settings)
    pairs = []
    if len({r.model for r in loaded}) >= 3:
        comparisons.columns, comparisons.ranks = list(table), rank_table(table)
        pairs += [(a, table[a], b, table[b]) for a, b in combinations(table, 2)]
    if external:
        pairs += [(c, table[c], options.column, external) for c in table]
    comparisons.correlations = [_correlated(*pair, kind, settings) for pair in pairs for kind in (pearson, spearman)]
    return comparisons


# -- which runs belong together --------------------------------------------------------------------------------------


def _refuse_if_nothing(groups: Mapping[str, list[Run]], comparisons: Comparisons, against: Path | None) -> None:
    runs = [r for group in groups.values() for r in group]
    if len(runs) < 2 and against is None:
        raise UsageError("one run alone cannot be compared", hint="give two runs or more, or `against=`")
    if not comparisons.rows and len({r.model for r in runs}) < 3 and against is None:
        contents = ", ".join(f"{r.benchmark} {r.hash[:8]}" for r in runs)
        raise UsageError(
            f"the runs are on different items ({contents})",
            hint="pass `common=True` to compare the items that they share by subset and id",
        )
    for group in groups.values():
        if len(group) == 1 and len(runs) > 1:
            comparisons.notes.append(f"{group[0].name} is alone on its benchmark: no paired test")


def on_shared_items(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, restricted to the items that have the same subset, id and match matrix in all of them."""
    keyed = [{key: k for k, key in enumerate(item_keys(run.table))} for run in runs]
    shared = [key for key in keyed[0] if all(key in other for other in keyed[1:])]
    if not shared:
        what = "the runs have no item with the same subset, id and match matrix"
        raise UsageError(what, hint="compare runs of one benchmark")
    return [Run(r.document, r.table.take(pa.array([rows[k] for k in shared])), r.path) for r, rows in zip(runs, keyed)]


def item_keys(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return (subset, id, match matrix) for every item."""
    columns = (table.column(name).to_pylist() for name in ("subset", "id", "match"))
    return [(subset, id_, tuple(match)) for subset, id_, match in zip(*columns, strict=True)]


def run_labels(runs: Sequence[Run]) -> list[str]:
    """Return the models' URIs, or the runs' names if two runs have the same model."""
    models = [r.model for r in runs]
    return models if len(set(models)) == len(models) else [r.name for r in runs]


# -- paired tests ----------------------------------------------------------------------------------------------------


def _tested(group: Sequence[Run], task_names: Sequence[str], settings: MetricSettings) -> list[ComparisonRow]:
    """Test every pair of runs on each task in `task_names`: by subset, over all items, and on the mean over subsets.

    Holm's correction covers all tests of a task.
    """
    shared = [t for t in group[0].tasks if all(t in r.tasks for r in group)]
    names = list(task_names) or [t for t in shared if task(t).by_item]
    if not names:
        raise UsageError(f"the runs on {group[0].benchmark} have no task in common", hint="name one with `task=`")
    rows: list[ComparisonRow] = []
    for name in names:
        tests = [
            ComparisonRow(group[0].benchmark, name, subset, comparison)
            for a, b in combinations(range(len(group)), 2)
            for subset, comparison in _pair(group, (a, b), name, settings)
        ]
        corrected = holm([row.comparison.p for row in tests])
        rows += [replace(row, comparison=replace(row.comparison, p_holm=p)) for row, p in zip(tests, corrected)]
    return rows


def _pair(
    group: Sequence[Run], pair: tuple[int, int], name: str, settings: MetricSettings
) -> list[tuple[str, Comparison]]:
    labels = run_labels(group)
    names = (labels[pair[0]], labels[pair[1]])
    left, right = (group[i].outcomes(name) for i in pair)
    clusters = group[pair[0]].clusters
    subsets = np.array(group[pair[0]].subsets)
    both = (left != VOID) & (right != VOID)
    if not both.any():  # for example a task with people, where nobody was asked
        return []
    own = [s for s in dict.fromkeys(subsets.tolist()) if both[subsets == s].any()]
    masks = {s: subsets == s for s in own if len(own) > 1}  # one subset is all: Holm would count its test twice
    masks |= {ALL: np.ones(len(subsets), bool)}
    results = [
        (s, compare_outcomes(left[m], right[m], clusters=clusters[m], names=names, settings=settings))
        for s, m in masks.items()
    ]
    if len(own) > 1:
        macro = compare_subsets(left, right, subsets, clusters=clusters, names=names, settings=settings)
        results.append((MACRO, macro))
    return results


# -- over benchmarks -------------------------------------------------------------------------------------------------


def _columns(runs: Sequence[Run], task_names: Sequence[str], settings: MetricSettings) -> dict[str, dict[str, float]]:
    """Return the accuracies over all items, as {benchmark and task: {model: accuracy}}."""
    table: dict[str, dict[str, float]] = {}
    several = len({r.benchmark for r in runs}) > 1
    for run in runs:
        for name in task_names or [t for t in run.tasks if task(t).by_item]:
            if task(name).needs not in run.inputs:
                continue
            column = f"{run.benchmark} {name}" if several else name
            table.setdefault(column, {})[run.model] = accuracy(run.outcomes(name), settings.ties)
    return table


def _correlated(
    a: str,
    left: Mapping[str, float],
    b: str,
    right: Mapping[str, float],
    kind: Callable[..., Correlation],
    settings: MetricSettings,
) -> Correlated:
    models, x, y = aligned(left, right)
    if len(models) < 3:
        raise UsageError(
            f"{a} and {b} have {len(models)} models in common, but a correlation needs three",
            hint="name the models in the external file by their URI",
        )
    return Correlated(a, b, models, kind(x, y, settings))


def read_column(path: Path, name: str, key: str = "model") -> dict[str, float]:
    """Return the values in column `name` of a CSV file, by model; `key` is the column with the models' names."""
    names, rows = csv_table(path)
    for column in (key, name):
        if column not in names:
            raise unknown("column", column, names, where=path)
    values: dict[str, float] = {}
    for line, row in rows:
        try:
            values[row[key]] = float(row[name])
        except (TypeError, ValueError):
            what = f"{row[name]!r} in column {name!r} is not a number"
            raise DataError(what, where=f"{path}:{line}", hint="correct the cell, or name another column") from None
    return values
