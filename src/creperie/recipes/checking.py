"""Stages that confirm items: the checks of `data check`, a validator model, people."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark, load, save
from creperie.core import DataError, UsageError, draft_of, write_json
from creperie.recipes.steps import StageJob, engine_for

Key = tuple[str, str]
ANSWERS = {"yes": True, "true": True, "1": True, "keep": True, "no": False, "false": False, "0": False, "drop": False}


def run_check(job: StageJob) -> dict[str, Any]:
    """Leave out the items that `data check` calls wrong."""
    from creperie.bench import ERROR, check

    bench = load(job.input)
    findings = [f for f in check(bench, images=False, progress=job.progress) if f.severity == ERROR]
    bad = {(f.subset, f.item) for f in findings if f.item}
    summary = _kept(bench, bad, job, "check")
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
    found = validate(bench, model, limit=limit, engine=engine_for(job, model), progress=job.progress)
    bad = {(v.pair.subset, v.pair.item) for v in found.verdicts if v.code}
    summary = _kept(bench, bad, job, "validate")
    write_json(job.out / "validation.json", found.document)
    return summary | {"calls": found.document["calls"], "codes": found.document["codes"]}


def run_people(job: StageJob) -> dict[str, Any]:
    """Leave out what people said no to. Without their answers, write the sheet to fill in, and stop."""
    bench = load(job.input)
    answers = job.option("answers")
    if not answers:
        sheet = job.out.parent / f"{job.name}-sheet.csv"
        write_sheet(bench, sheet)
        raise UsageError(
            f"people have not answered: {len(bench):,} items wait in {sheet}",
            where=f"stage {job.name}",
            hint=f"fill in column `keep` and pass --set {job.name}.answers=FILE, "
            f"or pass over it with --set {job.name}.skip=true",
        )
    said = read_answers(Path(answers))
    keys = list(zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True))
    strange = [key for key in said if key not in set(keys)]
    if strange:
        raise DataError(f"answers about an item that is not there: {strange[0][0]}/{strange[0][1]}", where=answers)
    summary = _kept(bench, {key for key, keep in said.items() if not keep}, job, "people")
    return summary | {"answered": len(said), "unanswered": len(keys) - len(said)}


def write_sheet(bench: Benchmark, path: Path) -> None:
    """A CSV file with an item a line and a column `keep` to fill in."""
    with draft_of(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["subset", "id", "images", "true", "false", "keep"])
        for item in bench:
            texts = ["\n".join(texts) for texts in (item.positives, item.negatives)]
            writer.writerow([item.subset, item.id, " ".join(item.images), *texts, ""])


def read_answers(path: Path) -> dict[Key, bool]:
    """Who stays, by subset and id; lines without an answer are left out."""
    said: dict[Key, bool] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = {"subset", "id", "keep"} - set(reader.fieldnames or [])
            if missing:
                raise DataError(f"has no column {sorted(missing)[0]!r}", where=str(path))
            for row in reader:
                answer = (row["keep"] or "").strip().lower()
                if not answer:
                    continue
                if answer not in ANSWERS:
                    raise DataError(f"{answer!r} is neither yes nor no", where=f"{path}:{reader.line_num}")
                said[row["subset"], row["id"]] = ANSWERS[answer]
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot be read ({getattr(e, 'strerror', None) or 'not UTF-8'})", where=str(path)) from None
    return said


def _kept(bench: Benchmark, bad: set[Key], job: StageJob, why: str) -> dict[str, Any]:
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    keep = np.array([key not in bad for key in keys], dtype=bool)
    if not keep.any():
        raise DataError("no item is left", where=f"stage {job.name}")
    found = bench.filter(keep, why=why) if not keep.all() else bench
    save(found, job.out, progress=job.progress)
    return {"items": len(found), "removed": int((~keep).sum()), "subsets": found.subsets}
