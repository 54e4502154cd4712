"""The audits in a report: a quick one that it makes by itself, or full ones that `creperie audit --json` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from creperie.auditing import audit, audit_document
from creperie.bench import Benchmark
from creperie.core import DataError, Progress, UsageError, read_json, silent
from creperie.reporting.gather import RunGroup


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
