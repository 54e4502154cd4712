"""Correlations between columns of model scores, with intervals, and the models' changes of rank from one column to
another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.core import UsageError
from creperie.metrics.settings import DEFAULT, MetricSettings
from creperie.metrics.special import normal_quantile, student_two_sided

Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Correlation:
    """A correlation over `n` pairs, with its interval and the method of the interval. `p` is the p-value of the
    hypothesis that there is no correlation.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    kind: str
    interval: str


def pearson(x: Numbers, y: Numbers, settings: MetricSettings = DEFAULT) -> Correlation:
    """Return Pearson's correlation with Fisher's z interval; pairs with a NaN are left out.

    >>> round(pearson([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 3)
    0.8
    """
    return _correlation(x, y, "pearson", settings)


def spearman(x: Numbers, y: Numbers, settings: MetricSettings = DEFAULT) -> Correlation:
    """Return Spearman's rank correlation, with the z interval of Bonett and Wright. Equal values share their mean rank.

    With up to nine pairs, the p-value is exact.

    >>> round(spearman([1, 2, 3, 4], [1, 2, 3, 4]).p, 4)  # 2 of 24 orders
    0.0833
    """
    return _correlation(x, y, "spearman", settings)


def _correlation(first: Numbers, second: Numbers, kind: str, how: MetricSettings) -> Correlation:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise UsageError(
            f"the two columns have {x.size} and {y.size} values", hint="give two columns, one value per model in each"
        )
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    n = len(x)
    if kind == "spearman":
        x, y = ranks_of(x), ranks_of(y)
    value = _value(x, y) if n > 1 else math.nan
    if n < 3 or math.isnan(value):
        return Correlation(value, math.nan, math.nan, math.nan, n, kind, "none (too few or constant values)")
    if kind == "spearman" and n <= MOST_ORDERED:
        p = _order_p(x, y)
    else:
        p = student_two_sided(math.inf if abs(value) >= 1 else value * math.sqrt((n - 2) / (1 - value**2)), n - 2)
    if kind == "spearman":
        p = max(p, 2 / math.factorial(n))  # of a perfect order
    low, high = _fisher(value, n, kind, how.level, p)
    name = "none (too few values)" if math.isnan(low) else "fisher z" if kind == "pearson" else "bonett-wright z"
    return Correlation(value, low, high, p, n, kind, name)


#: Maximum number of pairs of which all orders are counted (362,880).
MOST_ORDERED = 9


def _order_p(x: np.ndarray, y: np.ndarray) -> float:
    """Return an exact p-value: the fraction of all orders of `x` whose correlation with `y` is at least as far from 0
    as the observed correlation.
    """
    orders = np.zeros((1, 1), np.int8)
    for k in range(1, len(x)):
        orders = np.concatenate([np.insert(orders, place, k, axis=1) for place in range(k + 1)])
    x, y = x - x.mean(), y - y.mean()
    return float(np.mean(np.abs(x[orders] @ y) >= abs(x @ y) - 1e-9))


def _value(x: np.ndarray, y: np.ndarray) -> float:
    """Return the correlation of two columns; NaN if one of them is constant."""
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float((x * x).sum() * (y * y).sum()))
    return min(1.0, max(-1.0, float((x * y).sum()) / scale)) if scale > 0 else math.nan


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Return the ranks of the values, from 1 for the lowest. Equal values share their mean rank.

    >>> ranks_of(np.array([10.0, 30.0, 10.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def _fisher(value: float, n: int, kind: str, level: float, p: float) -> tuple[float, float]:
    """Return the confidence interval of a correlation, computed on Fisher's z scale. `kind` is Pearson or Spearman.

    The interval and the p-value `p` may disagree on whether the correlation differs from 0. The end nearer to 0 is then
    computed again, with the standard error that the p-value implies.
    """
    if n < 4 or (kind == "pearson" and abs(value) >= 1):
        return (value, value) if n > 3 else (math.nan, math.nan)
    # A perfect order has no finite place on this scale: half a step below it has.
    size = min(abs(value), 1 - 6 / (n**3 - n)) if kind == "spearman" else abs(value)
    spread = 1.0 if kind == "pearson" else 1 + value**2 / 2
    place, reach = math.atanh(size), normal_quantile(0.5 + level / 2)
    half = reach * math.sqrt(spread / (n - 3))
    near, far = math.tanh(place - half), max(abs(value), math.tanh(place + half))
    if value and (near > 0) != (p < 1 - level - 1e-12):
        near = math.tanh(place * (1 - reach / normal_quantile(1 - p / 2)))
    return (near, far) if value >= 0 else (-far, -near)


def aligned(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the names that both mappings have, in the order of the first, followed by the values of each mapping. Use
    it to compare a benchmark with an external column such as ImageNet accuracy.
    """
    names = [name for name in a if name in b]
    return names, np.array([a[n] for n in names], np.float64), np.array([b[n] for n in names], np.float64)


@dataclass(frozen=True)
class Ranking:
    """A model's values and ranks in every column. Rank 1 is the highest, and equal values share the better rank.
    `gains` is the number of ranks that the model gains (+) or loses (−) compared with the first column.
    """

    name: str
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    gains: tuple[int, ...]


def rank_table(columns: Mapping[str, Mapping[str, float]]) -> list[Ranking]:
    """Return the rank of each model in each column. A column maps models to values. Only models that have a value in
    all columns are ranked.

    Gains are the ranks that a model rises or falls compared with the first column.

    >>> for row in rank_table({"SC": {"x": 0.9, "y": 0.8}, "SC++": {"x": 0.4, "y": 0.6}}):
    ...     print(row.name, row.ranks, row.gains)
    x (1, 2) (0, -1)
    y (2, 1) (0, 1)
    """
    if not columns:
        return []
    first = next(iter(columns.values()))
    names = [n for n in first if all(n in c and not math.isnan(c[n]) for c in columns.values())]
    values = np.array([[c[n] for c in columns.values()] for n in names]).reshape(len(names), len(columns))
    ranks = 1 + (values[None, :, :] > values[:, None, :]).sum(axis=1)
    rows = [
        Ranking(name, tuple(v.tolist()), tuple(r.tolist()), tuple((r[0] - r).tolist()))
        for name, v, r in zip(names, values, ranks, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.ranks, row.name))
