"""Scoring in shards: each job scores one shard of the items, and `merge_runs` merges the results into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import Benchmark
from creperie.core import DataError, UsageError
from creperie.engine import Shard, check_complete, parse_shard
from creperie.metrics import INPUTS
from creperie.scoring.findings import Findings, UnscoredItem
from creperie.scoring.header import benchmark_header
from creperie.scoring.origin import gaps_of, images_digest, read_origin, run_name
from creperie.scoring.run import Run, load_run
from creperie.scoring.segments import KEY

#: fields of the document that all shards of a run must share, besides the model's key
SAME = ("tasks", "settings")
#: the column of a shard with the content keys of its images
IMAGE_KEYS = "image_keys"


def share(bench: Benchmark, shard: Shard) -> Benchmark:
    """Return the benchmark restricted to the items of one shard."""
    own = shard.of(range(len(bench)))
    return bench.with_table(bench.table.slice(own[0], len(own)), "shard", shard=str(shard))


def marked(run: Run, shard: Shard, whole: Benchmark, keys: np.ndarray) -> Run:
    """Return the run of a shard with additions that `merge_runs` needs. Its document also has the number of the shard
    and the header of the whole benchmark. Its table also has the content keys of the images, from which the origin of
    the merged run is recorded.
    """
    mark = {"shard": str(shard), "benchmark": benchmark_header(whole) | {"hash": whole.checked_hash}}
    images = run.table.column("images")
    sizes = pc.list_value_length(images).to_numpy() if len(keys) else np.zeros(len(run), np.int64)
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    cells = pa.array([key.tobytes() for key in keys], pa.binary(KEY))
    table = run.table.append_column(IMAGE_KEYS, pa.ListArray.from_arrays(offsets, cells))
    return Run({**run.document, "shard": mark}, table, run.path)


def merge_runs(folders: Sequence[str | Path], out: str | Path) -> Run:
    """Merge the runs of all shards and return the result. It is saved in `out`, under the name that an unsharded run
    would have.
    """
    return merged_run([load_run(f) for f in folders]).save(out)


def merged_run(runs: Sequence[Run]) -> Run:
    """Return the runs of all shards as one run; raise an error if a shard is missing or belongs to another run."""
    shards = sorted(((_shard(run), run) for run in runs), key=lambda pair: pair[0])
    check_complete((shard, str(run.path or run.name), _job(run)) for shard, run in shards)
    ordered = [run for _, run in shards]
    first = ordered[0]
    table = pa.concat_tables([run.table for run in ordered], promote_options="default").combine_chunks()
    whole = first.document["shard"]["benchmark"]
    if table.num_rows != whole["items"]:
        raise DataError(
            f"together the shards have {table.num_rows} of {whole['items']} items",
            where=first.path,
            hint="score the shards again",
        )
    if table.group_by(["subset", "id"]).aggregate([]).num_rows != table.num_rows:
        raise DataError("an item is in two shards", where=first.path, hint="score the shards again")
    document = _document(ordered)
    used = sorted(name for name in INPUTS if name in first.document["coverage"])
    scored = {name: table.num_rows - table.column(name).null_count for name in used}
    document["coverage"] = {"items": table.num_rows, **scored}
    if IMAGE_KEYS in table.column_names:
        keys = _image_keys(table, first)
        table = table.drop_columns([IMAGE_KEYS])
        document |= _origin(document, table, keys)
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)


def _shard(run: Run) -> Shard:
    try:
        mark = run.document["shard"]
        shard = parse_shard(mark["shard"])
        _ = mark["benchmark"]["items"], mark["benchmark"]["hash"]
    except (KeyError, TypeError, AttributeError):
        raise UsageError(
            "is not a shard of a run", where=run.path, hint="name runs that were scored with `shard=`"
        ) from None
    return shard


def _job(run: Run) -> dict[str, Any]:
    """Return the values of a run's document that must be the same for all shards."""
    document = run.document
    same = {key: document.get(key) for key in SAME}
    return {"benchmark": document["shard"]["benchmark"]["hash"], "model": document["model"]["key"], **same}


def _document(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the document of the first shard, with findings, counts and timings of all shards combined."""
    document = {k: v for k, v in runs[0].document.items() if k != "shard"}
    mark = runs[0].document["shard"]
    works, findings, counts = [run.document["work"] for run in runs], Findings(), Counter[str]()
    for run in runs:
        counts.update(run.document["finding_counts"])
        for finding in run.findings:
            findings.add(UnscoredItem(**finding))
    return document | {
        "name": mark.get("name", ""),  # of shards of earlier versions
        "benchmark": mark["benchmark"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **findings.document(),
        "finding_counts": dict(counts),
        "notes": list(dict.fromkeys(note for run in runs for note in run.document["notes"])),
        "work": {kind: _added_numbers([w[kind] for w in works if kind in w]) for work in works for kind in work},
        "timings": _added_numbers([run.document["timings"] for run in runs]),
        "merged": [{"shard": run.document["shard"]["shard"], "run": run.name} for run in runs],
    }


def _image_keys(table: pa.Table, first: Run) -> np.ndarray:
    """Return the content keys (hashes) of all images, item by item. Raise a DataError if two shards saw different
    contents of an image.
    """
    columns = [pc.list_flatten(table.column(name)).to_pylist() for name in ("images", IMAGE_KEYS)]
    seen: dict[str, bytes] = {}
    for reference, key in zip(*columns, strict=False):  # no keys if the model sees no images
        if seen.setdefault(reference, key) != key:
            raise DataError(
                f"the image {reference!r} changed between two shards", where=first.path, hint="score the shards again"
            )
    return np.frombuffer(b"".join(columns[1]), np.uint8).reshape(-1, KEY)


def _origin(document: Mapping[str, Any], table: pa.Table, keys: np.ndarray) -> dict[str, Any]:
    """Return the fields of the merged document that record what the run was computed from. They are the same as if the
    run had not been sharded.
    """
    stated = read_origin(document)
    assert stated is not None
    origin = replace(stated, items=document["benchmark"]["hash"], images=images_digest(keys))
    return {
        "name": run_name(document["benchmark"]["name"], document["model"]["uri"], origin.digest),
        "computed_from": origin.document(),
        "gaps": gaps_of(document["finding_counts"], table, origin.tasks, keys),
    }


def _added_numbers(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update({k: v for k, v in part.items() if isinstance(v, (int, float))})
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in total.items()}
