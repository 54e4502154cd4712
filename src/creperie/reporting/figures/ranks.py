"""Models against each other: ranks that change between measures, and correlation with a value from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from creperie.metrics import Correlation, Ranking
from creperie.reporting.figures.style import SOFT, colour, marker, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def rank_changes(columns: list[str], ranking: list[Ranking], *, title: str = "") -> Figure:
    """One line per model from measure to measure, the best on top; the accuracy is beside every mark."""
    figure = new_figure(2.4 + 1.9 * len(columns), 0.9 + 0.36 * len(ranking))
    axes = figure.subplots()
    for k, one in enumerate(ranking):
        axes.plot(range(len(columns)), one.ranks, marker=marker(k), color=colour(k), linewidth=1.6, markersize=6)
        for x, (value, rank) in enumerate(zip(one.values, one.ranks, strict=True)):
            if not math.isnan(value):
                axes.annotate(
                    f"{100 * value:.1f}", (x, rank), (0, 6), textcoords="offset points", ha="center", fontsize=7
                )
        axes.annotate(one.name, (len(columns) - 1, one.ranks[-1]), (10, -3), textcoords="offset points", fontsize=8.5)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(1, len(ranking) + 1))
    axes.set_ylim(len(ranking) + 0.5, 0.4)
    axes.set_xlim(-0.25, len(columns) - 1 + 0.9)
    axes.set_ylabel("rank")
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)
    axes.set_title(title)
    return figure


@styled
def scatter(
    x: Mapping[str, float],
    y: Mapping[str, float],
    found: Correlation,
    *,
    labels: tuple[str, str] = ("", ""),
    title: str = "",
) -> Figure:
    """One mark per model, the least-squares line, and r with its interval. Many names stand in a column beside it."""
    names = sorted((name for name in x if name in y), key=y.__getitem__)
    many = len(names) > 8
    figure = new_figure(6.6 if many else 4.8, 3.9)
    axes = figure.subplots()
    xs, ys = np.array([x[n] for n in names]), np.array([y[n] for n in names])
    for k, name in enumerate(names):
        axes.plot(xs[k], ys[k], marker=marker(k), color=colour(k), markersize=7, linestyle="none")
        if many:
            line, at = (
                {"arrowstyle": "-", "color": SOFT, "linewidth": 0.4, "relpos": (0, 0.5)},
                (1.04, (k + 0.5) / len(names)),
            )
            axes.annotate(
                name, (xs[k], ys[k]), at, textcoords="axes fraction", fontsize=7.5, va="center", arrowprops=line
            )
        else:
            axes.annotate(name, (xs[k], ys[k]), (6, 4), textcoords="offset points", fontsize=7.5)
    if len(names) > 1 and np.ptp(xs) > 0:
        slope, start = np.polyfit(xs, ys, 1)
        ends = np.array([xs.min(), xs.max()])
        axes.plot(ends, start + slope * ends, color=SOFT, linewidth=1, linestyle="--", zorder=0)
    sure = "" if math.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    axes.set_title(f"{title}  r = {found.value:.2f}{sure}, n = {found.n}".strip(), fontsize=9)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.grid()
    axes.margins(0.12)
    return figure
