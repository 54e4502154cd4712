"""How time and memory grow: make, audit, refine and score at 10^4, 10^5, 10^6 captions, with the fitted exponent.

    python benchmarks/growth.py [--sizes 10000,100000,1000000] [--stages stream,make,audit,refine,score] [--encoder URI]
                                [--out FILE] [--parts 8]

Every stage of every size runs in a process of its own, so its peak memory is its own; the benchmark that it reads was
saved by another. No model of an installed package takes part. Time is that of the processor
(user and system, of the stage alone: the input is prepared before), so that other work on the machine counts little;
wall-clock time is printed beside it. The exponent is the slope of log time over log size between the two largest sizes:
1.0 is linear, and n log n is 1.06 from 10^5 to 10^6. "stream" is a stage over a text file, whose memory must be
flat. "score" uses a stub encoder of 64 numbers, which costs nothing, so that what is measured is creperie;
--encoder names a real model to use instead.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))  # stages and makers that cost nothing

os.environ.setdefault("OMP_NUM_THREADS", "1")

SIZES = (10_000, 100_000, 1_000_000)
STAGES = ("stream", "make", "audit", "refine", "score")
MOST = 1.2  #: an exponent above this is more than n log n and a little noise


def captions(n: int) -> Iterator[str]:
    """Different captions of about a dozen words."""
    import random

    rng = random.Random(0)
    who = ["a man", "two women", "a young boy in a red shirt", "an old dog", "several people", "the tall girl"]
    does = ["pushing", "standing next to", "looking at", "walking with", "carrying"]
    what = ["a brown horse", "a kite", "an umbrella", "some boxes", "a bicycle"]
    where = ["on a busy street", "near a wooden fence", "in front of a large building", "at the beach"]
    parts = (who, does, what, where)
    for i in range(n):
        yield " ".join(rng.choice(p) for p in parts) + f" at number {i}"


def bench_of(n: int) -> Any:
    """n / 2 items of two captions; every fifth foil is longer, so that there is something to refine."""
    from creperie.bench import Item, from_items

    texts = captions(n // 2)
    items = (
        Item(str(i), "ab"[i % 2], (), (t, " ".join(reversed(t.split())) + " too" * (i % 5 == 0)), ((True, False),))
        for i, t in enumerate(texts)
    )
    return from_items("growth", items)


def triples_of(n: int) -> Any:
    """n / 3 items of two true captions and a foil, whose captions can be compared with each other."""
    from creperie.bench import Item, from_items

    texts = captions(n // 3)
    match = ((True, True, False),)
    items = (
        Item(str(i), "ab"[i % 2], (), (t, f"there, {t}", " ".join(reversed(t.split()))), match)
        for i, t in enumerate(texts)
    )
    return from_items("growth", items)


class StubEncoder:
    """Vectors from a hash of the caption: as different as captions are, at no cost."""

    @property
    def fingerprint(self) -> Any:
        from creperie.models import Fingerprint

        return Fingerprint("stub:64", "stub", "0")

    def encode_texts(self, texts: Any) -> Any:
        import zlib

        import numpy as np

        seeds = np.array([zlib.crc32(t.encode()) for t in texts], np.uint32)
        vectors = np.sin(np.outer(seeds, np.arange(1, 65)) % 6.283)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def stage(name: str, n: int, folder: Path, encoder: str) -> dict[str, float]:
    """Run one stage and measure it."""
    work = prepared(name, n, folder, encoder)
    before, wall = time.process_time(), time.perf_counter()
    work()
    seconds, passed = time.process_time() - before, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "wall": passed, "peak_mb": peak}


def prepared(name: str, n: int, folder: Path, encoder: str) -> Any:
    """What a stage needs, made and loaded; the stage itself is what is returned."""
    if name in ("stream", "make"):
        source = folder / "captions.txt"
        with source.open("w") as file:
            file.writelines(text + "\n" for text in captions(n))
    if name == "stream":
        from fault_stages import Shout

        from creperie.engine import Local, open_captions

        def stream() -> None:
            pieces = open_captions(str(source))
            for _ in Local().run(Shout(), pieces, range(len(pieces))):
                pass

        return stream
    if name == "make":
        from fault_makers import SlowMaker

        from creperie.making import make, read_captions

        return lambda: make(SlowMaker(chunk=2048), read_captions(source), folder / "out")
    from creperie.bench import load_folder

    bench = load_folder(folder / "bench")
    if name == "audit":
        from creperie.auditing import audit

        return lambda: audit(bench, ["length-words", "length-chars", "surface", "negation"])
    if name == "refine":
        from creperie.refining import RefinePlan, refine

        return lambda: refine(bench, plan=RefinePlan(attackers=("length-words", "surface")))
    from creperie.scoring import score

    return lambda: score(bench, encoder or StubEncoder(), tasks=["tot"])


def written(name: str, n: int, folder: Path) -> dict[str, float]:
    """Save the benchmark that a stage reads."""
    from creperie.bench import save

    if name not in ("stream", "make"):
        save(triples_of(n) if name == "score" else bench_of(n), folder / "bench")
    return {}


def measured(name: str, n: int, encoder: str) -> dict[str, float]:
    """A stage in a process of its own, after another that prepares what it reads."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {"CREPERIE_CACHE": str(Path(scratch, "cache")), "CREPERIE_AUDIT_MODELS": "none"}
        for step in ("--write", "--one"):
            command = [sys.executable, __file__, step, name, "--sizes", str(n), "--folder", scratch]
            command += ["--encoder", encoder]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                raise SystemExit(f"{name} at {n}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_parts(name: str, n: int, parts: int) -> dict[str, float]:
    """A benchmark of so many equal subsets, each audited in a process of its own, all at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    start = time.perf_counter()
    with ThreadPoolExecutor(parts) as pool:
        found = list(pool.map(lambda k: measured(name, n // parts, ""), range(parts)))
    total = {"seconds": sum(f["seconds"] for f in found), "wall": max(f["wall"] for f in found), "parts": parts}
    return total | {"peak_mb": max(f["peak_mb"] for f in found), "with_input": time.perf_counter() - start}


def exponent(small: tuple[int, float], large: tuple[int, float]) -> float:
    return math.log(large[1] / max(small[1], 1e-9)) / math.log(large[0] / small[0])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments.add_argument("--stages", default=",".join(STAGES))
    arguments.add_argument("--encoder", default="", help="a model's URI, instead of the stub")
    arguments.add_argument("--out", type=Path, help="a file of JSON lines that results are added to")
    arguments.add_argument("--parts", type=int, default=1, help="split into so many processes that run together")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("--write", help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    sizes = [int(float(s)) for s in chosen.sizes.split(",")]
    if chosen.one or chosen.write:
        step = stage(chosen.one, sizes[0], chosen.folder, chosen.encoder) if chosen.one else {}
        print(json.dumps(step or written(chosen.write, sizes[0], chosen.folder)))
        return 0
    steep = []
    for name in chosen.stages.split(","):
        rows = []
        for n in sizes:
            found = in_parts(name, n, chosen.parts) if chosen.parts > 1 else measured(name, n, chosen.encoder)
            rows.append((n, found))
            if chosen.out:
                with chosen.out.open("a") as file:
                    file.write(json.dumps({"stage": name, "captions": n, **found}) + "\n")
            print(
                f"{name:<8}{n:>10,} captions {found['seconds']:9.2f} s of processor {found['wall']:9.2f} s wall"
                f" {found['peak_mb']:8,.0f} MB peak",
                flush=True,
            )
        if len(rows) > 1:
            (n1, a), (n2, b) = rows[-2:]
            power = exponent((n1, a["seconds"]), (n2, b["seconds"]))
            print(
                f"{name:<8}time n^{power:.2f}, memory n^{exponent((n1, a['peak_mb']), (n2, b['peak_mb'])):.2f}",
                flush=True,
            )
            steep += [name] if power > MOST else []
    print(f"steeper than n log n: {', '.join(steep) or 'none'}")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
