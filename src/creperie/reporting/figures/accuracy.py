"""Figures of accuracy by subset with intervals, compared with chance and with human accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.reporting.figures.style import (
    INK,
    SOFT,
    Marks,
    beside,
    colour,
    legend_below,
    line_axis,
    marker,
    new_axes,
    percent_axis,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Series:
    """The accuracies of one model: a mapping from subset to (value, low, high)."""

    name: str
    values: Mapping[str, tuple[float, float, float]]
    counts: Mapping[str, str] = field(default_factory=dict)  #: subset → the number of items, as text


@dataclass(frozen=True)
class Levels:
    """What to compare the models' accuracies with: chance and human accuracy, by subset."""

    chance: Mapping[str, float] = field(default_factory=dict)
    human: Mapping[str, float] = field(default_factory=dict)


NO_LEVELS = Levels()


@styled
def accuracy_by_subset(series: Sequence[Series], levels: Levels = NO_LEVELS, *, title: str = "") -> Figure:
    """Return a figure with one row per subset and, in each row, one dot per model. Ticks mark chance; diamonds mark
    human accuracy.
    """
    subsets = list(dict.fromkeys(subset for one in series for subset in one.values))
    tall = max(0.32, 0.17 * len(series) + 0.14)
    figure, axes = new_axes(6.6, 1.2 + tall * len(subsets) + 0.2 * math.ceil(len(series) / 4))
    marks = _levels(axes, subsets, levels)
    for k, one in enumerate(series):
        shift = beside(k, len(series), 0.64)
        marks[one.name] = _points(axes, one, subsets, shift, k)
    line_axis(axes, [_with_count(subset, series) for subset in subsets])
    axes.set(xlim=(-0.02, 1.02), title=title)
    percent_axis(axes)
    axes.tick_params(axis="y", length=0)
    legend_below(figure, marks)
    return figure


def _with_count(subset: str, series: Sequence[Series]) -> str:
    """Return the label of a subset: its name and number of items. If models differ, there are several numbers."""
    counts = list(dict.fromkeys(one.counts[subset] for one in series if subset in one.counts))
    return f"{subset}  (n = {', '.join(counts)})" if counts else subset


def _levels(axes: Axes, subsets: Sequence[str], levels: Levels) -> Marks:
    """Draw ticks at chance and diamonds at human accuracy. Return them for the legend."""
    marks: Marks = {}
    styles: tuple[tuple[str, Mapping[str, float], dict[str, Any]], ...] = (
        ("chance", levels.chance, {"marker": "|", "markersize": 13, "markeredgewidth": 1.6, "color": SOFT}),
        ("people", levels.human, {"marker": "D", "markersize": 6, "markerfacecolor": "none", "color": INK}),
    )
    for name, by, style in styles:
        known = [(by[s], y) for y, s in enumerate(subsets) if s in by and not math.isnan(by[s])]
        if known:
            (marks[name],) = axes.plot(*zip(*known, strict=True), linestyle="none", zorder=2, **style)
    return marks


def _points(axes: Axes, one: Series, subsets: Sequence[str], shift: float, k: int) -> Any:
    rows = [y + shift for y, subset in enumerate(subsets) if subset in one.values]
    shown = [one.values[subset] for subset in subsets if subset in one.values]
    values = [value for value, _, _ in shown]
    ends = [[0.0 if math.isnan(end) else max(0.0, end) for end in (v - low, high - v)] for v, low, high in shown]
    spans = np.reshape(ends, (-1, 2)).T
    style: Any = {"color": colour(k), "markersize": 5.5, "elinewidth": 1.6, "alpha": 0.95, "zorder": 3}
    return axes.errorbar(values, rows, xerr=spans, fmt=marker(k), **style)
