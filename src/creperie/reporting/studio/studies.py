"""The studies with people that the studio lists and starts. Their own pages are served by `creperie annotate serve`."""

from __future__ import annotations

import shlex
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import urlsplit

from creperie.core import Json, counted
from creperie.reporting.studio.query import StudioQuery
from creperie.reporting.studio.shelf import Shelf

#: tasks of studies that can be started here
CHECKS = ("foil-check", "positive-check", "triplet-check")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class StudyList:
    """The studies in the database that `$CREPERIE_PEOPLE_DB` names. If the variable is not set, the database in the
    studio's folder is used.

    A database file is read again whenever it has changed. A database on a server is read again every ten seconds.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listed: tuple[list[Any], list[Json], str] = ([], [], "")

    def listed(self) -> list[Json]:
        """Return the studies. The list is empty if the optional packages for studies are not installed."""
        try:
            from creperie.annotation import all_studies, database_place, open_database, served_at
        except ModuleNotFoundError:
            return []
        place = database_place(self.folder)
        files = [file for end in ("", "-wal") if (file := Path(place + end)).is_file()]
        if "://" not in place and not files:
            return []
        state = [place, *([file.stat().st_mtime_ns for file in files] or [int(time() / 10)])]
        if self._listed[0] != state:
            with open_database(place).read() as session:
                self._listed = state, all_studies(session), served_at(session)
        return self._listed[1]

    def shown(self, shelf: Shelf) -> Json:
        """Return the content of the page: the studies, where their pages are, and the benchmarks and tasks of a new
        study.
        """
        from creperie.annotation import database_place, task_named

        benches, place = shelf.readable()[0], database_place(self.folder)
        here = {bench.hash: name for name, bench in benches.items()}  # the studio's own names
        studies = [{**one, "place": here.get(one["hash"], one["place"])} for one in self.listed()]
        if Path(place).is_relative_to(Path.cwd()):
            place = str(Path(place).relative_to(Path.cwd()))
        new = ["--bench", *list(benches)[:1], "--task", CHECKS[0], "--db", place]
        return {
            "studies": studies,
            "base": self._listed[2],
            "benches": list(benches),
            "tasks": [(task, task_named(task).words["about"]) for task in CHECKS],
            "serve": f"creperie annotate serve --db {shlex.quote(place)}",
            "local": urlsplit(self._listed[2]).hostname in LOOPBACK,
            "command": f"creperie annotate new my-study {shlex.join(new)}" if benches else "",
        }

    def started(self, shelf: Shelf, form: StudioQuery) -> Json:
        """Create a study on a benchmark and invite people. Return what the page shows, with their links."""
        from creperie.annotation import StudyPlan, database_place, invite, open_database, store_study, study_name

        name = form["name"]
        taken = {study["study"] for study in self.listed()}
        title = study_name(Path(name).name)
        title = next(t for t in (title, *(f"{title}-{k}" for k in range(2, 1000))) if t not in taken)
        bench = shelf.bench(name)
        usual = "foil-check" if bench.images.location else "triplet-check"  # captions alone are compared
        people = form.number("people") or 2
        plan = StudyPlan(form.get("task") or usual, overlap=min(2, people))
        db = open_database(database_place(self.folder))
        store_study(db, title, bench, plan, spec=str(shelf.place(name)), actor="studio")
        made = invite(db, title, people, actor="studio")
        shown = self.shown(shelf)
        asked = next(one["slots"] for one in shown["studies"] if one["study"] == title) // plan.overlap
        rest, by = len(bench) - asked, "two people" if people > 1 else "one person"
        about = f"{plan.task}: {counted(asked, 'question')}, each for {by}"
        if rest > 0:
            about += f"; {counted(rest, 'item')} of {len(bench):,} are for practice or do not fit the task"
        links = {one.pseudonym: one.link(shown["base"]) for one in made}
        return {**shown, "links": links, "about": f"{about}.", "blind": not bench.images.location}
