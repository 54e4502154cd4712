"""Background jobs of the studio, longer than a request may take: audits and refinements, one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from creperie.auditing import AttackerModels, audit, audit_document, entry_of, sendable
from creperie.bench import load, record_audit
from creperie.core import CreperieError, UsageError, percent
from creperie.refining import refine, write_refined


@dataclass
class StudioJob:
    """A background job, with what its waiting page shows."""

    what: str
    start: float = field(default_factory=time.monotonic)
    lines: list[tuple[str, str, str]] = field(default_factory=list)  #: attacker, accuracy on all items, seconds
    error: str = ""
    done: bool = False
    seconds: float = 0.0

    def begin(self, work: Callable[[StudioJob], None]) -> StudioJob:
        """Start the work in a thread and return the job; an error is stored for the page."""

        def run() -> None:
            try:
                work(self)
            except CreperieError as e:
                self.error = str(e)
            except Exception as e:  # an unexpected error is shown on the page; the studio goes on
                self.error = f"{type(e).__name__}: {e}"
            self.seconds, self.done = time.monotonic() - self.start, True

        threading.Thread(target=run, daemon=True).start()
        return self


def audit_job(place: Path, attackers: Sequence[str]) -> StudioJob:
    """Start a job that audits a benchmark: quick attackers one by one, then all together for the verdict."""
    models = AttackerModels()

    def work(job: StudioJob) -> None:
        bench = load(place)
        names, _ = sendable(tuple(attackers), models)
        for name in names:
            if entry_of(name).sampled or entry_of(name).family in ("n-grams", "ensemble"):
                continue  # they learn from all items, or sample: they run with the others below
            start = time.monotonic()
            rows = [r for r in audit(bench, [name], models=models).rows if r.subset == "all"]
            shown = percent(rows[0].measure.accuracy) if rows else "–"
            job.lines.append((name, shown, f"{time.monotonic() - start:.1f}"))
        document = audit_document(
            audit(bench, attackers, models=models), place, {"attackers": list(attackers)} if attackers else {}
        )
        record_audit(place, document)

    return StudioJob(f"Audit of {place.name}").begin(work)


def refine_job(place: Path, out: Path, attackers: Sequence[str], *, repair: bool) -> StudioJob:
    """Start a job that keeps the largest part on which the attackers are no better than chance, and audits it."""

    def work(job: StudioJob) -> None:
        refined = refine(place, method="optimal", attackers=attackers, repair=repair)
        if not len(refined.bench):
            raise UsageError("no item would be left: write new foils for what leaks", where=place.name)
        write_refined(refined, out)

    return StudioJob(f"Refinement of {place.name}").begin(work)
