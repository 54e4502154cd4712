"""Published results of other models on a benchmark, and the rank of a run among them.

The sources are the tables of the papers and of MIEB. Results are ranked together only if their *definition* is the
same: the benchmark, task, subsets, way of averaging and rule for ties. Each result names the table in which it was
printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from creperie.core import Document, Json, UsageError, __version__, listing, packaged_toml, unknown, write_json
from creperie.metrics import Correlation, Ties, spearman, wilson
from creperie.reporting.tables.published import Column, PublishedTable, benchmark_names, known_tables
from creperie.scoring import Run, RunHeader

#: Smallest share of a definition's items on which a run is placed among published results.
COMPLETE = 0.99
#: A row whose figures, so many or more, all stand in an earlier table of its paper is that table's model again.
SAME = 3
#: Groups of rows in published tables that saw no image.
SIGHTLESS = re.compile("Text-only|Blind")
#: benchmark, task, subsets, how they are averaged, and what else the source says of its definition
Definition = tuple[str, str, tuple[str, ...], str, str]


@dataclass(frozen=True)
class KnownResult:
    """A published result of a model, in percent as printed. It includes the number of decimals and the name of the
    table.
    """

    model: str
    value: float
    table: str
    digits: int = 2

    def __str__(self) -> str:
        return f"{self.model} ({self.value:.1f}, {self.table})"


@dataclass(frozen=True)
class KnownColumn:
    """All published results with the same definition, highest first. The definition consists of the benchmark, task,
    subsets and averaging.
    """

    definition: Definition
    title: str
    n: int | None
    results: tuple[KnownResult, ...]
    ties: Ties | None = "wrong"

    @property
    def head(self) -> str:
        """The definition of the results in words, as the heading of this column."""
        return ", ".join(part for part in (self.title, self.definition[1], self.definition[4]) if part)


@dataclass(frozen=True)
class KnownPlace:
    """A run's result in percent, with its interval. `column` is the column of published results with which it is
    compared.
    """

    column: KnownColumn
    model: str
    value: float
    low: float
    high: float
    whole: bool = False  #: over all items, not one subset or a mean of subsets
    note: str = ""  #: how many ties it has, and how they are counted

    def __str__(self) -> str:
        """Return a phrase that says between which published results the run lies.

        >>> known = KnownColumn(("b", "itt", (), "items", ""), "b", None, (KnownResult("A", 80, "t/1"),))
        >>> print(KnownPlace(known, "mine", 70, 66, 74))
        b, itt: 70.0 %, below A (80.0, t/1); 0 of 1 published results lie in its interval
        """
        results = self.column.results
        above, below = [r for r in results if r.value > self.value], [r for r in results if r.value <= self.value]
        equal = [r for r in results if r.value == round(self.value, r.digits)]
        both = f"between {below[0]} and {above[-1]}" if above and below else ""
        place = both or (f"below {above[-1]}" if above else f"above {below[0]}")
        place = f"equal to the last printed digit to {listing(equal)}" if equal else place
        within = sum(self.low <= r.value <= self.high for r in results)
        lie = f"{within} of {len(results)} published results lie in its interval"
        return f"{self.column.head}: {self.value:.1f} %, {place}; {lie}" + (self.note and f"; {self.note}")

    def document(self) -> Json:
        about = dict(zip(("benchmark", "task", "subsets", "over", "how"), self.column.definition, strict=True))
        return {**about, "value": self.value, "place": str(self), "results": [vars(r) for r in self.column.results]}


@cache
def known_columns() -> tuple[KnownColumn, ...]:
    """Return all published results of models as columns. The results in a column all measure the same thing."""
    found: dict[Definition, tuple[Column, dict[tuple[str, str], KnownResult]]] = {}
    printed: set[tuple[str, frozenset[tuple[Definition, str]]]] = set()
    for table in known_tables():
        ranked = table.columns if table.rows_are == "models" and not table.scores else ()
        columns = {
            (c.benchmark, c.tasks[0], tuple(sorted(c.subsets)), c.over, c.how): c
            for c in ranked
            if c.measured and c.unit == "%" and not c.change_of
        }
        for row in table.rows:
            name = f"{row.group} {row.model}".strip()
            cells = {key: cell for key, column in columns.items() if (cell := row.cells[column.name])}
            again = any(paper == table.paper and cells.items() <= known for paper, known in printed)
            if again and len(cells) >= SAME:  # an earlier table has the same model, perhaps by another name
                continue
            printed.add((table.paper, frozenset(cells.items())))
            for key, cell in cells.items():
                _, results = found.setdefault(key, (columns[key], {}))
                digits = len(cell.partition(".")[2])
                results.setdefault((name, cell), KnownResult(name, float(cell), table.key, digits))
    return tuple(
        KnownColumn(key, column.title, column.n, tuple(sorted(results.values(), key=lambda r: -r.value)), column.ties)
        for key, (column, results) in found.items()
        if results
    )


def known_places(run: RunHeader) -> list[KnownPlace]:
    """Return the run's place in each column with which it can be compared: same task, items and rule for ties."""
    return [place for column in _columns_of(run.benchmark) if isinstance(place := _place(run, column), KnownPlace)]


