"""Scoring in shards: each job scores its shard of the items, `merge_runs` merges them into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench import Benchmark
from creperie.core import DataError, UsageError
from creperie.engine import Shard, check_complete, parse_shard
from creperie.metrics import INPUTS
from creperie.scoring.findings import LISTED
from creperie.scoring.run import Run, load_run

#: the fields of the document that all shards of a run must share
SAME = ("model", "tasks", "settings")


def share(bench: Benchmark, shard: Shard) -> Benchmark:
    """Return the benchmark with the items of one shard."""
    own = shard.of(range(len(bench)))
    return bench.with_table(bench.table.slice(own[0], len(own)), "shard", shard=str(shard))


def marked(run: Run, shard: Shard, whole: str, benchmark: Mapping[str, Any]) -> Run:
    """Return the run with a mark in its document: which shard it is, and of which run and benchmark."""
    mark = {"shard": str(shard), "name": whole, "benchmark": dict(benchmark)}
    return Run({**run.document, "shard": mark}, run.table, run.path)


def merge_runs(folders: Sequence[str | Path], out: str | Path) -> Run:
    """Merge the runs of all shards, save the result in `out` under the name of an unsharded run, and return it."""
    return merged_run([load_run(f) for f in folders]).save(out)


def merged_run(runs: Sequence[Run]) -> Run:
    """Return the merged run of all shards; raise an error if a shard is missing or does not fit the others."""
    shards = sorted(((_shard(run), run) for run in runs), key=lambda pair: pair[0])
    check_complete((shard, str(run.path or run.name), _job(run)) for shard, run in shards)
    ordered = [run for _, run in shards]
    first = ordered[0]
    table = pa.concat_tables([run.table for run in ordered], promote_options="default").combine_chunks()
    whole = first.document["shard"]["benchmark"]
    if table.num_rows != whole["items"]:
        raise DataError(
            f"the shards have {table.num_rows} items of {whole['items']}",
            where=first.path,
            hint="score the shards again",
        )
    keys = table.select(["subset", "id"]).group_by(["subset", "id"]).aggregate([([], "count_all")])
    if keys.num_rows != table.num_rows:
        raise DataError("an item is in two shards", where=first.path, hint="score the shards again")
    document = _document(ordered)
    document["coverage"] = {"items": table.num_rows, **_covered(table, first)}
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)


def _shard(run: Run) -> Shard:
    try:
        mark = run.document["shard"]
        shard = parse_shard(mark["shard"])
        _ = mark["name"], mark["benchmark"]["items"], mark["benchmark"]["hash"]
    except (KeyError, TypeError, AttributeError):
        raise UsageError(
            "is not a shard of a run", where=run.path, hint="name runs that were scored with `shard=`"
        ) from None
    return shard


def _job(run: Run) -> dict[str, Any]:
    """Return the fields that all shards of a run must share."""
    return {"benchmark": run.document["shard"]["benchmark"]["hash"]} | {key: run.document.get(key) for key in SAME}


def _document(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the document of the first shard, with findings, counts and timings of all shards combined."""
    document = {k: v for k, v in runs[0].document.items() if k != "shard"}
    mark = runs[0].document["shard"]
    findings: list[dict[str, Any]] = []
    listed: Counter[str] = Counter()
    for finding in (f for run in runs for f in run.findings):
        listed[finding["code"]] += 1
        if listed[finding["code"]] <= LISTED:
            findings.append(finding)
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.document["finding_counts"])
    return document | {
        "name": mark["name"],
        "benchmark": mark["benchmark"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "findings": findings,
        "finding_counts": dict(counts),
        "notes": list(dict.fromkeys(note for run in runs for note in run.document["notes"])),
        "work": _added([run.document["work"] for run in runs]),
        "timings": _added_numbers([run.document["timings"] for run in runs]),
        "merged": [{"shard": run.document["shard"]["shard"], "run": run.name} for run in runs],
    }


def _added(works: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    kinds = dict.fromkeys(kind for work in works for kind in work)
    return {kind: _added_numbers([w[kind] for w in works if kind in w]) for kind in kinds}


def _added_numbers(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update({k: v for k, v in part.items() if isinstance(v, (int, float))})
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in total.items()}


def _covered(table: pa.Table, first: Run) -> dict[str, int]:
    used = [name for name in INPUTS if name in first.document["coverage"]]
    return {name: table.num_rows - table.column(name).null_count for name in sorted(used)}
