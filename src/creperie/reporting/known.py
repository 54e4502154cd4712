"""Published results of other models on a benchmark, and the place of a run among them.

The sources are the tables of the papers and of MIEB. Results are ranked together only if they have one definition: the
same benchmark, task, subsets, way of averaging and rule for ties; every one carries the table that it was printed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import UsageError, __version__, packaged_toml, unknown, write_json
from creperie.metrics import Correlation, Ties, spearman, wilson
from creperie.reporting.tables.published import Column, PublishedTable, benchmark_names, known_tables
from creperie.scoring import Run, RunHeader

#: Smallest share of a definition's items on which a run is placed among published results.
COMPLETE = 0.99
#: benchmark, task, subsets, how they are averaged, and what else the source says of its definition
Definition = tuple[str, str, tuple[str, ...], str, str]


@dataclass(frozen=True)
class KnownResult:
    """A published figure of a model, in percent, and the table in which it was printed."""

    model: str
    value: float
    table: str

    def __str__(self) -> str:
        return f"{self.model} ({self.value:.1f}, {self.table})"


@dataclass(frozen=True)
class KnownColumn:
    """All published figures of one definition, the highest first."""

    definition: Definition
    title: str
    n: int | None
    results: tuple[KnownResult, ...]
    ties: Ties | None = "wrong"

    @property
    def head(self) -> str:
        """The definition in words."""
        return ", ".join(part for part in (self.title, self.definition[1], self.definition[4]) if part)


@dataclass(frozen=True)
class KnownPlace:
    """A run's figure in percent, with its interval, among the published ones of the same definition."""

    column: KnownColumn
    model: str
    value: float
    low: float
    high: float
    whole: bool = False  #: over all items, not one subset or a mean of subsets
    note: str = ""  #: how many ties it has, and how they are counted

    def __str__(self) -> str:
        """Say between which published results the run is.

        >>> known = KnownColumn(("b", "itt", (), "items", ""), "b", None, (KnownResult("A", 80, "t/1"),))
        >>> print(KnownPlace(known, "mine", 70, 66, 74))
        b, itt: 70.0 %, below A (80.0, t/1); 0 of 1 published results lie in its interval
        """
        results = self.column.results
        above, below = [r for r in results if r.value > self.value], [r for r in results if r.value <= self.value]
        both = f"between {below[0]} and {above[-1]}" if above and below else ""
        place = both or (f"below {above[-1]}" if above else f"above {below[0]}")
        within = sum(self.low <= r.value <= self.high for r in results)
        lie = f"{within} of {len(results)} published results lie in its interval"
        return f"{self.column.head}: {self.value:.1f} %, {place}; {lie}" + (self.note and f"; {self.note}")

    def document(self) -> dict[str, Any]:
        about = dict(zip(("benchmark", "task", "subsets", "over", "how"), self.column.definition, strict=True))
        return {**about, "value": self.value, "place": str(self), "results": [vars(r) for r in self.column.results]}


@cache
def known_columns() -> tuple[KnownColumn, ...]:
    """Return all published results of models, by definition."""
    found: dict[Definition, tuple[Column, dict[tuple[str, str], KnownResult]]] = {}
    for table in known_tables():
        for column in table.columns if table.rows_are == "models" and not table.scores else ():
            if column.measured and column.unit == "%" and not column.change_of:
                key = (column.benchmark, column.tasks[0], tuple(sorted(column.subsets)), column.over, column.how)
                _, results = found.setdefault(key, (column, {}))
                for row in table.rows:
                    if cell := row.cells[column.name]:
                        name = f"{row.group} {row.model}".strip()
                        results.setdefault((name, cell), KnownResult(name, float(cell), table.key))
    return tuple(
        KnownColumn(key, column.title, column.n, tuple(sorted(results.values(), key=lambda r: -r.value)), column.ties)
        for key, (column, results) in found.items()
        if results
    )


def known_places(run: RunHeader) -> list[KnownPlace]:
    """Return the places of a run among published results; none where it lacks items that the definition asks for."""
    subsets = set(run.document["benchmark"]["subsets"])
    places = []
    for column in known_columns():
        benchmark, task, wanted, over, _ = column.definition
        if run.benchmark not in benchmark_names(benchmark) or column.n is None:
            continue
        whole = not wanted or set(wanted) == subsets
        name = ("all" if over == "items" else "macro") if whole else wanted[0] if len(wanted) == 1 else ""
        own = [r for r in run.document["results"] if (r["task"], r["subset"]) == (task, name)]
        if own and own[0]["n"] >= COMPLETE * column.n and (figures := _figures(own[0], column.ties)):
            ties = own[0].get("ties")
            note = f"{ties:,} of its {own[0]['n']:,} items are ties, counted as {column.ties}" if ties else ""
            value, low, high = (100 * figure for figure in figures)
            places.append(KnownPlace(column, run.model, value, low, high, name == "all", note))
    return places


