"""The likelihood of a proportion of right answers in clusters, under a beta-binomial model. The likelihood is maximised
over the intra-class correlation (profile likelihood).

Items that share an image tend to be right or wrong together, but this correlation is hard to estimate from a small
number of clusters. For example, if one cluster in twelve has mostly wrong answers, a sample of fifteen clusters often
includes no such cluster. The observed variance between clusters is then too small. A profile likelihood allows for
this, because a low proportion with a strong correlation also explains such data.

The interval is centred on the plain proportion, which gives every item the same weight. This proportion is less
efficient than the model's estimate, so the interval is widened.

A difference between two models combines two proportions: how many items the models differ on, and how many of these the
first model wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from creperie.metrics.special import student_quantile

#: A function from a confidence level to the ends of the interval.
Ends = Callable[[float], tuple[float, float]]

#: The grid of correlations, and the number of points added between the neighbours of the likeliest.
CORRELATIONS = np.r_[0.0, np.geomspace(0.004, 0.95, 16)]
FINER = 12
#: The grid of logits, relative to that of the share: denser near it, and at most 12 away.
OFFSETS = 12 * np.sinh(np.linspace(-6, 6, 61)) / math.sinh(6)
#: Up to this number, the answers of a cluster are counted one by one; beyond it, in increasingly long steps.
COUNTED = 48
#: Degrees of freedom per cluster, not counting the first one; chosen by simulation.
FREEDOM = 1.25


@dataclass(frozen=True)
class _Profile:
    """The profile likelihood of a proportion, at the points of a grid.

    `logits` are the points on the logit scale, shifted so that the likelihood peaks at the plain proportion (unless
    this is 0 or 1). `distance` is the signed distance of each point from the peak, in standard deviations.
    `correlations` holds the most likely correlation at each point.
    """

    logits: np.ndarray
    distance: np.ndarray
    correlations: np.ndarray


def _profile(right: np.ndarray, n: np.ndarray, share: float, widened: float = 1.0) -> _Profile:
    """Return the profile likelihood of the proportion of right answers (`right` of `n` in each cluster). The likelihood
    is shifted to have its peak at `share`; `widened` is a factor for the variance.
    """
    total = float(n.sum())
    logits = _logit((right.sum() + 0.5) / (total + 1)) + OFFSETS
    tried = _correlations(right, n, share)
    likelihood = _log_likelihood(right, n, _shares(logits), tried)
    profile = likelihood.max(axis=0)
    top = int(profile.argmax())
    peak, best = peak_of(logits, profile, top)
    likely = tried[likelihood.argmax(axis=0)]
    inflation = _inflation(n, float(likely[top]))
    loss = float((n * inflation).sum() * (n / inflation).sum()) / total**2 * widened
    distance = np.sqrt(2 * np.maximum(best - profile, 0) / loss) * np.sign(logits - peak)
    return _Profile(logits + (_logit(share) - peak if 0 < share < 1 else 0.0), distance, likely)


def clustered_ends(right: np.ndarray, n: np.ndarray, share: float, df: float = math.inf, widened: float = 1.0) -> Ends:
    """Return a function that computes the interval of a proportion at any confidence level. `right` and `n` are the
    numbers of right answers and of all answers in each cluster.

    Student's quantile has `FREEDOM` × (clusters − 1) degrees of freedom, or `df` if that is less. The variance is
    multiplied by `widened`.

    >>> low, high = clustered_ends(np.array([9.0, 8, 10, 4]), np.full(4, 10.0), 0.775)(0.95)
    >>> round(low, 2), round(high, 2)
    (0.35, 0.94)
    """
    # Usually each tail gets half of the error probability 1 − level. Let P be the probability, at a tested proportion,
    # that all answers are right. If P is larger than (1 − level) / 2, which happens near 1, no data could show that the
    # proportion is too low. The upper end then gets the smaller of P and 1 − level instead of the half. The lower end
    # is treated in the same way, with the probability that all answers are wrong (Blaker 2000).
    likely = _profile(right, n, share, widened)
    extremes = [_log_all(n, _shares(sign * likely.logits), likely.correlations) for sign in (-1, 1)]
    df = min(df, FREEDOM * max(1, len(n) - 1))

    def ends(level: float) -> tuple[float, float]:
        tails = [np.exp(np.clip(x, math.log((1 - level) / 2), math.log(1 - level))) for x in extremes]
        reaches = [np.array([student_quantile(1 - t, df) for t in tail]) for tail in tails]
        low = np.interp(0, likely.distance + reaches[0], likely.logits, left=-math.inf)
        high = np.interp(0, likely.distance - reaches[1], likely.logits, right=math.inf)
        return min(share, float(_shares(low))), max(share, float(_shares(high)))

    return ends


def difference_ends(wins: np.ndarray, losses: np.ndarray, n: np.ndarray) -> Ends:
    """Return a function that computes an interval at any confidence level. The interval is that of the proportion of
    wins minus the proportion of losses. The arrays hold the counts of each cluster.
    """
    # The difference is d · (2w − 1), where d is the proportion of items on which the models differ and w is the
    # proportion of these items that the first model wins. The likelihood of a pair (d, w) is the likelihood of d times
    # the likelihood of w. The likelihood of a difference is the highest likelihood of any pair (d, w) that gives this
    # difference.
    differ = wins + losses
    some = differ > 0
    often = _profile(differ, n, float(differ.sum() / n.sum()))
    logits = np.interp(np.linspace(0, 1, 3 * len(OFFSETS)), np.linspace(0, 1, len(OFFSETS)), often.logits)
    apart = _shares(logits)
    away = np.interp(logits, often.logits, often.distance) ** 2
    value = float((wins - losses).sum() / n.sum())
    gaps = np.unique(np.clip(value + OFFSETS / 6, -1, 1))
    won = (1 + gaps[:, None] / apart) / 2
    if some.any():
        wons = _profile(wins[some], differ[some], float(wins.sum() / differ.sum()))
        bounded = np.clip(won, 1e-9, 1 - 1e-9)
        away = away + np.interp(np.log(bounded / (1 - bounded)), wons.logits, wons.distance) ** 2
    away = np.where((won >= 0) & (won <= 1), away, math.inf).min(axis=1)
    away = np.where(np.isfinite(away), away, 1e6)
    distance = np.sqrt(np.maximum(away - away.min(), 0)) * np.sign(gaps - value)
    # If cluster size is related to who wins, the model understates the variance between clusters.
    residuals = wins - losses - value * n
    seen = math.sqrt(float((residuals**2).sum()) * len(n) / (len(n) - 1)) / float(n.sum())
    distance /= max(1.0, 2 * seen / float(np.diff(np.interp([-1, 1], distance, gaps))[0]))
    df = FREEDOM * max(1, len(n) - 1)

    def ends(level: float) -> tuple[float, float]:
        reach = student_quantile(0.5 + level / 2, df)
        low, high = np.interp([-reach, reach], distance, gaps, left=-1, right=1)
        return min(value, float(low)), max(value, float(high))

    return ends


def _log_all(n: np.ndarray, shares: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Return the log-probability that all answers are right, once for each proportion in `shares`. The correlation at
    the same index is assumed.
    """
    place, times = _draws(n)
    c = correlations[:, None]
    return (np.log(shares[:, None] * (1 - c) + c * place) - np.log(1 - c + c * place)) @ times


