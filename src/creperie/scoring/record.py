"""Make the run of one benchmark: results from its filled score columns, and a document that says how they were
computed.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata

from creperie.bench import Benchmark
from creperie.core import ModelError, __version__
from creperie.metrics import task
from creperie.scoring.answer_log import cut_items, cut_note
from creperie.scoring.filler import Filler
from creperie.scoring.header import run_header
from creperie.scoring.options import ScoreOptions
from creperie.scoring.origin import gaps_of, origin_of, run_name
from creperie.scoring.plan import swaps
from creperie.scoring.run import Run, score_table
from creperie.scoring.shards import marked
from creperie.scoring.tasks import columns_needed

LIBRARIES = ("numpy", "pyarrow", "pillow", "torch", "transformers", "sentence-transformers", "open_clip_torch")


def run_of(
    filled: Filler, number: int, tasks: Sequence[str], whole: Benchmark, options: ScoreOptions, start: float
) -> Run:
    """Return the run on the benchmark at position `number` in the plan whose score columns are filled. If it is a
    shard, `whole` is the complete benchmark. `start` is the time at which the scoring began.
    """
    used, handle, part = columns_needed(tasks), filled.handle, filled.plan.parts[number]
    findings = filled.findings[number]
    columns = {k: v for k, v in filled.columns[number].items() if k in used}
    swap = swaps(part.bench, part.layout) if any(task(n).swapped for n in tasks) else None
    answers = filled.answers[number] if "image_text" in used else {}
    table = score_table(part.bench, part.layout, columns, swap, answers)
    note = cut_note(len(cut_items(answers)), len(part.layout), handle.fingerprint.options.get("max_tokens"))
    if all(table.column(needs).null_count == len(table) for needs in used):
        if note:
            raise ModelError(note, where=handle.uri)
        if findings.counts["not-a-number"]:
            what = "every score is NaN or infinite"
            raise ModelError(what, where=handle.uri, hint="try dtype='float32', or check the weights")
    keys = filled.plan.image_keys[part.images]
    origin = origin_of(part.bench, keys, handle.fingerprint, tasks, options.settings)
    name = run_name(part.bench.name, handle.uri, origin.digest)
    document = run_header(name, part.bench, handle.fingerprint, options.settings)
    document["model"]["parameters"] = handle.parameters
    document |= {"command": options.command, "device": options.device, "versions": versions()}
    document |= {"tasks": list(tasks), "computed_from": origin.document()}
    began = time.perf_counter()
    run = Run(document, table, bench=part.bench)
    shown = [n for n in tasks if options.shard is None or task(n).needs in run.inputs]
    document["results"] = [r.as_dict() for r in run.evaluate(shown)] if shown else []  # a shard may lack scores
    now = time.perf_counter()
    scored = {k: len(part.layout) - table.column(k).null_count for k in sorted(used)}
    document["coverage"] = {"items": len(part.layout), **scored}
    document |= findings.document()
    document["gaps"] = gaps_of(findings.counts, table, tasks, keys)
    document["notes"] = [*filled.notes, *([note] if note else [])]
    document["work"] = {k: asdict(s) | {"computed": s.computed} for k, s in filled.work.items()}
    seconds = filled.timings.seconds | {"statistics": now - began, "total": now - start}
    document["timings"] = {k: round(v, 4) for k, v in seconds.items()}
    return run if options.shard is None else marked(run, options.shard, whole, keys)


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