def why_no_place(run: RunHeader, benchmark: str) -> str:
    """Return why a run has no place among the published results on a benchmark; empty if it has one."""
    if run.benchmark not in benchmark_names(benchmark):
        return f"it is a run on {run.benchmark}"
    if known_places(run):
        return ""
    columns = [c for c in known_columns() if run.benchmark in benchmark_names(c.definition[0])]
    tasks = {c.definition[1] for c in columns}
    own = [r for r in run.document["results"] if r["task"] in tasks]
    if not own:
        asked = sorted({r["task"] for r in run.document["results"]})
        return f"it has {', '.join(asked)}; published are {', '.join(sorted(tasks))}"
    most, needed = max(r["n"] for r in own), max(c.n or 0 for c in columns)
    return f"it has {most:,} items; a place needs {100 * COMPLETE:.0f} % of the {needed:,} published"


def _figures(row: Mapping[str, Any], rule: Ties | None) -> tuple[float, float, float] | None:
    """Return a run's accuracy and its interval, ties counted by this rule; None if that is unknown."""
    if not row.get("ties") or row.get("tie_rule", "wrong") == rule:
        return float(row["accuracy"] or 0), float(row["low"] or 0), float(row["high"] or 0)
    if row["subset"] == "macro" or not rule:
        return None
    hits = row["hits"] + (row["ties"] if rule == "right" else 0)
    return (hits / row["n"], *wilson(hits, row["n"]))


def export_mieb(run: Run, out: str | Path) -> Path:
    """Write a run's figures as a results file of MIEB, `OUT/MODEL/REVISION/TASK.json`, and return its path.

    As in MIEB, the first of equal scores is taken, and the k-th image must find the k-th caption: a measure is 0 where
    there are more images than captions, or fewer.
    """
    tasks = packaged_toml("creperie.reporting", "published", "mieb.toml")["mteb"]
    known = next((name for name in tasks if run.benchmark in benchmark_names(name)), "")
    items = next((c.n or 0 for c in known_columns() if c.definition[0] == known and c.definition[4]), 0)
    if not known:
        hint = f"run one of these, whole: {', '.join(tasks)}"
        raise UsageError(f"MIEB has no task for {run.benchmark!r}", hint=hint)
    name, revision, main = tasks[known]
    (group,) = run.layout.groups
    cells = run.scores("image_text").reshape(-1, *group.match.shape)
    scored = int((~np.isnan(cells).any((1, 2))).sum())
    if scored < max(len(run), COMPLETE * items):
        what = f"{scored:,} of {max(len(run), items):,} items have image-text scores"
        raise UsageError(what, where=run.name, hint="score the whole benchmark with a model that sees images")
    text, image = ((best == np.arange(best.shape[1])).all(1) for best in (cells.argmax(2), cells.argmax(1)))
    scores = {"text_acc": text.mean(), "image_acc": image.mean(), "accuracy": (text & image).mean()}
    entry = {**scores, "main_score": scores[main], "hf_subset": "default", "languages": ["eng-Latn"]}
    entry["computed_by"] = f"creperie {__version__}"  # not by mteb, whose version is therefore null
    document = {"dataset_revision": revision, "task_name": name, "mteb_version": None, "scores": {"test": [entry]}}
    model = run.model.partition(":")[2].partition("?")[0].replace("/", "__")
    path = Path(out) / model / "no_revision_available" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**document, "evaluation_time": None, "kg_co2_emissions": None}, plain=True)
    return path


def known_rows(benchmark: str, runs: Sequence[RunHeader] = ()) -> list[tuple[str, str, str, str]]:
    """Return the published results on a benchmark, definition by definition, with runs among them, marked by ▶."""
    columns = [c for c in known_columns() if benchmark in benchmark_names(c.definition[0])]
    if not columns:
        raise unknown("benchmark with published results", benchmark, {c.definition[0] for c in known_columns()})
    places = [place for run in runs for place in known_places(run)]
    return [(column.head, *row) for column in columns for row in listed_with(column, places)]


def listed_with(column: KnownColumn, places: Sequence[KnownPlace]) -> list[tuple[str, str, str]]:
    """Return model, source and figure of one definition, the highest first; runs are marked by ▶."""
    ours = [(p.value, f"▶ {p.model}", "run") for p in places if p.column is column]
    listed = sorted(ours + [(r.value, r.model, r.table) for r in column.results], reverse=True)
    return [(model, source, f"{value:.2f}") for value, model, source in listed]


def column_correlations(table: PublishedTable) -> list[tuple[str, str, Correlation]]:
    """Return Spearman's correlation of every two columns of a table, over the models that have both figures."""
    shown = [c for c in table.columns if c.measured]
    figures = {c.name: [float(row.cells[c.name] or "nan") for row in table.rows] for c in shown}
    return [(a.title, b.title, spearman(figures[a.name], figures[b.name])) for a, b in combinations(shown, 2)]
