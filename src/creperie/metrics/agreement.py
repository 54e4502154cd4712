"""How far raters agree: Cohen's and Fleiss' kappa and Krippendorff's alpha, with intervals over items or clusters.

Ratings are a matrix (items, raters) of numbers; NaN marks a missing rating.

For nominal ratings, and for perfect agreement on any scale, the interval comes from the likelihood of the agreeing and
disagreeing pairs (kappa.py). If nearly all answers are the same, it is wide even for perfect agreement, because such
answers say little about kappa. In all other cases the coefficient is scaled to [0, 1] and gets the interval of a
proportion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError, check_name, unknown
from creperie.metrics.intervals import Confidence, Interval, Statistic, over, pulled_confidence, pulls, share_interval
from creperie.metrics.kappa import FEWEST, nominal_confidence
from creperie.metrics.layout import cluster_labels
from creperie.metrics.settings import DEFAULT, MetricSettings

Scale = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement over the `n` items that at least two raters rated, with its interval.

    `interval` names the method, or says why `low` and `high` are NaN.
    """

    value: float
    low: float
    high: float
    n: int
    kind: str
    interval: str


def percent_agreement(
    ratings: np.ndarray, clusters: np.ndarray | None = None, settings: MetricSettings = DEFAULT
) -> Agreement:
    """Return the fraction of pairs of raters that agree, with equal weight for each item."""
    matrix, own = _rated(ratings, clusters)
    counts = _counts(matrix)
    raters = counts.sum(axis=1)
    agree = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))
    if not len(agree):
        return _none("percent agreement")
    interval = share_interval(agree, own, settings.level)
    return Agreement(float(agree.mean()), interval.low, interval.high, len(agree), "percent agreement", interval.method)


