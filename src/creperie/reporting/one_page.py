"""The report of runs as one HTML page, in one call, with the audits of their benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from creperie.auditing import audit, audit_document
from creperie.bench import Benchmark
from creperie.core import DataError, Progress, UsageError, read_json, silent
from creperie.reporting.gather import RunGroup, gather_runs, runs_in
from creperie.reporting.page import Contents, report_page, write_report
from creperie.scoring import Run


def quick_audit(bench: Benchmark, *, progress: Progress = silent) -> dict[str, Any]:
    """An audit's document: the standard battery and its verdict, less the attackers that take minutes.

    The verdict names what was not run and is then *incomplete* at best, so it never contradicts a full audit.
    """
    return audit_document(audit(bench, "quick", progress=progress))


def read_audits(files: Sequence[Path], groups: Sequence[RunGroup]) -> dict[str, dict[str, Any]]:
    """Audits that were written as JSON, by content hash; one of another benchmark is a mistake."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        read = read_json(file)
        if not isinstance(read, dict) or not {"verdict", "text", "hash", "attackers", "results"} <= set(read):
            raise DataError("is not an audit", where=str(file), hint="write one with `creperie audit BENCH --json`")
        if str(read["hash"]) not in {g.runs[0].hash for g in groups}:
            raise UsageError("is an audit of another benchmark than that of the runs", where=str(file))
        found[read["hash"]] = read
    return found


def make_audits(
    groups: Sequence[RunGroup], *, progress: Progress = silent
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Short audits of every benchmark that is at hand, by content hash; and why some have none."""
    found: dict[str, dict[str, Any]] = {}
    notes = []
    for group in groups:
        if group.bench is None:
            continue
        try:
            found[group.runs[0].hash] = quick_audit(group.bench, progress=progress)
        except DataError as e:
            notes.append(f"no audit: {e}")
    return found, notes


def report(
    runs: Sequence[Run | str | Path],
    html: str | Path,
    *,
    benches: Sequence[str] = (),
    images: str | Path | None = None,
    audits: Sequence[Path] | None = None,
    title: str = "",
    progress: Progress = silent,
) -> Path:
    """Write runs as one HTML page that opens from disk: results, figures, comparisons, an audit, every item.

    `runs` are runs, their folders, or folders that hold some. `audits` are files that `audit --json` wrote; without
    them a short audit is made, with an empty list there is none.
    """
    given: list[Run | Path] = []
    for run in runs:
        given += [run] if isinstance(run, Run) else runs_in([str(run)])
    groups = gather_runs(given, benches=tuple(benches), images=str(images) if images is not None else None)
    documents = make_audits(groups, progress=progress)[0] if audits is None else read_audits(tuple(audits), groups)
    page = report_page(groups, Contents(title=title, audits=documents), progress=progress)
    write_report(page.html, Path(html))
    return Path(html)
