"""How fast the selections are, and how near to the bound: 10^4 and 10^6 items.

python benchmarks/refine_speed.py [--items 10000,1000000] [--attackers 2,4]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from creperie.refining.cells import grid_selection
from creperie.refining.optimal import optimal


def gaps(items: int, attackers: int, seed: int = 0) -> np.ndarray:
    """Gaps of attackers that share a little of what they see and all prefer the true caption."""
    rng = np.random.Generator(np.random.PCG64(seed))
    shared = rng.normal(size=(items, 1))
    return np.clip(0.15 + 0.25 * rng.normal(size=(items, attackers)) + 0.15 * shared, -1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", default="10000,1000000")
    parser.add_argument("--attackers", default="2,4")
    parser.add_argument("--time-limit", type=float, default=30.0)
    chosen = parser.parse_args()
    print(
        f"{'method':8} {'items':>9} {'attackers':>9} {'kept':>8} {'of bound':>8} {'bins off':>8} {'proven':>6} {'s':>6}"
    )
    for n in map(int, chosen.items.split(",")):
        for k in map(int, chosen.attackers.split(",")):
            table = gaps(n, k)
            start = time.perf_counter()
            keep = grid_selection(table)
            _line("grid", n, k, int(keep.sum()), "", "", "", time.perf_counter() - start)
            start = time.perf_counter()
            found = optimal(table, time_limit=chosen.time_limit)
            took = time.perf_counter() - start
            kept = table[found.keep]
            assert ((kept > 0).sum(axis=0) == (kept < 0).sum(axis=0)).all()
            share = f"{found.keep.sum() / found.bound:.4f}"
            _line("optimal", n, k, int(found.keep.sum()), share, str(found.off), str(found.proven), took)


def _line(method: str, n: int, k: int, kept: int, share: str, off: str, proven: str, took: float) -> None:
    print(f"{method:8} {n:9,} {k:9} {kept:8,} {share:>8} {off:>8} {proven:>6} {took:6.2f}", flush=True)


if __name__ == "__main__":
    main()
