"""A folder of runs as a leaderboard. Only the headers of runs are read. They are read again only if they changed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from creperie.bench import Benchmark, load, recorded_audit
from creperie.core import DataError, Json, Progress, UsageError, counted, read_json, silent, write_json, write_text
from creperie.metrics import task
from creperie.reporting.gather import (
    beats_chance,
    covered,
    distinct,
    gather_runs,
    model_tail,
    tasks_by_coverage,
    with_people,
)
from creperie.reporting.html_tables import HtmlCell, count_cell, number, part, result_cell, standings_table, table, text
from creperie.reporting.known import KnownPlace, known_places, listed_with
from creperie.reporting.page import Contents, page_of, report_page
from creperie.reporting.thumbnails import PictureRoots
from creperie.scoring import RUN_FILE, SCORES_FILE, RunHeader, human_level, human_source, load_run, rank_runs

if TYPE_CHECKING:
    from markupsafe import Markup


#: what changes when a file is replaced: time of modification, size, inode, time of change
FileTimes = tuple[int, int, int, int]


def file_times(path: Path) -> FileTimes:
    """Return what changes when a file is replaced."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino, about.st_ctime_ns


@dataclass(frozen=True)
class LeaderboardEntry(RunHeader):
    """A run on a leaderboard: its header and its folder."""

    path: Path
    document: Json

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def written(self) -> str:
        """When the run was made, to the minute."""
        return str(self.document["created"]).replace("T", " ")[:16]

    def result(self, task_name: str, subset: str = "all") -> Json | None:
        """Return the run's result for a task on a subset; None if the run has none."""
        matching = (r for r in self.document["results"] if r["task"] == task_name and r["subset"] == subset)
        return next(matching, None)


@dataclass(frozen=True)
class BoardLinks:
    """The addresses that a leaderboard links to: files in a static site, pages in the studio."""

    matrix: str = "matrix.html"
    page: str = "bench/{bench}.html"  #: the report of all runs on a benchmark
    one: str = "bench/{bench}.html"  #: the report of one run
    more: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)  #: words and addresses, by benchmark

    def bench(self, slug: str) -> str:
        """Return the address of the report on a benchmark."""
        return self.page.format(bench=quote(slug))

    def run(self, entry: LeaderboardEntry, slug: str) -> str:
        """Return the address of the report on a run."""
        return self.one.format(bench=quote(slug), run=quote(entry.name))


@dataclass(frozen=True)
class Board:
    """The runs in a folder at one moment. `version` changes whenever a run is added, changed or removed."""

    entries: tuple[LeaderboardEntry, ...]
    unreadable: tuple[tuple[str, str], ...]  #: folder, reason
    version: str
    names: Mapping[str, str] = field(default_factory=dict)  #: the names that a zoo gives its models, by URI
    failed: tuple[tuple[str, str, str], ...] = ()  #: model, benchmark, error
    states: Mapping[Path, FileTimes] = field(default_factory=dict)  #: of the headers
    benches: Mapping[str, str] = field(default_factory=dict)  #: names that a folder gives its benchmarks, by content

    def by_content(self) -> dict[str, list[LeaderboardEntry]]:
        """Return the runs by the content hash of their benchmark. Runs without the real images (blind twins) are in
        separate groups, which come last.
        """
        groups: dict[str, list[LeaderboardEntry]] = {}
        for entry in sorted(self.entries, key=lambda entry: bool(entry.blinded)):
            groups.setdefault(entry.content, []).append(entry)
        return groups

    @cached_property
    def slugs(self) -> dict[str, str]:
        """Short names of benchmarks for addresses, by content hash. Equal names are distinguished by a part of the
        hash.
        """
        names = {
            e.content: re.sub(r"[^\w.+-]+", "-", self.bench_name(e)).strip("-.") or "benchmark" for e in self.entries
        }
        several = Counter(names.values())
        return {digest: name if several[name] == 1 else f"{name}-{digest[:8]}" for digest, name in names.items()}

    def bench_name(self, run: RunHeader) -> str:
        """Return the name shown for a run's benchmark. It is the name in `benches` or, if the benchmark is not listed
        there, the name in the run.
        """
        here = self.benches.get(run.hash)
        return f"{here}~{run.blinded}" if here and run.blinded else here or run.benchmark

    @cached_property
    def model_names(self) -> dict[str, str]:
        """A name for each model, by URI, for pages about several benchmarks."""
        urls = list(dict.fromkeys(entry.model for entry in self.entries))
        choices = [[self.names.get(uri) or model_tail(uri), uri] for uri in urls]
        return dict(zip(urls, distinct(choices), strict=True))

    @cached_property
    def label_of(self) -> dict[str, str]:
        """The name that each run has on all pages, by the name of the run's folder."""
        groups = self.by_content().values()
        return {e.name: label for entries in groups for e, label in zip(entries, self.labels(entries), strict=True)}

    def labels(self, entries: Sequence[LeaderboardEntry]) -> list[str]:
        """Return a unique name for each run. If a zoo file (a list of models for `creperie score`) gives the model a
        name, this name is used. Otherwise, the name is the shortest unique form of the model's URI.
        """
        choices = [[self.names.get(e.model) or model_tail(e.model), e.model, e.name] for e in entries]
        return [with_people(name, e.document) for name, e in zip(distinct(choices), entries, strict=True)]


