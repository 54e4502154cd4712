"""The studio's pages: what each shows, and what its forms do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from creperie.auditing import blind_rows
from creperie.bench import Benchmark, Item
from creperie.core import UsageError, counted, render
from creperie.reporting.gather import distinct
from creperie.reporting.html_tables import comparison_table
from creperie.reporting.leaderboard import BoardLinks, board_html, entries_report
from creperie.reporting.page import Contents
from creperie.reporting.robust_part import ranked_and_blind, robust_part
from creperie.reporting.studio.items import (
    PAGE,
    QUICK,
    ItemFilter,
    ItemIndex,
    card_of,
    new_version,
    shared_tasks,
)
from creperie.reporting.studio.jobs import StudioJob, audit_job, refine_job
from creperie.reporting.studio.making import MAKERS, import_table, propose, saved
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring import compare
from creperie.statistics import robustness

LINKS = BoardLinks("", "/report?bench={bench}", "/report?run={run}")
PEOPLE = "creperie-people.db"  #: the studies of a folder
Query = Mapping[str, str]


class Studio:
    """The pages over one folder. Each returns HTML; forms return HTML or the address to go to."""

    def __init__(self, folder: Path) -> None:
        self.shelf = Shelf(folder)
        self.jobs: dict[str, StudioJob] = {}
        self._indexes: dict[str, tuple[Benchmark, ItemIndex]] = {}
        self._reports: dict[tuple[str, str, str], str] = {}

    # -- benchmarks --------------------------------------------------------------------------------------------------

    def benchmarks(self, query: Query) -> str:
        """Show the benchmarks of the folder, with their verdicts."""
        rows = []
        for name in self.shelf.benches():
            bench, audit = self.shelf.bench(name), self.shelf.audit(name)
            verdict = audit["verdict"] if audit else "not audited"
            rows.append((name, len(bench), len(bench.subsets), verdict))
        return self._page("benchmarks", "Benchmarks", rows=rows, folder=str(self.shelf.folder))

    def import_table(self, form: Query) -> str:
        """Save an imported table as a benchmark; return the address of its items."""
        return f"/items?name={quote(import_table(form, self.shelf.folder).name)}"

    def _index(self, name: str) -> ItemIndex:
        bench = self.shelf.bench(name)
        if name not in self._indexes or self._indexes[name][0] is not bench:
            self._indexes[name] = (bench, ItemIndex(bench))
            self._indexes[name][1].prepare()
        return self._indexes[name][1]

    def items(self, query: Query) -> str:
        """Show the items that match a filter; with `from`, only the next cards."""
        wanted, start = ItemFilter.of(query), int(query.get("from") or 0)
        index = self._index(wanted.name)
        rows = index.rows(wanted, self.shelf)
        cards = [self._card(wanted, index.bench, item) for item in index.items(rows[start : start + PAGE])]
        more = wanted.address("/items", **{"from": start + PAGE}) if start + PAGE < len(rows) else ""
        if start:
            return render("reporting", "studio/cards.html", cards=cards, more=more)
        runs = [e.name for e in self.shelf.board().entries if e.hash == index.bench.hash]
        condition = f" --subset {shlex.quote(wanted.subset)}" if wanted.subset else ""
        return self._page(
            "items",
            wanted.name,
            wanted=wanted,
            count=len(rows),
            total=len(index.bench),
            subsets=index.bench.subsets,
            tags=index.tags(),
            attackers=QUICK,
            runs=runs,
            cards=cards,
            more=more,
            command=f"creperie data show {shlex.quote(wanted.name)}{condition}",
            python=f"creperie.load({wanted.name!r})" + (f".only([{wanted.subset!r}])" if wanted.subset else ""),
        )

    def _card(self, wanted: ItemFilter, bench: Benchmark, item: Item) -> dict[str, Any]:
        seen = item.images if self.shelf.has_pictures(bench) else ()
        pictures = [f"/picture?name={quote(wanted.name)}&image={quote(image)}" for image in seen]
        href = f"/item?{urlencode({'name': wanted.name, 'subset': item.subset, 'id': item.id})}"
        notes = [f"{name}: {value}" for name, value in item.tags.items() if value is not None][:4]
        return {
            "name": f"{item.subset} · {item.id}",
            "href": href,
            "pictures": pictures,
            "captions": card_of(item),
            "notes": notes,
        }

    def item(self, query: Query) -> str:
        """Show one item, with the forms that exclude, correct or comment it."""
        name = query.get("name", "")
        bench = self.shelf.bench(name)
        item = bench.item(query.get("subset", ""), query.get("id", ""))
        card = self._card(ItemFilter(name), bench, item)
        command = shlex.join(
            ["creperie", "data", "edit", name, "--drop", f"{item.subset}/{item.id}", "--out", f"{name}-edited"]
        )
        python = f"creperie.load({name!r}).item({item.subset!r}, {item.id!r})"
        values = {"name": name, "item": item, "shown": card, "tags": dict(item.tags)}
        return self._page("item", f"{name}: {item.subset} · {item.id}", **values, command=command, python=python)

    def change_item(self, form: Query) -> str:
        """Save a new version of the benchmark; return its address."""
        name = form["name"]
        item = self.shelf.bench(name).item(form["subset"], form["id"])
        place = new_version(self.shelf, name, item, form)
        made = self.shelf.within(place)
        if form["action"] == "exclude":
            return f"/items?{urlencode({'name': made, 'subset': item.subset})}"
        return f"/item?{urlencode({'name': made, 'subset': item.subset, 'id': item.id})}"

    # -- audits ------------------------------------------------------------------------------------------------------

    def audit(self, query: Query) -> str:
        """Show the audit of a benchmark, or its progress; with `beside`, two verdicts side by side."""
        names = self.shelf.benches()
        name = query.get("name") or next(iter(names), "")
        job, beside = self.jobs.get(name), query.get("beside", "")
        both = [one for one in (name, beside) if one and (one == name or one in names)]
        audits = [
            {"name": one, "document": document, "rows": blind_rows(document), "leaks": self._leaks(one, document)}
            for one in both
            if (document := self.shelf.audit(one)) is not None
        ]
        values = {"names": list(names), "name": name, "job": job, "audits": audits, **_audit_lines(name)}
        if query.get("part"):
            return render("reporting", "studio/audit_job.html", job=job, name=name)
        return self._page("audit", "Audit", **values)

    def _leaks(self, name: str, document: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
        """Return subset, attacker, what it chooses, and the address of the items that it wins."""
        rows = []
        for judged in document["subsets"]:
            for leak in judged["through"]:
                quick = leak["attacker"] if leak["attacker"] in QUICK else ""
                wanted = ItemFilter(name, subset=judged["subset"], attacker=quick)
                if not leak["view"]:
                    rows.append((judged["subset"], leak["attacker"], leak["choice"], wanted.address()))
        return rows

    def begin_audit(self, form: Query) -> str:
        """Start an audit, or a refinement of what was audited; return the address of the page that waits for it."""
        name = form["name"]
        place = self.shelf.place(name)
        if name in self.jobs and not self.jobs[name].done:
            raise UsageError(f"{self.jobs[name].what} is still running", hint="wait until it is done")
        attackers = tuple(a.strip() for a in form.get("attackers", "").split(",") if a.strip())
        if form.get("action") != "refine":
            self.jobs[name] = audit_job(place, attackers)
            return f"/audit?name={quote(name)}"
        out = self.shelf.free(name, "refined")
        self.jobs[name] = refine_job(place, out, attackers or QUICK, repair=form.get("repair") == "yes")
        return f"/audit?{urlencode({'name': name, 'beside': out.name})}"

    # -- making ------------------------------------------------------------------------------------------------------

    def make(self, query: Query) -> str:
        """Show the form for captions."""
        return self._made([], [], [], {})

    def propose(self, form: Query) -> str:
        """Show the candidates for the captions of the form."""
        captions = [line.strip() for line in form.get("captions", "").splitlines() if line.strip()]
        makers = [maker for maker in MAKERS if form.get(maker)]
        proposed, notes = propose(captions, makers)
        return self._made(captions, proposed, notes, form)

    def _made(self, captions: list[str], proposed: list[Any], notes: list[str], form: Query) -> str:
        chosen = [maker for maker in MAKERS if form.get(maker)] or list(MAKERS[:2])
        by_source = [[(k, p) for k, p in enumerate(proposed) if p.source == n] for n in range(len(captions))]
        return self._page(
            "make",
            "Make",
            captions=captions,
            groups=by_source,
            notes=notes,
            makers=MAKERS,
            chosen=chosen,
            command=f"creperie make {chosen[0]} --captions captions.txt --out my-foils",
            python=f"creperie.make({chosen[0]!r}, captions, 'my-foils')",
        )

    def save_made(self, form: Query) -> str:
        """Save the accepted candidates as a benchmark, and show it."""
        made = saved(form, self.shelf.folder)
        if form.get("then") == "study":
            return self.begin_study({"name": made.name})
        return f"/items?name={quote(made.name)}"

    # -- runs --------------------------------------------------------------------------------------------------------

    def runs(self, query: Query) -> str:
        """Show the leaderboard of all runs; with `version`, only what changed since."""
        board = self.shelf.board()
        if query.get("version") == board.version:
            return ""
        shown = board_html(board, LINKS)
        if query.get("version"):
            return render("reporting", "studio/board_part.html", shown=shown, version=board.version)
        several = len(board.slugs) > 1
        labels = board.labels(board.entries)
        entries = [
            (e.name, f"{label} on {e.benchmark}" if several else label) for e, label in zip(board.entries, labels)
        ]
        pairs = [(a, b) for a, b in combinations(board.entries, 2) if shared_tasks(a, b)]
        pairs.sort(key=lambda pair: pair[0].content != pair[1].content)  # models first, then blind twins
        blind = {(e.hash, e.model) for e in board.entries if e.blinded}
        values = {
            "entries": entries,
            "chosen": [run.name for run in pairs[0]] if pairs else [],
            "ranked": sorted({(board.slugs[a.content], a.benchmark) for a, b in pairs if a.content == b.content}),
            "seen": sorted(
                {(board.slugs[e.content], e.benchmark) for e in board.entries if (e.content, e.model) in blind}
            ),
            "command": "creperie report runs --html report.html",
            "python": "creperie.report(['runs'], 'report.html')",
        }
        return self._page("runs", "Runs", shown=shown, version=board.version, **values)

    def compare(self, query: Query) -> str:
        """Show two runs side by side: paired tests, and the items on which one alone is right."""
        runs = [self.shelf.run(query.get(key, "")) for key in ("a", "b")]
        shared = shared_tasks(*runs)
        if not shared:
            both = " and ".join(run.model for run in runs)
            raise UsageError(f"{both} have no benchmark and task in common", hint="score both on one benchmark")
        names = {run.name: label for run, label in zip(runs, distinct([[r.model, r.name] for r in runs]))}
        tests = comparison_table(compare(runs).rows, names, "Paired tests")
        where = next((n for n in self.shelf.benches() if self.shelf.bench(n).hash == runs[0].hash), "")
        sides = []
        for right, wrong in (runs, runs[::-1]):
            wanted = ItemFilter(where, right=right.name, wrong=wrong.name, task=shared[0])
            cards, count = [], 0
            if where:
                index = self._index(where)
                rows = index.rows(wanted, self.shelf)
                cards, count = [self._card(wanted, index.bench, i) for i in index.items(rows[:12])], len(rows)
            title = f"Only {right.model} is right"
            sides.append({"title": title, "count": count, "cards": cards, "href": wanted.address()})
        paths = [self.shelf.within(run.path) for run in runs]
        return self._page(
            "compare",
            "Two models side by side",
            tests=tests,
            sides=sides,
            command=shlex.join(["creperie", "compare", *paths]),
            python=f"creperie.compare({paths!r})",
        )

    def robust(self, query: Query) -> str:
        """Show how far the ranking on a benchmark depends on choices."""
        board, wrong = self.shelf.board(), query.get("wrong", "")
        slug = query.get("bench", "")
        entries = [e for e in board.entries if board.slugs[e.content] == slug]
        ranked, blind = ranked_and_blind([self.shelf.run(e.name) for e in entries])
        if len(ranked) < 2:
            raise UsageError(
                "fewer than two runs on this benchmark have a task in common: score more models", where=slug
            )
        names = {e.model: label for e, label in zip(entries, board.labels(entries))}
        shown = robust_part(robustness(ranked, wrong=wrong, blind=blind), names)
        line = ["creperie", "robust", *(self.shelf.within(run.path) for run in ranked)]
        for flag, value in (("--wrong", wrong), *(("--blind", self.shelf.within(path)) for path in blind)):
            line += [flag, value] if value else []
        values = {"shown": shown, "slug": slug, "wrong": wrong, "command": shlex.join(line)}
        return self._page("robust", f"Does the ranking on {entries[0].benchmark} hold?", **values)

    def report(self, run: str, bench: str) -> str:
        """Return the whole report of a run, or of all runs on a benchmark, as `creperie report` writes it."""
        board = self.shelf.board()
        entries = [e for e in board.entries if e.name == run or (bench and board.slugs[e.content] == bench)]
        if not entries:
            raise UsageError("there is no such run in this folder")
        key = (run, bench, board.version)
        if key not in self._reports:
            benches = map(self.shelf.bench, self.shelf.benches())
            contents = Contents(back="/runs", comparisons=len(entries) < 5)
            self._reports = {key: entries_report(board, entries, benches, contents)}
        return self._reports[key]

    # -- studies -----------------------------------------------------------------------------------------------------

    def studies(self, query: Query) -> str:
        """Show the studies of the folder: how far they are, and how to open their pages."""
        listed: list[dict[str, Any]] = []
        if (self.shelf.folder / PEOPLE).is_file():
            from creperie.annotation import all_studies, open_database

            with open_database(self.shelf.folder / PEOPLE).read() as session:
                listed = all_studies(session)
        return self._studies(listed, {})

    def _studies(self, listed: list[dict[str, Any]], links: Mapping[str, str]) -> str:
        serve = f"creperie annotate serve --db {shlex.quote(str(self.shelf.folder / PEOPLE))}"
        values = {"studies": listed, "links": links, "benches": list(self.shelf.benches()), "serve": serve}
        return self._page("studies", "Studies", **values, command=serve)

    def begin_study(self, form: Query) -> str:
        """Create a study on a benchmark with two invitations; the links are shown once."""
        from creperie.annotation import StudyPlan, all_studies, invite, open_database, served_at, store_study

        name = form["name"]
        db = open_database(self.shelf.folder / PEOPLE)
        with db.read() as session:
            taken = {study["study"] for study in all_studies(session)}
        title = Path(name).name
        title = next(t for t in (title, *(f"{title}-{k}" for k in range(2, 1000))) if t not in taken)
        bench = self.shelf.bench(name)
        usual = "foil-check" if bench.images.location else "triplet-check"  # captions alone are compared
        plan = StudyPlan(form.get("task") or usual, overlap=2)
        store_study(db, title, bench, plan, spec=str(self.shelf.place(name)), actor="studio")
        made = invite(db, title, 2, actor="studio")
        with db.read() as session:
            listed, base = all_studies(session), served_at(session)
        links = {one.pseudonym: one.link(base) for one in made}
        return self._studies(listed, links)

    def _page(self, page: str, title: str, **values: Any) -> str:
        same = {"command": "creperie studio", "python": ""}
        return render(
            "reporting", f"studio/{page}.html", title=title, page=page, **{**same, **values, "counted": counted}
        )


def _audit_lines(name: str) -> dict[str, str]:
    spec = name or "BENCH"
    return {
        "command": f"creperie audit {shlex.quote(spec)}",
        "python": f"creperie.audit({spec!r})",
        "usual": ", ".join(QUICK),
    }
