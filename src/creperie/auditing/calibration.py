"""Margins as log-odds: how sure an attacker may be, and how much it gives away."""

from __future__ import annotations

import numpy as np

#: The smallest scale: margins keep their order even where they say nothing.
LEAST = 1e-3


def log_loss(margins: np.ndarray) -> float:
    """The mean of −ln P(true caption), where a margin is its log-odds."""
    return float(np.mean(np.logaddexp(0.0, -margins))) if len(margins) else float(np.log(2))


def fit_scale(margins: np.ndarray, *, signed: bool = False) -> float:
    """The factor that makes held-out margins calibrated: it minimises their log loss.

    The loss is convex in the factor; there is no intercept, since turning a pair round must turn its margin round.
    A signed scale may be negative: it says that the attacker is better believed the other way round.

    >>> bool(fit_scale(np.array([1.0, 1.0, 1.0, -1.0])) > 0.9)  # right three times in four: ln 3
    True
    """
    size = np.sqrt(np.mean(np.square(margins))) if len(margins) else 0.0
    if not size > 0:
        return 1.0
    x = np.asarray(margins, dtype=np.float64) / size
    a = 0.0
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(np.clip(a * x, -500, 500)))
        slope = -np.mean(x * p) + RIDGE * a
        curve = np.mean(x * x * p * (1.0 - p)) + RIDGE
        step = slope / curve
        a -= float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-9:
            break
    return float(a / size) if signed else float(max(a, LEAST) / size)


#: Keeps the scale finite where every held-out pair was answered right.
RIDGE = 1e-4


def bits(margins: np.ndarray) -> np.ndarray:
    """What each pair gives away, in bits: 1 + log2 P(true caption); negative where it was sure and wrong."""
    return np.asarray(1.0 - np.logaddexp(0.0, -np.asarray(margins, dtype=np.float64)) / np.log(2.0))
