"""Studies from Python: create one, invite people, look at the answers, apply them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from creperie.annotation.apply import apply_study, bench_of, write_applied
from creperie.annotation.database import DEFAULT_DATABASE, Database, open_database
from creperie.annotation.export import COLUMNS, answer_rows, exported, study_record
from creperie.annotation.links import invite, served_at
from creperie.annotation.quality import overview, progress
from creperie.annotation.state import change_settings, study_named
from creperie.annotation.study import StudyPlan, store_study
from creperie.bench import Benchmark, load
from creperie.core import html_table
from creperie.metrics import MetricSettings

if TYPE_CHECKING:
    import pandas as pd

DATABASE = "CREPERIE_PEOPLE_DB"


class PlanOptions(TypedDict, total=False):
    """How a study is set up; `StudyPlan` says what each option means."""

    overlap: int
    per_annotator: int | None
    subsets: Sequence[str]
    sample: int | None
    pilot: int
    practice: int | None
    attention: int
    attention_every: int
    skips: int | None
    with_image: bool
    lease: float
    seed: int


@dataclass(frozen=True, repr=False)
class Study:
    """A stored study."""

    name: str
    db: Database

    def __repr__(self) -> str:
        with self.db.read() as session:
            study = study_named(session, self.name)
            rows = progress(session, study)
        done, slots = sum(r["done"] for r in rows), sum(r["slots"] for r in rows)
        return f"Study({self.name!r}, {study.task}, {study.state}, {done} of {slots} answers)"

    def _repr_html_(self) -> str:
        with self.db.read() as session:
            rows = progress(session, study_named(session, self.name))
        cells = [(r["subset"], r["done"], r["slots"]) for r in rows]
        return html_table(repr(self), ("subset", "answers", "of"), cells)

    def invite(self, count: int = 1, *, days: float = 30.0, url: str | None = None) -> dict[str, str]:
        """New links by pseudonym. They cannot be read again later."""
        made = invite(self.db, self.name, count, days=days, actor="python")
        with self.db.read() as session:
            base = url or served_at(session)
        return {one.pseudonym: one.link(base) for one in made}

    def settings(self, **changes: Any) -> Study:
        """Change consent, crowd, qualification or exclusion settings; see `StudySettings`."""
        with self.db.write() as session:
            change_settings(session, study_named(session, self.name), "python", changes)
        return self

    def overview(self, settings: MetricSettings | None = None) -> dict[str, Any]:
        """Progress, agreement, and how each annotator does."""
        with self.db.read() as session:
            return overview(session, study_named(session, self.name), settings or MetricSettings())

    def to_pandas(self) -> pd.DataFrame:
        """All answers, skips and undos, one row each."""
        import pandas as pd

        with self.db.read() as session:
            rows = answer_rows(exported(study_record(session, study_named(session, self.name))))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def apply(
        self,
        out: str | Path | None = None,
        *,
        bench: str | Path | Benchmark | None = None,
        runs: str | Path = "runs",
        undecided: str = "keep",
        verdict: str = "majority",
        force: bool = False,
    ) -> dict[str, Any]:
        """Write what the answers amount to: a new version of the benchmark, human runs, or ratings."""
        own = bench if isinstance(bench, Benchmark) else bench_of(self.db, self.name, str(bench) if bench else None)
        done = apply_study(self.db, self.name, own, undecided=undecided, verdict=verdict)
        where = Path(out) if out is not None else None
        return write_applied(self.db, done, out=where, runs=Path(runs), force=force, actor="python")


def create_study(
    bench: str | Path | Benchmark,
    task: str = "foil-check",
    *,
    name: str | None = None,
    db: str | Path | Database | None = None,
    other: str | Path | Benchmark | None = None,
    images: str | None = None,
    **options: Unpack[PlanOptions],
) -> Study:
    """Create a study from a benchmark: a name or spec, a folder, or a Benchmark.

    Without `db` it is stored where the command line stores it: `$CREPERIE_PEOPLE_DB`, or `creperie-people.db` in the
    working folder. Without `name` it is called after the task.

    >>> study = create_study("out/world", "find-negative", overlap=3)  # doctest: +SKIP
    >>> study.invite(2)  # doctest: +SKIP
    {'teal-owl': 'http://127.0.0.1:8765/join/…', 'plum-crane': 'http://127.0.0.1:8765/join/…'}
    """
    own, spec = _loaded(bench, images)
    second = None if other is None else _loaded(other, None)[0]
    base = db if isinstance(db, Database) else open_database(db or os.environ.get(DATABASE) or DEFAULT_DATABASE)
    made = store_study(base, name or task, own, StudyPlan(task, **options), other=second, spec=spec, actor="python")
    return Study(made.name, base)


def open_study(name: str, db: str | Path | Database | None = None) -> Study:
    """A study that was created before."""
    base = db if isinstance(db, Database) else open_database(db or os.environ.get(DATABASE) or DEFAULT_DATABASE)
    with base.read() as session:
        return Study(study_named(session, name).name, base)


def _loaded(bench: str | Path | Benchmark, images: str | None) -> tuple[Benchmark, str]:
    """A benchmark, and how it is loaded again when the answers are applied."""
    if isinstance(bench, Benchmark):
        return bench, ""
    spec = str(bench)
    return load(spec, images=images), str(Path(spec).resolve()) if Path(spec).exists() else spec
