"""The items of a benchmark in the studio. They are filtered on the server, and changed by saving a new version."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing import AttackerModels, Pairs, item_wins, make_attackers, pairs_of
from creperie.bench import TAG_PREFIX, Benchmark, Edit, Item, edit, items_of, save, table_of
from creperie.core import UsageError, silent, unknown
from creperie.metrics import VOID, margins, task
from creperie.reporting.gather import HUMAN, tasks_by_coverage
from creperie.reporting.studio.search import SearchTerm, search_terms
from creperie.reporting.studio.shelf import Shelf
from creperie.reporting.tables.filled import COMBINED
from creperie.scoring import Run, RunHeader, unblinded

PAGE = 36  #: items per response
#: attackers that answer for 100,000 items in about a second; the answer is kept
QUICK = ("length-words", "length-chars", "surface", "negation")


@dataclass(frozen=True)
class ItemFilter:
    """A filter of items. Its fields are the parameters in an address."""

    name: str
    subset: str = ""
    words: str = ""
    tag: str = ""  #: name=value
    attacker: str = ""  #: items whose true captions this attacker prefers
    right: str = ""  #: a run that is right on the items
    wrong: str = ""  #: a run that is wrong on them
    show: str = ""  #: disagree: some models are right and some are wrong; wrong: all are wrong; people: people disagree
    task: str = ""  #: the task that decides what is right; else the one that most runs have
    at: str = ""  #: the item that is open, subset/id

    @staticmethod
    def of(query: Mapping[str, str]) -> ItemFilter:
        """Return the filter that an address's query describes."""
        return ItemFilter(**{f.name: query.get(f.name, "") for f in fields(ItemFilter)})

    def address(self, page: str = "/items", **more: Any) -> str:
        """Return the address of `page` with this filter as its query. `more` replaces some of its values."""
        return f"{page}?{urlencode({k: v for k, v in {**asdict(self), **more}.items() if v != ''})}"


@dataclass(frozen=True)
class ItemAnswers:
    """How many models are right on each item, and how many answered it."""

    right: np.ndarray
    asked: np.ndarray


