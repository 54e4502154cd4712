"""Stages that confirm items without people: the checks of `data check`, a validator model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from creperie.bench import Benchmark, load, save
from creperie.core import DataError, write_json
from creperie.recipes.steps import StageJob, engine_for

Key = tuple[str, str]


def run_check(job: StageJob) -> dict[str, Any]:
    """Leave out the items that `data check` calls wrong."""
    from creperie.bench import ERROR, check

    bench = load(job.input)
    findings = [f for f in check(bench, images=False, progress=job.progress) if f.severity == ERROR]
    bad = {(f.subset, f.item) for f in findings if f.item}
    summary = keep_others(bench, bad, job, "check")
    write_json(job.out / "findings.json", [vars_of(f) for f in findings])
    return summary | {"findings": dict(Counter(f.code for f in findings))}


def vars_of(finding: Any) -> dict[str, str]:
    """A finding as plain data."""
    return {name: getattr(finding, name) for name in ("code", "severity", "subset", "item", "message")}


def run_validate(job: StageJob) -> dict[str, Any]:
    """Leave out the items to which a validator model objects."""
    from creperie.making import validate

    bench = load(job.input)
    model, limit = job.option("model"), job.option("limit") or None
    own = {"prompts": job.option("prompts"), "engine": engine_for(job, model)}
    found = validate(bench, model, limit=limit, progress=job.progress, **own)
    bad = {(v.pair.subset, v.pair.item) for v in found.verdicts if v.code}
    summary = keep_others(bench, bad, job, "validate")
    write_json(job.out / "validation.json", found.document)
    return summary | {"calls": found.document["calls"], "codes": found.document["codes"]}


def keep_others(bench: Benchmark, bad: set[Key], job: StageJob, why: str) -> dict[str, Any]:
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    keep = np.array([key not in bad for key in keys], dtype=bool)
    if not keep.any():
        raise DataError("no item is left", where=f"stage {job.name}")
    found = bench.filter(keep, why=why) if not keep.all() else bench
    save(found, job.out, progress=job.progress)
    return {"items": len(found), "removed": int((~keep).sum()), "subsets": found.subsets}
