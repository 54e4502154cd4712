"""Standings: a table of models and benchmarks, with ranks and letters. Models that share a letter do not differ
significantly.

A column is one task on one benchmark. Its models are compared in pairs on the same items, as in `compare`; Holm's
correction covers all pairs. A model's rank is one more than the number of significantly better models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from creperie.core import UsageError, counted
from creperie.metrics import VOID, MetricSettings, difference_confidence, holm, task
from creperie.scoring.header import run_notes
from creperie.scoring.run import Run, unblinded

#: the significance level of ranks and groups, after Holm's correction
ALPHA = 0.05


@dataclass(frozen=True)
class Standing:
    """The result of one model in one column. `low` and `high` are the ends of the accuracy's confidence interval."""

    accuracy: float
    low: float
    high: float
    n: int
    ties: int
    rank: int
    groups: str  #: letters; models that share one do not differ significantly
    subsets: tuple[float, ...] = ()  #: accuracies by subset
    void: int = 0  #: items that are not covered


@dataclass(frozen=True)
class StandingsColumn:
    """The results of all models on one task of one benchmark."""

    benchmark: str
    task: str
    hash: str
    chance: float
    subsets: tuple[str, ...]
    models: dict[str, Standing]
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.benchmark} {self.task}"


@dataclass(frozen=True)
class Standings:
    """Results by model and column. For a model that lacks a result in any column, `mean` and `mean_rank` are NaN,
    because a mean over fewer columns cannot be compared with those of other models.
    """

    columns: list[StandingsColumn]
    models: list[str]  #: best mean first; incomplete ones last
    mean: dict[str, float]
    mean_rank: dict[str, float]
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return {
            "columns": [{**asdict(column), "name": column.name} for column in self.columns],
            "models": [{"model": m, "mean": self.mean[m], "mean_rank": self.mean_rank[m]} for m in self.models],
            "notes": self.notes,
        }


def rank_runs(
    runs: Sequence[Run],
    *,
    names: Mapping[str, str] | None = None,
    tasks: Iterable[str] = (),
    settings: MetricSettings | None = None,
) -> Standings:
    """Return the standings of the runs' models.

    `names` maps model URIs to labels. If a model has two runs for one column, the later one counts. Runs on blind twins
    (benchmarks with replaced images) are left out if there are also runs on the real images.

    The tie rule and the seed are taken from `settings` if given, otherwise from the runs.
    """
    names = names or {}
    task_names = [task(name).name for name in tasks]
    groups: dict[tuple[str, str], dict[str, Run]] = {}
    ranked = unblinded(runs)
    for run in ranked:
        for name in task_names or run.tasks:
            if task(name).by_item and task(name).needs in run.inputs:
                groups.setdefault((run.content, name), {})[names.get(run.model, run.model)] = run
    if not groups:
        raise UsageError("no run has a task with one outcome per item", hint="give folders that `score` wrote")
    columns = [_column(by_model, name, settings) for (_, name), by_model in groups.items()]
    models = list(dict.fromkeys(model for column in columns for model in column.models))
    mean, ranks = dict.fromkeys(models, math.nan), dict.fromkeys(models, math.nan)
    for model in models:
        if len(results := [c.models[model] for c in columns if model in c.models]) == len(columns):
            mean[model] = sum(result.accuracy for result in results) / len(columns)
            ranks[model] = sum(result.rank for result in results) / len(columns)
    twins = [f"{counted(left, 'blind twin')} not ranked"] if (left := len(runs) - len(ranked)) else []
    order = sorted(models, key=lambda m: (_highest_first(mean[m]), m))
    return Standings(columns, order, mean, ranks, [*run_notes(runs), *twins, *_notes(columns, mean)])


def _notes(columns: Sequence[StandingsColumn], mean: Mapping[str, float]) -> list[str]:
    notes = [f"{column.name}: {column.note}" for column in columns if column.note]
    lacking = sum(math.isnan(m) for m in mean.values())
    if len(columns) > 1 and lacking < len(mean):
        chances = sorted({round(100 * c.chance) for c in columns if not math.isnan(c.chance)})
        if len(chances) > 1:
            levels = ", ".join(map(str, chances))
            notes.append(f"the mean adds up columns with different chance levels ({levels} %): compare columns first")
        notes.append("the mean weighs every column alike, whatever its number of items")
        if partial := [
            f"{m} {s.n:,} of {s.n + s.void:,} in {c.name}" for c in columns for m, s in c.models.items() if s.void
        ]:
            more = f" and {len(partial) - 3} more" if len(partial) > 3 else ""
            notes.append(f"some means rest on part of the items: {'; '.join(partial[:3])}{more}")
    if lacking and len(columns) > 1:
        notes.append(f"no mean for {counted(lacking, 'model')}: there is no result in at least one column")
    return notes


