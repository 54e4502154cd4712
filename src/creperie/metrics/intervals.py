"""Confidence intervals of every statistic, and the p-values derived from them.

*Proportions* of independent items get Wilson's interval. If items share images, the interval comes from the likelihood
of a beta-binomial model (likely.py). Ties and fractions vary less than right and wrong answers, which makes the
interval narrower.

*F1* is computed from two proportions: the captions and the foils that are judged right. Their intervals are combined
(MOVER).

*Other statistics* between two bounds, such as AUROC or a mean rank, are scaled to [0, 1] and get the interval of a
proportion. Their variance is estimated from the influence of each item or cluster (jackknife).

*The difference* between two models has Tango's score interval if items are independent. If items share images, two
proportions are combined: how many items the models differ on, and how many of these the first model wins.

*Means over subsets* combine the intervals of the subsets (MOVER, Zou and Donner 2008). The combination allows for
clusters with items in several subsets. If a subset is too small to estimate its variance, a score interval is used
instead, with the variance of answers that are either right or wrong. There is no interval if there are fewer than three
images, or if one image has most of the weight.

*A p-value* is one minus the confidence level at which the interval just touches the tested value, so interval and
p-value always agree.

research/calibration.py checks all of this by simulation; docs/results-intervals.md has the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.metrics.likely import FREEDOM, Ends, clustered_ends, difference_ends
from creperie.metrics.settings import MetricSettings
from creperie.metrics.special import normal_quantile, student_quantile

#: A function from column sums (…, columns) to values (…).
Statistic = Callable[[np.ndarray], np.ndarray]

NOTHING = "none (nothing to average)"
ONE_CLUSTER = "none (one cluster)"


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and the name of the method that computed it."""

    low: float
    high: float
    method: str


@dataclass(frozen=True)
class Confidence:
    """A value with its interval. `ends` is a function that returns the interval at any confidence level; it is None if
    there is no valid interval.
    """

    value: float
    method: str
    ends: Ends | None = None

    def interval(self, level: float) -> Interval:
        low, high = self.ends(level) if self.ends else (math.nan, math.nan)
        return Interval(low, high, self.method)

    def p_against(self, value: float) -> float:
        """Return the p-value of the hypothesis that the true value is `value`: one minus the confidence level at which
        the interval just touches it. Return NaN if there is no interval.
        """
        if self.ends is None:
            return math.nan
        if value == self.value:
            return 1.0
        outside, inside = 0.0, 40.0  # −log p
        for _ in range(50):
            middle = (outside + inside) / 2
            low, high = self.ends(1 - math.exp(-middle))
            outside, inside = (outside, middle) if low <= value <= high else (middle, inside)
        return math.exp(-inside)