def without_place(run: Run, benchmark: str) -> list[str]:
    """Return the reasons why a run cannot be placed among a benchmark's published results. The list is empty if it
    can.
    """
    if run.benchmark not in benchmark_names(benchmark):
        return [f"{run.name} has no place: it is a run on {run.benchmark}"]
    columns = _columns_of(run.benchmark)
    asked, published = {r["task"] for r in run.document["results"]}, {c.definition[1] for c in columns}
    if not asked & published:
        listed = [", ".join(sorted(tasks)) for tasks in (asked, published)]
        return [f"{run.name} has no place: it has {listed[0]}; published are {listed[1]}"]
    missing: dict[str, list[str]] = {}
    for column in columns:
        if isinstance(why := _place(run, column), str) and why:
            missing.setdefault(why, []).append(column.title)
    return [f"{run.name} has no place by {', '.join(titles)}: {why}" for why, titles in missing.items()]


def _columns_of(benchmark: str) -> list[KnownColumn]:
    return [column for column in known_columns() if benchmark in benchmark_names(column.definition[0])]


def _place(run: RunHeader, column: KnownColumn) -> KnownPlace | str:
    """Return a run's place in a column, or the reason why it has none; the reason is "" if the run lacks the task."""
    _, task, column_subsets, over, _ = column.definition
    rows = {r["subset"]: r for r in run.document["results"] if r["task"] == task}
    subsets = set(run.document["benchmark"]["subsets"])
    names = [name for name in column_subsets or sorted(subsets) if name in rows]
    whole = not column_subsets or set(column_subsets) == subsets
    single = len(column_subsets) == 1
    row = rows.get(("all" if over == "items" else "macro") if whole else column_subsets[0] if single else "")
    if row is None and over == "items" and names and len(names) == len(column_subsets):  # some subsets, pooled
        row = {**rows[names[0]], **{k: sum(rows[n].get(k) or 0 for n in names) for k in ("hits", "ties", "n")}}
        row["pooled"] = True
    if rows and column.n and not set(column_subsets) <= rows.keys():
        return "it lacks some of the subsets"
    if row is None or column.n is None:
        return ""
    sizes = {c.definition[2][0]: c.n for c in _columns_of(run.benchmark) if len(c.definition[2]) == 1 and c.n}
    needed = {s: (rows[s]["n"], sizes[s]) for s in names if s in sizes} if over == "subsets" else {}
    needed[""] = (row["n"], column.n)
    for name, (n, size) in needed.items():
        if n < COMPLETE * size:
            what = f"{n:,} items{name and ' of ' + name}"
            return f"it has {what}; a place needs {100 * COMPLETE:.0f} % of the {size:,} published"
    if not (figures := _figures(row, column.ties)):
        return "it has ties, which the source counts by another rule"
    ties = row.get("ties")
    note = f"{ties:,} of its {row['n']:,} items are ties, counted as {column.ties}" if ties else ""
    value, low, high = (100 * figure for figure in figures)
    return KnownPlace(column, run.model, value, low, high, whole and over == "items", note)


