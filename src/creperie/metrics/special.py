"""The few distribution functions that the statistics need. scipy is imported only when one of its
functions is needed.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution at the probability p.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(p) if 0 < p < 1 else math.copysign(math.inf, p - 0.5)


def fair_coin_tail(k: int, n: int) -> float:
    """Return the probability of at most k heads in n throws of a fair coin.

    >>> fair_coin_tail(1, 4)
    0.3125
    """
    from scipy.special import bdtr

    return float(bdtr(min(k, n), n, 0.5)) if k >= 0 else 0.0


def student_two_sided(t: float, df: float) -> float:
    """Return P(|T| ≥ |t|) for a variable T with Student's distribution and `df` degrees of freedom."""
    from scipy.special import stdtr

    return 2 * float(stdtr(df, -abs(t)))


@lru_cache(maxsize=4096)
def student_quantile(p: float, df: float) -> float:
    """Return the quantile of Student's distribution at the probability p.

    >>> round(student_quantile(0.975, 7), 4), round(student_quantile(0.975, 1e6), 4)
    (2.3646, 1.96)
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def sign_flip_p(values: np.ndarray) -> float:
    """Return the two-sided p-value of the sum of the values. Under the null hypothesis, each value is equally likely to
    be positive or negative.

    The p-value is exact if all values are multiples of a common step, such as 1/2 for outcomes in which a tie counts as
    half a hit. Otherwise it is approximate.

    >>> sign_flip_p(np.array([1.0, 2.0, 1.0]))  # all for one side: 2 of 8
    0.25
    """
    # The distribution of the sum under random signs is computed, not sampled: the characteristic functions of the
    # values, cos(v·t), are multiplied and the product is inverted by a Fourier transform. Without a common step, up to
    # 200 values are rounded to multiples of 2**-15 of their total, and the sum of more than 200 values is taken as
    # normal.
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
    """Return the largest of 1, 1/2, 1/4, 1/6, 1/12 and 1/60 that divides all values. If none does, return 2**-15
    times the sum of the values; with more than 200 values, return 0.
    """
    for parts in (1, 2, 4, 6, 12, 60):
        if np.allclose(sizes * parts, np.rint(sizes * parts), rtol=0, atol=1e-9):
            return 1 / parts
    return float(sizes.sum()) / 2**15 if len(sizes) <= 200 else 0.0
