"""From an attacker's margins on a subset to its accuracy, confidence interval, p-value against chance, and bits of
information.

An attacker such as "length" has two directions (the longer or the shorter caption). The accuracy is that of the better
direction on these items, so it is never below one half. Choosing the better direction raises no false alarms, because
the test is two-sided, and the interval is mirrored together with the direction. `raw` is the accuracy in the direction
that the attacker's name states.

If true and false are assigned at random, the accuracy of a learned attacker varies more than the share of heads in the
same number of coin flips. `null_spreads` estimates by what factor: it exchanges true and false at random and refits a
linear model. The attacker's interval and p-value are corrected by this factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.auditing.attackers import Attacker, learns
from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.null import null_spreads
from creperie.auditing.pairs import Pairs, item_mean, item_wins
from creperie.core import Progress, silent
from creperie.metrics import cluster_sums, normal_quantile, share_interval, sign_flip_p

#: The smallest scale, above zero so that uninformative margins keep their order.
LEAST = 1e-3
LEVEL = 0.95
#: Keeps the scale finite if every held-out pair was answered right.
RIDGE = 1e-4


def log_loss(margins: np.ndarray) -> float:
    """Return the mean of −ln P(true caption). A margin is the log-odds of the true caption."""
    return float(np.mean(np.logaddexp(0.0, -margins))) if len(margins) else float(np.log(2))


def fit_scale(margins: np.ndarray, *, signed: bool = False) -> float:
    """Return the factor for held-out margins that makes their log loss smallest.

    The loss is convex in the factor. There is no intercept, because exchanging the captions must negate the margin.
    With `signed`, the factor may be negative: the attacker is right more often if its answers are reversed.

    >>> bool(fit_scale(np.array([1.0, 1.0, 1.0, -1.0])) > 0.9)  # right three times in four: ln 3
    True
    """
    size = np.sqrt(np.mean(np.square(margins))) if len(margins) else 0.0
    if not size > 0:
        return 1.0
    x = np.asarray(margins, np.float64) / size
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


def bits(margins: np.ndarray) -> np.ndarray:
    """Return the information in bits that each pair reveals: 1 + log2 P(true caption). It is negative if that
    probability is below 1/2.
    """
    return 1.0 - np.logaddexp(0.0, -np.asarray(margins, np.float64)) / np.log(2.0)


@dataclass(frozen=True, eq=False)
class AttackerMargins:
    """An attacker's margins for some pairs, both as returned (`raw`) and as log-odds calibrated out of fold."""

    pairs: Pairs
    raw: np.ndarray
    log_odds: np.ndarray
    directed: bool
    spreads: np.ndarray  #: per item: the standard deviation of the accuracy under random roles, relative to coin flips

    @cached_property
    def direction(self) -> int:
        """1 if the attacker's own preference (`Attacker.prefers`) does better on these items, −1 if the opposite
        preference does.
        """
        if self.directed or not len(self.pairs):
            return 1
        return 1 if np.nanmean(item_wins(self.pairs, self.raw)) >= 0.5 else -1

    @property
    def margins(self) -> np.ndarray:
        """The raw margins. Their signs are reversed if the opposite of the attacker's preference does better on these
        items.
        """
        return self.raw * np.float32(self.direction)

    def of_items(self, keep: np.ndarray) -> AttackerMargins:
        chosen = keep[self.pairs.item]
        return AttackerMargins(
            self.pairs.of_items(keep), self.raw[chosen], self.log_odds[chosen], self.directed, self.spreads[keep]
        )


@dataclass(frozen=True)
class Measure:
    """The results of one attacker on one subset. Proportions are from 0 to 1. `p` is the p-value against chance,
    without correction for the other tests of the audit.
    """

    n: int
    pairs: int
    accuracy: float
    low: float
    high: float
    ties: int
    nans: int
    raw: float
    direction: int  #: 1: the named direction, −1: the opposite one
    bits: float
    bits_low: float
    bits_high: float
    p: float


