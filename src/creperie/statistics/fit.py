"""The results of a fitted mixed model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Coefficient:
    """A fixed effect. `statistic` is t (linear model) or z (logistic model), and `df` is infinite for z."""

    name: str
    estimate: float
    se: float
    statistic: float
    df: float
    p: float
    low: float
    high: float


@dataclass(frozen=True)
class RandomIntercept:
    """A random intercept: the number of its groups, and its standard deviation over the groups. The intercept named
    "residual" is the residual; it has no groups.
    """

    name: str
    groups: int
    sd: float

    @property
    def singular(self) -> bool:
        return self.groups > 0 and self.sd == 0.0


@dataclass(frozen=True)
class Convergence:
    """Whether the search converged. `gradient` is the largest remaining component of the gradient, scaled by the
    curvature.
    """

    converged: bool
    gradient: float
    singular: tuple[str, ...] = ()
    evaluations: int = 0
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """A sentence that says whether the search converged."""
        state = "converged" if self.converged else "NOT CONVERGED"
        text = f"{state} (scaled gradient {self.gradient:.1e}, {self.evaluations} evaluations)"
        if self.singular:
            text += f"; singular: no variance between {', '.join(self.singular)}"
        return "; ".join([text, *self.notes])


@dataclass(frozen=True)
class Fit:
    """A fitted model. `criterion` is the REML criterion for a linear model fitted by REML, and −2 log-likelihood
    otherwise.
    """

    family: str
    method: str
    coefficients: tuple[Coefficient, ...]
    spreads: tuple[RandomIntercept, ...]
    criterion: float
    n: int
    p_values: str  #: the method of the p-values
    convergence: Convergence
    covariance: np.ndarray = field(repr=False, compare=False)

    def __getitem__(self, name: str) -> Coefficient:
        return {c.name: c for c in self.coefficients}[name]

    @property
    def parameters(self) -> int:
        """The number of estimated parameters: fixed effects and standard deviations."""
        return len(self.coefficients) + len(self.spreads)

    @property
    def log_likelihood(self) -> float:
        return -self.criterion / 2

    @property
    def aic(self) -> float:
        return 2.0 * self.parameters - 2.0 * self.log_likelihood

    def document(self) -> dict[str, Any]:
        plain = ("family", "method", "n", "criterion", "log_likelihood", "aic", "p_values")
        return {
            **{name: getattr(self, name) for name in plain},
            "coefficients": [asdict(c) for c in self.coefficients],
            "random": [asdict(s) for s in self.spreads],
            "convergence": {**asdict(self.convergence), "line": self.convergence.line},
        }


def tested(names: list[str], estimates: np.ndarray, covariance: np.ndarray, df: np.ndarray) -> tuple[Coefficient, ...]:
    """Return the coefficients with standard errors, test statistics, two-sided p-values and 95 % intervals."""
    from scipy import stats

    coefficients = []
    for k, name in enumerate(names):
        b, se = float(estimates[k]), math.sqrt(covariance[k, k])
        statistic = b / se if se else math.nan
        normal = math.isinf(df[k])
        p = 2 * (stats.norm.sf(abs(statistic)) if normal else stats.t.sf(abs(statistic), df[k]))
        reach = se * float(stats.norm.ppf(0.975) if normal else stats.t.ppf(0.975, df[k]))
        coefficients.append(Coefficient(name, b, se, statistic, float(df[k]), float(p), b - reach, b + reach))
    return tuple(coefficients)
