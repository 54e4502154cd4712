"""Logistic mixed models with crossed random intercepts, fitted with Laplace's approximation.

The method is that of lme4. First the standard deviations are estimated, with the fixed effects and the group effects
found by penalised iteratively reweighted least squares. Then all parameters are estimated jointly. The standard errors
come from the Hessian of the criterion at the optimum, so they include the uncertainty of the standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creperie.core import DataError
from creperie.statistics.curvature import Optimum, curvature, newton, search
from creperie.statistics.fit import Convergence, Fit, RandomIntercept, tested
from creperie.statistics.groups import Factor, Groups

#: A standard deviation (of the logit) below this counts as zero.
SINGULAR = 1e-4
#: Maximum number of steps of the inner search; it converges quadratically, so needing more means no optimum exists.
INNER = 60
#: Gain at which the inner search ends: it converges quadratically, so finite differences cannot notice the rest.
ENOUGH = 1e-5
#: A logit beyond this is a probability of 0 or 1 as far as the data can tell.
EXTREME = 15.0
#: Least information about a direction of the fixed effects, so that steps stay finite if an effect is separated.
FLAT = 1e-4
#: Step of finite differences of the fixed effects, in standard errors.
STEP = 0.05


@dataclass(frozen=True, eq=False)
class _Mode:
    """The most likely group effects: those at which the penalised likelihood is highest. `u` is in units of their
    standard deviation.
    """

    u: np.ndarray
    beta: np.ndarray
    eta: np.ndarray
    penalised: float  #: −2 log-likelihood + |u|²
    factor: Factor

    @property
    def criterion(self) -> float:
        return self.penalised + self.factor.log_determinant


class _Laplace:
    """The criterion: −2 log-likelihood by Laplace's approximation. Each search starts where the previous one ended."""

    def __init__(self, y: np.ndarray, x: np.ndarray, groups: Groups) -> None:
        self.y, self.x, self.groups = y, x, groups
        self.u = np.zeros(groups.total)
        self.beta = np.zeros(x.shape[1])
        self.evaluations = 0

    # -- the inner search ------------------------------------------------------------------------------------------

    def mode(self, theta: np.ndarray, beta: np.ndarray | None = None, start: np.ndarray | None = None) -> _Mode:
        """Return the most likely group effects u at these standard deviations, found by Newton's method. Without
        `beta`, the fixed effects are optimised as well.

        The search begins at `start`; by default, at the result of the last search.
        """
        self.evaluations += 1
        spread = self.groups.spread(theta)
        u, b = self.u if start is None else start, self.beta if beta is None else beta
        eta, penalised = self._at(spread, u, b)
        for _ in range(INNER):
            du, db = self._newton_step(theta, spread, u, eta, beta is None)
            u, b, eta, better = self._shortened(spread, (u, b), (du, db), penalised)
            gain, penalised = penalised - better, better
            if gain < ENOUGH:
                break
        return _Mode(u, b, eta, penalised, self.groups.gram(_weights(_probability(eta))).factor(theta))

    def _at(self, spread: np.ndarray, u: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, float]:
        eta = self.x @ beta + self.groups.rows(spread * u)
        deviance = 2.0 * float((np.logaddexp(0.0, eta) - self.y * eta).sum())
        return eta, deviance + float(u @ u)

    def _newton_step(
        self, theta: np.ndarray, spread: np.ndarray, u: np.ndarray, eta: np.ndarray, free: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        mu = _probability(eta)
        weights = _weights(mu)
        factor = self.groups.gram(weights).factor(theta)
        right = spread * self.groups.sums(self.y - mu) - u
        if not free:
            return factor.solve(right), np.zeros(self.x.shape[1])
        weighted = self.x * weights[:, None]
        zx = spread[:, None] * self.groups.sums(weighted)
        solved = factor.solve(np.column_stack([zx, right]))
        inner = self.x.T @ weighted - zx.T @ solved[:, :-1]
        db = np.linalg.solve(inner, self.x.T @ (self.y - mu) - zx.T @ solved[:, -1])
        return solved[:, -1] - solved[:, :-1] @ db, db

    def _shortened(
        self,
        spread: np.ndarray,
        here: tuple[np.ndarray, np.ndarray],
        step: tuple[np.ndarray, np.ndarray],
        penalised: float,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Halve the step until it does not worsen the penalised criterion. Return the group effects, the fixed effects,
        the linear predictor and the criterion after the step.

        `here` and `step` are (group effects, fixed effects); `penalised` is the criterion before the step.
        """
        length = 1.0
        while True:
            u, b = here[0] + length * step[0], here[1] + length * step[1]
            eta, value = self._at(spread, u, b)
            if value <= penalised + 1e-10 * abs(penalised) or length < 1e-4:
                return u, b, eta, value
            length /= 2

    # -- the two criteria ------------------------------------------------------------------------------------------

    def profiled(self, theta: np.ndarray) -> float:
        """Return the criterion at these standard deviations, with optimal fixed effects."""
        mode = self.mode(np.abs(theta))
        self.u, self.beta = mode.u, mode.beta
        return mode.criterion

    def response(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two matrices. The first is R, where RR' is the covariance of the fixed effects β. Column k of the
        second is the change of the group effects if β changes by column k of R.
        """
        # In the coordinates of R, the fixed effects vary independently, in units of about one standard error.
        spread = self.groups.spread(theta)
        eta, _ = self._at(spread, self.u, self.beta)
        weights = _weights(_probability(eta))
        weighted = self.x * weights[:, None]
        zx = spread[:, None] * self.groups.sums(weighted)
        solved = self.groups.gram(weights).factor(theta).solve(zx)
        values, vectors = np.linalg.eigh(self.x.T @ weighted - zx.T @ solved)
        root = vectors / np.sqrt(np.maximum(values, FLAT))
        return root, -solved @ root


def fit_logistic(y: np.ndarray, x: np.ndarray, names: Sequence[str], groups: Groups) -> Fit:
    """Return the fit of logit P(y = 1) = Xβ + Σ intercepts. The columns of X must be linearly independent."""
    if y.min() == y.max():
        raise DataError(f"the outcome is always {y.min():g}", hint="choose rows or an outcome with both 0 and 1")
    scale = np.sqrt((x**2).mean(axis=0))
    laplace = _Laplace(np.asarray(y, float), x / scale, groups.sorted())
    try:
        return _searched(laplace, scale, list(names))
    except np.linalg.LinAlgError:
        raise DataError(
            "the logistic model has no optimum: some effects are collinear, or predict the outcome perfectly",
            hint="leave out a term, or use `family=` linear",
        ) from None


def _searched(laplace: _Laplace, scale: np.ndarray, names: list[str]) -> Fit:
    count = len(laplace.groups.names)
    theta = search(laplace.profiled, np.full(count, 0.7))
    theta = np.where(theta < 1e-3, 0.0, theta)
    steps = np.maximum(2e-3, 1e-2 * theta)
    guess = np.eye(count + laplace.x.shape[1]) * 2.0
    guess[:count, :count] = _positive(curvature(laplace.profiled, theta, steps))
    laplace.profiled(theta)
    centre, first = laplace.beta, laplace.u
    root, follow = laplace.response(theta)
    start = np.append(theta, np.zeros(len(centre)))
    reaction = np.column_stack([*(_theta_response(laplace, theta, k, steps[k]) for k in range(count)), follow])

    def joint(z: np.ndarray) -> float:
        near = first + reaction @ (z - start)
        return laplace.mode(np.abs(z[:count]), centre + root @ z[count:], near).criterion

    step = np.append(steps, np.full(len(centre), STEP))
    lower = np.append(np.zeros(count), np.full(len(centre), -np.inf))
    optimum = newton(joint, start, step, lower, guess)
    return _fit(laplace, optimum, (centre, root, scale), names)


def _theta_response(laplace: _Laplace, theta: np.ndarray, k: int, step: float) -> np.ndarray:
    """Return the derivative of the group effects with respect to the standard deviation `k`, for fixed β."""
    move = np.zeros(len(theta))
    move[k] = step
    return (laplace.mode(theta + move, laplace.beta).u - laplace.u) / step


def _positive(hessian: np.ndarray) -> np.ndarray:
    """Return a positive definite matrix: the Hessian with the absolute values of its eigenvalues, each at
    least 0.001.
    """
    values, vectors = np.linalg.eigh(hessian)
    return (vectors * np.maximum(np.abs(values), 1e-3)) @ vectors.T


def _fit(
    laplace: _Laplace, optimum: Optimum, frame: tuple[np.ndarray, np.ndarray, np.ndarray], names: list[str]
) -> Fit:
    centre, root, scale = frame
    groups = laplace.groups
    count = len(groups.names)
    theta = np.where(np.abs(optimum.x[:count]) < SINGULAR, 0.0, np.abs(optimum.x[:count]))
    beta = centre + root @ optimum.x[count:]
    inner, notes = _covariance(optimum, theta)
    covariance = root @ inner @ root.T / np.outer(scale, scale)
    mode = laplace.mode(theta, beta)
    extreme = int((np.abs(mode.eta) > EXTREME).sum())
    if extreme:
        notes.append(f"{extreme:,} rows have a fitted probability of 0 or 1: an effect may be infinite (separation)")
    spreads = tuple(RandomIntercept(n, s, float(t)) for n, s, t in zip(groups.names, groups.sizes, theta))
    singular = tuple(s.name for s in spreads if s.singular)
    convergence = Convergence(
        optimum.converged and not extreme, optimum.scaled_gradient, singular, laplace.evaluations, tuple(notes)
    )
    return Fit(
        "logistic",
        "Laplace",
        tested(names, beta / scale, covariance, np.full(len(beta), np.inf)),
        spreads,
        optimum.value,
        len(laplace.y),
        "normal (Wald z)",
        convergence,
        covariance,
    )


def _covariance(optimum: Optimum, theta: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the covariance of the fixed effects, computed from the joint Hessian, and a list of notes. Standard
    deviations of zero are treated as known.
    """
    used = np.append(theta > 0, np.ones(len(optimum.x) - len(theta), bool))
    hessian = optimum.hessian[np.ix_(used, used)]
    first = int((theta > 0).sum())
    if np.linalg.eigvalsh(hessian)[0] > 0:
        return 2 * np.linalg.inv(hessian)[first:, first:], []
    note = "the curvature is not positive: do not trust the standard errors"
    return 2 * np.linalg.inv(_positive(hessian[first:, first:])), [note]


def _probability(eta: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * eta))


def _weights(mu: np.ndarray) -> np.ndarray:
    """Return the weights of the rows, kept above zero. A row that is fitted perfectly would otherwise make the
    equations singular.
    """
    return np.maximum(mu * (1 - mu), 1e-9)
