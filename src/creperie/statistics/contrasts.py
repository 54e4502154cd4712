"""Contrasts: how the levels of a factor become columns.

A contrast is said by what its coefficients mean, as weights on the levels' means; the columns follow by inversion.

- `treatment`: each level against the first; the intercept is the first level's mean.
- `centred`: each level against the first; the intercept is the mean of all levels.
- `rest`: each level but the first against the mean of all the others (two levels: second minus first). The note to
  the results of Hit or Be Hit reads its coefficients so.
- `orthogonal`: each level against the mean of those before it (Helmert); the columns are orthogonal to each other.
- `sum`: each level but the first against the mean of all levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from creperie.core import UsageError, unknown


def _treatment(k: int) -> np.ndarray:
    return np.column_stack([-np.ones(k - 1), np.eye(k - 1)])


def _rest(k: int) -> np.ndarray:
    weights = np.full((k - 1, k), -1.0 / (k - 1))
    weights[np.arange(k - 1), np.arange(1, k)] = 1.0
    return weights


def _orthogonal(k: int) -> np.ndarray:
    weights = np.zeros((k - 1, k))
    for j in range(1, k):
        weights[j - 1, :j], weights[j - 1, j] = -1.0 / j, 1.0
    return weights


def _sum(k: int) -> np.ndarray:
    return np.eye(k)[1:] - 1.0 / k


_WEIGHTS: Mapping[str, Callable[[int], np.ndarray]] = {
    "treatment": _treatment,
    "centred": _treatment,
    "rest": _rest,
    "orthogonal": _orthogonal,
    "sum": _sum,
}
NAMES = tuple(_WEIGHTS)


def columns_of(contrast: str, levels: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The columns (levels × levels − 1) of a named contrast, and what to call them.

    >>> columns_of("rest", ["no", "yes"])[0].tolist()
    [[-0.5], [0.5]]
    >>> columns_of("orthogonal", ["caption", "equal", "foil"])[0].round(3).tolist()
    [[-0.5, -0.333], [0.5, -0.333], [0.0, 0.667]]
    """
    if contrast not in _WEIGHTS:
        raise unknown("contrast", contrast, _WEIGHTS)
    k = len(levels)
    if k < 2:
        raise UsageError(f"a factor of {k} level has no contrast")
    middle = np.eye(1, k) if contrast == "treatment" else np.full((1, k), 1.0 / k)
    means = np.concatenate([middle, _WEIGHTS[contrast](k)])
    return np.linalg.inv(means)[:, 1:].round(12), tuple(levels[1:])