#: columns of a ranking that are left out where they would be all zeros and dashes
SELDOM = ("ties", "findings", "weights")
ZOO_FILE = ".zoo.json"  #: hidden, so that `creperie report runs/*` matches only runs


def remember_zoo(folder: Path, names: Mapping[str, str], failed: Sequence[tuple[str, str, str]]) -> None:
    """Write a file in the folder of the runs. It holds the names that a zoo file gives to models, by URI, and the pairs
    that failed, as (model, benchmark, error).
    """
    if names or failed or (folder / ZOO_FILE).exists():
        write_json(folder / ZOO_FILE, {"names": dict(names), "failed": [list(one) for one in failed]})


class RunsFolder:
    """A folder of runs that is read repeatedly, with a cache of their headers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, tuple[FileTimes, LeaderboardEntry | str]] = {}

    def look(self) -> Board:
        """Return the runs now in the folder. Headers that have not changed since the last call are not read again."""
        states: dict[Path, FileTimes] = {}
        near = folders_in(self.folder)  # without hidden ones: runs that are still being written
        for path in sorted(one / RUN_FILE for one in (*near, *(one for place in near for one in folders_in(place)))):
            with suppress(OSError):
                states[path] = file_times(path)
        old = self._read
        self._read = {
            path: old[path] if path in old and old[path][0] == state else (state, read_entry(path))
            for path, state in states.items()
        }
        entries = tuple(entry for _, entry in self._read.values() if isinstance(entry, LeaderboardEntry))
        bad = tuple((path.parent.name, reason) for path, (_, reason) in self._read.items() if isinstance(reason, str))
        about: Json = {"names": {}, "failed": []}
        for zoo in (*self.folder.glob(ZOO_FILE), *self.folder.glob(f"*/{ZOO_FILE}")):
            try:
                one = read_json(zoo)
            except DataError:  # being written, or removed since
                continue
            about = {"names": {**about["names"], **one["names"]}, "failed": [*about["failed"], *one["failed"]]}
        written = json.dumps([about, *((str(p), *s) for p, s in states.items())])
        version = hashlib.sha256(written.encode()).hexdigest()[:16]
        return Board(entries, bad, version, about["names"], tuple(map(tuple, about["failed"])), states)


def folders_in(folder: Path) -> list[Path]:
    """Return the folders in a folder, without hidden ones. The list is empty if the folder itself has just been
    removed.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    return []


def read_entry(path: Path) -> LeaderboardEntry | str:
    """Return a run as an entry, or a message that says why the run cannot be read."""
    try:
        document = read_json(path)
        entry = LeaderboardEntry(path.parent, document)
        _ = entry.model, entry.hash, entry.benchmark, document["finding_counts"], document["created"]
        _ = [(r["task"], r["subset"], r["n"], r["accuracy"], r["ties"]) for r in document["results"]]
    except DataError as e:
        return f"{RUN_FILE} cannot be read ({e.what[:100]})"
    except (KeyError, TypeError) as e:
        return f"{RUN_FILE} is not complete ({type(e).__name__}: {e})"
    return entry if (path.parent / SCORES_FILE).is_file() else f"there is no {SCORES_FILE}"


def board_html(board: Board, links: BoardLinks) -> str:
    """Return the leaderboard as HTML: for each benchmark, one ranking per task and a heat map of the subsets."""
    benches = [_bench(board, digest, entries, links) for digest, entries in board.by_content().items()]
    return part("board", board, links, benches)


def _bench(board: Board, digest: str, entries: Sequence[LeaderboardEntry], links: BoardLinks) -> Json:
    first, slug = entries[0], board.slugs[digest]
    labelled = list(zip(entries, board.labels(entries), strict=True))
    linked = {e.path: part("run_link", links.run(e, slug), e.name, e.model, label) for e, label in labelled}
    places = [replace(place, model=label) for e, label in labelled for place in known_places(e)]
    columns = dict.fromkeys(place.column for place in places)
    return {
        "slug": slug,
        "name": board.bench_name(first),
        "about": first.document["benchmark"],
        "runs": len(entries),
        "rankings": [_ranking(board, entries, linked, name, places) for name in tasks_by_coverage(entries)],
        "known": [(c.head, [(*who, f"{value:.2f}") for *who, value in listed_with(c, places)]) for c in columns],
    }


