"""How the twin join grows: made-up captions from 10^5 to 10^7, time, memory and the exponent.

    python research/twins_scale.py [--sizes 100000,1000000,10000000] [--folder DIR]

Each size runs in a process of its own, so that its memory is its own. Captions are drawn as they are needed: a fifth
from a few templates, as captions of stock photographs are, the rest from a vocabulary with the frequencies of English.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from creperie.making.twins_join import TwinJoin

BATCH = 100_000
VOCABULARY = 30_000
SLOTS = (
    ("black", "white", "brown", "small", "big", "young", "old", "red", "blue", "green"),
    ("dog", "cat", "man", "woman", "boy", "girl", "horse", "bird", "child", "player", "car", "boat"),
    ("runs", "sits", "jumps", "plays", "stands", "walks", "sleeps", "swims"),
    ("on", "in", "near", "behind", "across"),
    ("grass", "snow", "beach", "street", "field", "water", "park", "floor", "sofa", "table", "road", "yard"),
)


def captions(n: int, seed: int = 0) -> Iterator[list[str]]:
    """Batches of made-up captions."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(VOCABULARY)])
    weights = 1 / np.arange(1, VOCABULARY + 1)
    weights /= weights.sum()
    for start in range(0, n, BATCH):
        size = min(BATCH, n - start)
        templates = size // 5
        slots = [np.array(slot)[rng.integers(0, len(slot), templates)] for slot in SLOTS]
        said = [f"A {a} {b} {c} {d} the {e} ." for a, b, c, d, e in zip(*slots)]
        lengths = rng.integers(6, 13, size - templates)
        drawn = words[rng.choice(VOCABULARY, lengths.sum(), p=weights)].tolist()
        ends = np.cumsum(lengths).tolist()
        said += [f"A {' '.join(drawn[e - k : e])} ." for k, e in zip(lengths.tolist(), ends)]
        yield said


def measure(n: int, folder: str | None) -> dict[str, float]:
    join = TwinJoin()
    start, making = time.process_time(), 0.0  # CPU time: other work on the machine does not count

    def timed() -> Iterator[list[str]]:
        nonlocal making
        batches = captions(n)
        while True:
            begun = time.process_time()
            batch = next(batches, None)
            making += time.process_time() - begun
            if batch is None:
                return
            yield batch

    pairs = sum(len(rows) for rows in join.pairs(timed(), folder))
    seconds = time.process_time() - start - making
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "captions": n,
        "cpu_seconds": round(seconds, 1),
        "peak_mb": round(peak),
        "pairs": pairs,
        "keys": join.counts.keys,
        "crowded": join.counts.crowded,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100000,1000000,10000000")
    parser.add_argument("--folder", help="where sorted runs are kept while joining")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.folder)))
        return
    rows = []
    for size in asked.sizes.split(","):
        command = [sys.executable, __file__, "--one", size, *(["--folder", asked.folder] if asked.folder else [])]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(json.dumps(rows[-1]), flush=True)
    if len(rows) > 1:
        first, last = rows[0], rows[-1]
        exponent = math.log(last["cpu_seconds"] / first["cpu_seconds"]) / math.log(last["captions"] / first["captions"])
        print(f"CPU seconds grow with captions to the power {exponent:.2f}")


if __name__ == "__main__":
    main()
