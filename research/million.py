"""Rates and memory for benchmarks of a million items and more, and how busy the driver of a large cluster is.

    python research/million.py [--items 1000000] [--steps rates,audit,refine,cluster] [--workers 1] [--out FILE]
    python research/million.py --page FILE…     write the table of docs/performance.md from such files (results/million.jsonl)

Every step runs in a process of its own, so its peak memory is its own; workers come on top. *rates*: save, load, filter, sample, drop duplicates, check. *audit* and *refine*: four attackers that score captions
one by one, learned ones on the sample. *cluster*: 10^7 captions on 1,000 simulated workers, whose work is a latency; the
driver is the real one.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing import SAMPLE, audit
from creperie.bench import (
    CORE_COLUMNS,
    ITEMS_FILE,
    Benchmark,
    ContentHash,
    Parquet,
    check,
    describe_benchmark,
    image_keys,
    load_folder,
    match_shapes,
    new_folder,
)
from creperie.core import ROW_GROUP, TableWriter
from creperie.engine import Local, all_parts, write_parts
from creperie.engine.driver import run_on_workers
from creperie.engine.pieces import ROWS, even_counts, from_bytes, to_bytes
from creperie.refining import refine, write_refined

SUBSETS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
WORDS = ("red", "blue", "small", "large", "dog", "cat", "horse", "child", "cup", "table", "hat", "runs", "sits", "near")
ATTACKERS = ("length-words", "length-chars", "surface", "negation")
#: Captions that a worker parses per second (benchmarks/parse_speed.py).
PARSED = 940


def made(first: int, items: int, seed: int = 0) -> pa.Table:
    """Items of one image and two captions of about fifty characters, a tag; every fifth foil has a word more."""
    rng = np.random.default_rng((seed, first))
    rows = np.arange(first, first + items)
    longer = pa.array(np.where(rng.random(items) < 0.2, " too", ""))
    pairs = pa.array(np.arange(items + 1) * 2, pa.int32())
    true, false = _captions(rows, rng), pc.binary_join_element_wise(_captions(rows, rng), longer, "")
    order = pa.array(np.arange(2 * items).reshape(2, items).T.ravel())
    captions = pa.concat_arrays([true, false]).take(order)
    columns = {
        "id": _text(rows),
        "subset": pa.array(np.array(SUBSETS)[rows % len(SUBSETS)]),
        "images": pa.ListArray.from_arrays(
            pa.array(np.arange(items + 1), pa.int32()), pc.binary_join_element_wise(_text(rows // 5), ".jpg", "")
        ),
        "captions": pa.ListArray.from_arrays(pairs, captions),
        "match": pa.ListArray.from_arrays(pairs, pa.array(np.tile([True, False], items))),
        "tag.n": pa.array(rng.integers(3, 20, items).astype(float)),
    }
    return pa.table(columns, schema=pa.schema([*CORE_COLUMNS, pa.field("tag.n", pa.float64())]))


def _captions(rows: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Eight words and a number each."""
    words = [pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), len(rows)))) for _ in range(8)]
    return pc.binary_join_element_wise(*words, _text(rows), " ")