def _ranking(
    board: Board,
    entries: Sequence[LeaderboardEntry],
    linked: Mapping[Path, Markup],
    name: str,
    places: Sequence[KnownPlace],
) -> Json:
    """Return the ranking of the runs with results on the task `name`, and these results by subset."""
    own = sorted((e for e in entries if e.result(name) is not None), key=lambda entry: _order(entry, name))
    ranks = task_ranks(tuple((str(e.path), board.states.get(e.path / RUN_FILE)) for e in own), name)
    rows = [_row(entry, linked[entry.path], name, ranks) for entry in own]
    rows += [_printed_row(*level) for level in _levels(own, name, places)]
    if not task(name).is_rank:
        rows.sort(key=lambda row: -float(row[2].value or 0.0))
    columns = ["rank", "model", "accuracy, %", "n", "chance", "ties", "findings", "weights", "written"]
    first = [entry for entry in own if ranks.get(str(entry.path)) in ("1", "=1")]
    best = [entry for entry in first if beats_chance(entry.result(name) or {})]
    title = f"{board.slugs[own[0].content]}, {name}"
    return {
        "task": name,
        "what": task(name).what,
        "best": board.labels(best) if len(best) < 4 else [],
        "chance": bool(first) and not best,
        "table": table(columns, rows, label=title, text=("rank", "model", "written"), seldom=SELDOM),
        "heat": "" if task(name).is_rank else _heat(own, linked, name, f"{title} by subset"),
    }


@lru_cache(maxsize=64)
def task_ranks(paths: tuple[tuple[str, FileTimes | None], ...], name: str) -> dict[str, str]:
    """Return each run's rank on a task, by the run's path. A shared rank has "=" in front. Ranks are cached until a run
    changes.
    """
    if not task(name).by_item or len(paths) < 2:
        return {}
    runs = {path: load_run(path) for path, _ in paths}
    (column,) = rank_runs(list(runs.values()), tasks=[name]).columns
    ranks = {path: column.models[run.model].rank for path, run in runs.items() if run.model in column.models}
    shared = Counter(ranks.values())
    return {path: f"{'=' if shared[rank] > 1 else ''}{rank}" for path, rank in ranks.items()}


def _row(entry: LeaderboardEntry, link: Markup, name: str, ranks: Mapping[str, str]) -> list[HtmlCell]:
    result = entry.result(name) or {}
    rank = ranks.get(str(entry.path), "–")
    return [
        HtmlCell(rank, rank.strip("=") if rank != "–" else None),
        HtmlCell(link, link.striptags(), "name"),
        result_cell(result, human_level(entry.benchmark, name, "all")),
        count_cell(result["n"], result["void"]),
        HtmlCell(task(name).text(result["chance"]), result["chance"]),
        number(result["ties"]),
        number(sum(entry.document["finding_counts"].values())),
        _weights(entry.document["model"].get("parameters")),
        text(entry.written),
    ]


def _levels(
    entries: Sequence[LeaderboardEntry], name: str, places: Sequence[KnownPlace]
) -> Iterator[tuple[str, str, float]]:
    """Yield (name, source, value) for each value that the runs are compared with: people, the best published models,
    and chance.

    If a run has ties, published results that count ties by another rule are left out.
    """
    entry, results = entries[0], [e.result(name) or {} for e in entries]
    result, people = results[0], human_level(entry.benchmark, name, "all")
    rules = {e.document["ties"] for e, own in zip(entries, results, strict=True) if own.get("ties")}
    if people == people:
        yield "people", human_source(entry.benchmark, name), people
    for column in dict.fromkeys(p.column for p in places if p.whole and p.column.definition[1] == name):
        if rules - {column.ties}:
            continue
        best = column.results[0]
        how = f", {column.definition[4]}" if column.definition[4] else ""
        yield best.model, f"best published: {best.table}{how}", best.value / 100
    if not task(name).is_rank and result.get("chance") is not None:
        yield "chance", "", result["chance"]


def _printed_row(who: str, source: str, value: float) -> list[HtmlCell]:
    """Return a table row for a value that is not from a run. It has no rank, n or interval, and is marked."""
    drawn = part("accuracy", source, value, math.nan, math.nan, None, math.nan, "")
    cell = drawn if source else part("bold", f"{100 * value:.1f}")  # a tick in the other rows shows chance
    shown = [HtmlCell("–"), HtmlCell(part("printed", who, source), who, "name"), HtmlCell(cell, value, "result")]
    return [*shown, *(number(None) for _ in range(6))]


