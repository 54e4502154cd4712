"""The means of two factors' combinations, as a fitted model estimates them: what an interaction plot shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creperie.statistics.design import Design
from creperie.statistics.fit import Fit


@dataclass(frozen=True)
class FactorCell:
    """One combination: rows, their plain mean, and the estimated mean with its 95 % interval.

    The estimate is the model's for an average group if all rows had these levels and were otherwise as they are; of a
    logistic model it is a probability.
    """

    x: str
    line: str
    n: int
    raw: float
    estimate: float
    low: float
    high: float


def cell_means(design: Design, fit: Fit, x: str, line: str) -> tuple[FactorCell, ...]:
    """The means of every combination of two factors that has rows."""
    beta = np.array([c.estimate for c in fit.coefficients])
    first, second = design.parts[x], design.parts[line]
    found = []
    for b, line_level in enumerate(second.levels):
        for a, level in enumerate(first.levels):
            mine = (first.code == a) & (second.code == b)
            if not mine.any():
                continue
            row = design.mean_row({x: level, line: line_level})
            middle = float(row @ beta)
            reach = 1.959964 * float(np.sqrt(row @ fit.covariance @ row))
            values = [middle, middle - reach, middle + reach]
            if fit.family == "logistic":
                values = [0.5 * (1.0 + float(np.tanh(0.5 * v))) for v in values]
            found.append(FactorCell(level, line_level, int(mine.sum()), float(design.y[mine].mean()), *values))
    return tuple(found)