def _text(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def write_bench(folder: Path, items: int) -> None:
    """Save a benchmark of so many items, a row group at a time."""
    with new_folder(folder) as draft:
        schema = made(0, 1).schema
        writer, content = TableWriter(draft / ITEMS_FILE, schema), ContentHash(schema.names)
        for first in range(0, items, ROW_GROUP):
            table = made(first, min(ROW_GROUP, items - first))
            writer.write(table)
            content.feed(table)
        writer.close()
        source = Parquet((draft / ITEMS_FILE,), content.hexdigest())
        describe_benchmark(Benchmark("million", source), draft, "")


@contextmanager
def timed(what: str, items: int) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    print(f"{what:<28}{seconds:8.2f} s {items / max(seconds, 1e-9):14,.0f} items/s", file=sys.stderr, flush=True)


def rates(folder: Path, items: int, workers: int) -> dict[str, Any]:
    with timed("open (manifest)", items):
        bench = load_folder(folder)
    with timed("filter on disk", items):
        bench.filter(pc.field("tag.n") > 12)
    with timed("sample 10,000", items):
        bench.sample(10_000)
    with timed("load all columns", items):
        _ = bench.table
    with timed("verify the hash", items):
        _ = load_folder(folder).checked_hash
    with timed("shapes, image keys", items):
        match_shapes(bench), image_keys(bench)
    with timed("check", items):
        check(bench, images=False)
    return {}


def audited(folder: Path, items: int, workers: int) -> dict[str, Any]:
    found = audit(load_folder(folder), ATTACKERS, engine=Local(workers) if workers > 1 else None, progress=None)
    best = max(found.rows, key=lambda row: row.measure.accuracy)
    exact = [c.accuracy for c in found.counts if c.attacker == "length-words"]
    return {"verdict": found.verdict, "best": best.attacker, "accuracy": best.measure.accuracy, "exact": exact[:1]}


def refined(folder: Path, items: int, workers: int) -> dict[str, Any]:
    engine = Local(workers) if workers > 1 else None
    attackers = {"attackers": ("length-words", "surface"), "held_out": ("length-chars", "negation")}
    result = refine(load_folder(folder), engine=engine, progress=None, **attackers)
    written = write_refined(result, folder.parent / "refined")
    return {"kept": len(written), "verdict": result.judgement.verdict}


@dataclass
class Clock:
    """Ends the work of simulated workers when its time has come."""

    due: list[tuple[float, int, Future[Any], Any]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def at(self, moment: float, future: Future[Any], answer: Any) -> None:
        with self.changed:
            heapq.heappush(self.due, (moment, id(future), future, answer))
            if self.due[0][2] is future:
                self.changed.notify()

    def run(self) -> None:
        while True:
            with self.changed:
                while not self.due or self.due[0][0] > time.monotonic():
                    self.changed.wait(self.due[0][0] - time.monotonic() if self.due else None)
                _, _, future, answer = heapq.heappop(self.due)
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


class DiedError(Exception):
    """A simulated worker died."""


class SimulatedWorker:
    """Computes one piece after another: each takes as long as parsing it, give or take a third; one in 500 kills it."""

    def __init__(self, clock: Clock, rng: np.random.Generator, receipt: bytes) -> None:
        self.clock, self.rng, self.receipt, self.free = clock, rng, receipt, time.monotonic()

    def begin(self, number: int | None) -> Future[Any]:
        future: Future[Any] = Future()
        seconds = 1.0 if number is None else ROWS / PARSED * self.rng.lognormal(0, 0.3)
        self.free = max(self.free, time.monotonic()) + seconds
        dies = number is not None and self.rng.random() < 0.002
        self.clock.at(self.free, future, DiedError() if dies else self.receipt)
        return future

    def end(self) -> None:
        pass


@dataclass(frozen=True)
class Simulated:
    """An engine of simulated workers, driven as those of Ray are."""

    workers: int

    def run(self, stage: Any, pieces: Any, numbers: Iterable[int]) -> Iterator[tuple[int, pa.Table]]:
        clock, rng = Clock(), np.random.default_rng(0)
        threading.Thread(target=clock.run, daemon=True).start()
        receipt = to_bytes(pa.table({}).replace_schema_metadata({b"creperie.written": str(ROWS)}))
        for number, answer in run_on_workers(partial(SimulatedWorker, clock, rng, receipt), self.workers, numbers, DiedError):
            yield number, from_bytes(answer)


@dataclass(frozen=True)
class Counted:
    """Pieces that nobody reads."""

    rows: int

    @property
    def counts(self) -> list[int]:
        return even_counts(self.rows, ROWS)

    def __len__(self) -> int:
        return -(-self.rows // ROWS)

    def piece(self, number: int) -> pa.Table:
        raise NotImplementedError


def cluster(folder: Path, items: int, workers: int) -> dict[str, Any]:
    """The driver's own processor time while 1,000 simulated workers are at 10^7 captions; then a merge of real parts."""
    found: dict[str, Any] = {"captions": 10**7, "simulated": 1000}
    pieces = Counted(found["captions"])
    wall, busy = time.perf_counter(), time.thread_time()
    steps = write_parts(lambda table: table, pieces, range(len(pieces)), folder / "parts", engine=Simulated(1000))
    done = sorted(number for number, _ in steps)
    found |= {"wall": time.perf_counter() - wall, "driver": time.thread_time() - busy, "pieces": len(done)}
    assert done == list(range(len(pieces))), "every piece once"
    texts = pa.array([f"a caption of about fifty characters, number {n:07d}" for n in range(ROWS)])
    parts = 10**6 // ROWS
    for _ in write_parts(_Constant(texts), Counted(parts * ROWS), [0], folder / "parts", engine=_OfNothing()):
        pass
    for number in range(1, parts):
        (folder / "parts" / f"part-{number:06d}.parquet").hardlink_to(folder / "parts" / "part-000000.parquet")
    start = time.perf_counter()
    writer = TableWriter(folder / "all.parquet", pa.schema([("text", pa.string())]))
    for table in all_parts(folder / "parts", parts):
        writer.write(table)
    writer.close()
    return found | {"merged": writer.rows, "merge": time.perf_counter() - start}


@dataclass(frozen=True)
class _Constant:
    texts: Any

    def __call__(self, batch: pa.Table) -> pa.Table:
        return pa.table({"text": self.texts})


class _OfNothing:
    """An engine that gives a stage pieces without rows."""

    workers = 1

    def run(self, stage: Any, pieces: Any, numbers: Iterable[int]) -> Iterator[tuple[int, pa.Table]]:
        for number in numbers:
            empty = pa.table({}).replace_schema_metadata({b"creperie.piece": str(number)})
            yield number, stage.open()(empty)


STEPS = {"rates": rates, "audit": audited, "refine": refined, "cluster": cluster}


def one(step: str, items: int, workers: int, folder: Path) -> dict[str, Any]:
    start = time.perf_counter()
    found = STEPS[step](folder, items, workers)
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    memory = {"peak_mb": own.ru_maxrss / 1024}  # of this process; a worker's would count what it was forked from
    base = {"step": step, "items": items, "workers": workers, "sample": SAMPLE}
    return base | {"wall": time.perf_counter() - start, "seconds": seconds} | memory | found


def page(files: list[Path]) -> None:
    sys.path.append(str(Path(__file__).parent))
    from first_minute import write

    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    lines = ["| step | items | workers | wall s | processor s | peak MB |", "|---|---:|---:|---:|---:|---:|"]
    for row in (r for r in rows if r["step"] in ("audit", "refine")):
        figures = " | ".join(f"{row[name]:,.0f}" for name in ("items", "workers", "wall", "seconds", "peak_mb"))
        lines.append(f"| {row['step']} | {figures} |")
    lines += ["", *extrapolated(rows)]
    for row in (r for r in rows if r["step"] == "cluster"):
        share = 100 * row["driver"] / row["wall"]
        lines += [
            "",
            f"{row['captions']:,} captions in {row['pieces']:,} pieces on {row['simulated']:,} simulated workers take "
            f"{row['wall']:.1f} s, of which the driver computes {row['driver']:.2f} s ({share:.1f} %), without Ray's own share.",
        ]
    write(Path(__file__).parents[1] / "docs" / "performance.md", "million", "\n".join(lines))


def extrapolated(rows: list[dict[str, Any]]) -> list[str]:
    """What 10^8 items would take. Three parts explain the processor time of a small run in one process and both times of
    a large one by workers: that of the sample, and per item that of the driver and that of the workers.
    """
    lines = []
    for step in ("audit", "refine"):
        own = sorted((r for r in rows if r["step"] == step), key=lambda r: r["items"])
        if len(own) < 2 or own[-1]["workers"] < 2:
            continue
        small, large = own[-2:]
        per_item = (large["seconds"] - small["seconds"]) / (large["items"] - small["items"])
        memory = (large["peak_mb"] - small["peak_mb"]) / (large["items"] - small["items"])
        sample = small["seconds"] - per_item * small["items"]
        by_workers = (large["seconds"] - large["wall"]) / (1 - 1 / large["workers"]) / large["items"]
        alone = per_item - by_workers
        minutes = (sample + 10**8 * (alone + by_workers / 64)) / 60
        lines.append(
            f"10^8 items, `{step}`: {(large['peak_mb'] + memory * (10**8 - large['items'])) / 1024:.1f} GB, "
            f"{(sample + per_item * 10**8) / 3600:.1f} processor hours, {minutes:.0f} minutes on 64 cores ({sample:.0f} s for the "
            f"sample, {1e6 * alone:.1f} µs per item in the driver, {1e6 * by_workers:.1f} µs in workers)."
        )
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--items", type=lambda text: int(float(text)), default=1_000_000)
    arguments.add_argument("--steps", default=",".join(STEPS))
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--out", type=Path, help="a file of JSON lines that results are added to")
    arguments.add_argument("--page", type=Path, nargs="+", help="write the page from these files")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.page:
        return page(chosen.page)
    if chosen.one == "write":
        return write_bench(chosen.folder, chosen.items)
    if chosen.one:
        print(json.dumps(one(chosen.one, chosen.items, chosen.workers, chosen.folder)))
        return None
    for step in chosen.steps.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "bench")
            environment = os.environ | {"CREPERIE_CACHE": str(Path(scratch, "cache")), "CREPERIE_AUDIT_MODELS": "none"}
            command = [sys.executable, __file__, "--items", str(chosen.items), "--workers", str(chosen.workers)]
            for part in ("write", step) if step != "cluster" else (step,):
                call = [*command, "--folder", str(folder), "--one", part]
                done = subprocess.run(call, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        print(done.stdout.strip(), flush=True)
        if chosen.out:
            with chosen.out.open("a") as file:
                file.write(done.stdout.splitlines()[-1] + "\n")
    return None


if __name__ == "__main__":
    main()