def cohen_kappa(
    a: np.ndarray,
    b: np.ndarray,
    weights: Literal["none", "linear", "quadratic"] = "none",
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Agreement:
    """Return Cohen's kappa of two raters. `weights` says how much a disagreement counts. With `none`, all disagreements
    count the same. With `linear`, they count in proportion to the difference between the ranks of the two ratings, and
    with `quadratic`, in proportion to its square.

    >>> round(cohen_kappa(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])).value, 3)
    0.5
    """
    powers = {"none": 0, "linear": 1, "quadratic": 2}
    check_name("weighting", weights, powers)
    matrix, own = _rated(np.stack([np.asarray(a, np.float64), np.asarray(b, np.float64)], axis=1), clusters)
    values, codes = np.unique(matrix, return_inverse=True)
    codes = codes.reshape(matrix.shape)
    size = len(values)
    place = np.arange(size)
    apart = np.abs(place[:, None] - place[None, :])
    distance = (apart > 0).astype(float) if weights == "none" else apart.astype(float) ** powers[weights]
    columns = np.eye(size * size)[codes[:, 0] * size + codes[:, 1]]

    def kappa(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(*sums.shape[:-1], size, size)
        seen = (table * distance).sum(axis=(-2, -1))
        expected = (table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :] * distance).sum(axis=(-2, -1))
        return 1 - over(seen * table.sum(axis=(-2, -1)), expected)

    kind = "cohen kappa" if weights == "none" else f"cohen kappa ({weights} weights)"
    return _agreement(matrix, columns, kappa, own, kind, settings, nominal=weights == "none")


def fleiss_kappa(
    ratings: np.ndarray, clusters: np.ndarray | None = None, settings: MetricSettings = DEFAULT
) -> Agreement:
    """Return Fleiss' kappa of items that all have the same number of ratings. The ratings of different items need not
    come from the same people.
    """
    matrix, own = _rated(ratings, clusters)
    counts = _counts(matrix)
    raters = counts.sum(axis=1)
    if len(np.unique(raters)) > 1:
        raise UsageError(
            f"Fleiss' kappa needs the same number of ratings for every item, but these have {raters.min():.0f} to "
            f"{raters.max():.0f}",
            hint="use krippendorff_alpha, which allows for missing ratings",
        )
    each = float(raters[0]) if len(raters) else math.nan
    agree = ((counts**2).sum(axis=1) - each) / (each * (each - 1))
    columns = np.concatenate([agree[:, None], counts], axis=1)

    def kappa(sums: np.ndarray) -> np.ndarray:
        total = sums[..., 1:].sum(axis=-1)
        seen = over(sums[..., 0] * each, total)
        expected = (over(sums[..., 1:], total[..., None]) ** 2).sum(axis=-1)
        return 1 - over(1 - seen, 1 - expected)

    return _agreement(matrix, columns, kappa, own, "fleiss kappa", settings, nominal=True)


def krippendorff_alpha(
    ratings: np.ndarray,
    scale: Scale = "nominal",
    clusters: np.ndarray | None = None,
    settings: MetricSettings = DEFAULT,
) -> Agreement:
    """Return Krippendorff's alpha for ratings on a nominal, ordinal or interval scale; missing ratings are allowed.

    >>> round(krippendorff_alpha(np.array([[1, 1], [2, 2], [1, 2], [2, 2]])).value, 3)
    0.533
    """
    matrix, own = _rated(ratings, clusters)
    if scale == "interval":
        return _agreement(matrix, _moments(matrix), _interval_alpha, own, "krippendorff alpha (interval)", settings)
    if scale not in ("nominal", "ordinal"):
        raise unknown("scale", scale, ("nominal", "ordinal", "interval"))
    counts = _counts(matrix)
    size = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(size) * counts[:, :, None]
    columns = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(len(counts), size * size)

    def alpha(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(*sums.shape[:-1], size, size)
        each = table.sum(axis=-1)
        total = each.sum(axis=-1)
        apart = _ordinal_distance(each) if scale == "ordinal" else 1.0 - np.eye(size)
        seen = (table * apart).sum(axis=(-2, -1))
        expected = (each[..., :, None] * each[..., None, :] * apart).sum(axis=(-2, -1))
        return 1 - over(seen * (total - 1), expected)

    kind = f"krippendorff alpha ({scale})"
    return _agreement(matrix, columns, alpha, own, kind, settings, nominal=scale == "nominal")


def _ordinal_distance(each: np.ndarray) -> np.ndarray:
    """Return the matrix of squared distances between the values of an ordinal scale. `each` is the number of ratings
    with each value.

    The distance between two different values is the number of ratings that lie between them, plus half of the ratings
    with either of the two values.
    """
    middle = np.cumsum(each, axis=-1) - each / 2
    return (middle[..., :, None] - middle[..., None, :]) ** 2


def _moments(matrix: np.ndarray) -> np.ndarray:
    """Return four columns with one row per item: 2 (m s₂ − s₁²) / (m − 1), m, s₁ and s₂. Here m is the number of the
    item's ratings, s₁ their sum, and s₂ the sum of their squares. The mean of all ratings is subtracted from each
    rating beforehand.
    """
    # The first column is the sum of (x − y)² over all ordered pairs of the item's ratings, divided by m − 1.
    # Centred on the overall mean: squares of large ratings would lose the differences to rounding.
    centred = matrix - np.nanmean(matrix) if len(matrix) else matrix
    m = (~np.isnan(matrix)).sum(axis=1)
    first, second = np.nansum(centred, axis=1), np.nansum(centred**2, axis=1)
    within = 2 * (m * second - first**2) / (m - 1)
    return np.stack([within, m.astype(np.float64), first, second], axis=1)


def _interval_alpha(sums: np.ndarray) -> np.ndarray:
    within, n, first, second = np.moveaxis(sums, -1, 0)
    return 1 - over(within * (n - 1), 2 * (n * second - first**2))


def _rated(ratings: np.ndarray, clusters: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratings of the items that at least two raters rated, and the clusters of these items."""
    matrix = np.asarray(ratings, np.float64)
    if matrix.ndim != 2:
        raise UsageError(
            f"ratings have {matrix.ndim} axes, not 2", hint="give a matrix of items × raters, NaN for no rating"
        )
    enough = (~np.isnan(matrix)).sum(axis=1) >= 2
    return matrix[enough], cluster_labels(clusters, len(matrix))[enough]


def _counts(matrix: np.ndarray) -> np.ndarray:
    """Return how many raters gave each value to each item: an array (items, values), with values in ascending order."""
    values = np.unique(matrix[~np.isnan(matrix)])
    return (matrix[:, :, None] == values).sum(axis=1).astype(float)


def _agreement(
    matrix: np.ndarray,
    columns: np.ndarray,
    statistic: Statistic,
    clusters: np.ndarray,
    kind: str,
    settings: MetricSettings,
    nominal: bool = False,
) -> Agreement:
    if not len(columns):
        return _none(kind)
    value, sizes = float(statistic(columns.sum(axis=0))), np.ones(len(columns))
    pull, counts = pulls(columns, statistic, sizes), _counts(matrix)
    unlike = int((counts[:, counts.sum(axis=0).argmax()] < counts.sum(axis=1)).sum())
    if math.isnan(value):
        confidence = Confidence(value, "none (all answers are the same)")
    elif unlike < FEWEST:
        few = f"none ({unlike} items have an answer other than the commonest, {FEWEST} are needed)"
        confidence = Confidence(value, few)
    elif nominal or value == 1:
        confidence = nominal_confidence(counts, value, pull, clusters, unlike)
    else:
        confidence = pulled_confidence(value, pull, sizes, clusters, (-1, 1))
    interval = confidence.interval(settings.level)
    if interval.low <= -1:
        interval = Interval(math.nan, math.nan, "none (too few answers: any value is possible)")
    return Agreement(value, interval.low, interval.high, len(columns), kind, interval.method)


def _none(kind: str) -> Agreement:
    return Agreement(math.nan, math.nan, math.nan, 0, kind, "none (no item with two ratings)")