def _heat(entries: Sequence[LeaderboardEntry], linked: Mapping[Path, Markup], name: str, label: str) -> str:
    """Return a heat map of models × subsets as HTML; empty if there is only one subset."""
    subsets = [s for s in entries[0].document["benchmark"]["subsets"] if any(_counted(e, name, s) for e in entries)]
    if len(subsets) < 2:
        return ""
    rows = [
        [HtmlCell(linked[entry.path], "", "name"), *(_counted(entry, name, subset) for subset in subsets)]
        for entry in entries
    ]
    return table(["model", *subsets], rows, label=label, text=("model",))


def _counted(entry: LeaderboardEntry, name: str, subset: str) -> Json | None:
    """Return a cell of the heat map, with the result on a subset and its number of items. Return None if no item was
    counted.
    """
    result = entry.result(name, subset)
    if result is None or not result["n"]:
        return None
    n = covered(result["n"], result["void"])
    keep = {key: result[key] for key in ("accuracy", "low", "high")}
    return {**keep, "leaks": False, "choice": f"{subset}: {n} items", "fewer": f"n {n}"}


def _weights(count: int | None) -> HtmlCell:
    """Return a cell with the number of a model's weights. It is a dash if the number is unknown (servers, people, older
    runs).

    >>> [_weights(count).html for count in (4_242, 151_277_313, None)]
    ['4 k', '151.3 M', '–']
    """
    if count is None:
        return number(None)
    return HtmlCell(f"{count / 1e6:,.1f} M" if count >= 1e6 else f"{count / 1e3:,.0f} k", float(count))


def _order(entry: LeaderboardEntry, task_name: str) -> tuple[int, float, str]:
    """Return the key by which a run is sorted on a task. The best result comes first (the lowest, if results are
    ranks). Runs without the task come last.
    """
    value = (entry.result(task_name) or {}).get("accuracy")
    if value is None:
        return 1, 0.0, entry.name
    return 0, float(value if task(task_name).is_rank else -value), entry.name


STATIC = BoardLinks()


def entries_report(
    board: Board,
    entries: Sequence[LeaderboardEntry],
    benches: Iterable[Benchmark],
    contents: Contents,
    roots: PictureRoots | None = None,
    place: str = "",
) -> str:
    """Return the report of runs on one benchmark. It includes the blind twins: runs of the same models without the real
    images. Items are shown if the benchmark is among `benches` or can be found. `place` is the benchmark's folder; by
    default, the runs name it.
    """
    models = {entry.model for entry in entries}
    twins = [e for e in board.entries if e.blinded and e.hash == entries[0].content and e.model in models]
    runs = [load_run(entry.path) for entry in (*entries, *twins)]
    fitting = next(([bench] for bench in benches if runs[0].fits(bench)), [])
    (group,) = gather_runs(runs, benches=fitting, roots=roots)
    audit = group.bench and recorded_audit(group.bench)
    contents = replace(contents, audits={runs[0].hash: audit} if audit else {})
    group = replace(group, place=place or group.place)
    return report_page([replace(group.apart(), labels=tuple(board.labels(entries)))], contents).html


def export_site(folder: Path, out: Path, *, benches: Sequence[str] = (), progress: Progress = silent) -> dict[str, int]:
    """Write three kinds of HTML files: the leaderboard, a table of all models and benchmarks, and one report per
    benchmark. Return the size of each file in bytes.
    """
    board = RunsFolder(folder).look()
    if not board.entries:
        raise UsageError("there are no runs in this folder", where=str(folder), hint="score a model first")
    ranked = rank_runs([load_run(entry.path) for entry in board.entries], names=board.model_names)
    matrix = standings_table(ranked, {digest: STATIC.bench(slug) for digest, slug in board.slugs.items()})
    name = folder.resolve().name
    title = f"Leaderboard of {name}: {counted(len(board.entries), 'run')}"
    pages = {
        "index.html": page_of(title, shown=board_html(board, STATIC)),
        "matrix.html": page_of(f"Models and benchmarks of {name}", back="index.html", shown=matrix),
    }
    given = [load(spec) for spec in benches]
    groups = board.by_content()
    with progress("reports", len(groups), "benchmarks") as advance:
        for digest, entries in groups.items():
            contents = Contents(title=entries[0].benchmark, back="../index.html")
            pages[unquote(STATIC.bench(board.slugs[digest]))] = entries_report(board, entries, given, contents)
            advance(1)
    for name, html in pages.items():
        write_text(out / name, html)
    return {name: len(html.encode("utf-8")) for name, html in pages.items()}
