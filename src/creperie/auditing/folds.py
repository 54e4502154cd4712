"""Cross-validation folds that keep groups together."""

from __future__ import annotations

import numpy as np

from creperie.core import seeded
from creperie.metrics import codes_of

FOLDS = 5
#: With fewer items, a fifth is too much to leave out.
SMALL = 1000
FOLDS_WHEN_SMALL = 10
#: With at least this many training pairs, one inner fold is enough to choose settings.
ENOUGH = 1000


def grouped_folds(groups: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return a fold number for every row. Rows of one group are in the same fold, and the folds are about equally
    large.

    The result does not depend on the labels of the groups, only on the order of their first appearance. With fewer than
    k groups there are fewer folds.

    >>> grouped_folds(np.array([7, 7, 3, 5, 5, 5]), 2, seed=0).tolist()
    [1, 1, 1, 0, 0, 0]
    """
    # Groups are assigned from largest to smallest, each to the fold that is smallest so far; the seed decides the order
    # of equally large groups.
    group, _ = codes_of(groups)
    sizes = np.bincount(group)
    shuffled = seeded(seed).permutation(len(sizes))
    load = np.zeros(max(1, min(k, len(sizes))), dtype=np.int64)
    fold = np.zeros(len(sizes), np.int64)
    largest_first = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    for size in np.unique(sizes)[::-1].tolist():
        alike = largest_first[sizes[largest_first] == size]
        # The size of each fold before its first, second … of these groups: the smallest is always next.
        steps = np.arange(-(-len(alike) // len(load)) + (int(np.ptp(load)) // size) + 1)
        filled = load[:, None] + size * steps
        fold[alike] = np.argsort(filled.ravel(), kind="stable")[: len(alike)] // len(steps)
        load += size * np.bincount(fold[alike], minlength=len(load))
    return fold[group]


def fold_count(items: int) -> int:
    """Return the number of folds for this many items. Few items are divided into more folds, so that each model learns
    from a larger share of them.
    """
    return FOLDS_WHEN_SMALL if items < SMALL else FOLDS


def tuning_folds(inner: np.ndarray) -> list[int]:
    """Return the inner folds on which settings are tried: all folds if there are few pairs, else only the first."""
    folds = int(inner.max()) + 1 if len(inner) else 0
    return list(range(folds)) if len(inner) < ENOUGH else [0]
