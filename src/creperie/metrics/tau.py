"""Kendall's rank correlation with ties, τ_b and τ_c."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from creperie.core import UsageError, unknown

VARIANTS = ("b", "c")
SMALL = 32  #: runs that are sorted by comparing all pairs


def kendall(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, variant: str = "b") -> float:
    """How far two lists order the same things alike. τ_b divides by the pairs that are not tied in either list, τ_c by
    the pairs there could be with as many different values; pairs with a NaN are left out.

    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 4), round(kendall([1, 2, 3, 4], [0, 0, 1, 1], "c"), 4)
    (0.6667, 1.0)
    """
    if variant not in VARIANTS:
        raise unknown("variant of Kendall's tau", variant, VARIANTS)
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise UsageError(f"{a.size} values against {b.size}")
    both = ~(np.isnan(a) | np.isnan(b))
    ranks = [np.unique(values[both], return_inverse=True)[1] for values in (a, b)]
    return _tau(ranks[0], ranks[1], variant)


def _tau(a: np.ndarray, b: np.ndarray, variant: str) -> float:
    """Of values that are given by their rank among the different ones."""
    n = len(a)
    if n < 2 or a.max() == 0 or b.max() == 0:
        return math.nan
    order = np.lexsort((b, a))
    _, discordant = _sorted_runs(b[order])
    pairs, tied_a, tied_b = n * (n - 1) // 2, _tied(a), _tied(b)
    excess = pairs - tied_a - tied_b + _tied(a * (int(b.max()) + 1) + b) - 2 * discordant
    if variant == "b":
        value = excess / math.sqrt(pairs - tied_a) / math.sqrt(pairs - tied_b)
        return float(min(1.0, max(-1.0, value)))  # rounding may lead past the end
    m = min(int(a.max()), int(b.max())) + 1
    return float(2 * excess / (n * n * (m - 1) / m))


def _tied(codes: np.ndarray) -> int:
    """Pairs of equal values."""
    counts = np.unique(codes, return_counts=True)[1].astype(object)
    return int((counts * (counts - 1) // 2).sum())


def _sorted_runs(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The values sorted, and how many pairs stood in the wrong order: a merge sort that counts."""
    n = len(values)
    if n <= SMALL:
        later = np.triu(np.ones((n, n), bool), 1)
        return np.sort(values), int((later & (values[:, None] > values[None, :])).sum())
    left, wrong_left = _sorted_runs(values[: n // 2])
    right, wrong_right = _sorted_runs(values[n // 2 :])
    across = n // 2 * len(right) - int(np.searchsorted(left, right, side="right").sum())
    return np.sort(np.concatenate([left, right]), kind="stable"), wrong_left + wrong_right + across