def _figures(row: Document, rule: Ties | None) -> tuple[float, float, float] | None:
    """Return a run's accuracy and the two ends of its interval, with ties counted by `rule`. Return None if this is
    impossible.
    """
    if "pooled" not in row and (not row.get("ties") or row.get("tie_rule", "wrong") == rule):
        return float(row["accuracy"] or 0), float(row["low"] or 0), float(row["high"] or 0)
    if row["subset"] == "macro" or (row["ties"] and not rule):
        return None
    hits = row["hits"] + (row["ties"] if rule == "right" else 0)
    return (hits / row["n"], *wilson(hits, row["n"]))


def export_mieb(run: Run, out: str | Path) -> Path:
    """Write a run's results as a results file of MIEB, `OUT/MODEL/REVISION/TASK.json`, and return its path.

    In the file, `dataset_revision` is the hash of the scored items, which may differ from those of MIEB's own revision.
    The measures are computed as in MIEB: the k-th caption of an item is assumed to be true of its k-th image, and the
    first of equal scores counts as the highest. If items have more
    images than captions, `text_acc` is therefore 0; if they have more captions than images, `image_acc` is 0.
    """
    tasks = packaged_toml("creperie.reporting", "published", "mieb.toml")["mteb"]
    known = next((name for name in tasks if run.benchmark in benchmark_names(name)), "")
    items = next((c.n or 0 for c in known_columns() if c.definition[0] == known and c.definition[4]), 0)
    if not known:
        hint = f"score all items of one of these benchmarks: {', '.join(tasks)}"
        raise UsageError(f"MIEB has no task for {run.benchmark!r}", hint=hint)
    name, main = tasks[known]
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
    document = {
        "dataset_revision": f"creperie-{run.hash[:12]}",
        "task_name": name,
        "mteb_version": None,
        "scores": {"test": [entry]},
    }
    model = run.model.partition(":")[2].partition("?")[0].replace("/", "__")
    path = Path(out) / model / "no_revision_available" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**document, "evaluation_time": None, "kg_co2_emissions": None}, plain=True)
    return path


def known_rows(benchmark: str, runs: Sequence[RunHeader] = ()) -> list[tuple[str, str, str, float]]:
    """Return a benchmark's published results, column by column, as (column heading, model, source, percent). The given
    runs are inserted in order of their results and marked with ▶.
    """
    columns = _columns_of(benchmark)
    if not columns:
        raise unknown("benchmark with published results", benchmark, {c.definition[0] for c in known_columns()})
    places = [place for run in runs for place in known_places(run)]
    return [(column.head, *row) for column in columns for row in listed_with(column, places)]


def listed_with(column: KnownColumn, places: Sequence[KnownPlace]) -> list[tuple[str, str, float]]:
    """Return (model, source, percent) for each published result of one column, highest first. Runs in `places` that
    belong to the column are included and marked with ▶.
    """
    ours = [(p.value, f"▶ {p.model}", "run") for p in places if p.column is column]
    listed = sorted(ours + [(r.value, r.model, r.table) for r in column.results], reverse=True)
    return [(model, source, value) for value, model, source in listed]


@dataclass(frozen=True)
class ColumnCorrelations:
    """Spearman's correlations between the columns of a published table, and the rows that are left out."""

    pairs: tuple[tuple[str, str, Correlation], ...]
    left_out: tuple[str, ...]


def column_correlations(table: PublishedTable) -> ColumnCorrelations:
    """Return Spearman's correlation of every two columns of a table. Models with a result in both columns are used.

    Rows of people and of models that see no image are left out. So are pairs of columns that share items, such as a
    subset and the mean over all subsets.
    """
    apart = {row.model for row in table.rows if row.model == "Human" or SIGHTLESS.search(row.group)}
    rows = [row for row in table.rows if row.model not in apart]
    shown = [c for c in table.columns if c.measured]
    figures = {c.name: [float(row.cells[c.name] or "nan") for row in rows] for c in shown}
    pairs = []
    for a, b in combinations(shown, 2):
        alike = (a.benchmark, a.tasks) == (b.benchmark, b.tasks)
        if not (alike and (not a.subsets or not b.subsets or set(a.subsets) & set(b.subsets))):
            pairs.append((a.title, b.title, spearman(figures[a.name], figures[b.name])))
    return ColumnCorrelations(tuple(pairs), tuple(sorted(apart)))
