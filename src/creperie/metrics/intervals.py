"""How sure a number is: Wilson's interval for shares, with the variance of the clusters where items share images.

A share's interval solves Wilson's equation with the number of independent items that would give the variance seen
between clusters (jackknife, one cluster left out at a time) and Student's quantile for as many clusters as carry the
data. It needs no resampling, holds its level from eight clusters on (docs/statistics.md has the simulation), and is
Wilson's own interval where items are independent and right or wrong.

Every other statistic that has a least and a greatest value (a mean of shares, F1, kappa, AUROC, a mean rank) gets the
same interval: what it loses with a cluster says what share that cluster would have had.

Clusters are resampled where that is asked for. A statistic is a function of column sums, so a resample is one row of
counts times the clusters' sums, and clusters with equal sums are drawn together: ten thousand resamples of a hundred
thousand items take a fraction of a second, and the result does not depend on the order of the items.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from creperie.metrics.settings import MetricSettings
from creperie.metrics.special import normal_cdf, normal_quantile, student_quantile

#: From column sums (…, columns) to values (…).
Statistic = Callable[[np.ndarray], np.ndarray]

#: Numbers held at a time while resampling, and clusters drawn in all before resamples are saved.
DRAWN_AT_ONCE = 1 << 20
MOST_DRAWS = 200_000_000
#: Below this many clusters one that is unlike the others may just not have been drawn.
FEW_CLUSTERS = 60
#: Of a cluster: what may not have been drawn where all answers are right, less where fewer are (by simulation).
UNSEEN = 1 / 8


@dataclass(frozen=True)
class Interval:
    """Where the true value lies at the asked level, and by which method."""

    low: float
    high: float
    method: str


def wilson(right: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for `right` of `n` independent items.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if n <= 0:
        return math.nan, math.nan
    return _score_interval(right / n, n, normal_quantile(0.5 + level / 2))


def _score_interval(share: float, n: float, z: float) -> tuple[float, float]:
    spread = z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # The share lies inside by the formula, but rounding may put an end at 0.9999999999999999 beside a share of 1.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def ratio(sums: np.ndarray) -> np.ndarray:
    """Sums of (right, n) to shares; NaN where n is 0."""
    return over(sums[..., 0], sums[..., 1])


def over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    part, whole = np.broadcast_arrays(part, whole)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def cluster_sums(columns: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The columns (items, k) summed within clusters; clusters are any whole numbers."""
    _, codes = np.unique(clusters, return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    return np.stack([np.bincount(codes, weights=c, minlength=count) for c in columns.T], axis=1)


def resampled(sums: np.ndarray, how: MetricSettings) -> np.ndarray:
    """Column sums (resamples, k) of clusters drawn with replacement, as many as there are.

    Where very many clusters are all of different kinds, fewer resamples are drawn than asked for, at least 1,000.
    """
    rng = np.random.Generator(np.random.PCG64(how.seed))
    kinds, counts = np.unique(sums, axis=0, return_counts=True)
    total, resamples = len(sums), how.resamples
    by_kind = len(kinds) * 8 < total  # a binomial draw a kind, or an index a cluster: whichever is less work
    if not by_kind:
        kinds = np.repeat(kinds, counts, axis=0)
        resamples = min(resamples, max(1000, MOST_DRAWS // total))
    drawn = np.empty((resamples, sums.shape[1]))
    step = max(1, DRAWN_AT_ONCE // len(kinds))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if by_kind:
            times = rng.multinomial(total, counts / total, size=size)
        else:
            picks = rng.integers(0, total, size=(size, total), dtype=np.int32)
            picks += np.arange(size, dtype=np.int32)[:, None] * total
            times = np.bincount(picks.ravel(), minlength=size * total).reshape(size, total)
        drawn[start : start + size] = times.astype(np.float64) @ kinds
    return drawn


def bootstrap(sums: np.ndarray, statistic: Statistic, how: MetricSettings) -> Interval:
    """The interval of a statistic over clusters given by their sums (clusters, k): percentiles of the cluster
    bootstrap, or BCa if asked. Of few clusters percentiles are too narrow."""
    name = "bca" if how.interval == "bca" else "percentile"
    if len(sums) < 2:
        return Interval(math.nan, math.nan, "none (one cluster)")
    values = statistic(resampled(sums, how))
    if len(values) < how.resamples:
        name += f", {len(values)} resamples"
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return Interval(math.nan, math.nan, "none (nothing to average)")
    tails = (1 - how.level) / 2, (1 + how.level) / 2
    if how.interval == "bca":
        tails = _bca_tails(values, sums, statistic, how.level)
    low, high = np.quantile(values, tails)
    return Interval(float(low), float(high), f"cluster bootstrap ({name})")


def _bca_tails(values: np.ndarray, sums: np.ndarray, statistic: Statistic, level: float) -> tuple[float, float]:
    """The percentiles to read, corrected for bias and for skew (the skew from leaving out one cluster at a time)."""
    whole = sums.sum(axis=0)
    point = float(statistic(whole))
    below = (np.searchsorted(values, point, "left") + np.searchsorted(values, point, "right")) / 2
    bias = normal_quantile(min(max(below / len(values), 0.5 / len(values)), 1 - 0.5 / len(values)))
    left_out = statistic(whole - sums)
    apart = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    squares = float((apart**2).sum())
    skew = float((apart**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0

    def tail(p: float) -> float:
        z = bias + normal_quantile(p)
        return normal_cdf(bias + z / (1 - skew * z))

    return tail((1 - level) / 2), tail((1 + level) / 2)


def bounded_interval(
    sums: np.ndarray, statistic: Statistic, sizes: np.ndarray, how: MetricSettings, bounds: tuple[float, float] = (0, 1)
) -> Interval:
    """The interval of a statistic that lies between bounds, of clusters given by their sums and sizes (in items)."""
    whole = sums.sum(axis=0)
    value, left_out = float(statistic(whole)), statistic(whole - sums)
    if len(sums) < 2 or (how.interval != "auto" and value not in bounds):  # at a bound, resamples say nothing
        return bootstrap(sums, statistic, how)
    lost = np.where(np.isnan(left_out), 0.0, value - left_out)  # a group that only this cluster has: nothing is known
    return pulled_interval(value, lost * (1 - sizes / sizes.sum()), sizes, how, bounds)


def pulled_interval(
    value: float, pull: np.ndarray, sizes: np.ndarray, how: MetricSettings, bounds: tuple[float, float] = (0, 1)
) -> Interval:
    """The same, of clusters of which each moves the value by so much."""
    if math.isnan(value):
        return Interval(math.nan, math.nan, "none (nothing to average)")
    least, span, total = bounds[0], bounds[1] - bounds[0], float(sizes.sum())
    share, method = min(1.0, max(0.0, (value - least) / span)), "wilson (clustered)"
    if share in (0.0, 1.0):
        (low, high), method = wilson(share * len(sizes), len(sizes), how.level), "wilson (clusters)"
    else:
        right = sizes * (share - float(pull.sum()) / span) + total * pull / span
        low, high = _cluster_score(np.stack([right, sizes], axis=1), round(total), how.level)
    return Interval(least + span * low, least + span * high, method)


def share_interval(right: np.ndarray, n: np.ndarray, clusters: np.ndarray | None, how: MetricSettings) -> Interval:
    """The interval of sum(right) / sum(n) over items, `right` between 0 and n.

    Wilson's where every item is right or wrong and no two share a cluster; otherwise Wilson's equation with the
    variance between clusters. So ties and fractions have their own, smaller variance, and one hundred ties have
    neither the width of one hundred coins nor none.
    """
    if clusters is None:
        clusters = np.arange(len(n))
    covered = n > 0
    right, n, clusters = right[covered], n[covered], clusters[covered]
    if not len(n):
        return Interval(math.nan, math.nan, "none (nothing to average)")
    share = float(right.sum() / n.sum())
    apart = bool((n == 1).all()) and len(np.unique(clusters)) == len(clusters)
    whole = bool(((right == 0) | (right == n)).all())
    if how.interval == "wilson" or (how.interval == "auto" and apart and (whole or len(n) == 1)):
        return Interval(*wilson(float(right.sum()), float(n.sum()), how.level), "wilson")
    sums = cluster_sums(np.stack([right, n], axis=1).astype(np.float64), clusters)
    if len(sums) < 2:
        return Interval(math.nan, math.nan, "none (one cluster)")
    if share in (0.0, 1.0):
        return Interval(*wilson(share * len(sums), len(sums), how.level), "wilson (clusters)")
    if how.interval != "auto":
        return bootstrap(sums, ratio, how)
    return Interval(*_cluster_score(sums, len(n), how.level), "wilson (clustered)" if not apart else "wilson (ties)")


def _cluster_score(sums: np.ndarray, items: int, level: float) -> tuple[float, float]:
    """Wilson's equation with the jackknife variance over clusters, given by their sums (right, n)."""
    count, (right, total) = len(sums), sums.sum(axis=0).tolist()
    if 2 * right < total * (1 - 1e-12):  # not for rounding's sake, or the mirror image would be turned back
        low, high = _cluster_score(np.stack([sums[:, 1] - sums[:, 0], sums[:, 1]], axis=1), items, level)
        return 1 - high, 1 - low
    # Clusters of very unequal size carry less than their number says (Kish).
    df = max(1.0, total**2 / float((sums[:, 1] ** 2).sum()) - 1)
    (share, n), t = _independent(sums, items), student_quantile(0.5 + level / 2, df)
    low, high = _score_interval(share, n, t)
    if count < FEW_CLUSTERS:
        # Among many right answers a poor cluster may just not have been drawn: as if part of one had been. A truth
        # near 1 can only be missed from below (all right would not be odd): there the whole of what may be missed.
        poor = [0, UNSEEN * (2 * share - 1) * total / count]
        near = _score_interval(share, n, student_quantile(level, df))[1]
        low = min(low, _score_interval(*_independent(np.vstack([sums, poor]), items), t)[0])
        high = near if n * (1 - near) < near * t * t else high
    return low, high


def difference_interval(
    a: np.ndarray, b: np.ndarray, clusters: np.ndarray, how: MetricSettings, weights: np.ndarray | None = None
) -> Interval:
    """The interval of mean(a) − mean(b), worths between 0 and 1 of the same items, which may count unequally.

    A difference of shares is a share too: a win of a is worth 1, a tie 1/2, a win of b nothing. Of few clusters, each
    limit is also taken as if part of one more had been drawn, in which one of the two is always wrong.
    """
    n = np.ones(len(a)) if weights is None else weights
    share = share_interval(n * (1 + a - b) / 2, n, clusters, how)
    sums, low, high = cluster_sums(np.stack([n * a, n * b, n], axis=1), clusters), share.low, share.high
    if share.method == "wilson (clustered)" and len(sums) < FEW_CLUSTERS:
        low = min(low, _if_poor(sums, len(a), how.level))
        high = max(high, 1 - _if_poor(sums[:, [1, 0, 2]], len(a), how.level))
    return Interval(2 * low - 1, 2 * high - 1, share.method)


def _if_poor(sums: np.ndarray, items: int, level: float) -> float:
    """The lower limit of the difference, with part of one more cluster in which the first model is always wrong.

    A line through the clusters, given by their sums (first, second, n), says how often the second is right in it.
    """
    n, (first, second) = sums[:, 2], sums[:, :2].sum(axis=0) / sums[:, 2].sum()
    x, y = (sums[:, :2] / sums[:, 2:] - [first, second]).T
    slope = (n * x) @ y / ((n * x) @ x) if x.any() else 1.0
    part = UNSEEN * max(0.0, 2 * first - 1) * n.mean()
    poor = [part * (1 - min(1.0, max(0.0, second - slope * first))) / 2, part]
    return _cluster_score(np.vstack([np.stack([(n + sums[:, 0] - sums[:, 1]) / 2, n], axis=1), poor]), items, level)[0]


def _independent(sums: np.ndarray, items: int) -> tuple[float, float]:
    """The share, and how many independent items would give its variance between clusters (jackknife)."""
    right, total = sums.sum(axis=0).tolist()
    left_out = (right - sums[:, 0]) / (total - sums[:, 1])
    variance = (len(sums) - 1) / len(sums) * float(((left_out - right / total) ** 2).sum())
    # Where nothing varies, as among ties, one more win and one more loss could still have been seen.
    return right / total, right / total * (1 - right / total) / max(variance, 0.5 / items**2)
