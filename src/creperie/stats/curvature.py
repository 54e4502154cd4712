"""Slopes and curvatures by differences, and a bounded Newton search that ends on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Objective = Callable[[np.ndarray], float]
#: The largest slope, in units of curvature, that counts as converged.
TOLERANCE = 2e-3


def slope(f: Objective, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The gradient by central differences."""
    found = np.zeros(len(x))
    for k in range(len(x)):
        move = np.zeros(len(x))
        move[k] = step[k]
        found[k] = (f(x + move) - f(x - move)) / (2 * step[k])
    return found


def curvature(f: Objective, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The Hessian by central differences, two evaluations a pair."""
    n = len(x)
    middle = f(x)
    moves = np.diag(step)
    up = np.array([f(x + moves[k]) for k in range(n)])
    down = np.array([f(x - moves[k]) for k in range(n)])
    found = np.diag((up - 2 * middle + down) / step**2)
    for i in range(n):
        for j in range(i):
            both = f(x + moves[i] + moves[j]) + f(x - moves[i] - moves[j])
            mixed = (both - up[i] - up[j] - down[i] - down[j] + 2 * middle) / (2 * step[i] * step[j])
            found[i, j] = found[j, i] = mixed
    return found


@dataclass(frozen=True)
class Optimum:
    """Where a search ended, with slope and curvature there; `free` are the parameters that are not at their bound."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray
    free: np.ndarray

    @property
    def scaled_gradient(self) -> float:
        """The step that Newton would still take, in standard errors; infinite where the curvature is not positive."""
        if not self.free.any():
            return 0.0
        inner = self.hessian[np.ix_(self.free, self.free)] / 2
        values, vectors = np.linalg.eigh(inner)
        if values[0] <= 0:
            return float("inf")
        left = vectors.T @ (self.gradient[self.free] / 2)
        return float(np.abs(left / np.sqrt(values)).max())

    @property
    def converged(self) -> bool:
        """No slope is left, and none leads away from a bound."""
        away = (self.gradient[~self.free] < -1e-3 * max(1.0, abs(self.value))).any()
        return self.scaled_gradient < TOLERANCE and not away


def newton(f: Objective, x: np.ndarray, step: np.ndarray, lower: np.ndarray, *, rounds: int = 12) -> Optimum:
    """Newton's method from near the optimum: one curvature serves several steps, and is taken anew at the end.

    Parameters may not fall below `lower`; those that want to are held there.
    """
    value = f(x)
    hessian = curvature(f, x, step)
    for _ in range(rounds):
        gradient = slope(f, x, step)
        free = ~((x <= lower + step) & (gradient > 0))
        here = Optimum(x, value, gradient, hessian, free)
        if here.scaled_gradient < TOLERANCE / 10:
            break
        moved, better = _descend(f, here, lower)
        if better > value - 1e-9 * max(1.0, abs(value)) * 1e-3:
            break
        x, value = moved, better
    hessian = curvature(f, x, step)
    gradient = slope(f, x, step)
    free = ~((x <= lower + step) & (gradient > 0))
    return Optimum(x, value, gradient, hessian, free)


def _descend(f: Objective, here: Optimum, lower: np.ndarray) -> tuple[np.ndarray, float]:
    """A Newton step over the free parameters, shortened until it helps."""
    inner = here.hessian[np.ix_(here.free, here.free)]
    values, vectors = np.linalg.eigh(inner)
    floor = max(1e-8, 1e-8 * float(np.abs(values).max(initial=0.0)))
    values = np.maximum(np.abs(values), floor)
    direction = np.zeros(len(here.x))
    direction[here.free] = -vectors @ ((vectors.T @ here.gradient[here.free]) / values)
    length = 1.0
    for _ in range(20):
        moved = np.maximum(here.x + length * direction, lower)
        value = f(moved)
        if value < here.value:
            return moved, value
        length /= 2
    return here.x, here.value
