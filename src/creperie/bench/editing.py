"""Several changes to a benchmark in one go, in a fixed order, each of them a step of its provenance."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.bench.benchmark import Benchmark, from_items
from creperie.bench.checks import CODES, check
from creperie.bench.item import TAG_PREFIX
from creperie.bench.where import where
from creperie.core import DataError, Progress, UsageError, silent, unknown


@dataclass(frozen=True)
class Edit:
    """What to change; done in this order."""

    join: Path | None = None  #: CSV, TSV, JSONL or Parquet with columns subset, id and further ones: new tags
    subset: Sequence[str] = ()
    where: str = ""
    without: Sequence[str] = ()  #: codes of `check`; items with such findings go
    drop_duplicates: bool = False
    head: int | None = None  #: that many of every subset
    sample: int | None = None
    seed: int = 0


def edit(bench: Benchmark, change: Edit, *, progress: Progress = silent) -> Benchmark:
    """A benchmark with the changes made."""
    if change.join is not None:
        bench = bench.join(read_tags(change.join), why=change.join.name)
    if change.subset:
        bench = bench.only(change.subset)
    if change.where:
        bench = bench.filter(where(change.where, bench.columns), why=change.where)
    if change.without:
        bench = without(bench, change.without, progress=progress)
    if change.drop_duplicates:
        bench = bench.drop_duplicates()
    if change.head is not None:
        bench = bench.head(change.head)
    if change.sample is not None:
        bench = bench.sample(change.sample, change.seed)
    return bench


def without(bench: Benchmark, codes: Sequence[str], *, progress: Progress = silent) -> Benchmark:
    """The items that have no finding of these codes."""
    for code in codes:
        if code not in CODES:
            raise unknown("finding", code, CODES)
    images = any("image" in code or "crop" in code for code in codes)
    bad = {(f.subset, f.item) for f in check(bench, images=images, progress=progress) if f.code in codes and f.item}
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    keep = np.fromiter((key not in bad for key in keys), dtype=bool, count=len(bench))
    return bench.filter(keep, why=f"without {', '.join(codes)}")


#: how sure it is that a twin's captions are false of the other image, in the tag `evidence`
LEVELS = ("certain", "likely", "unchecked")
Keys = Collection[tuple[str, str]]  #: subset and id of items


def reweighed(bench: Benchmark, by: str, doubted: Keys, agreed: Keys = ()) -> Benchmark | None:
    """A benchmark whose items say on what evidence they rest, after a model's verdicts; None for others.

    Doubt takes an item one level down; an item with whose cells the model agrees is `likely` at least, never `certain`.
    """
    items = []
    for item in bench:
        level, key = item.tags.get("evidence"), (item.subset, item.id)
        if level in LEVELS and (key in doubted or key in agreed):
            at = LEVELS.index(level)
            level = LEVELS[min(at + 1, 2) if key in doubted else min(at, 1)]
            basis = f"{item.tags.get('basis', '')}; {by} {'doubts it' if key in doubted else 'sees it so'}"
            item = replace(item, tags={**item.tags, "evidence": level, "basis": basis})
        items.append(item)
    weighed = any("evidence" in item.tags for item in items)
    return from_items(bench.name, items, images=bench.images) if weighed else None


def read_tags(path: Path) -> pa.Table:
    """A table of tags for items: columns subset, id, and one for each tag."""
    from pyarrow import csv, parquet

    suffix = path.suffix.lower()
    try:
        if suffix in (".csv", ".tsv"):
            keys = csv.ConvertOptions(column_types={"subset": pa.string(), "id": pa.string()})
            style = csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",", newlines_in_values=True)
            table = csv.read_csv(path, parse_options=style, convert_options=keys)
        elif suffix in (".jsonl", ".json"):
            table = _json_lines(path)
        elif suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            raise UsageError("is not a table", where=str(path), hint="give .csv, .tsv, .jsonl or .parquet")
        names = table.column_names
    except (OSError, pa.ArrowException, UnicodeDecodeError) as e:
        told = (str(e).splitlines() or ["damaged"])[0][:120]
        raise DataError(f"cannot be read as a table ({told})", where=str(path)) from None
    keyed = ("subset", "id")
    return table.rename_columns([n if n in keyed or n.startswith(TAG_PREFIX) else TAG_PREFIX + n for n in names])


def _json_lines(path: Path) -> pa.Table:
    """One record per line. Not by Arrow's own reader, which some broken files end with a segmentation fault."""
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            raise DataError("is not valid JSON", where=f"{path}:{number}") from None
        if row is not None and not isinstance(row, dict):
            raise DataError("is not a JSON object", where=f"{path}:{number}")
        rows += [row] if row is not None else []
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as e:
        told = (str(e).splitlines() or ["mixed values"])[0][:120]
        raise DataError(f"has a column of mixed values ({told})", where=str(path)) from None
