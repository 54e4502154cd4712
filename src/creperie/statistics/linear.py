"""Linear mixed models with crossed random intercepts, fitted by maximum likelihood or restricted maximum likelihood
(REML).

The criterion is that of lme4 (Bates et al. 2015). Given the relative standard deviations θ, penalised least squares
yields the fixed effects and the residual variance. The profiled criterion is therefore a function of θ alone. It needs
only sums of products such as X'X, so a step takes as long with a thousand rows as with a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.core import UsageError
from creperie.statistics.curvature import Optimum, curvature, newton, search, slope
from creperie.statistics.fit import Convergence, Fit, RandomIntercept, tested
from creperie.statistics.groups import Groups

#: A standard deviation below this share of the residual's counts as zero: lme4's bound for a singular fit.
SINGULAR = 1e-4


@dataclass(frozen=True, eq=False)
class _Point:
    """The fitted model at one value of θ: log-determinant, Cholesky factor, fixed effects and residual
    sum of squares.
    """

    log_determinant: float
    rx: np.ndarray  #: upper Cholesky factor of X'V⁻¹X, up to the residual variance
    beta: np.ndarray
    rss: float  #: penalised residual sum of squares

    @cached_property
    def rx_log(self) -> float:
        return 2.0 * float(np.log(np.diag(self.rx)).sum())

    @property
    def unscaled(self) -> np.ndarray:
        inverse = np.linalg.inv(self.rx)
        return inverse @ inverse.T


def fit_linear(y: np.ndarray, x: np.ndarray, names: Sequence[str], groups: Groups, *, reml: bool = True) -> Fit:
    """Return the fit of y = Xβ + Σ intercepts + ε. The columns of X must be linearly independent."""
    n, p = x.shape
    if n <= p + len(groups.names):
        raise UsageError(
            f"{n} rows are too few for {p} fixed and {len(groups.names)} random effects",
            hint="leave effects out, or give more runs or items",
        )
    criterion = _Criterion(np.asarray(y, float), x, groups.sorted(), reml)
    start = search(criterion, np.full(len(groups.names), 0.5))
    optimum = newton(criterion, start, np.maximum(1e-4, 1e-3 * np.abs(start)), np.zeros(len(start)))
    return _fit(criterion, _at_zero(criterion, optimum), list(names))


class _Criterion:
    """The profiled criterion, −2 log-likelihood (restricted or not), with the sums of products that it needs: products
    of the columns of the design matrix X, the outcomes y and the group indicators Z. The number of evaluations is
    counted.
    """

    # The columns of X are scaled to length 1, and y is replaced by its residuals after regression on X.

    def __init__(self, y: np.ndarray, x: np.ndarray, groups: Groups, reml: bool) -> None:
        self.groups, self.gram, self.n, self.reml, self.evaluations = groups, groups.gram(), len(y), reml, 0
        self.scale = np.sqrt((x**2).sum(axis=0))
        scaled = x / self.scale
        #: least-squares coefficients, in the scaled columns: added back at the end
        self.first = np.linalg.lstsq(scaled, y, rcond=None)[0]
        left = y - scaled @ self.first
        if not np.sum(left**2) > 1e-20 * max(1.0, float(np.sum(y**2))):
            raise UsageError("the fixed effects explain the outcome exactly", hint="leave out a fixed effect")
        self.xx, self.xy, self.yy = scaled.T @ scaled, scaled.T @ left, float(left @ left)
        self.zx, self.zy = groups.sums(scaled), groups.sums(left)

    @property
    def rows(self) -> int:
        """The degrees of freedom of the residual variance."""
        return self.n - len(self.xx) if self.reml else self.n

    def at(self, theta: np.ndarray) -> _Point:
        factor, spread = self.gram.factor(theta), self.groups.spread(theta)
        zx, zy = self.zx * spread[:, None], self.zy * spread
        solved = factor.solve(np.column_stack([zx, zy]))
        rx = np.linalg.cholesky(self.xx - zx.T @ solved[:, :-1]).T
        right = self.xy - zx.T @ solved[:, -1]
        half = np.linalg.solve(rx.T, right)
        rss = self.yy - float(zy @ solved[:, -1]) - float(half @ half)
        return _Point(factor.log_determinant, rx, np.linalg.solve(rx, half), rss)

    def __call__(self, theta: np.ndarray) -> float:
        self.evaluations += 1
        point = self.at(np.abs(theta))  # the criterion is even in θ, so finite differences may step below zero
        criterion = point.log_determinant + self.rows * (1.0 + np.log(2 * np.pi * point.rss / self.rows))
        if self.reml:
            criterion += point.rx_log + 2.0 * float(np.log(self.scale).sum())
        return float(criterion)


def _at_zero(criterion: _Criterion, optimum: Optimum) -> Optimum:
    """Return the optimum with negligible standard deviations set to zero, unless that worsens the criterion."""
    theta = np.where(optimum.x < 1e-2, 0.0, optimum.x)
    if np.array_equal(theta, optimum.x):
        return optimum
    small = np.where(optimum.x < SINGULAR, 0.0, optimum.x)
    for candidate in (theta, small):
        value = criterion(candidate)
        if value <= optimum.value + 1e-7 * max(1.0, abs(optimum.value)) * 1e-2:
            free = optimum.free & (candidate > 0)
            return Optimum(candidate, value, optimum.gradient, optimum.hessian, free)
    return optimum


def _fit(m: _Criterion, optimum: Optimum, names: list[str]) -> Fit:
    theta, reml = optimum.x, m.reml
    point = m.at(theta)
    sigma = float(np.sqrt(point.rss / m.rows))
    covariance = sigma**2 * point.unscaled / np.outer(m.scale, m.scale)
    beta = (point.beta + m.first) / m.scale
    df = degrees_of_freedom(m, theta, sigma) if reml else np.full(len(beta), np.inf)
    spreads = [
        RandomIntercept(name, size, float(t * sigma))
        for name, size, t in zip(m.groups.names, m.groups.sizes, theta.tolist())
    ]
    singular = tuple(s.name for s, t in zip(spreads, theta) if t < SINGULAR)
    convergence = Convergence(optimum.converged, optimum.scaled_gradient, singular, m.evaluations)
    return Fit(
        "linear",
        "REML" if reml else "ML",
        tested(names, beta, covariance, df),
        (*spreads, RandomIntercept("residual", 0, sigma)),
        optimum.value,
        m.n,
        "t with Satterthwaite's degrees of freedom" if reml else "normal (Wald)",
        convergence,
        covariance,
    )


def _restricted(m: _Criterion, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the restricted criterion at x = (θ, σ), and the variances of the fixed effects there."""
    point, sigma = m.at(np.abs(x[:-1])), float(x[-1])
    value = point.log_determinant + (m.n - len(m.xx)) * np.log(2 * np.pi * sigma**2) + point.rss / sigma**2
    return float(value + point.rx_log), sigma**2 * np.diag(point.unscaled)


def degrees_of_freedom(m: _Criterion, theta: np.ndarray, sigma: float) -> np.ndarray:
    """Return Satterthwaite's degrees of freedom of every fixed effect: 2 v² / (g' C g). Here v is the variance of the
    fixed effect, g the gradient of v in (θ, σ), and C the covariance of (θ, σ).
    """
    # Directions in which the criterion does not curve upwards (a standard deviation at zero) carry no information about
    # v and are left out.
    here = np.append(theta, sigma)
    step = np.maximum(1e-3 * np.abs(here), 1e-4)
    hessian = curvature(lambda x: _restricted(m, x)[0], here, step)
    values, vectors = np.linalg.eigh(hessian)
    good = values > 1e-8 * values.max()
    covariance = 2 * (vectors[:, good] / values[good]) @ vectors[:, good].T
    slopes = slope(lambda x: _restricted(m, x)[1], here, step).T
    variances = _restricted(m, here)[1]
    spread = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    with np.errstate(divide="ignore"):
        return np.where(spread > 0, 2 * variances**2 / spread, np.inf)
