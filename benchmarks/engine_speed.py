"""How fast the Ray engine is beside the in-process one, on a parse of many captions with two workers.

    python benchmarks/engine_speed.py [--n 100000] [--workers 2] [--captions FILE]
    python benchmarks/engine_speed.py --n 384000 --piece 128 --idle     what a piece costs the driver

Both parse the same captions, one after the other, and the results are compared. Wall-clock time, in two figures: all
of it, with the start of processes or of Ray, and from the first finished
piece to the last, which is what a long job sees. At least 0.8 times the in-process engine is wanted.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

os.environ.setdefault("OMP_NUM_THREADS", "1")


from creperie.engine import Engine, choose_engine, open_captions, write_parts
from creperie.lang.parser import load_parser, parse

WANTED = 0.8
PARSES = pa.schema(
    [
        ("id", pa.string()),
        ("words", pa.list_(pa.string())),
        ("tags", pa.list_(pa.string())),
        ("heads", pa.list_(pa.int32())),  #: the number of the word that it depends on; its own at the root
        ("relations", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Annotate:
    """Captions (id, text) to words, tags, heads and relations."""

    parser: str = ""

    def open(self) -> Callable[[pa.Table], pa.Table]:
        load_parser(self.parser)
        return self

    def __call__(self, batch: pa.Table) -> pa.Table:
        docs = list(parse(batch.column("text").to_pylist(), self.parser))
        columns = [
            batch.column("id").to_pylist(),
            [[t.text for t in doc] for doc in docs],
            [[t.tag_ for t in doc] for doc in docs],
            [[t.head.i for t in doc] for doc in docs],
            [[t.dep_ for t in doc] for doc in docs],
        ]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, PARSES, strict=True)], schema=PARSES)


@dataclass(frozen=True)
class Idle:
    """A stage that costs nothing: what is left is the driver's share."""

    def open(self) -> Idle:
        return self

    def __call__(self, batch: pa.Table) -> pa.Table:
        return batch


def write_captions(path: Path, n: int) -> None:
    """Captions of the length and kind that people write of photographs."""
    rng = random.Random(0)
    who = ["a man", "two women", "a young boy in a red shirt", "an old dog", "several people"]
    does = ["pushing", "standing next to", "looking at", "walking with", "carrying"]
    what = ["a brown horse", "a kite", "an umbrella", "some boxes", "a bicycle"]
    where = ["on a busy street", "near a wooden fence", "in front of a large building", "at the beach on a sunny day"]
    with path.open("w") as file:
        for _ in range(n):
            words = [rng.choice(part) for part in (who, does, what, where)]
            file.write(" ".join(words).capitalize() + ".\n")


def timed(engine: Engine, stage: Any, pieces: Any, parts: Path) -> tuple[dict[str, float], dict[str, bytes]]:
    """Seconds in all, captions per second between the first piece and the last, the processor time per piece of the
    driver's thread and of its process in milliseconds, and the parts that workers wrote."""
    ends: list[float] = []
    start, own = time.perf_counter(), (math.nan, math.nan)
    for _ in write_parts(stage, pieces, range(len(pieces)), parts, engine=engine):
        if not ends:  # processes or Ray have started
            own = time.thread_time(), time.process_time()
        ends.append(time.perf_counter())
    seconds = time.perf_counter() - start
    used = (time.thread_time() - own[0], time.process_time() - own[1])
    driver, process = (1000 * s / max(1, len(ends) - 1) for s in used)
    between = ends[-1] - ends[0] if len(ends) > 1 else math.nan
    steady = pieces.rows * (len(ends) - 1) / len(ends) / between
    found = {"seconds": seconds, "captions_per_second": pieces.rows / seconds, "steady": steady}
    found |= {"driver_ms": driver, "process_ms": process}
    return found, {path.name: path.read_bytes() for path in parts.iterdir()}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--n", type=int, default=100_000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--captions", help="a source of captions instead of templates")
    arguments.add_argument("--piece", type=int, default=2048, help="captions per piece")
    arguments.add_argument("--idle", action="store_true", help="a stage that costs nothing instead of a parse")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = chosen.captions
        if source is None:
            source = str(Path(scratch, "captions.txt"))
            write_captions(Path(source), chosen.n)
        found, tables = {}, {}
        for name in ("local", "ray"):
            engine = choose_engine(name, workers=chosen.workers)
            stage, pieces = Idle() if chosen.idle else Annotate(), open_captions(source, size=chosen.piece)
            found[name], tables[name] = timed(engine, stage, pieces, Path(scratch, name))
            print(f"{name:<6}" + "  ".join(f"{k} {v:,.2f}" for k, v in found[name].items()), flush=True)
        same = tables["local"] == tables["ray"]
    ratios = {k: found["ray"][k] / found["local"][k] for k in ("captions_per_second", "steady")}
    print(
        f"same bytes: {same}; Ray / in-process: all {ratios['captions_per_second']:.2f}, steady {ratios['steady']:.2f}"
    )
    return 0 if same and ratios["captions_per_second"] >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