class ItemIndex:
    """The items of one benchmark, with cached answers of quick attackers. A quick attacker needs about a second for
    100,000 items.
    """

    def __init__(self, bench: Benchmark) -> None:
        self.bench = bench
        self._found: dict[tuple[str, bool], np.ndarray] = {}
        self._outcomes: dict[tuple[str, str, str], np.ndarray] = {}
        self._wins: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()

    @cached_property
    def texts(self) -> pa.Array:
        """All captions in lower case."""
        return pc.utf8_lower(self.bench.ragged("captions")[1])

    @cached_property
    def offsets(self) -> np.ndarray:
        """The index of each item's first caption."""
        return self.bench.ragged("captions")[0]

    @cached_property
    def ids(self) -> pa.Array:
        """All ids in lower case."""
        return pc.utf8_lower(self.bench.column("id").combine_chunks())

    def prepare(self) -> None:
        """Start to compute the answers of quick attackers in the background, so that their filters respond at once."""
        threading.Thread(target=lambda: [self.wins(attacker) for attacker in QUICK], daemon=True).start()

    def tags(self) -> list[str]:
        """Return the filters by tag that the page offers, as strings `name=value`. Tags with more than 20 different
        values are left out.
        """
        listed = []
        for name in self._tag_columns:
            values = pc.unique(self.bench.column(name)).to_pylist()
            if len(values) <= 20:
                listed += [f"{name[len(TAG_PREFIX) :]}={value}" for value in values if value is not None]
        return listed

    def ready(self) -> dict[str, np.ndarray]:
        """Return the answers of the quick attackers that have finished. An answer says for each item whether the
        attacker prefers the true captions.
        """
        return {attacker: self._wins[attacker] for attacker in QUICK if attacker in self._wins}

    def wins(self, attacker: str) -> np.ndarray:
        """Return, for each item, whether the attacker prefers its true captions."""
        if attacker not in QUICK:
            raise unknown("quick attacker", attacker, QUICK)
        with self._lock:
            if attacker not in self._wins:
                (made,) = make_attackers([attacker], AttackerModels())
                self._wins[attacker] = item_wins(self._pairs, made.margins(self._pairs, silent)) > 0.5
            return self._wins[attacker]

    @cached_property
    def _tag_columns(self) -> list[str]:
        return [name for name in self.bench.columns if name.startswith(TAG_PREFIX)]

    @cached_property
    def _pairs(self) -> Pairs:
        return pairs_of(self.bench)

    def rows(self, item_filter: ItemFilter, shelf: Shelf) -> np.ndarray:
        """Return the row numbers of the items that match the filter."""
        bench = self.bench
        keep = np.ones(len(bench), dtype=bool)
        if item_filter.subset:
            keep &= pc.equal(bench.column("subset"), item_filter.subset).to_numpy()
        for term in search_terms(item_filter.words):
            keep &= self._matching(term, item_filter, shelf) ^ term.without
        if item_filter.tag:
            name, _, value = item_filter.tag.partition("=")
            if TAG_PREFIX + name not in bench.columns:
                raise unknown("tag", name, [n[len(TAG_PREFIX) :] for n in self._tag_columns])
            column = bench.column(TAG_PREFIX + name)
            alike = [v for v in pc.unique(column).to_pylist() if str(v) == value]
            keep &= np.asarray(pc.is_in(column, value_set=pa.array(alike, column.type)))
        if item_filter.attacker:
            keep &= self.wins(item_filter.attacker)
        for run, right in ((item_filter.right, True), (item_filter.wrong, False)):
            if run:
                opened = shelf.run(run)
                outcomes = self.outcomes(opened, item_filter.task)
                keep &= opened.settings.right(outcomes) if right else opened.settings.wrong(outcomes)
        if item_filter.show:
            keep &= self.shown(shelf, item_filter.task).get(item_filter.show, False)
        return np.flatnonzero(keep)

    def shown(self, shelf: Shelf, named: str = "") -> dict[str, np.ndarray]:
        """Return, for each value of `ItemFilter.show`, a mask of the items that it selects. Values that compare models
        are left out unless several models answered some item.
        """
        answers = self.answers(shelf, named)
        wrong = answers.right < answers.asked
        several = {"disagree": wrong & (answers.right > 0), "wrong": wrong & (answers.right == 0)}
        people = self.answers(shelf, people=True)
        apart = (people.right > 0) & (people.right < people.asked)
        for tag in (name for name in self.bench.columns if name.startswith(f"{TAG_PREFIX}people.")):
            column = self.bench.column(tag)
            if pa.types.is_string(column.type):
                apart |= np.asarray(pc.fill_null(pc.equal(column, "undecided"), False), dtype=bool)
        return {**(several if answers.asked.max(initial=0) > 1 else {}), "people": apart}

    def _matching(self, term: SearchTerm, item_filter: ItemFilter, shelf: Shelf) -> np.ndarray:
        """Return which items satisfy one condition of a search. A leading minus is ignored here; the caller negates the
        result.
        """
        if term.key == "subset":
            names = pc.utf8_lower(self.bench.column("subset"))
            return np.asarray(pc.match_substring(names, term.text), dtype=bool)
        if term.key == "model":
            named = [run for run, label in self.labelled(shelf) if term.text in f"{label} {run.model}".lower()]
            right = [run.settings.right(self.outcomes(run, item_filter.task)) for run in named]
            return np.all(right, axis=0) if right else np.zeros(len(self.bench), dtype=bool)
        key = (term.text, term.whole)
        if key not in self._found:  # while somebody types, only the last word changes
            total = np.concatenate([[0], np.cumsum(term.found(self.texts))])
            own = np.asarray(pc.equal(self.ids, term.text), dtype=bool)
            self._found = {**dict(list(self._found.items())[-20:]), key: own | (np.diff(total[self.offsets]) > 0)}
        return self._found[key]

    def labelled(self, shelf: Shelf) -> list[tuple[Run, str]]:
        """Return the runs on these items, each with the label that tables show. Runs that saw replaced images, such as
        noise, are left out if some run saw the real images.
        """
        board = shelf.board()
        entries = unblinded([e for e in board.entries if e.hash == self.bench.hash and tasks_by_item(e)])
        return [(shelf.opened(entry), board.label_of[entry.name]) for entry in entries]

    def outcomes(self, run: Run, named: str = "") -> np.ndarray:
        """Return a run's outcomes on the task `named`, or else on its first task that has one outcome per item."""
        if run.hash != self.bench.hash:
            what = f"the run {run.name} was computed on another benchmark"
            raise UsageError(what, where=self.bench.name, hint="choose another run")
        name = named or tasks_by_item(run)[0]
        if name not in tasks_by_item(run):
            raise UsageError(f"the run {run.name} has no task {name[:40]!r}", hint="choose another task")
        key = (run.name, str(run.document["created"]), name)
        if key not in self._outcomes:
            self._outcomes[key] = run.outcomes(name)[self.rows_in(run)]
        return self._outcomes[key]

    def margins(self, run: Run, name: str) -> np.ndarray | None:
        """Return a run's margins on a task, in the order of the benchmark's items. Return None if the task has no
        margins.
        """
        if not task(name).has_margins:
            return None
        return margins(task(name), run.layout, run.scores(task(name).needs))[self.rows_in(run)]

    def rows_in(self, run: Run) -> np.ndarray | slice:
        """Return, for each item of the benchmark, its row number in the run. If the run has the items in the same
        order, return a slice over all rows.
        """
        ids = run.table.column("id")
        if ids.equals(self.bench.column("id")) and run.table.column("subset").equals(self.bench.column("subset")):
            return slice(None)
        places = {key: row for row, key in enumerate(zip(run.subsets, ids.to_pylist(), strict=True))}
        item_keys = zip(self.bench.column("subset").to_pylist(), self.bench.column("id").to_pylist(), strict=True)
        return np.array([places[key] for key in item_keys])

    def answers(self, shelf: Shelf, named: str = "", *, people: bool = False) -> ItemAnswers:
        """Return how many models answered each item on the task `named`, and how many of them are right. With `people`,
        count people instead of models.
        """
        runs = [run for run, _ in self.labelled(shelf) if run.model.startswith(HUMAN) is people]
        runs = [run for run in runs if not run.model.endswith(COMBINED)]
        tasks = [name for run in runs for name in tasks_by_item(run)]
        chosen = named or next((name for name in tasks_by_coverage(runs) if name in tasks), "")
        if named and named not in tasks:
            raise UsageError(f"no run on this benchmark has the task {named[:40]!r}", hint="choose another task")
        judged = [(run.settings, self.outcomes(run, chosen)) for run in runs if chosen in tasks_by_item(run)]
        none = np.zeros((0, len(self.bench)), dtype=bool)
        right = np.vstack([none, *(rule.right(outcomes) for rule, outcomes in judged)])
        asked = np.vstack([none, *(outcomes != VOID for _, outcomes in judged)])
        return ItemAnswers(right.sum(axis=0), asked.sum(axis=0))

    def items(self, rows: np.ndarray) -> list[Item]:
        """Return the items with these row numbers."""
        return list(items_of(self.bench.table.take(pa.array(rows))))


