"""Folds that keep together what belongs together."""

from __future__ import annotations

import numpy as np

from creperie.metrics import codes_of

FOLDS = 5
#: Below this many items a fifth is too much to leave out.
SMALL = 1000
FOLDS_WHEN_SMALL = 10
#: Training pairs from which a third of them is enough to choose settings on.
ENOUGH = 1000


def grouped_folds(groups: np.ndarray, k: int, seed: int) -> np.ndarray:
    """A fold number for every row; rows of one group share it. Folds are about equally large.

    Groups are dealt out largest first, equal ones in a seeded order, each to the fold that holds least. With fewer
    than k groups there are fewer folds. What the groups are called does not matter, only where they first appear.

    >>> grouped_folds(np.array([7, 7, 3, 5, 5, 5]), 2, seed=0).tolist()
    [1, 1, 1, 0, 0, 0]
    """
    group, _ = codes_of(groups)
    sizes = np.bincount(group)
    shuffled = np.random.Generator(np.random.PCG64(seed)).permutation(len(sizes))
    load = np.zeros(max(1, min(k, len(sizes))), dtype=np.int64)
    fold = np.zeros(len(sizes), dtype=np.int64)
    largest_first = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    for size in np.unique(sizes)[::-1].tolist():
        mine = largest_first[sizes[largest_first] == size]
        # What a fold holds when it gets its first, second … of these groups: the least is always next.
        steps = np.arange(-(-len(mine) // len(load)) + (int(np.ptp(load)) // size) + 1)
        held = load[:, None] + size * steps
        fold[mine] = np.argsort(held.ravel(), kind="stable")[: len(mine)] // len(steps)
        load += size * np.bincount(fold[mine], minlength=len(load))
    return fold[group]


def fold_count(items: int) -> int:
    """The number of folds for this number of items."""
    return FOLDS_WHEN_SMALL if items < SMALL else FOLDS


def tuning_folds(inner: np.ndarray) -> list[int]:
    """The inner folds that settings are tried on: all of them where pairs are few, one where one is enough."""
    folds = int(inner.max()) + 1 if len(inner) else 0
    return list(range(folds)) if len(inner) < ENOUGH else [0]
