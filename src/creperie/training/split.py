"""Train and test from one benchmark: a share of every subset, and no image on both sides."""

from __future__ import annotations

import numpy as np

from creperie.bench import Benchmark
from creperie.core import UsageError
from creperie.metrics import clusters_of


def split_by_image(bench: Benchmark, share: float = 0.4, seed: int = 0) -> tuple[Benchmark, Benchmark]:
    """Two benchmarks: about `share` of the items of every subset, and the others. Items that share an image, directly
    or through other items, stay together, across subsets too.

    Groups are dealt out in random order, the largest first, each to the side that lacks more of the group's subsets.
    """
    if not 0 < share < 1:
        raise UsageError(f"a share of {share}", hint="use a number between 0 and 1, such as 0.4")
    starts, images = bench.ragged("images")
    clusters = clusters_of(np.diff(starts), images.to_pylist())
    subsets, names = _codes(bench.column("subset").to_pylist())
    groups = _groups(clusters)
    counts = np.stack([np.bincount(subsets[rows], minlength=len(names)) for rows in groups])
    wanted = share * counts.sum(axis=0)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(groups))
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    taken = np.zeros(len(names))
    mask = np.zeros(len(bench), dtype=bool)
    for k in order.tolist():
        own = counts[k] > 0
        # taken if that brings the subsets of the group nearer to what they should have
        with_it = np.abs(taken + counts[k] - wanted)[own].sum()
        if with_it < np.abs(taken - wanted)[own].sum():
            taken += counts[k]
            mask[groups[k]] = True
    why = f"share {share:g} of every subset, grouped by image, seed {seed}"
    return bench.filter(mask, why=f"train: {why}"), bench.filter(~mask, why=f"test: the rest of {why}")


def _codes(labels: list[str]) -> tuple[np.ndarray, list[str]]:
    names = list(dict.fromkeys(labels))
    number = {name: i for i, name in enumerate(names)}
    return np.asarray([number[label] for label in labels], dtype=np.int64), names


def _groups(clusters: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(clusters, kind="stable")
    _, begins = np.unique(clusters[order], return_index=True)
    return np.split(order, begins[1:])