def tasks_by_item(run: RunHeader) -> list[str]:
    """Return the tasks of a run that give one outcome per item."""
    return [name for name in run.document["tasks"] if task(name).by_item]


def shared_tasks(first: RunHeader, second: RunHeader) -> list[str]:
    """Return the tasks on which two runs can be compared item by item. The list is empty if the runs are on different
    benchmarks.
    """
    own = tasks_by_item(second) if first.hash == second.hash else []
    return [name for name in tasks_by_item(first) if name in own]


def signed(margin: float) -> str:
    """Return a margin as a string with its sign."""
    return f"{margin:+.3f}".replace("-", "−")


def card_of(item: Item) -> list[tuple[bool, str, str, str]]:
    """Return (true or not, text, other caption, note) for each caption of an item. The card marks the words in which a
    caption differs from the other caption. If the item has several pictures, the note names those that match the
    caption.
    """
    truths = [any(row[k] for row in item.match) for k in range(len(item.captions))]
    several = len(item.match) > 1
    captions = []
    for k, text in enumerate(item.captions):
        others = (c for j, c in enumerate(item.captions) if (j != k if several else truths[j] != truths[k]))
        of = ", ".join(str(r + 1) for r, row in enumerate(item.match) if row[k])
        captions.append((truths[k], text, next(others, ""), f"true of picture {of}" if several and of else ""))
    return captions


def new_version(shelf: Shelf, name: str, item: Item, change: Mapping[str, str]) -> Path:
    """Save the benchmark without the item, or with the item's captions or comment changed. Return the new folder.

    The benchmark itself does not change. The new version records the change in its provenance.
    """
    bench = shelf.bench(name)
    if change["action"] not in ("exclude", "correct"):
        raise UsageError(f"unknown change {change['action']!r}", hint="choose exclude or correct")
    if change["action"] == "exclude":
        made = edit(bench, Edit(drop=(f"{item.subset}/{item.id}",)))
    else:
        texts = (change.get(f"caption-{k}", text) for k, text in enumerate(item.captions))
        captions = tuple(text.replace("\r\n", "\n") for text in texts)  # as browsers send line breaks
        tags = {**item.tags, **({"comment": change["comment"]} if change.get("comment") else {})}
        if captions == item.captions and tags == item.tags:
            raise UsageError("nothing was changed", hint="change a caption or write a comment")
        new = replace(item, captions=captions, tags=tags)
        key = (item.subset, item.id)
        table = table_of(new if (one.subset, one.id) == key else one for one in bench)
        about = {"subset": item.subset, "id": item.id, "comment": change.get("comment", "")}
        made = bench.with_table(table, "correct", **about, before=list(item.captions), after=list(captions))
    with shelf.new(name, "edited") as place:
        save(made, place)
    return place
