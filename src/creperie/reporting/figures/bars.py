"""Accuracies by subset with intervals, compared with chance and with human accuracy. Bar charts: accuracies by case,
the effect of noise in place of images, counts of words, and gains from training.
"""

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
    hatch,
    heading,
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


# -- bars ------------------------------------------------------------------------------------------------------------


@styled
def grouped_bars(series: Sequence[Series], *, chance: Mapping[str, float] | None = None, title: str = "") -> Figure:
    """Return a bar chart with one group of bars per model. Each group has one bar per case, such as a subset. `chance`
    maps cases to chance accuracies, which are drawn as dotted lines.
    """
    cases = list(dict.fromkeys(case for one in series for case in one.values))
    figure, axes = new_axes(max(4.6, 1.4 + 0.42 * len(cases) * len(series)), 3.2)
    step = 0.8 / max(1, len(cases))
    marks: Marks = {}
    for x, one in enumerate(series):
        for k, case in enumerate(cases):
            if case not in one.values:
                continue
            value, low, high = one.values[case]
            at = x + beside(k, len(cases))
            sure = None if math.isnan(low) else [[max(0.0, value - low)], [max(0.0, high - value)]]
            style: Any = {"color": colour(k), "hatch": hatch(k), "edgecolor": INK, "linewidth": 0.7, "ecolor": INK}
            marks[case] = axes.bar(at, value, 0.9 * step, yerr=sure, **style)
            if chance and case in chance:
                axes.plot([at - step / 2, at + step / 2], [chance[case]] * 2, color=INK, linewidth=1.4, linestyle=":")
    axes.set_xticks(range(len(series)), [one.name for one in series])
    axes.set(ylim=(0, 1.02), title=title)
    percent_axis(axes, "y")
    legend_below(figure, {case: marks[case] for case in cases if case in marks})
    return figure


@styled
def drops(rows: Sequence[tuple[str, float, float]], *, chance: float = math.nan, title: str = "") -> Figure:
    """Return a figure with one line per model. The line goes from the accuracy with images (filled dot) to the accuracy
    with noise in place of the images (hollow dot). `rows` are (model, accuracy with images, accuracy with noise).
    """
    figure, axes = new_axes(6.2, 1.2 + 0.3 * len(rows))
    marks: Marks = {}
    for y, (_, seen, noise) in enumerate(rows):
        axes.plot([noise, seen], [y, y], color=SOFT, linewidth=2.2, zorder=1)
        (marks["noise"],) = axes.plot(noise, y, "o", markerfacecolor="white", color=colour(5), markersize=7)
        (marks["images"],) = axes.plot(seen, y, "o", color=colour(0), markersize=7)
        axes.annotate(
            f"{100 * (noise - seen):+z.1f}", (max(noise, seen), y), (7, -3), textcoords="offset points", fontsize=8
        )
    if not math.isnan(chance):
        marks["chance"] = axes.axvline(chance, color=SOFT, linestyle=":", linewidth=1.2)
    line_axis(axes, [name for name, _, _ in rows])
    axes.set_xlim(-0.02, 1.12)
    percent_axis(axes, "x")
    heading(figure, title)
    legend_below(figure, marks)
    return figure


@styled
def counts(frequencies: Mapping[str, Mapping[str, float]], *, label: str, title: str = "") -> Figure:
    """Return a bar chart of how often each word or category occurs in each set of captions. `frequencies` maps the name
    of a set to the frequencies of its words or categories. `label` names the axis of frequencies.
    """
    names = list(dict.fromkeys(name for by in frequencies.values() for name in by))
    figure, axes = new_axes(6.2, 1.1 + (0.16 + 0.14 * len(frequencies)) * len(names))
    step = 0.8 / max(1, len(frequencies))
    marks: Marks = {}
    for k, (name, by) in enumerate(frequencies.items()):
        places = [y + beside(k, len(frequencies)) for y in range(len(names))]
        values = [by.get(name, 0.0) for name in names]
        style: Any = {"color": colour(k), "hatch": hatch(k), "edgecolor": INK, "linewidth": 0.5}
        marks[name] = axes.barh(places, values, 0.92 * step, **style)
    line_axis(axes, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set(xlabel=label, title=title)
    if len(frequencies) > 1:
        legend_below(figure, marks)
    return figure


#: test → colour and marker; any other test gets the third of each
TESTS = {"biased": (5, "s"), "clean": (0, "o")}
NEAR = 6.0  #: dots closer than this many points share a label
NAMED = 5.0  #: dots beyond this many points are labelled


@dataclass(frozen=True)
class Gain:
    """A gain from training with foils, compared with training without foils. It is the gain in accuracy on one kind of
    foil in one test, in percentage points with an interval.
    """

    test: str
    kind: str
    value: float
    low: float
    high: float


@styled
def gains_by_arm(arms: Mapping[str, Sequence[Gain]], *, mark: float | None = None) -> Figure:
    """Return a figure with one band per arm (type of training foils). A band has one row per test. A row has one dot
    for each kind of test foil, placed at the gain over training without foils. If `mark` is given, a dashed line is
    drawn at that gain.
    """
    tests = list(dict.fromkeys(gain.test for own in arms.values() for gain in own))
    figure, axes = new_axes(7.0, 1.2 + (0.12 + 0.24 * len(tests)) * len(arms))
    marks: Marks = {}
    for y, own in enumerate(arms.values()):
        if y:
            axes.axhline(y - 0.5, color=SOFT, linewidth=0.3)
        for k, test in enumerate(tests):
            at = y + beside(k, len(tests), 0.7)
            shade, shape = TESTS.get(test, (2, "^"))
            for gain in (g for g in own if g.test == test):
                axes.plot([gain.low, gain.high], [at, at], color=colour(shade), linewidth=1.2, alpha=0.6)
                (marks[test],) = axes.plot(gain.value, at, shape, color=colour(shade), markersize=5.5, alpha=0.85)
            for right, kinds in _names([g for g in own if g.test == test and abs(g.value) > NAMED]):
                axes.annotate(kinds, (right, at), (5, -3), textcoords="offset points", fontsize=7.5)
    axes.axvline(0, color=INK, linewidth=0.9)
    if mark is not None:
        marks[f"{mark:g} points"] = axes.axvline(mark, color=SOFT, linewidth=1.0, linestyle="--")
    line_axis(axes, arms)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.margins(x=0.12)
    axes.set_xlabel("points gained over the same training without foils")
    legend_below(figure, marks)
    return figure


def _names(gains: Sequence[Gain]) -> list[tuple[float, str]]:
    """Return (position, text) pairs for labels. Kinds of foil whose dots are close share one label. The position is the
    largest upper end of their intervals, to the right of all their dots.

    >>> _names([Gain("", "swap", 7, 6, 8), Gain("", "negate", 9, 8, 9.5), Gain("", "add", 30, 29, 31)])
    [(9.5, 'swap, negate'), (31, 'add')]
    """
    labels: list[tuple[float, float, str]] = []
    for gain in sorted(gains, key=lambda g: g.value):
        if labels and gain.value - labels[-1][0] < NEAR:
            _, right, kinds = labels.pop()
            labels.append((gain.value, max(right, gain.high), f"{kinds}, {gain.kind}"))
        else:
            labels.append((gain.value, gain.high, gain.kind))
    return [(right, kinds) for _, right, kinds in labels]