def wilson(right: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval for `right` of `n` independent items.

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
    # By the formula the share lies inside, but rounding may put an end at 0.9999999999999999 beside a share of 1.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def ratio(sums: np.ndarray) -> np.ndarray:
    """Return the proportion right / n, or NaN where n is 0. The last axis of `sums` holds the sums of right answers and
    of all answers.
    """
    return over(sums[..., 0], sums[..., 1])


def over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return `part` / `whole`, with NaN where the divisor is 0."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def cluster_sums(columns: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the sums of the columns (items, k) within each cluster. `clusters` holds one integer per item."""
    _, codes = np.unique(clusters, return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    return np.stack([np.bincount(codes, weights=c, minlength=count) for c in columns.T], axis=1)


# -- shares ----------------------------------------------------------------------------------------------------------


def share_interval(values: np.ndarray, clusters: np.ndarray | None = None, level: float = 0.95) -> Interval:
    """Return the interval of the mean of values from 0 to 1, one per item. If `clusters` is None, the items are
    independent.
    """
    return share_confidence(values, np.ones(len(values)), clusters).interval(level)


def share_confidence(right: np.ndarray, n: np.ndarray, clusters: np.ndarray | None = None) -> Confidence:
    """Return the proportion sum(right) / sum(n) with its interval. Fractions in `right` (from ties) make the interval
    narrower.
    """
    covered = n > 0
    own = np.arange(len(n)) if clusters is None else clusters
    right, n, own = right[covered], n[covered].astype(np.float64), own[covered]
    if not len(n):
        return Confidence(math.nan, NOTHING)
    share, total = float(right.sum() / n.sum()), float(n.sum())
    parts = right - np.floor(right)
    left = 1 - float((parts * (1 - parts)).sum()) / (total * share * (1 - share)) if 0 < share < 1 else 1.0
    return _as_share(share, np.stack([right, n], axis=1), own, left, "ties" if parts.any() else "")


def _as_share(share: float, answers: np.ndarray, clusters: np.ndarray, spread: float, what: str) -> Confidence:
    """Return the proportion `share` with its interval. `answers` holds (right, n) of each item. `spread` is the
    variance divided by that of a binomial proportion, and `what` names the method that estimated it.
    """
    # If `what` is "jackknife" and a few clusters contribute most of the variance, the degrees of freedom are reduced.
    sums = cluster_sums(answers, clusters)
    count, items, total = len(sums), len(answers), float(answers[:, 1].sum())
    apart = count == items and bool((answers[:, 1] == 1).all())
    if count < 2 and not apart:
        return Confidence(share, ONE_CLUSTER)
    # Data without variance (only ties) get at least the variance of one more win and one more loss.
    spread = max(spread, 0.5 / (items * share * (1 - share))) if 0 < share < 1 else 1.0
    named = f" ({what})" if what else ""
    quantile = normal_quantile
    if count == 1:
        spread = 1.0
    elif what:
        quantile = lambda p: student_quantile(p, count - 1)  # noqa: E731
    alone = lambda level: _score_interval(share, total / spread, quantile(0.5 + level / 2))  # noqa: E731
    if not apart:
        right = np.clip(sums[:, 0], 0, sums[:, 1])
        residuals = sums[:, 0] - share * sums[:, 1]
        df = _freedom(residuals) if what == "jackknife" else math.inf
        cut = float(((right - share * sums[:, 1]) ** 2).sum())  # influence may exceed a cluster's size
        widened = float((residuals**2).sum()) / cut if cut > 0 else 1.0
        ends = clustered_ends(right / spread, sums[:, 1] / spread, share, df, widened)
        return Confidence(share, "beta-binomial" + named, _wider(ends, alone))
    return Confidence(share, "wilson" + named, alone)


def _wider(clustered: Ends, alone: Ends) -> Ends:
    """Return, for every confidence level, the smallest interval that contains both given intervals: the one for
    clusters and the one for independent items. Clusters can then never make an interval narrower.
    """

    def ends(level: float) -> tuple[float, float]:
        (low, high), (lowest, highest) = clustered(level), alone(level)
        return min(low, lowest), max(high, highest)

    return ends


def _freedom(residuals: np.ndarray) -> float:
    """Return the degrees of freedom of a variance that is estimated from the residuals of clusters. The number is low
    if a few clusters contribute most of the variance (high kurtosis).
    """
    fourth = float((residuals**4).sum())
    return max(LEAST_FREEDOM, 1.5 * float((residuals**2).sum()) ** 2 / fourth) if fourth > 0 else math.inf


#: Minimum degrees of freedom, chosen by simulation.
LEAST_FREEDOM = 7.0


# -- other statistics ------------------------------------------------------------------------------------------------


def bounded_interval(
    columns: np.ndarray,
    statistic: Statistic,
    clusters: np.ndarray,
    how: MetricSettings,
    bounds: tuple[float, float] = (0, 1),
) -> Interval:
    """Return the interval of a statistic that lies within `bounds` and is computed from column sums over the items."""
    sizes = np.ones(len(columns))
    value = float(statistic(columns.sum(axis=0))) if len(columns) else math.nan
    return pulled_confidence(value, pulls(columns, statistic, sizes), sizes, clusters, bounds).interval(how.level)


def two_share_confidence(columns: np.ndarray, statistic: Statistic, clusters: np.ndarray) -> Confidence:
    """Return a statistic with its interval. The statistic must be a rising function of two proportions: the right
    answers on captions, and the right answers on foils.

    The columns count the right answers on captions, the right answers on foils, all captions, and all foils. The
    intervals of the two proportions are combined (MOVER).
    """
    parts = [share_confidence(columns[:, k], columns[:, 2 + k], clusters) for k in range(2)]
    value, sizes = float(statistic(columns.sum(axis=0))), columns[:, 2:].sum(axis=0)
    shares = np.array([part.value for part in parts])
    without = next((part for part in parts if part.ends is None), None)
    if without:
        return Confidence(value, without.method)
    residuals = columns[:, :2] - shares * columns[:, 2:]
    correlation = _correlation(list(residuals.T), [clusters] * 2)

    def ends(level: float) -> tuple[float, float]:
        limits, reach = np.array([part.ends(level) for part in parts if part.ends]), []
        for end in limits.T:
            one_moved = np.where(np.eye(2, dtype=bool), end, shares) * sizes
            gap = statistic(np.concatenate([one_moved, np.tile(sizes, (2, 1))], axis=1)) - value
            reach.append(math.sqrt(max(0.0, float(gap @ correlation @ gap))))
        return max(0.0, value - reach[0]), min(1.0, value + reach[1])

    return Confidence(value, "mover", ends)


def pulls(columns: np.ndarray, statistic: Statistic, sizes: np.ndarray) -> np.ndarray:
    """Return the influence of each item i on a statistic T: (T − Tᵢ) · (1 − sᵢ / S). Here Tᵢ is the statistic without
    the item, sᵢ the item's entry in `sizes`, and S the sum of `sizes`. The influence is 0 if Tᵢ is undefined.
    """
    if not len(columns):
        return np.zeros(0)
    whole = columns.sum(axis=0)
    lost = float(statistic(whole)) - statistic(whole - columns)
    return np.where(np.isnan(lost), 0.0, lost) * (1 - sizes / sizes.sum())


def pulled_confidence(
    value: float, pull: np.ndarray, sizes: np.ndarray, clusters: np.ndarray, bounds: tuple[float, float] = (0, 1)
) -> Confidence:
    """Return a value that lies within `bounds`, with its interval. `pull` holds the influence of each item on the
    value, from which the interval is computed.
    """
    if math.isnan(value):
        return Confidence(value, NOTHING)
    least, span, total = bounds[0], bounds[1] - bounds[0], float(sizes.sum())
    share = min(1.0, max(0.0, (value - least) / span))
    right, spread = share * sizes, 1.0
    if 0 < share < 1:
        centred = (pull - pull.mean()) / span
        right = right + total * centred
        spread = total * float((centred**2).sum()) / (share * (1 - share))
    as_share = _as_share(share, np.stack([right, sizes], axis=1), clusters, spread, "jackknife")
    return Confidence(value, as_share.method, scaled(as_share.ends, least, span))


def scaled(ends: Ends | None, least: float, span: float) -> Ends | None:
    """Return the interval function of the value least + span × p; None if `ends` is None. `ends` is the interval
    function of the proportion p.
    """
    if ends is None:
        return None
    return lambda level: (least + span * ends(level)[0], least + span * ends(level)[1])


# -- means over subsets, differences ---------------------------------------------------------------------------------


#: Minimum number of clusters from which the variance of a group is estimated.
FEW = 6
#: Maximum share of one cluster in the sum of squared weights, if answers are right or wrong and if they are not.
HEAVIEST, HEAVIEST_OTHER = 0.9, 0.5
#: Pseudo-answers, distributed like those of all groups together, that regularise the share of each group.
ADDED = 3.0
#: Quantile at which the correction for kurtosis is capped: beyond it, a higher level could narrow the interval.
FURTHEST = math.sqrt(5)
#: The grid of shifts that `_score_mean` adds to the logits of all groups.
SHIFTS = 12 * np.sinh(np.linspace(-4, 4, 161)) / math.sinh(4)


def mean_over_groups(
    parts: Sequence[Confidence],
    pulled: Sequence[np.ndarray],
    clusters: Sequence[np.ndarray],
    bounds: tuple[float, float],
) -> Confidence:
    """Return the unweighted mean of several groups' values, with its interval. `pulled` holds the influence of each
    item on its group's value, and `clusters` the items' clusters.
    """
    # If a group has too few clusters to estimate its variance, `_score_mean` computes the interval from the binomial
    # variance of right and wrong answers.
    if len(parts) == 1:
        return parts[0]
    value = float(np.mean([part.value for part in parts]))
    if any(part.ends is None or len(np.unique(own)) < FEW for part, own in zip(parts, clusters, strict=True)):
        return _score_mean(np.array([part.value for part in parts]), pulled, clusters, bounds)
    correlation = _correlation(pulled, clusters)

    def ends(level: float) -> tuple[float, float]:
        limits = np.array([part.ends(level) for part in parts if part.ends])
        below, above = (np.array([part.value for part in parts])[:, None] - limits).T / len(parts)
        reach = [math.sqrt(max(0.0, float(gap @ correlation @ gap))) for gap in (below, above)]
        return max(bounds[0], value - reach[0]), min(bounds[1], value + reach[1])

    return Confidence(value, "mover", ends)


def _score_mean(
    values: np.ndarray,
    pulled: Sequence[np.ndarray],
    clusters: Sequence[np.ndarray],
    bounds: tuple[float, float],
) -> Confidence:
    """Return the mean of the groups' `values` with a score interval, for use when some groups have few clusters.
    `pulled` holds the influence of each item on its group's value.
    """
    # The interval is found by testing many means; a tested mean is reached by shifting the logits of all groups' values
    # by the same number (see `SHIFTS`). The variance is binomial, scaled by the ratio of the observed to the binomial
    # variance of all answers together. Negative correlations between groups count as 0: a few clusters cannot prove
    # them, and they could make the variance vanish. Quantiles are corrected for the kurtosis of small samples (Cornish
    # and Fisher 1938).
    groups, value, span = len(values), float(values.mean()), bounds[1] - bounds[0]
    sizes = np.array([len(pull) for pull in pulled])
    weights = np.repeat(1 / sizes / groups, sizes)
    heavy = cluster_sums(weights[:, None], np.concatenate(clusters)) ** 2
    shares = (values - bounds[0]) / span
    answers = np.concatenate([share + len(pull) * pull / span for share, pull in zip(shares, pulled, strict=True)])
    whole = float(answers.mean())
    most = whole * (1 - whole)
    spread = max(answers.var(), 0.5 / len(answers)) / most if most > 0 else 1.0
    if len(heavy) < 3 or heavy.max() / heavy.sum() > (HEAVIEST if abs(spread - 1) < 1e-9 else HEAVIEST_OTHER):
        return Confidence(value, f"none (one image decides: the smallest subset has {sizes.min()} items)")
    sizes = sizes / np.array([inflation(pull, own) for pull, own in zip(pulled, clusters, strict=True)])
    correlation = np.maximum(_correlation(pulled, clusters), 0)
    prior = np.clip(whole, 0.5 / len(answers), 1 - 0.5 / len(answers))  # shifts move no group away from 0 or 1
    steadied = np.clip((sizes * shares + ADDED * prior) / (sizes + ADDED), 1e-9, 1 - 1e-9)
    moved = 1 / (1 + np.exp(-np.log(steadied / (1 - steadied)) - SHIFTS[:, None]))
    single = moved * (1 - moved)
    deviations = np.sqrt(spread * single / sizes) / groups
    variance = ((deviations @ correlation) * deviations).sum(axis=1)
    fourth = (spread**2 * single * (1 - 6 * single) / sizes**3 / groups**4).sum(axis=1) / variance**2
    fourth = np.clip(fourth, -2, 0)
    means = moved.mean(axis=1)
    distance = (means - shares.mean()) / np.sqrt(variance)

    def ends(level: float) -> tuple[float, float]:
        z = student_quantile(0.5 + level / 2, FREEDOM * (len(heavy) - 1))
        bend = min(z, FURTHEST)
        reach = z + (bend**3 - 3 * bend) * fourth / 24
        low = np.interp(0, distance + reach, means, left=0)
        high = np.interp(0, distance - reach, means, right=1)
        return min(value, bounds[0] + span * float(low)), max(value, bounds[0] + span * float(high))

    return Confidence(value, "score", ends)


def inflation(pull: np.ndarray, clusters: np.ndarray) -> float:
    """Return the factor by which clusters increase the variance, compared with the same number of independent items.
    The factor is at least 1.
    """
    alone = float((pull**2).sum())
    together = float((cluster_sums(pull[:, None], clusters) ** 2).sum())
    return max(1.0, together / alone) if alone > 0 else 1.0


def _correlation(pulled: Sequence[np.ndarray], clusters: Sequence[np.ndarray]) -> np.ndarray:
    """Return the correlation matrix of the groups' values. They are correlated because clusters have items in several
    groups. Groups in which all answers are the same are assumed to be fully correlated.
    """
    groups = len(pulled)
    pulled = [pull if pull.any() else np.ones(len(pull)) for pull in pulled]
    group = np.repeat(np.arange(groups), [len(pull) for pull in pulled])
    _, codes = np.unique(np.concatenate(clusters), return_inverse=True)
    sums = np.bincount(codes * groups + group, np.concatenate(pulled), (int(codes.max()) + 1) * groups)
    sums = sums.reshape(-1, groups)
    length = np.sqrt((sums**2).sum(axis=0))
    directions = sums / np.where(length > 0, length, 1.0)
    correlation = directions.T @ directions
    np.fill_diagonal(correlation, 1.0)
    return correlation


def difference_confidence(a: np.ndarray, b: np.ndarray, clusters: np.ndarray) -> Confidence:
    """Return mean(a) − mean(b) with its interval, for values from 0 to 1 on the same items.

    Independent items with the values 0 and 1 get Tango's score interval (1998). With fractions, the interval is derived
    from that of the proportion mean((1 + a − b) / 2). If items share clusters, the interval is widened until it
    contains the one from `difference_ends`.
    """
    gap = a - b
    sums = cluster_sums(np.stack([np.maximum(gap, 0), np.maximum(-gap, 0), np.ones(len(gap))], axis=1), clusters)
    shared = 1 < len(sums) < len(gap)
    as_share = share_confidence((1 + gap) / 2, np.ones(len(a)), None if shared else clusters)
    method, alone = as_share.method, scaled(as_share.ends, -1, 2)
    if alone is not None and bool((gap == np.rint(gap)).all()):
        method, alone = "score (wins, losses)", tango(gap, np.zeros(len(gap), np.int64))
    if shared and alone is not None:
        ends = _wider(difference_ends(*sums.T), alone)
        return Confidence(float(np.mean(gap)), "beta-binomial (wins, losses)", ends)
    return Confidence(float(np.mean(gap)), method, alone)


def tango(gap: np.ndarray, group: np.ndarray, widening: float = 1.0, freedom: int = 0) -> Ends:
    """Return Tango's score interval of a difference, averaged over groups. `gap` holds 1 for each item that is won, −1
    for each that is lost and 0 for the others; `group` holds the number of each item's group.

    The interval contains every difference that a score test does not reject. At a difference of 0 this is McNemar's
    test without correction.

    All groups are tested as if they had the same difference. `widening` is the factor by which clusters increase the
    variance. If `freedom` is not 0, the quantiles are those of Student's distribution with that many degrees of
    freedom.
    """
    wins, losses, n = (np.bincount(group, some) for some in (gap > 0, gap < 0, np.ones(len(gap))))
    weight = 1 / n / len(n)
    value = float(((wins - losses) * weight).sum())
    steps = np.linspace(-12, 12, 481) * math.sqrt(((wins + losses) * weight**2).sum() + weight.max() ** 2)
    gaps = np.unique(np.clip(np.r_[value + steps, np.linspace(-1, 1, 401)], -1, 1))[:, None]
    middle = wins + losses - (2 * n - wins + losses) * gaps
    root = np.sqrt(np.maximum(middle**2 + 8 * n * losses * gaps * (1 - gaps), 0))
    lost = (root + middle) / (4 * n)  #: the likeliest share of losses at each difference
    variance = widening * (n * (2 * lost + gaps * (1 - gaps)) * weight**2).sum(axis=1)
    distance = (gaps[:, 0] - value) / np.sqrt(np.maximum(variance, 1e-15))

    def ends(level: float) -> tuple[float, float]:
        reach = student_quantile(0.5 + level / 2, freedom) if freedom else normal_quantile(0.5 + level / 2)
        low, high = np.interp([-reach, reach], distance, gaps[:, 0], left=-1, right=1)
        return min(value, float(low)), max(value, float(high))

    return ends
