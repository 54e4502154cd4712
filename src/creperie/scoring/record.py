"""Make the run of one benchmark: results from its filled score columns, and a document that says how they were
computed.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from creperie.bench import Benchmark
from creperie.core import ModelError, __version__
from creperie.metrics import task
from creperie.scoring.answer_log import cut_items, cut_note
from creperie.scoring.filler import FilledScores
from creperie.scoring.handle import Handle
from creperie.scoring.header import run_header
from creperie.scoring.options import ScoreOptions
from creperie.scoring.origin import RunOrigin, gaps_of, origin_of, run_name
from creperie.scoring.plan import BenchmarkPart, ScoringPlan, swaps
from creperie.scoring.run import Run, score_table
from creperie.scoring.shards import marked
from creperie.scoring.tasks import columns_needed

LIBRARIES = ("numpy", "pyarrow", "pillow", "torch", "transformers", "sentence-transformers", "open_clip_torch")


@dataclass(frozen=True)
class ModelPass:
    """One model's pass over a scoring plan: its options, the columns of scores it filled, and its start time."""

    handle: Handle
    options: ScoreOptions
    plan: ScoringPlan
    filled: FilledScores
    start: float

    def run(self, number: int, part: BenchmarkPart, tasks: Sequence[str], whole: Benchmark) -> Run:
        """Return the run on one benchmark of the plan: `part`, at position `number`. If the part is a shard, `whole` is
        the complete benchmark.
        """
        used = columns_needed(tasks)
        columns = {k: v for k, v in self.filled.columns[number].items() if k in used}
        swap = swaps(part.bench, part.layout) if any(task(n).swapped for n in tasks) else None
        answers = self.filled.answers[number] if self.filled.answers and "image_text" in used else {}
        table = score_table(part.bench, part.layout, columns, swap, answers)
        room = self.handle.fingerprint.options.get("max_tokens")
        note = cut_note(len(cut_items(answers)), len(part.layout), room)
        if all(table.column(needs).null_count == len(table) for needs in used):
            if note:
                raise ModelError(note, where=self.handle.uri)
            if self.filled.findings[number].counts["not-a-number"]:
                what = "every score is NaN or infinite"
                raise ModelError(what, where=self.handle.uri, hint="try dtype='float32', or check the weights")
        keys = self.plan.image_keys[part.images]
        origin = origin_of(part.bench, keys, self.handle.fingerprint, tasks, self.options.settings)
        document = _document(part.bench, self.handle, origin, self.options)
        began = time.perf_counter()
        run = Run(document, table)
        shown = [n for n in tasks if self.options.shard is None or task(n).needs in run.inputs]
        document["results"] = [r.as_dict() for r in run.evaluate(shown)] if shown else []  # a shard may lack scores
        now = time.perf_counter()
        scored = {k: len(part.layout) - table.column(k).null_count for k in sorted(used)}
        document["coverage"] = {"items": len(part.layout), **scored}
        document |= self.filled.findings[number].document()
        document["gaps"] = gaps_of(self.filled.findings[number].counts, table, tasks, keys)
        document["notes"] = [*self.filled.notes, *([note] if note else [])]
        document["work"] = {k: asdict(s) | {"computed": s.computed} for k, s in self.filled.work.items()}
        seconds = self.filled.timings.seconds | {"statistics": now - began, "total": now - self.start}
        document["timings"] = {k: round(v, 4) for k, v in seconds.items()}
        run = Run(document, table, bench=part.bench)
        if self.options.shard is None:
            return run
        return marked(run, self.options.shard, whole, keys)


def _document(bench: Benchmark, handle: Handle, origin: RunOrigin, options: ScoreOptions) -> dict[str, Any]:
    name = run_name(bench.name, handle.uri, origin.digest)
    header = run_header(name, bench, handle.fingerprint, options.settings)
    header["model"]["parameters"] = handle.parameters
    own = {"command": options.command, "device": options.device, "versions": versions()}
    return {**header, **own, "tasks": list(origin.tasks), "computed_from": origin.document()}


def versions() -> dict[str, str]:
    """Return the versions of the libraries that compute scores. They are read from package metadata, without
    imports.
    """
    known = {"creperie": __version__, "python": platform.python_version(), "platform": sys.platform}
    for name in LIBRARIES:
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return known
