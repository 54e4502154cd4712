"""A small part of a benchmark, for a quick look."""

from __future__ import annotations

import numpy as np

from creperie.bench import Benchmark


def limited(bench: Benchmark, limit: int, seed: int | None = None) -> Benchmark:
    """At most `limit` items of every subset, in their order: the first ones, or drawn by a seed."""
    if seed is None:
        return bench.head(limit)
    rng = np.random.Generator(np.random.PCG64(seed))
    codes = bench.column("subset").combine_chunks().dictionary_encode().indices.to_numpy()
    keep = np.zeros(len(bench), bool)
    for code in range(int(codes.max(initial=-1)) + 1):
        keep[rng.permutation(np.flatnonzero(codes == code))[:limit]] = True
    return bench.filter(keep, why=f"limit {limit} a subset, seed {seed}")
