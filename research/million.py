"""Rates and memory for a benchmark of a million items: make, save, load, filter, sample, drop duplicates, check.

    python research/million.py [ITEMS]

A script, not a test: it prints what this machine does, so that a slow step shows.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import CORE_COLUMNS, Benchmark, check, image_keys, load_folder, match_shapes, save

SUBSETS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
WORDS = ("red", "blue", "small", "large", "dog", "cat", "horse", "child", "cup", "table", "hat", "runs", "sits", "near")


def made(items: int, seed: int = 0) -> Benchmark:
    """Items of one image and three captions of about fifty characters, five tags, one in a thousand a repetition."""
    rng = np.random.default_rng(seed)
    rows = np.arange(items)
    threes = pa.array(np.arange(items + 1) * 3, pa.int32())
    images = pc.binary_join_element_wise(_text(rows // 5), ".jpg", "")
    columns = {
        "id": _text(rows),
        "subset": pa.array(np.array(SUBSETS)[rows % len(SUBSETS)]),
        "images": pa.ListArray.from_arrays(pa.array(np.arange(items + 1), pa.int32()), images),
        "captions": pa.ListArray.from_arrays(threes, _captions(3 * items, rng)),
        "match": pa.ListArray.from_arrays(threes, pa.array(np.tile([True, True, False], items))),
        "tag.n": pa.array(rng.integers(3, 20, items).astype(float)),
        "tag.score": pa.array(rng.random(items)),
        "tag.kind": pa.array(np.array(["noun", "verb", "adjective"])[rng.integers(0, 3, items)]),
        "tag.source": pa.array(np.array(["coco", "vg"])[rng.integers(0, 2, items)]),
        "tag.checked": pa.array(rng.random(items) < 0.5),
    }
    fields = list(CORE_COLUMNS) + [pa.field(n, a.type) for n, a in columns.items() if n.startswith("tag.")]
    table = pa.table(columns, schema=pa.schema(fields))
    repeated = np.where(rng.random(items) < 0.001, rng.integers(0, items, items), rows)
    table = table.take(pa.array(repeated)).set_column(0, CORE_COLUMNS.field("id"), columns["id"])
    return Benchmark("million", table)


def _captions(n: int, rng: np.random.Generator) -> pa.Array:
    """Eight words and a number each, all different."""
    words = [pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), n))) for _ in range(8)]
    return pc.binary_join_element_wise(*words, _text(np.arange(n)), " ")


def _text(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


@contextmanager
def timed(what: str, items: int) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:<28}{seconds:8.2f} s {items / max(seconds, 1e-9):14,.0f} items/s   peak {peak:5.2f} GB", flush=True)


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "million")
        with timed("make", items):
            bench = made(items)
        with timed("save", items):
            save(bench, folder)
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        print(f"{'':<28}{size / 2**20:8.1f} MB on disk")
        del bench
        measure(folder, items)


def measure(folder: Path, items: int) -> None:
    with timed("open (manifest)", items):
        bench = load_folder(folder)
    with timed("filter on disk", items):
        kept = bench.filter(pc.field("tag.n") > 12)
    print(f"{'':<28}{len(kept):8,} items kept")
    del kept
    with timed("load all columns", items):
        _ = bench.table
    with timed("verify the hash", items):
        load_folder(folder, verify=True)
    with timed("filter in memory", items):
        bench.filter((pc.field("tag.n") > 12) & (pc.field("subset") == "swap_obj"))
    with timed("sample 10,000", items):
        bench.sample(10_000)
    with timed("drop duplicates", items):
        dropped = items - len(bench.drop_duplicates())
    print(f"{'':<28}{dropped:8,} items dropped")
    with timed("shapes, image keys", items):
        match_shapes(bench), image_keys(bench)
    with timed("check", items):
        found = check(bench, images=False)
    print(f"{'':<28}{len(found):8,} findings")
    with timed("iterate over Item objects", items):
        sum(1 for _ in bench)


if __name__ == "__main__":
    main()
