"""Which shares are likely, given right answers in clusters: a beta-binomial model, profiled over the correlation.

Items that share an image are right or wrong together, by an intra-class correlation that a few clusters hardly show:
where one cluster in twelve is poor, fifteen clusters often hold no poor one, and nothing in their variance says so. The
likelihood knows that a low share with a strong correlation gives such data too, so its interval reaches as far as the
data allow and no farther. The interval is centred on the plain share, which weighs every item alike, and is widened by
what that share loses against the model's own estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from creperie.metrics.special import student_quantile

#: From a confidence level to the ends of the interval.
Ends = Callable[[float], tuple[float, float]]

#: The correlations that are tried, and how many more between the neighbours of the likeliest.
CORRELATIONS = np.r_[0.0, np.geomspace(0.004, 0.95, 16)]
FINER = 12
#: Logits that are tried, around that of the share: close to each other near it, and 12 away at most.
OFFSETS = 12 * np.sinh(np.linspace(-6, 6, 61)) / math.sinh(6)
#: Answers of a cluster that are counted one by one; beyond, in ever longer steps.
COUNTED = 48


def clustered_ends(right: np.ndarray, n: np.ndarray, share: float, df: float = math.inf) -> Ends:
    """The interval of a share at any level, from the right answers and the answers of each cluster.

    Student's quantile has one degree of freedom less than there are clusters, or `df` where that is fewer.

    >>> low, high = clustered_ends(np.array([9.0, 8, 10, 4]), np.full(4, 10.0), 0.775)(0.95)
    >>> round(low, 2), round(high, 2)
    (0.22, 0.98)
    """
    total = float(n.sum())
    centre = _logit((right.sum() + 0.5) / (total + 1))
    logits = centre + OFFSETS
    correlations = _correlations(right, n, share)
    likelihood = _log_likelihood(right, n, 1 / (1 + np.exp(-logits)), correlations)
    profile = likelihood.max(axis=0)
    top = int(profile.argmax())
    peak, best = peak_of(logits, profile, top)
    distance = np.sqrt(2 * np.maximum(best - profile, 0)) * np.sign(logits - peak)
    correlation = float(correlations[likelihood[:, top].argmax()])
    loss = _variance(n, correlation) * float((n / _inflation(n, correlation)).sum())
    moved = logits + (_logit(share) - peak if 0 < share < 1 else 0.0)
    df = min(df, max(1, len(n) - 1))

    def ends(level: float) -> tuple[float, float]:
        reach = student_quantile(0.5 + level / 2, df) * math.sqrt(loss)
        low, high = np.interp([-reach, reach], distance, moved, left=-math.inf, right=math.inf)
        return min(share, _share_of(low)), max(share, _share_of(high))

    return ends


def _correlations(right: np.ndarray, n: np.ndarray, share: float) -> np.ndarray:
    """Those to try: a coarse scale, and a fine one around the likeliest."""
    middle = np.clip([share], 0.5 / n.sum(), 1 - 0.5 / n.sum())
    top = int(_log_likelihood(right, n, middle, CORRELATIONS)[:, 0].argmax())
    near = CORRELATIONS[max(0, top - 1)], CORRELATIONS[min(len(CORRELATIONS) - 1, top + 1)]
    return np.union1d(CORRELATIONS, np.linspace(*near, FINER))


def _log_likelihood(right: np.ndarray, n: np.ndarray, shares: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """(correlations, shares). Answers are drawn one by one, each making the next of its kind likelier."""
    found = np.zeros((len(correlations), 1))
    for counts, prior, sign in ((right, shares, 1), (n - right, 1 - shares, 1), (n, np.ones(1), -1)):
        place, times = _draws(counts)
        first = prior[None, :, None] * (1 - correlations[:, None, None])
        found = found + sign * (np.log(first + correlations[:, None, None] * place) @ times)
    return found


def _draws(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many clusters have a first, a second, … answer of a kind; a fraction of an answer counts as a fraction."""
    whole = np.floor(counts + 1e-9).astype(np.int64)
    most = int(whole.max(initial=0)) + 1
    times = np.bincount(whole, minlength=most)[::-1].cumsum()[::-1].astype(float)
    times = np.append(times[1:], 0.0) + np.bincount(whole, np.maximum(counts - whole, 0), most)
    if most <= 2 * COUNTED:
        return np.arange(float(most)), times
    edges = np.unique(np.r_[np.arange(COUNTED), np.geomspace(COUNTED, most, COUNTED).astype(int)])[:-1]
    return (edges + np.append(edges[1:], most) - 1) / 2, np.add.reduceat(times, edges)


def peak_of(logits: np.ndarray, profile: np.ndarray, top: int) -> tuple[float, float]:
    """Where a parabola through the highest point and its neighbours has its peak, and how high that is."""
    if not 0 < top < len(logits) - 1:
        return float(logits[top]), float(profile[top])
    x, y = logits[top - 1 : top + 2] - logits[top], profile[top - 1 : top + 2] - profile[top]
    square, slope = np.linalg.solve(np.stack([x[[0, 2]] ** 2, x[[0, 2]]], axis=1), y[[0, 2]])
    if square >= 0:
        return float(logits[top]), float(profile[top])
    return float(logits[top] - slope / (2 * square)), float(profile[top] - slope**2 / (4 * square))


def _inflation(n: np.ndarray, correlation: float) -> np.ndarray:
    """How much larger the variance of a cluster's mean is than that of as many independent answers."""
    return np.asarray(1 + np.maximum(n - 1, 0) * correlation)


def _variance(n: np.ndarray, correlation: float) -> float:
    """Of the plain share, in units of share × (1 − share)."""
    return float((n * _inflation(n, correlation)).sum() / n.sum() ** 2)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _share_of(logit: float) -> float:
    return 0.5 * (1 + math.tanh(logit / 2))
