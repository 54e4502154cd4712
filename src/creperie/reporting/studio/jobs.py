"""Background jobs of the studio: audits and refinements, which take too long for a request. They run one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

from creperie.auditing import AttackerModels, audit, audit_document, entry_of, runnable_attackers
from creperie.bench import load, record_audit, recorded_audit
from creperie.core import Advance, CreperieError, UsageError, percent
from creperie.refining import refine, write_refined


class JobCancelledError(CreperieError):
    """Raised inside a job, at its next step, if the user has cancelled the job."""


@dataclass
class StudioJob:
    """A background job, and what its pages show about it."""

    what: str
    name: str  #: the benchmark
    link: str  #: the address of the result
    work: Callable[[StudioJob], None] = field(repr=False)
    number: int = 0
    state: str = "waiting"  #: then running; then done, failed or cancelled
    lines: list[tuple[str, str, str]] = field(default_factory=list)  #: attacker, accuracy on all items, seconds
    step: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    start: float = 0.0
    begun: float = 0.0  #: of the step
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def left(self) -> str:
        """The estimated time until the current step ends, in words. The text is empty if it cannot be estimated."""
        if not self.done or not self.total or self.ended:
            return ""
        seconds = (time.monotonic() - self.begun) * (self.total - self.done) / self.done
        return f"about {seconds:.0f} s left" if seconds < 90 else f"about {seconds / 60:.0f} min left"

    def run(self) -> None:
        """Do the work in this thread. An error is stored, to be shown on the page."""
        if self.state == "cancelled":
            return
        self.state, self.start = "running", time.monotonic()
        try:
            self.work(self)
            self.state = "done"
        except JobCancelledError:
            self.state = "cancelled"
        except CreperieError as e:
            self.state, self.error = "failed", str(e)
        except Exception as e:  # an unexpected error is shown on the page; the studio goes on
            self.state, self.error = "failed", f"{type(e).__name__}: {e}"
        self.seconds = time.monotonic() - self.start

    def cancel(self) -> None:
        """End the job: now if it has not begun, else at its next step."""
        if not self.ended:
            self.state = "cancelled" if self.state == "waiting" else "cancelling"

    def look(self) -> None:
        """Raise a JobCancelledError if the job was cancelled."""
        if self.state in ("cancelling", "cancelled"):
            raise JobCancelledError("cancelled")

    @contextmanager
    def progress(self, label: str, total: int | None, unit: str) -> Iterator[Advance]:
        """Store the progress of the current step, which the job's page shows. This method can be used as a
        `Progress`.
        """
        self.step, self.total, self.done, self.begun = label, total or 0, 0, time.monotonic()

        def advance(n: int) -> None:
            self.look()
            self.done += n

        self.look()
        yield advance


class JobQueue:
    """The jobs of a studio, newest first. Only one runs at a time."""

    # Two at once would take longer in total.

    def __init__(self) -> None:
        self.jobs: list[StudioJob] = []
        self._waiting: Queue[StudioJob] = Queue()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._waiting.get().run()

    def add(self, job: StudioJob) -> StudioJob:
        """Add a job and return it. Raise a UsageError if another job on the same benchmark has not ended."""
        with self._lock:
            if (other := self.of(job.name)) and not other.ended:
                raise UsageError(f"{other.what} has not ended", hint="wait for it, or cancel it under Jobs")
            job.number = len(self.jobs) + 1
            self.jobs.insert(0, job)
        self._waiting.put(job)
        return job

    def of(self, name: str) -> StudioJob | None:
        """Return the latest job on a benchmark; None if there is none."""
        return next((job for job in self.jobs if job.name == name), None)

    @property
    def running(self) -> list[StudioJob]:
        return [job for job in self.jobs if not job.ended]


def audit_job(name: str, place: Path, attackers: Sequence[str], link: str) -> StudioJob:
    """Return a job that audits a benchmark: first each quick attacker, then all attackers together for the verdict."""
    models = AttackerModels()

    def work(job: StudioJob) -> None:
        bench = load(place)
        names, _ = runnable_attackers(tuple(attackers), models)
        for attacker in names:
            if entry_of(attacker).sampled or entry_of(attacker).family in ("n-grams", "ensemble"):
                continue  # they learn from all items, or sample: they run with the others below
            job.look()
            start = time.monotonic()
            rows = [r for r in audit(bench, [attacker], models=models).rows if r.subset == "all"]
            shown = percent(rows[0].measure.accuracy) if rows else "–"
            job.lines.append((attacker, shown, f"{time.monotonic() - start:.1f}"))
        found = audit(bench, attackers, models=models, progress=job.progress)
        record_audit(place, audit_document(found, place, {"attackers": list(attackers)} if attackers else {}))

    return StudioJob(f"Audit of {name}", name, link, work, step="attackers, fastest first")


def refine_job(name: str, place: Path, out: Path, attackers: Sequence[str], link: str, *, repair: bool) -> StudioJob:
    """Return a job that refines and audits a benchmark. It keeps the largest part on which the attackers are at chance,
    then audits this part and the whole benchmark with the same attackers.

    With `repair`, the captions of every item are first brought into one style (case, spaces, punctuation). `link` is
    the address that is shown when the job is done.
    """

    def work(job: StudioJob) -> None:
        refined = refine(place, method="optimal", attackers=attackers, repair=repair, progress=job.progress)
        if not len(refined.bench):
            raise UsageError(
                "refinement would remove every item", where=name, hint="write new foils: the attackers recognise these"
            )
        job.look()
        write_refined(refined, out)
        both = {path: recorded_audit(load(path)) or {"attackers": []} for path in (place, out)}
        run = {path: [a["name"] for a in found["attackers"]] for path, found in both.items()}
        named = {path: bool(found.get("options", {}).get("attackers")) for path, found in both.items()}
        names = list(dict.fromkeys([*run[place], *run[out]]))
        # an audit without named attackers also says what its battery lacks: a verdict of another kind
        for path in both:
            if set(run[path]) == set(names) and (named[path] or not any(named.values())):
                continue
            found = audit(load(path), names, progress=job.progress)
            record_audit(path, audit_document(found, path, {"attackers": names}))

    return StudioJob(f"Refinement of {name}", name, link, work, step="measuring what leaks")
