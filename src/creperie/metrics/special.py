"""The few distribution functions that the statistics need, so that scoring does not need scipy."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def normal_quantile(p: float) -> float:
    """Return the standard normal quantile.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from statistics import NormalDist

    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def chi2_tail(x: float) -> float:
    """Return P(X ≥ x) of a chi-squared variable with one degree of freedom."""
    return math.erfc(math.sqrt(x / 2))


def fair_coin_tail(k: int, n: int) -> float:
    """Return P(at most k heads in n throws of a fair coin).

    >>> fair_coin_tail(1, 4)
    0.3125
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if n <= 1000:  # exact in whole numbers
        return sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return beta_cdf(0.5, n - k, k + 1)


def student_two_sided(t: float, df: float) -> float:
    """Return P(|T| ≥ |t|) of Student's distribution."""
    if math.isinf(t):
        return 0.0
    return beta_cdf(df / (df + t * t), df / 2, 0.5)


@lru_cache(maxsize=4096)
def student_quantile(p: float, df: float) -> float:
    """Return the quantile of Student's distribution, for p above one half.

    >>> round(student_quantile(0.975, 7), 4), round(student_quantile(0.975, 1e6), 4)
    (2.3646, 1.96)
    """
    # Newton's method from below: the tail is convex there, so no step overshoots.
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    t, step = normal_quantile(p), 1.0
    while step > 1e-12 * t:
        step = (student_two_sided(t, df) / 2 - (1 - p)) / (scale * (1 + t * t / df) ** (-(df + 1) / 2))
        t += max(step, 0.0)
    return float(t)  # not a NumPy number, which the cache would pass on to later callers


def sign_flip_p(values: np.ndarray) -> float:
    """Return the two-sided p-value of the sum of the values under random signs.

    The distribution of the sum under random signs is computed, not sampled: it is the product of the values'
    characteristic functions, cos(v·t), inverted by a Fourier transform. The p-value is exact if all values are
    multiples of a common step (differences of hits, ties as halves); otherwise up to 200 values are rounded to a
    2**15th of their total, and the sum of more values is taken as normal.

    >>> sign_flip_p(np.array([1.0, 2.0, 1.0]))  # all for one side: 2 of 8
    0.25
    """
    signed = np.asarray(values, np.float64)
    signed = signed[np.abs(signed) > 1e-12]
    if not len(signed):
        return 1.0
    far = abs(float(signed.sum())) / math.sqrt(float((signed**2).sum()))
    step = _common_step(np.abs(signed))
    if far > 7 or step == 0:  # so far out, a transform in float64 cannot distinguish the tail from zero
        return math.erfc(far / math.sqrt(2))
    whole = np.rint(signed / step).astype(np.int64)
    steps, counts = np.unique(np.abs(whole), return_counts=True)
    reach = int((steps * counts).sum())
    length = 1 << int(2 * reach + 1).bit_length()
    turns, cosines = np.arange(length // 2 + 1), np.cos(2 * np.pi / length * np.arange(length))
    wave = np.ones(len(turns))
    for v, n in zip(steps.tolist(), counts.tolist()):
        wave *= cosines[v * turns & length - 1] ** n
    seen = abs(int(whole.sum()))
    tail = 2 * float(np.fft.irfft(wave, length)[seen : reach + 1].sum()) if seen else 1.0
    return min(1.0, max(tail, 2.0 ** max(1 - len(signed), -1000)))


def _common_step(sizes: np.ndarray) -> float:
    """Return the largest simple fraction that divides all values; else a 2**15th of their sum, or 0 for over 200."""
    for parts in (1, 2, 4, 6, 12, 60):
        if np.allclose(sizes * parts, np.rint(sizes * parts), rtol=0, atol=1e-9):
            return 1 / parts
    return float(sizes.sum()) / 2**15 if len(sizes) <= 200 else 0.0


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function: the distribution function of Beta(a, b) at x.

    >>> round(beta_cdf(0.5, 2, 3), 6)
    0.6875
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast on the other side
        return 1 - beta_cdf(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
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