def _column(by_model: Mapping[str, Run], name: str, settings: MetricSettings | None) -> StandingsColumn:
    models = list(by_model)
    first = by_model[models[0]]
    outcomes = np.stack([_aligned(by_model[m], first).outcomes(name) for m in models], axis=1)
    better, shared = _better(outcomes, first.clusters, settings or first.settings)
    results = {m: _results(by_model[m], name, settings) for m in models}
    whole = {m: results[m]["all"] for m in models}
    subsets = tuple(s for s in results[models[0]] if s not in ("all", "macro") and results[models[0]][s]["n"])
    values = [_number(whole[m]["accuracy"]) for m in models]
    letters = letter_groups(values, better | better.T)
    ranks = 1 + better.sum(axis=0)
    accuracies = {
        m: Standing(
            values[k],
            _number(whole[m]["low"]),
            _number(whole[m]["high"]),
            rank=int(ranks[k]),
            groups=letters[k],
            subsets=tuple(_number(results[m].get(s, {}).get("accuracy")) for s in subsets),
            **{key: int(whole[m][key]) for key in ("n", "ties", "void")},
        )
        for k, m in enumerate(models)
    }
    uncovered = len(outcomes) - shared
    note = f"ranks from the {shared:,} items that all models cover" if uncovered and len(models) > 1 else ""
    chance = _number(whole[models[0]]["chance"])
    return StandingsColumn(first.benchmark, name, first.hash, chance, subsets, accuracies, note)


def _aligned(run: Run, first: Run) -> Run:
    """Return the run with its items in the order of the first run, which has the same items."""
    if run.table.column("id").equals(first.table.column("id")) and run.subsets == first.subsets:
        return run
    rows = {key: i for i, key in enumerate(zip(run.subsets, run.table.column("id").to_pylist(), strict=True))}
    item_keys = zip(first.subsets, first.table.column("id").to_pylist(), strict=True)
    return Run(run.document, run.table.take([rows[key] for key in item_keys]), run.path)


def _results(run: Run, name: str, settings: MetricSettings | None) -> dict[str, dict[str, Any]]:
    """Return a run's results for a task, by subset. The results are computed again if none are stored, or if `settings`
    differ from those of the run.
    """
    stored = name in run.tasks and (settings is None or settings == run.settings)
    results = run.results if stored else [r.as_dict() for r in run.evaluate([name], settings)]
    return {r["subset"]: r for r in results if r["task"] == name}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _better(outcomes: np.ndarray, clusters: np.ndarray, settings: MetricSettings) -> tuple[np.ndarray, int]:
    """Return a boolean matrix (models × models) and the number of items. An entry is True if the row's model is
    significantly better than the column's model.
    """
    n = outcomes.shape[1]
    better = np.zeros((n, n), bool)
    covered = (outcomes != VOID).all(axis=1)
    shared = int(covered.sum())
    pairs = list(combinations(range(n), 2))
    if not pairs or len(np.unique(clusters[covered])) < 2:
        return better, shared
    worth = settings.worth(outcomes[covered])
    p_values = [difference_confidence(worth[:, a], worth[:, b], clusters[covered]).p_against(0.0) for a, b in pairs]
    means = worth.mean(axis=0)
    for (a, b), p in zip(pairs, holm(p_values), strict=True):
        if p < ALPHA:
            better[(a, b) if means[a] > means[b] else (b, a)] = True
    return better, shared


def letter_groups(values: Sequence[float], differ: np.ndarray) -> list[str]:
    """Return a compact letter display: two models share a letter if and only if they do not differ.

    The best model gets the letter a.

    >>> differ = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool)
    >>> letter_groups([0.9, 0.8, 0.7], differ)
    ['a', 'ab', 'b']
    """
    order = sorted(range(len(values)), key=lambda k: _highest_first(values[k]))
    groups = [frozenset(order)]
    for a, b in combinations(order, 2):
        if not differ[a, b]:
            continue
        split = [part for g in groups for part in ((g - {a}, g - {b}) if {a, b} <= g else (g,))]
        parts = list(dict.fromkeys(g for g in split if g))
        groups = [g for g in parts if not any(g < other for other in parts)]
    place = {k: i for i, k in enumerate(order)}
    groups.sort(key=lambda g: sorted(place[k] for k in g))
    return ["".join(_letter(i) for i, g in enumerate(groups) if k in g) for k in range(len(values))]


def _highest_first(value: float) -> tuple[bool, float]:
    """Return a sort key that puts high values first and NaN last."""
    return (True, 0.0) if math.isnan(value) else (False, -value)


def _letter(number: int) -> str:
    """Return the letter for a group, counted from 0; after z come a', b' and so on.

    >>> _letter(0), _letter(27)
    ('a', "b'")
    """
    return chr(ord("a") + number % 26) + "'" * (number // 26)