def calibrated(
    pairs: Pairs, margins: np.ndarray, *, directed: bool, seed: int = 0, learned: bool | None = None
) -> AttackerMargins:
    """Return the margins together with log-odds. With `directed`, the margins are log-odds already. Otherwise log-odds
    are computed from them out of fold, separately for each subset.

    If `learned` is None, a directed attacker is assumed to have learned from these pairs.
    """
    raw = np.asarray(margins, np.float32)
    spreads = null_spreads(pairs, seed) if (directed if learned is None else learned) else np.ones(pairs.n_items)
    if directed:
        return AttackerMargins(pairs, raw, np.nan_to_num(raw.astype(np.float64)), directed, spreads)
    log_odds = np.zeros(len(raw))
    ordered, _, place = pairs.by_content
    for s in np.unique(pairs.subset):
        members = np.flatnonzero(ordered.subset[ordered.item] == s)
        fold = grouped_folds(ordered.own_group[ordered.item[members]], fold_count(int((pairs.subset == s).sum())), seed)
        for k in range(int(fold.max()) + 1 if len(fold) else 0):
            seen, held_out = place[members[fold != k]], place[members[fold == k]]
            scale = fit_scale(np.nan_to_num(raw[seen]), signed=True) if len(seen) else 0.0
            log_odds[held_out] = np.nan_to_num(raw[held_out].astype(np.float64)) * scale
    return AttackerMargins(pairs, raw, log_odds, directed, spreads)


def answers_of(attacker: Attacker, pairs: Pairs, seed: int, progress: Progress = silent) -> AttackerMargins:
    """Run an attacker on the pairs and return its answers."""
    margins = attacker.margins(pairs, progress)
    return calibrated(pairs, margins, directed=attacker.directed, seed=seed, learned=learns(attacker))


def measure_attacker(answers: AttackerMargins, p_factor: float = 1) -> Measure:
    """Return the results of an attacker on these items; items without a pair are left out.

    `p_factor` corrects for earlier tests on the same items (see `last_look`): the p-value is multiplied by it, and the
    interval is widened to match.
    """
    pairs = answers.pairs
    there = pairs.per_item > 0
    clusters = pairs.cluster[there]
    wins, raw = (item_wins(pairs, m)[there] for m in (answers.margins, answers.raw))
    spread = float(np.sqrt(np.mean(answers.spreads[there] ** 2))) if there.any() else 1.0
    level = math.erf(normal_quantile(1 - (1 - LEVEL) / 2 / p_factor) * spread / math.sqrt(2))
    reached = share_interval(wins, clusters, min(level, 1 - 1e-12))
    given = item_mean(pairs, bits(answers.log_odds))[there]
    leaked = bits_interval(given, clusters)
    return Measure(
        n=len(wins),
        pairs=len(pairs),
        accuracy=mean_of(wins),
        low=reached.low,
        high=reached.high,
        ties=int((answers.margins == 0).sum()),
        nans=int(np.isnan(answers.margins).sum()),
        raw=mean_of(raw),
        direction=answers.direction,
        bits=max(0.0, mean_of(given)),
        bits_low=leaked[0],
        bits_high=leaked[1],
        p=min(1.0, p_factor * against_chance(raw, clusters, spread=spread)),
    )


