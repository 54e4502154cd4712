"""Satterthwaite's degrees of freedom for the fixed effects of a linear mixed model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from creperie.statistics.curvature import curvature

#: (θ, σ) → the restricted criterion there, and the variances of the fixed effects
Pieces = Callable[[np.ndarray, float], tuple[float, np.ndarray]]


def degrees_of_freedom(pieces: Pieces, theta: np.ndarray, sigma: float) -> np.ndarray:
    """2 v² / (g' C g): v a fixed effect's variance, g its slope in (θ, σ), C the covariance of those.

    Directions in which the criterion does not curve upwards (a standard deviation at zero) say nothing about v and
    are left out.
    """
    here = np.append(theta, sigma)
    step = np.maximum(1e-3 * np.abs(here), 1e-4)

    def criterion(x: np.ndarray) -> float:
        return pieces(x[:-1], float(x[-1]))[0]

    hessian = curvature(criterion, here, step)
    values, vectors = np.linalg.eigh(hessian)
    good = values > 1e-8 * values.max()
    covariance = 2 * (vectors[:, good] / values[good]) @ vectors[:, good].T
    slopes = np.stack([_variance_slope(pieces, here, k, step[k]) for k in range(len(here))], axis=1)
    variances = pieces(theta, sigma)[1]
    spread = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    with np.errstate(divide="ignore"):
        return np.where(spread > 0, 2 * variances**2 / spread, np.inf)


def _variance_slope(pieces: Pieces, here: np.ndarray, k: int, step: float) -> np.ndarray:
    move = np.zeros(len(here))
    move[k] = step
    above, below = here + move, here - move
    high, low = pieces(above[:-1], float(above[-1]))[1], pieces(below[:-1], float(below[-1]))[1]
    return (high - low) / (2 * step)
