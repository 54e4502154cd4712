"""VISLA's reordering: P1 is the true caption that is nearer to the false one by character edit distance."""

from __future__ import annotations

import numpy as np

from creperie.bench import Benchmark
from creperie.lang import character_similarity
from creperie.metrics import Layout, second_is_nearer


def swaps(bench: Benchmark, layout: Layout) -> np.ndarray:
    """Of which items the first two true captions change places; with several false ones, the nearest counts."""
    starts, flat = bench.ragged("captions")
    swap = np.zeros(len(layout), bool)
    for group in layout.groups:
        positive, negative = np.flatnonzero(group.match.any(axis=0)), np.flatnonzero(~group.match.any(axis=0))
        if len(positive) < 2 or not len(negative):
            continue
        first, second = (
            np.min([_distances(flat, starts[group.items] + p, starts[group.items] + n) for n in negative], axis=0)
            for p in positive[:2]
        )
        swap[group.items] = second_is_nearer(first, second)
    return swap


def _distances(flat: object, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Levenshtein distances between captions by their place, from the similarity, which is 1 − distance / longer."""
    a: list[str] = flat.take(left).to_pylist()  # type: ignore[attr-defined]
    b: list[str] = flat.take(right).to_pylist()  # type: ignore[attr-defined]
    longer = np.maximum([len(t) for t in a], [len(t) for t in b])
    return np.rint((1.0 - character_similarity(a, b)) * longer)
