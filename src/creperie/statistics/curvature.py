"""Gradients and Hessians computed by finite differences, and Newton's method for parameters with lower bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Objective = Callable[[np.ndarray], float]
#: The largest scaled gradient that counts as converged.
TOLERANCE = 2e-3
#: Maximum number of steps of one search.
ROUNDS = 12


def slope(f: Callable[[np.ndarray], Any], x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the gradient of a function by central differences. If the function returns several values, the result has
    one row per parameter.
    """
    return np.array([(f(x + move) - f(x - move)) / (2 * size) for move, size in zip(np.diag(step), step)])


def curvature(f: Objective, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the Hessian of a function at `x`, computed by central differences."""
    # `f` is called twice for each parameter and for each pair of parameters, and once at `x`.
    n = len(x)
    middle = f(x)
    moves = np.diag(step)
    up = np.array([f(x + move) for move in moves])
    down = np.array([f(x - move) for move in moves])
    hessian = np.diag((up - 2 * middle + down) / step**2)
    for i in range(n):
        for j in range(i):
            both = f(x + moves[i] + moves[j]) + f(x - moves[i] - moves[j])
            mixed = (both - up[i] - up[j] - down[i] - down[j] + 2 * middle) / (2 * step[i] * step[j])
            hessian[i, j] = hessian[j, i] = mixed
    return hessian


@dataclass(frozen=True)
class Optimum:
    """The point where a search ended, with gradient and Hessian. `free` marks the parameters that are not at a
    bound.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray
    free: np.ndarray

    @property
    def scaled_gradient(self) -> float:
        """The largest component of the next Newton step, in standard errors. It is infinite if the Hessian is not
        positive definite.
        """
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
        """True if the gradient is zero in the free parameters and the other parameters would stay at their bounds."""
        away = (self.gradient[~self.free] < -1e-3 * max(1.0, abs(self.value))).any()
        return self.scaled_gradient < TOLERANCE and not away


def search(f: Objective, start: np.ndarray) -> np.ndarray:
    """Return the non-negative standard deviations at which the function is smallest, to low precision."""
    # The function does not depend on the sign of a deviation. At a deviation of zero its slope is therefore zero, so a
    # search stays there even if that is no minimum. Values above zero are then tried.
    from scipy.optimize import minimize

    x = np.asarray(start, float)
    for _ in range(3):
        options = {"maxiter": 100, "eps": 1e-5, "ftol": 1e-10}
        minimum = minimize(f, x, method="L-BFGS-B", bounds=[(0.0, 50.0)] * len(x), options=options)
        x = np.asarray(minimum.x)
        raised = _raised(f, x, float(minimum.fun))
        if raised is None:
            break
        x = raised
    return x


def _raised(f: Objective, x: np.ndarray, value: float) -> np.ndarray | None:
    """Try larger values for each standard deviation that is nearly zero. Return a point where the function is
    smaller; None if the search finds no such point.
    """
    for k in np.flatnonzero(x < 1e-3):
        raised = [np.where(np.arange(len(x)) == k, height, x) for height in (0.02, 0.06, 0.15, 0.3)]
        best, place = min((f(candidate), n) for n, candidate in enumerate(raised))
        if best < value - 1e-7 * max(1.0, abs(value)) * 1e-2:
            return raised[place]
    return None


def newton(
    f: Objective, x: np.ndarray, step: np.ndarray, lower: np.ndarray, guess: np.ndarray | None = None
) -> Optimum:
    """Minimise a function by Newton's method from a point near the minimum. Return the minimum, with the Hessian there.

    `step` are the widths of finite differences, and `guess` is an initial Hessian. A parameter that would fall below
    its value in `lower` is held at that value.
    """
    # The Hessian is updated by BFGS, and computed afresh if the steps do not converge.
    hessian = curvature(f, x, step) if guess is None else guess
    for _ in range(3):
        x = _walk(f, x, step, lower, hessian)
        hessian = curvature(f, x, step)
        here = _optimum_at(f, x, step, lower, hessian)
        if here.scaled_gradient < TOLERANCE / 2:
            break
    return here


def _optimum_at(f: Objective, x: np.ndarray, step: np.ndarray, lower: np.ndarray, hessian: np.ndarray) -> Optimum:
    gradient = slope(f, x, step)
    return Optimum(x, f(x), gradient, hessian, ~((x <= lower + step) & (gradient > 0)))


def _walk(f: Objective, x: np.ndarray, step: np.ndarray, lower: np.ndarray, hessian: np.ndarray) -> np.ndarray:
    """Return the point reached by Newton steps. They end when the scaled gradient is tiny or no step helps."""
    here = _optimum_at(f, x, step, lower, hessian)
    for _ in range(ROUNDS):
        if here.scaled_gradient < TOLERANCE / 50:
            break
        moved, value = _descend(f, here, lower)
        if value > here.value - 1e-12 * max(1.0, abs(here.value)):
            break
        there = _optimum_at(f, moved, step, lower, here.hessian)
        here = replace(there, hessian=_updated_hessian(here, there))
    return here.x


def _updated_hessian(here: Optimum, there: Optimum) -> np.ndarray:
    """Return the Hessian after a step, updated by BFGS. It is unchanged if the step does not allow an update."""
    moved, turned = there.x - here.x, there.gradient - here.gradient
    along = float(moved @ turned)
    bent = here.hessian @ moved
    if along <= 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(turned)) or float(moved @ bent) <= 0:
        return here.hessian
    return here.hessian + np.outer(turned, turned) / along - np.outer(bent, bent) / float(moved @ bent)


def _descend(f: Objective, here: Optimum, lower: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the point after a Newton step over the free parameters, and the value there. The step is halved until it
    lowers the value.
    """
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