def _correlations(right: np.ndarray, n: np.ndarray, share: float) -> np.ndarray:
    """Return a grid of correlations that is finer near the most likely correlation."""
    middle = np.clip([share], 0.5 / n.sum(), 1 - 0.5 / n.sum())
    top = int(_log_likelihood(right, n, middle, CORRELATIONS)[:, 0].argmax())
    near = CORRELATIONS[max(0, top - 1)], CORRELATIONS[min(len(CORRELATIONS) - 1, top + 1)]
    return np.union1d(CORRELATIONS, np.linspace(*near, FINER))


def _log_likelihood(right: np.ndarray, n: np.ndarray, shares: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Return the log-likelihoods (correlations, shares) under a Pólya urn model: each answer makes further answers of
    its kind more likely.
    """
    likelihood = np.zeros((len(correlations), 1))
    for counts, prior, sign in ((right, shares, 1), (n - right, 1 - shares, 1), (n, np.ones(1), -1)):
        place, times = _draws(counts)
        first = prior[None, :, None] * (1 - correlations[:, None, None])
        likelihood = likelihood + sign * (np.log(first + correlations[:, None, None] * place) @ times)
    return likelihood


def _draws(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays: k = 0, 1, 2, …, and how many counts are larger than each k. A count that exceeds k by less
    than 1, such as 2.5 for k = 2, is counted as that fraction (0.5).
    """
    # If a count exceeds 2 · `COUNTED`, neighbouring large k are merged: their mean replaces them, and their sums are
    # added up.
    whole = np.floor(counts + 1e-9).astype(np.int64)
    most = int(whole.max(initial=0)) + 1
    times = np.bincount(whole, minlength=most)[::-1].cumsum()[::-1].astype(float)
    times = np.append(times[1:], 0.0) + np.bincount(whole, np.maximum(counts - whole, 0), most)
    if most <= 2 * COUNTED:
        return np.arange(float(most)), times
    edges = np.unique(np.r_[np.arange(COUNTED), np.geomspace(COUNTED, most, COUNTED).astype(int)])[:-1]
    return (edges + np.append(edges[1:], most) - 1) / 2, np.add.reduceat(times, edges)


def peak_of(logits: np.ndarray, profile: np.ndarray, top: int) -> tuple[float, float]:
    """Return the position and the height of the peak of a parabola. The parabola goes through the highest point of
    `profile` (at index `top`) and its two neighbours; `logits` holds the positions of the points. If the
    parabola has no peak, return the highest point itself.
    """
    if not 0 < top < len(logits) - 1 or not np.isfinite(profile[top - 1 : top + 2]).all():
        return float(logits[top]), float(profile[top])
    x, y = logits[top - 1 : top + 2] - logits[top], profile[top - 1 : top + 2] - profile[top]
    square, slope = np.linalg.solve(np.stack([x[[0, 2]] ** 2, x[[0, 2]]], axis=1), y[[0, 2]])
    if square >= 0:
        return float(logits[top]), float(profile[top])
    return float(logits[top] - slope / (2 * square)), float(profile[top] - slope**2 / (4 * square))


def _inflation(n: np.ndarray, correlation: float) -> np.ndarray:
    """Return a factor for each cluster: by how much the correlation increases the variance of the mean of its `n`
    answers, compared with independent answers.
    """
    return 1 + np.maximum(n - 1, 0) * correlation


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _shares(logits: np.ndarray | float) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(np.asarray(logits) / 2)))
