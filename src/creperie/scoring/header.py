"""The fields that the documents of all runs have: benchmark, model, versions and settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Any

from creperie.bench import TAG_PREFIX, Benchmark
from creperie.core import UNCHECKED, __version__, packaged
from creperie.metrics import MetricSettings
from creperie.models import Fingerprint
from creperie.scoring.run import VERSION, Run


def run_header(name: str, bench: Benchmark, mark: Fingerprint, settings: MetricSettings) -> dict[str, Any]:
    """Return the fields that all runs have, whether from a model, from people or from published answers."""
    return {
        "creperie": VERSION,
        "name": name,
        "written_by": f"creperie {__version__}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "",
        "benchmark": benchmark_header(bench),
        "model": {"uri": mark.uri, "key": mark.key, "fingerprint": asdict(mark)},
        "settings": asdict(settings),
        "seed": settings.seed,
        "ties": settings.ties,
        "device": "",
        "versions": {"creperie": __version__},
    }


def benchmark_header(bench: Benchmark) -> dict[str, Any]:
    """Return the description of a benchmark in a run's document. If people judged items in a study, the field `checked`
    counts these items.
    """
    judged = [name for name in bench.columns if name.startswith(f"{TAG_PREFIX}people.")]
    checked = {name.removeprefix(TAG_PREFIX): len(bench) - bench.column(name).null_count for name in judged}
    return {
        "name": bench.name,
        "hash": bench.hash,
        "items": len(bench),
        "subsets": bench.subsets,
        "images": bench.images.location,
        "provenance": [asdict(step) for step in bench.provenance],
        **({"checked": checked} if checked else {}),
    }


def nothing_computed() -> dict[str, Any]:
    """Return the header fields of a run in which nothing was computed. Findings, work and timings have empty values."""
    return {"findings": [], "finding_counts": {}, "notes": [], "work": {}, "timings": {"total": 0.0}}


@cache
def _published() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the published tables of people's accuracies, by benchmark and task."""
    return {(t["benchmark"], t["task"]): t for t in json.loads(packaged("creperie.scoring", "human.json"))}


def human_level(benchmark: str, task: str, subset: str) -> float:
    """Return people's accuracy as published; NaN if no paper reports it.

    >>> human_level("sugarcrepe++", "tot", "swap_obj"), human_level("mine", "tot", "all")
    (0.9667, nan)
    """
    table = _published().get((benchmark, task), {"accuracy": {}})
    return float(table["accuracy"].get(subset, math.nan))


def people_note(document: Mapping[str, Any]) -> str:
    """Return how many people gave the answers of a run and how well they agree (Krippendorff's α); empty for a model's
    run.

    >>> people_note({"people": {"number": 3, "alpha": 0.61}}), people_note({})
    ('3 people, α = 0.61', '')
    """
    people = document.get("people")
    if not people:
        return "people" if str(document.get("model", {}).get("uri", "")).startswith("human:") else ""
    count = "1 person" if people["number"] == 1 else f"{people['number']} people"
    return count if people["alpha"] is None else f"{count}, α = {people['alpha']:.2f}"


def run_notes(runs: Iterable[Run]) -> list[str]:
    """Return notes on runs, with one line for each run of people's answers. Another line names the runs that were read
    from files without checksums, if there are any.
    """
    known = list(runs)
    people = [f"{run.model}: {note}" for run in known if (note := people_note(run.document))]
    return [*people, *unchecked_notes(known)]


def uncovered_note(run: Run, what: str = "no answer") -> list[str]:
    """Return a list with one line that says how many items of a run have no score. The list is empty if no score is
    missing. `what` is the phrase for a missing score, such as "no answer".
    """
    missing = len(run) - run.scored
    return [f"{missing:,} of {len(run):,} items have {what} and are not in the figures"] if missing else []


def unchecked_notes(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return a tuple with one line. The line names the runs that were read from files without checksums (those of older
    versions). The tuple is empty if there are no such runs.
    """
    names = [run.name for run in runs if run.unchecked]
    return (f"{UNCHECKED}: {', '.join(names)}",) if names else ()


def human_source(benchmark: str, task: str) -> str:
    """Return the published table that `human_level` is taken from; empty if there is none."""
    return str(_published().get((benchmark, task), {}).get("source", ""))
