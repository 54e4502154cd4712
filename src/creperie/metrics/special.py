"""The few distribution functions that the statistics need, so that scoring needs no scipy."""

from __future__ import annotations

import math

import numpy as np


def normal_quantile(p: float) -> float:
    """The standard normal quantile.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from statistics import NormalDist

    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def normal_cdf(x: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def chi2_tail(x: float) -> float:
    """P(X ≥ x) of a chi-squared variable with one degree of freedom."""
    return math.erfc(math.sqrt(x / 2))


def fair_coin_tail(k: int, n: int) -> float:
    """P(at most k heads in n throws of a fair coin).

    >>> fair_coin_tail(1, 4)
    0.3125
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if n <= 1000:  # exact in whole numbers
        return sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    steps = np.log(np.arange(n, n - k, -1.0)) - np.log(np.arange(1.0, k + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    top = logs.max()
    return math.exp(top + math.log(np.exp(logs - top).sum()) - n * math.log(2))


def student_two_sided(t: float, df: float) -> float:
    """P(|T| ≥ |t|) of Student's distribution."""
    if math.isinf(t):
        return 0.0
    return beta_cdf(df / (df + t * t), df / 2, 0.5)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function.

    >>> round(beta_cdf(0.5, 2, 3), 6)
    0.6875
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - beta_cdf(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