def bits_interval(given: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Return a confidence interval of the mean of `given`, the bits of each item. Limits below 0 become 0."""
    # `given` is scaled to the range from 0 to 1, the interval of a proportion is computed, and its limits are scaled
    # back.
    least, most = (float(np.min(given)), float(np.max(given))) if len(given) else (math.nan, math.nan)
    width = (most - least) or 1.0
    interval = share_interval((given - least) / width, clusters)
    low, high = (least + width * end for end in (interval.low, interval.high))
    return (math.nan, math.nan) if math.isnan(low + high) else (max(0.0, low), max(0.0, high))


def against_chance(wins: np.ndarray, clusters: np.ndarray, *, spread: float = 1.0) -> float:
    """Return the two-sided p-value of the wins under the hypothesis that true and false are assigned at random. It is
    NaN without items.

    Under this hypothesis, the sum of (win − 1/2) over the items of a cluster is equally likely to be positive or
    negative. True and false are exchanged in a whole cluster at once, because its items are not independent.

    The accuracy of a learned attacker varies more than coin flips, by the factor `spread`. The normal score of the
    p-value is divided by it.

    >>> round(against_chance(np.array([1.0] * 8), np.arange(8)), 5)  # 2 / 2**8
    0.00781
    """
    if not len(wins):
        return math.nan
    p = sign_flip_p(cluster_sums(np.asarray(wins, np.float64)[:, None] - 0.5, clusters)[:, 0])
    if spread == 1.0 or p in (0.0, 1.0):
        return p
    return math.erfc(-normal_quantile(max(p, 1e-300) / 2) / spread / math.sqrt(2))


def smallest_detectable(n: int, tests: int, threshold: float = 0.5) -> float:
    """Return the true accuracy of the smallest leak that an audit of n items finds with a probability of 80 %. A leak
    is found if its measured accuracy is above the threshold and differs significantly from chance after correction for
    `tests` tests.

    >>> round(smallest_detectable(245, 50), 3), round(smallest_detectable(200_000, 50, 0.55), 3)
    (0.632, 0.551)
    """
    if not n:
        return 1.0
    error = math.sqrt(0.25 / n)
    margin = normal_quantile(0.8) * error
    significant = 0.5 + normal_quantile(1 - 0.05 / 2 / max(1, tests)) * error + margin
    return min(1.0, max(significant, threshold + margin))


def effective_items(figures: Iterable[Measure], n: int) -> int:
    """Return the effective number of items: how many independent answers would be as informative as these n items.

    The number is smaller than n because items share images, and because learned attackers vary more than coin flips. It
    is computed from the attacker with the widest interval among those whose accuracy is near chance.
    """
    z = 2 * normal_quantile(0.5 + LEVEL / 2)
    near = [m for m in figures if abs(m.accuracy - 0.5) < 0.2 and m.high > m.low]
    return int(min([n, *(m.accuracy * (1 - m.accuracy) * (z / (m.high - m.low)) ** 2 for m in near)]))


def mean_of(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64)) if len(values) else math.nan


BINS = 20
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Distribution:
    """The distribution of a value over many items or pairs, summarised by a few numbers."""

    n: int
    mean: float
    quantiles: tuple[float, ...]  #: at 5, 25, 50, 75 and 95 %


def distribution(values: Sequence[float] | np.ndarray) -> Distribution:
    """Return the distribution of the finite values."""
    numbers = finite(values)
    points = np.quantile(numbers, QUANTILES) if len(numbers) else np.full(len(QUANTILES), np.nan)
    return Distribution(len(numbers), mean_of(numbers), tuple(points.tolist()))


def finite(values: Sequence[float] | np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, np.float64)
    return numbers[np.isfinite(numbers)]


@dataclass(frozen=True)
class GapShape(Distribution):
    """The distribution of one attacker's gaps on one subset. The gap of an item is its mean margin (see `item_gaps`).

    `histogram` counts gap / scale in bins of equal width from −1 to 1. The scale is the largest absolute gap, so zero
    stays in the middle. For the attacker `lm-mean`, gap / scale is the SyntaxBias score.
    """

    positive: float
    zero: float
    negative: float
    scale: float
    histogram: tuple[int, ...]


def gap_shape(gaps: np.ndarray) -> GapShape:
    """Return the distribution of the finite gaps; if there are none, its figures are NaN and its histogram is empty."""
    numbers = finite(gaps)
    scale = float(np.abs(numbers).max()) if len(numbers) else math.nan
    counts = np.histogram(numbers / (scale or 1.0), bins=BINS, range=(-1, 1))[0] if len(numbers) else numbers
    whole, signs = distribution(numbers), np.sign(numbers)
    positive, zero, negative = (mean_of(signs == sign) for sign in (1, 0, -1))
    return GapShape(whole.n, whole.mean, whole.quantiles, positive, zero, negative, scale, tuple(counts.tolist()))
