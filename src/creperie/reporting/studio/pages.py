"""The studio's pages: what each one shows, and what its forms do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from creperie.auditing import AttackerModels, audit_answer, audit_page, entry_of, runnable_attackers
from creperie.bench import AUDIT_FILE, Benchmark
from creperie.core import Json, UsageError, called, counted, render
from creperie.metrics import task
from creperie.reporting.gather import tasks_by_coverage
from creperie.reporting.leaderboard import BoardLinks, LeaderboardEntry, board_html, entries_report
from creperie.reporting.page import Contents
from creperie.reporting.sections import ranked_and_blind, robust_part
from creperie.reporting.studio.browse import Browser, searched
from creperie.reporting.studio.compared import compared
from creperie.reporting.studio.importing import COLUMNS, import_table, oddities, preview
from creperie.reporting.studio.items import PAGE, QUICK, ItemFilter, ItemIndex, new_version, shared_tasks
from creperie.reporting.studio.jobs import JobQueue, audit_job, refine_job
from creperie.reporting.studio.making import MAKERS, Proposed, propose, saved, verdict
from creperie.reporting.studio.overview import audit_rows, benchmark_card, choices, cues, last_runs
from creperie.reporting.studio.plots import chosen_axes, plot_axes, scatter_of
from creperie.reporting.studio.query import StudioQuery
from creperie.reporting.studio.search import named_by, search_terms
from creperie.reporting.studio.shelf import Shelf
from creperie.reporting.studio.studies import StudyList
from creperie.statistics import robustness

WORDS_APART = re.compile(r'(?:[^\s"]*"[^"]*"|[^\s"]+)')  #: the words of a search; a phrase keeps its quotes
LINKS = BoardLinks("", "/report?bench={bench}", "/report?run={run}")


class Studio:
    """The pages of the studio for one folder. A method for a page returns HTML. A method for a form (`post_…`) returns
    HTML, or the address of the page to show next.
    """

    def __init__(self, folder: Path, images: Sequence[str | Path] = ()) -> None:
        self.shelf = Shelf(folder, images)
        self.queue = JobQueue()
        self._indexes: dict[str, tuple[Benchmark, ItemIndex]] = {}
        self._reports: dict[tuple[str, str, str], str] = {}
        self.people = StudyList(self.shelf.folder)

    # -- benchmarks --------------------------------------------------------------------------------------------------

    def benchmarks(self, query: StudioQuery) -> str:
        """Show the content of the folder: benchmarks with their verdicts, the latest runs, running jobs, and open
        studies.
        """
        benches, damaged = self.shelf.readable()
        board = self.shelf.board()
        cards = [benchmark_card(self.shelf, board, name, bench) for name, bench in benches.items()]
        return self._page(
            "benchmarks",
            "Benchmarks",
            cards=cards,
            columns=COLUMNS,
            damaged=damaged,
            total=len(board.entries),
            runs=last_runs(board),
            jobs=self.queue.running,
            studies=[one for one in self.people.listed() if one["state"] == "open"],
        )

    def search(self, query: StudioQuery) -> str:
        """Show the results of a search: items of all benchmarks, and models, benchmarks and studies by name."""
        words, board = query.get("words", "").strip(), self.shelf.board()
        names = {
            "model": {board.label_of[e.name]: f"/report?run={quote(e.name)}" for e in board.entries},
            "benchmark": {name: f"/items?name={quote(name)}" for name in self.shelf.benches()},
            "study": {one["study"]: f"/studies#study-{one['study']}" for one in self.people.listed()},
        }
        terms = search_terms(words)  # none if there are only signs, such as a lone minus
        items = searched(self.shelf, words, self._index) if terms else []
        named = {kind: found for kind, own in names.items() if (found := named_by(terms, own))}
        parts = []
        words_apart = WORDS_APART.findall(words.lower())
        for part in words_apart if len(words_apart) > 1 and terms and not (items or named) else ():
            own = search_terms(part)
            counts = [(sum(one["count"] for one in searched(self.shelf, part, self._index)) if own else 0, "item")]
            counts += [(len(named_by(own, of_kind)), kind) for kind, of_kind in names.items()]
            if found_text := ", ".join(counted(n, what) for n, what in counts if n):
                parts.append((part, found_text))
        title = f"Search: {words}" if terms else "Search"
        return self._page("search", title, words=words, asked=bool(terms), found=items, named=named, parts=parts)

    def post_import(self, form: StudioQuery) -> str:
        """Show the columns of an uploaded table if the form says `then=preview`. Otherwise, save the table as a
        benchmark and return the address of its items.
        """
        if form.get("then") == "preview":
            return render("reporting", "studio/preview.html", **preview(form))
        return f"/items?name={quote(import_table(form, self.shelf.folder).name)}&imported=1"

    def _index(self, name: str) -> ItemIndex:
        bench = self.shelf.bench(name)
        if name not in self._indexes or self._indexes[name][0] is not bench:
            self._indexes[name] = (bench, ItemIndex(bench))
            self._indexes[name][1].prepare()
        return self._indexes[name][1]

    def items(self, query: StudioQuery) -> str:
        """Show the items that match a filter. With `from` in the query, return only the cards of further items,
        beginning at that position. With `part`, return only the opened item.
        """
        item_filter, start = ItemFilter.of(query), query.number("from")
        index = self._index(item_filter.name)
        rows = index.rows(item_filter, self.shelf)
        browser = Browser(self.shelf, index, item_filter)
        panel = browser.panel(item_filter.at, rows) if item_filter.at else None
        if query.get("part") == "item":
            return render("reporting", "studio/panel.html", panel=panel, name=item_filter.name)
        more = item_filter.address(**{"from": str(start + PAGE)}) if start + PAGE < len(rows) else ""
        after = f"{start + PAGE:,} of {counted(len(rows), 'item')} are shown; more"
        cards = browser.cards(rows[start : start + PAGE])
        if start:
            return render("reporting", "studio/cards.html", cards=cards, more=more, after=after, at=item_filter.at)
        filtered = replace(item_filter, subset="", at="") != ItemFilter(item_filter.name)
        subset = item_filter.subset
        condition = f" --subset {shlex.quote(subset)}" if subset else ""
        return self._page(
            "items",
            item_filter.name,
            here="benchmarks",
            item_filter=item_filter,
            count=len(rows),
            total=len(index.bench),
            chips=browser.chips(),
            tags=index.tags(),
            runs=[(run.name, label) for run, label in index.labelled(self.shelf)],
            verdict_word=(self.shelf.audit(item_filter.name) or {}).get("verdict", ""),
            hidden=self._hidden(browser),
            odd=oddities(index.bench, bool(index.bench.images.location)) if query.get("imported") else [],
            cards=cards,
            more=more,
            after=after,
            panel=panel,
            at=item_filter.at,
            command="" if filtered else f"creperie data show {shlex.quote(item_filter.name)}{condition}",
            python=f"creperie.load({item_filter.name!r})" + (f".only([{subset!r}])" if subset else ""),
        )

    def _hidden(self, browser: Browser) -> str:
        """Return what the user can do to make a benchmark's pictures visible. This is a command if their folder is
        known, else advice in words. The text is empty if the pictures are visible or there are none.
        """
        if not browser.hidden or not len(browser.bench.ragged("images")[1]):
            return ""
        if not (place := browser.bench.images.location):
            return "import the table again, with the folder or zip of its pictures"
        return shlex.join(["creperie", "studio", str(self.shelf.folder), "--images", str(Path(place).resolve())])

    def item(self, query: StudioQuery) -> str:
        """Show one item, with forms to exclude it, correct it or comment on it."""
        name, subset, key = query["name"], query["subset"], query["id"]
        index = self._index(name)
        browser = Browser(self.shelf, index, ItemFilter(name))
        panel = browser.panel(f"{subset}/{key}", index.rows(ItemFilter(name, subset=subset), self.shelf))
        python = f"creperie.load({name!r}).item({subset!r}, {key!r})"
        with self.shelf.new(name, "edited") as place:
            made = place.name
        line = ["creperie", "data", "edit", name, "--drop", f"{subset}/{key}", "--out", made]
        return self._page(
            "item",
            f"{subset} · {key}",
            here="benchmarks",
            name=name,
            made=made,
            panel={**panel, "edit": ""},
            command=shlex.join(line),
            python=python,
        )

    def post_item(self, form: StudioQuery) -> str:
        """Save a new version of the benchmark, and return its address."""
        name = form["name"]
        item = self.shelf.bench(name).item(form["subset"], form["id"])
        made = {"name": self.shelf.within(new_version(self.shelf, name, item, form)), "subset": item.subset}
        at = {} if form["action"] == "exclude" else {"at": f"{item.subset}/{item.id}"}
        return f"/items?{urlencode(made | at)}"

    # -- audits and jobs ---------------------------------------------------------------------------------------------

    def audit(self, query: StudioQuery) -> str:
        """Show the audit of a benchmark. While the audit is running, show its progress. If `beside` in the query names
        another benchmark, show the audits of both side by side.
        """
        names = self.shelf.readable()[0]
        name = query.get("name") or next(iter(names), "")
        jobs, poll = [job for job in self.queue.jobs if job.name == name][:1], f"/audit?name={quote(name)}"
        if query.get("part"):
            return render("reporting", "studio/jobs_part.html", jobs=jobs, poll=poll)
        both = [one for one in (name, query.get("beside", "")) if one and (one == name or one in names)]
        audits: list[Json] = [
            {
                "name": one,
                "document": document,
                "rows": audit_rows(one, document),
                "choices": choices(one, document),
                "cues": list(cues(one, document)),
                "answer": audit_answer(document),
            }
            for one in both
            if (document := self.shelf.audit(one)) is not None
        ]
        spec = name or "BENCH"
        run = [a["name"] for a in audits[0]["document"]["attackers"]] if audits else QUICK
        return self._page(
            "audit",
            f"Can {name} be solved without its images?" if name else "Audits",
            names=list(names),
            name=name,
            jobs=[job for job in jobs if job.state != "done"],
            poll=poll,
            audits=audits,
            command=shlex.join(["creperie", "audit", spec, "--attackers", ",".join(run)]),
            python=f"creperie.audit({spec!r}, {list(run)!r})",
            offered=[entry_of(one) for one in runnable_attackers((), AttackerModels())[0]],
            size=len(names.get(name, ())),
            usual=run,
        )

    def share(self, query: StudioQuery) -> str:
        """Return the audit of a benchmark as a single page that can be sent to others."""
        document = self.shelf.audit(query["name"])
        if document is None:
            raise UsageError(f"{query['name'][:80]} is not audited yet", hint="start an audit on its page")
        return audit_page(document, query["name"])

    def post_audit(self, form: StudioQuery) -> str:
        """Start an audit, or the refinement of an audited benchmark, and return the address of its progress page."""
        name = form["name"]
        place = self.shelf.place(name)
        attackers = tuple(key[7:] for key in form if key.startswith("attack-"))
        here = f"/audit?name={quote(name)}"
        if form.get("action") != "refine":
            self.queue.add(audit_job(name, place, attackers, here))
            return here
        with self.shelf.new(name, "refined") as out:
            both = f"/audit?{urlencode({'name': name, 'beside': out.name})}"
            self.queue.add(refine_job(name, place, out, attackers or QUICK, both, repair=form.get("repair") == "yes"))
        return both

    def jobs(self, query: StudioQuery) -> str:
        """Show all jobs since the studio was started, newest first."""
        if query.get("part"):
            return render("reporting", "studio/jobs_part.html", jobs=self.queue.jobs, poll="/jobs?")
        return self._page("jobs", "Jobs", jobs=self.queue.jobs, poll="/jobs?")

    def post_jobs(self, form: StudioQuery) -> str:
        """Cancel a job, and return the address of the next page."""
        number = form.number("job")
        for job in self.queue.jobs:
            if job.number == number:
                job.cancel()
        return "/jobs"

    # -- making ------------------------------------------------------------------------------------------------------

    def make(self, query: StudioQuery) -> str:
        """Show the form into which captions are pasted."""
        return self._made([], [], [], {}, [])

    def post_make(self, form: StudioQuery) -> str:
        """Make candidates from the captions entered in the form, and show them."""
        captions = [line.strip() for line in form.get("captions", "").splitlines() if line.strip()]
        makers = [maker for maker in MAKERS if form.get(maker)]
        return self._made(captions, *propose(captions, makers), makers)

    def _made(
        self,
        captions: list[str],
        proposed: list[Proposed],
        notes: list[str],
        nothing: dict[int, str],
        makers: list[str],
    ) -> str:
        chosen = makers or ["all"]
        by_source = [
            (text, [(k, p) for k, p in enumerate(proposed) if p.source == n]) for n, text in enumerate(captions)
        ]
        return self._page(
            "make",
            "Make",
            captions=captions,
            groups=by_source,
            nothing=[(text, nothing.get(n, "")) for n, (text, own) in enumerate(by_source) if not own],
            notes=notes,
            makers=MAKERS,
            chosen=chosen,
            command=f"creperie make {chosen[0]} --captions captions.txt --out my-foils",
            python=f"creperie.make({chosen[0]!r}, captions, 'my-foils')",
        )

    def post_save(self, form: StudioQuery) -> str:
        """Save the accepted candidates as a benchmark, and show it."""
        made = saved(form, self.shelf.folder)
        if form.get("then") == "study":
            return self.post_studies(StudioQuery(name=made.name))
        return f"/items?name={quote(made.name)}"

    def post_verdict(self, form: StudioQuery) -> str:
        """Show how well a model that does not see the images does on the accepted candidates."""
        return render("reporting", "studio/accepted.html", **verdict(form))

    # -- runs --------------------------------------------------------------------------------------------------------

    def runs(self, query: StudioQuery) -> str:
        """Show the leaderboard of all runs. If the query gives the `version` that the browser shows, return only the
        tables; if this version is still current, return an empty string.
        """
        board = self.shelf.board()
        if query.get("version") == board.version:
            return ""
        pairs = self._pairs()
        blind = {(e.hash, e.model) for e in board.entries if e.blinded}
        ranked = {board.slugs[a.content] for a, b in pairs if a.content == b.content}
        seen = {board.slugs[e.content] for e in board.entries if (e.content, e.model) in blind}
        more = {
            slug: [("Does this ranking hold?", f"/robust?bench={quote(slug)}")] * (slug in ranked)
            + [("What does the picture add?", f"/report?bench={quote(slug)}#picture")] * (slug in seen)
            for slug in board.slugs.values()
        }
        shown = board_html(board, replace(LINKS, more=more))
        if query.get("version"):
            return render("reporting", "studio/board_part.html", shown=shown, version=board.version)
        return self._page(
            "runs",
            "Runs",
            shown=shown,
            version=board.version,
            choices=self._choices() if pairs else [],
            chosen=[entry.name for entry in pairs[0]] if pairs else ["", ""],
            command="creperie report runs --html report.html",
            python="creperie.report(['runs'], 'report.html')",
        )

    def _choices(self) -> list[tuple[str, str, str]]:
        """Return (name, label, hash of the benchmark) for each run that can be compared with another. If there are
        several benchmarks, the label begins with the benchmark.
        """
        board = self.shelf.board()
        several, paired = len(board.slugs) > 1, {entry.name for pair in self._pairs() for entry in pair}
        return [
            (e.name, f"{board.bench_name(e)}: " * several + board.label_of[e.name], e.hash)
            for e in board.entries
            if e.name in paired
        ]

    def _pairs(self) -> list[tuple[LeaderboardEntry, LeaderboardEntry]]:
        """Return pairs of comparable runs. Pairs on the same images come first, then pairs on the same replaced images,
        then other pairs. Within each of these groups, pairs of the best models on the task that covers most items come
        first.
        """
        pairs = [(a, b) for a, b in combinations(self.shelf.board().entries, 2) if shared_tasks(a, b)]
        return sorted(pairs, key=_usefulness)

    def compare(self, query: StudioQuery) -> str:
        """Show two runs: their difference, overall and by subset, and the items that only one of them gets right."""
        first = [entry.name for pair in self._pairs()[:1] for entry in pair]
        chosen = [query["a"], query["b"]] if query.get("a") else first
        if not chosen:
            return self._page("compare", "Compare", choices=[])
        shown: Any = {"choices": self._choices(), "chosen": chosen}
        runs = [self.shelf.run(name) for name in chosen]
        if not shared_tasks(*runs):
            tasks = ", ".join(f"{self.shelf.board().label_of[run.name]} has {' and '.join(run.tasks)}" for run in runs)
            same = runs[0].hash == runs[1].hash
            message = f"These two have no {'task' if same else 'benchmark'} in common" + f": {tasks}" * same
            return self._page("compare", "Compare", **shown, message=message)
        values = compared(self.shelf, self._index, runs, query)
        paths = [self.shelf.within(run.path) for run in runs]
        lines = {"command": shlex.join(["creperie", "compare", *paths]), "python": f"creperie.compare({paths!r})"}
        return self._page("compare", " against ".join(values["labels"]), **shown, **values, **lines)

    def plot(self, query: StudioQuery) -> str:
        """Show a scatter plot. A plot of two models has one dot per subset. A plot of two benchmarks or tasks has one
        dot per model.
        """
        axes = plot_axes(self.shelf.board())
        chosen = chosen_axes(axes, query)
        drawn = scatter_of(*chosen) if chosen else {}
        return self._page("plot", "Two measures against each other", here="runs", axes=axes, chosen=chosen, **drawn)

    def robust(self, query: StudioQuery) -> str:
        """Show how far the ranking on a benchmark depends on analysis choices, such as the rule for ties."""
        board, wrong = self.shelf.board(), query.get("wrong", "")
        slug = query.get("bench", "")
        entries = [e for e in board.entries if board.slugs[e.content] == slug]
        ranked, blind = ranked_and_blind([self.shelf.run(e.name) for e in entries])
        if len(ranked) < 2:
            what = "fewer than two runs on this benchmark have a task in common"
            raise UsageError(what, where=slug, hint="score more models")
        names = {e.model: label for e, label in zip(entries, board.labels(entries))}
        shown = robust_part(robustness(ranked, wrong=wrong, blind=blind), names)
        line = ["creperie", "robust", *(self.shelf.within(run.path) for run in ranked)]
        for flag, value in (("--wrong", wrong), *(("--blind", self.shelf.within(path)) for path in blind)):
            line += [flag, value] if value else []
        here = board.benches.get(entries[0].hash, "")
        leaks = here if here and (self.shelf.audit(here) or {}).get("verdict") == "leaks" else ""
        title = f"Does the ranking on {board.bench_name(entries[0])} hold?"
        return self._page(
            "robust", title, here="runs", shown=shown, leaks=leaks, slug=slug, wrong=wrong, command=shlex.join(line)
        )

    def report(self, run: str, bench: str) -> str:
        """Return the full report on a run, or on all runs on a benchmark, as `creperie report` writes it."""
        board = self.shelf.board()
        entries = [e for e in board.entries if e.name == run or (bench and board.slugs[e.content] == bench)]
        if not entries:
            raise UsageError(f"there is no run {run or bench!r} in this folder", hint="choose one on the page of runs")
        key = (run, bench, board.version)
        if key not in self._reports:
            benches = self.shelf.readable()[0]
            first = entries[0]
            place = next((name for name, one in benches.items() if one.hash == first.hash), "")
            title = f"{board.label_of[first.name]} on {called(place, first.benchmark)}" if len(entries) == 1 else ""
            contents = Contents(title, back="/runs", comparisons=len(entries) < 5)
            self._reports = {key: entries_report(board, entries, benches.values(), contents, self.shelf.roots, place)}
        return self._reports[key]

    # -- studies -----------------------------------------------------------------------------------------------------

    def studies(self, query: StudioQuery) -> str:
        """Show the studies, their progress, and how to open their pages."""
        return self._page("studies", "Studies", **self.people.shown(self.shelf))

    def post_studies(self, form: StudioQuery) -> str:
        """Create a study on a benchmark and invite people. The links are shown once."""
        return self._page("studies", "Studies", **self.people.started(self.shelf, form))

    def message(self, title: str, words: str) -> str:
        """Show why a request was refused, with links to the other pages."""
        return self._page("message", title, said=words)

    def _page(self, page: str, title: str, *, here: str = "", **values: Any) -> str:
        lines = {"command": "", "python": "", "words": "", "folder": self.shelf.folder.name}
        shown = {"title": title, "page": here or page, "rail": self._rail(), "counted": counted}
        return render("reporting", f"studio/{page}.html", **{**lines, **values, **shown})

    def _rail(self) -> list[tuple[str, str, str, int]]:
        """Return the links at the side of the page, each as (address, symbol, name, count). `count` is the number of
        entries on the linked page, such as running jobs.
        """
        names = self.shelf.benches()
        return [
            ("benchmarks", "▦", "Benchmarks", len(names)),
            ("audit", "✓", "Audits", sum((place / AUDIT_FILE).is_file() for place in names.values())),
            ("runs", "≡", "Runs", len(self.shelf.board().entries)),
            ("compare", "⇄", "Compare", 0),
            ("make", "✎", "Make", 0),
            ("studies", "☺", "Studies", sum(one["state"] == "open" for one in self.people.listed())),
            ("jobs", "◷", "Jobs", len(self.queue.running)),
        ]


def _usefulness(pair: tuple[LeaderboardEntry, LeaderboardEntry]) -> tuple[bool, str, bool, int, float]:
    """Return the sort key of a pair of runs. A more useful comparison has a smaller key."""
    a, b = pair
    name = next(name for name in tasks_by_coverage(pair) if name in shared_tasks(a, b))
    results = [entry.result(name) or {} for entry in pair]
    n, accuracy = min(r.get("n", 0) for r in results), sum(r.get("accuracy") or 0.0 for r in results)
    return a.content != b.content, a.blinded, task(name).needs == "text", -n, -accuracy
