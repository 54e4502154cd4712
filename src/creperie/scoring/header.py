"""What the document of every run begins with: what was run on what, by whom, and how it is judged."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from creperie.bench import Benchmark
from creperie.core import __version__
from creperie.metrics import MetricSettings
from creperie.models import Fingerprint
from creperie.scoring.run import VERSION


def run_header(name: str, bench: Benchmark, mark: Fingerprint, settings: MetricSettings) -> dict[str, Any]:
    """The fields that all runs share, whether a model, people or published answers gave the scores."""
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
    """How a run names its benchmark."""
    return {
        "name": bench.name,
        "hash": bench.hash,
        "items": len(bench),
        "subsets": bench.subsets,
        "images": bench.images.location,
        "provenance": [asdict(step) for step in bench.provenance],
    }


def nothing_computed() -> dict[str, Any]:
    """What a run says of work and findings where nothing was computed."""
    return {"findings": [], "finding_counts": {}, "notes": [], "work": {}, "timings": {"total": 0.0}}
