"""SADE's filter: leave out items whose caption a language model prefers too clearly, image unseen.

The SyntaxBias score of an item is its likelihood gap, mean log P(true) − mean log P(false), divided by the largest
absolute gap: it lies within [-1, 1] and its zero is the gap's zero. Items above a threshold are left out.

The paper names neither its threshold nor its test. Here the threshold is given, or searched: the largest one at which
a two-sided one-sample t-test no longer finds the mean of the remaining scores different from zero at 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creperie.refining.cells import unit_gaps

TEST = "two-sided one-sample t-test of the mean against zero"
LEVEL = 0.05


@dataclass(frozen=True)
class Filtered:
    """Which items stay, the threshold used, and what the test says of those that stay."""

    keep: np.ndarray
    threshold: float
    mean: float
    p_value: float
    test: str = TEST


def syntaxbias_scores(gaps: np.ndarray) -> np.ndarray:
    """Gaps divided by the largest absolute one; zero stays zero.

    >>> syntaxbias_scores(np.array([2.0, -0.5, 0.0])).tolist()
    [1.0, -0.25, 0.0]
    """
    values = np.asarray(gaps, dtype=np.float64)
    largest = np.abs(values).max(initial=0.0)
    return values / largest if largest > 0 else values


def syntaxbias(gaps: np.ndarray, threshold: float | None = None) -> Filtered:
    """Leave out the items whose score lies above the threshold; without one, search it."""
    scores = unit_gaps(syntaxbias_scores(gaps))[:, 0]
    limit = _searched(scores) if threshold is None else threshold
    keep = scores <= limit
    return Filtered(
        keep, float(limit), float(scores[keep].mean()) if keep.any() else float("nan"), _p_value(scores[keep])
    )


def _searched(scores: np.ndarray) -> float:
    """The largest threshold at which the mean of what stays is not found different from zero.

    The mean falls with every item that leaves from the top, so the first cut whose test passes is the largest.
    """
    ordered = np.sort(scores)
    n = np.arange(1, len(ordered) + 1)
    total, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    for size in range(len(ordered), 0, -1):
        tied_above = size < len(ordered) and ordered[size] == ordered[size - 1]
        if tied_above:
            continue
        p = _p_from_moments(int(n[size - 1]), float(total[size - 1]), float(squares[size - 1]))
        if p >= LEVEL or total[size - 1] <= 0:
            return float(ordered[size - 1])
    return float(ordered[0]) if len(ordered) else 0.0


def _p_value(scores: np.ndarray) -> float:
    return _p_from_moments(len(scores), float(scores.sum()), float((scores**2).sum()))


def _p_from_moments(n: int, total: float, squares: float) -> float:
    from creperie.metrics import student_two_sided

    if n < 2:
        return 1.0
    mean = total / n
    variance = max(squares - n * mean * mean, 0.0) / (n - 1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    return student_two_sided(mean / (variance / n) ** 0.5, n - 1)
