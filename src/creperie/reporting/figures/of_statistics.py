"""Figures of mixed models, items, rankings and power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import UsageError
from creperie.reporting.figures.ranks import rank_changes
from creperie.reporting.figures.style import (
    SOFT,
    Marks,
    colour,
    heading,
    legend_below,
    marker,
    new_axes,
    new_figure,
    percent_axis,
    styled,
)
from creperie.reporting.gather import model_tail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from creperie.statistics import Analysed, ItemStudy, PowerEstimate, Robustness

#: The label of the crosses: observed means, not adjusted by the model.
PLAIN = "plain mean of the rows"
MAX_COLUMNS = 3


@styled
def interactions(fits: Sequence[Analysed], names: tuple[str, str], title: str = "") -> Figure:
    """Return a figure of the estimated mean outcome for every combination of two factors. There is one panel per fitted
    model.

    Bars are 95 % intervals. In the titles, n is the number of observations, such as one model's answers to one caption.
    """
    shown = [fit for fit in fits if fit.cells]
    if not shown:
        raise UsageError(
            f"no fitted model has both factors {names[0]!r} and {names[1]!r}", hint="name two factors of `fixed=`"
        )
    columns = min(MAX_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = new_figure(3.4 * columns + 0.6, 3.0 * rows + 0.9)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    marks: Marks = {}
    for axis, one in zip(axes, shown):
        marks |= _panel(axis, one, names[0])
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    for k in range(0, len(shown), columns):
        axes[k].set_ylabel(_outcome(shown[k]))
    marks[PLAIN] = marks.pop(PLAIN)  # last in the legend
    if title:
        heading(figure, title)
    legend_below(figure, marks, names[1])
    return figure


def _panel(axis: Axes, one: Analysed, factor: str) -> Marks:
    """Draw the panel of one fitted model. Return the entries of the legend: a mapping from label to drawn marker."""
    levels = list(dict.fromkeys(c.x for c in one.cells))
    lines = list(dict.fromkeys(c.line for c in one.cells))
    marks: Marks = {}
    for k, line in enumerate(lines):
        cells = [c for c in one.cells if c.line == line]
        x = [levels.index(c.x) + (k - (len(lines) - 1) / 2) * min(0.08, 0.7 / len(lines)) for c in cells]
        error = [[c.estimate - c.low for c in cells], [c.high - c.estimate for c in cells]]
        style: Any = {"color": colour(k), "marker": marker(k), "linestyle": ("-", "--", "-.", ":")[k % 4]}
        marks[model_tail(line)] = axis.errorbar(x, [c.estimate for c in cells], yerr=error, capsize=3, **style)
        (marks[PLAIN],) = axis.plot(x, [c.raw for c in cells], "x", color=SOFT, markersize=4)
    axis.set_xticks(range(len(levels)), levels)
    axis.set(xlim=(-0.5, len(levels) - 0.5), xlabel=factor)
    doubt = "" if one.fit.convergence.converged else "did not converge"
    sample = f"{model_tail(one.sample)}, n = {one.fit.n:,}"
    axis.set_title("\n".join(filter(None, (sample, one.label, doubt))), fontsize=9)
    axis.grid(axis="y")
    return marks


def _outcome(one: Analysed) -> str:
    if one.analysis.outcome == "chosen":
        return "probability that the\ncaption is chosen" if one.fit.family == "logistic" else "share of captions chosen"
    return one.analysis.outcome


@styled
def power_curve(estimate: PowerEstimate) -> Figure:
    """Return a figure of the simulated power by number of items, with a line at the target power."""
    figure, axes = new_axes(6.4, 3.2)
    (curve,) = axes.plot(*zip(*estimate.curve), color=colour(0), marker=marker(0))
    target = axes.axhline(estimate.target, color=SOFT, linestyle="--")
    axes.set(ylim=(0, 1.02), xlabel="items")
    percent_axis(axes, "y", "power: studies that show it, %")
    legend_below(figure, {estimate.claim: curve, "target": target})
    return figure


@styled
def item_map(study: ItemStudy) -> Figure:
    """Return a figure of all items by difficulty and discrimination.

    Without an item response model, the axes are the share of models that are right and the item–rest correlation.
    """
    figure, axes = new_axes(6.4, 3.6)
    if (fit := study.fit) is not None:
        names, x, y = ("difficulty", "discrimination"), fit.difficulty, fit.discrimination
    else:
        names = ("share of models that are right", "item–rest correlation")
        x, y = np.nanmean(study.answers.right, axis=1), study.rest
    marks: Marks = {}
    for k, kind in enumerate(sorted(set(study.kinds))):
        of_kind = study.kinds == kind
        style: Any = {"color": colour(k), "marker": marker(k), "linestyle": ""}
        (marks[kind],) = axes.plot(x[of_kind], y[of_kind], **style, markersize=3, alpha=0.6)
    axes.set(xlabel=names[0], ylabel=names[1])
    axes.grid(axis="y")
    legend_below(figure, marks)
    return figure


def ranks_by_choice(robustness: Robustness) -> Figure:
    """Return a figure of every model's rank under each choice in the analysis, such as the rule for ties."""
    return rank_changes(robustness.choices, [replace(row, name=model_tail(row.name)) for row in robustness.ranks])
