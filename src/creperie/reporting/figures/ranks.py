"""Figures that compare models or tasks: changes of rank, a correlation, and how often two tasks disagree."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from creperie.core import percent
from creperie.metrics import HIT, VOID, Correlation, Ranking
from creperie.reporting.figures.style import INK, SOFT, colour, heading, marker, new_axes, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def rank_changes(columns: list[str], ranking: list[Ranking], *, title: str = "") -> Figure:
    """Return a figure of models' ranks on several tasks or benchmarks (`columns`). Each model is a line, the best rank
    is at the top, and every point is labelled with the accuracy.
    """
    figure, axes = new_axes(2.4 + 1.9 * len(columns), 0.9 + 0.36 * len(ranking))
    for k, one in enumerate(ranking):
        axes.plot(range(len(columns)), one.ranks, marker=marker(k), color=colour(k), linewidth=1.6, markersize=6)
        for x, (value, rank) in enumerate(zip(one.values, one.ranks, strict=True)):
            if not math.isnan(value):
                axes.annotate(percent(value), (x, rank), (0, 6), textcoords="offset points", ha="center", fontsize=7)
    for last in {one.ranks[-1] for one in ranking}:  # models that tie share a line
        names = ", ".join(one.name for one in ranking if one.ranks[-1] == last)
        axes.annotate(names, (len(columns) - 1, last), (10, -3), textcoords="offset points", fontsize=8.5)
    axes.set_xticks(range(len(columns)), columns)
    axes.set(yticks=range(1, len(ranking) + 1), ylim=(len(ranking) + 0.5, 0.4), xlim=(-0.25, len(columns) - 0.1))
    axes.set(ylabel="rank", title=title)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)
    return figure


@styled
def scatter(
    x: Mapping[str, float],
    y: Mapping[str, float],
    correlation: Correlation,
    *,
    labels: tuple[str, str] = ("", ""),
    title: str = "",
) -> Figure:
    """Return a scatter plot with one mark per model. It shows the least-squares line, and the correlation r with its
    interval. If there are many models, their names are listed in a column beside the plot.
    """
    names = sorted((name for name in x if name in y), key=y.__getitem__)
    many = len(names) > 8
    figure, axes = new_axes(6.6 if many else 4.8, 3.9)
    xs, ys = np.array([x[n] for n in names]), np.array([y[n] for n in names])
    for k, name in enumerate(names):
        axes.plot(xs[k], ys[k], marker=marker(k), color=colour(k), markersize=7, linestyle="none")
        if many:
            line = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.4, "relpos": (0, 0.5)}
            at = 1.04, (k + 0.5) / len(names)
            axes.annotate(
                name, (xs[k], ys[k]), at, textcoords="axes fraction", fontsize=7.5, va="center", arrowprops=line
            )
        else:
            axes.annotate(name, (xs[k], ys[k]), (6, 4), textcoords="offset points", fontsize=7.5)
    if len(names) > 1 and np.ptp(xs) > 0:
        slope, start = np.polyfit(xs, ys, 1)
        ends = np.array([xs.min(), xs.max()])
        axes.plot(ends, start + slope * ends, color=SOFT, linewidth=1, linestyle="--", zorder=0)
    sure = "" if math.isnan(correlation.low) else f" [{correlation.low:.2f}, {correlation.high:.2f}]"
    axes.set_title(f"{title}  r = {correlation.value:.2f}{sure}, n = {correlation.n}".strip(), fontsize=9)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.grid()
    axes.margins(0.12)
    return figure


#: (first passes, second passes), in the order in which they are drawn
CELLS = ((True, True), (True, False), (False, True), (False, False))


@dataclass(frozen=True)
class Confusion:
    """Counts of items by (first task right, second task right). Only items that both tasks cover are counted. A tie is
    not right.
    """

    tasks: tuple[str, str]
    counts: dict[tuple[bool, bool], int]
    first_items: dict[tuple[bool, bool], int]  #: the first item of each non-empty cell


def confusion(first: np.ndarray, second: np.ndarray, tasks: tuple[str, str]) -> Confusion:
    """Count the items by their outcomes on two tasks. `tasks` are the names of the tasks.

    An outcome is 1 (right), 0 (wrong), 2 (a tie, which counts as not right) or −1 (no score; the item is left out).

    >>> crossed = confusion(np.array([1, 1, 0, -1]), np.array([1, 0, 2, 1]), ("itt", "tot"))
    >>> crossed.counts[True, False], crossed.counts[False, False], sum(crossed.counts.values())
    (1, 1, 3)
    """
    both = (first != VOID) & (second != VOID)
    masks = {(a, b): both & ((first == HIT) == a) & ((second == HIT) == b) for a, b in CELLS}
    cells = {cell: np.flatnonzero(mask) for cell, mask in masks.items()}
    return Confusion(
        tasks, {c: len(rows) for c, rows in cells.items()}, {c: int(rows[0]) for c, rows in cells.items() if len(rows)}
    )


@styled
def confusion_squares(
    crossed: Confusion, examples: Mapping[tuple[bool, bool], Sequence[str]] | None = None, *, title: str = ""
) -> Figure:
    """Return a figure with one square per combination of outcomes. Squares with more items are darker. `examples` are
    captions to show in the squares.
    """
    captions = examples or {}
    figure, axes = new_axes(6.4 if captions else 3.4, 3.9 if captions else 3.1)
    first, second = crossed.tasks
    total = max(1, sum(crossed.counts.values()))
    for passes in CELLS:
        x, y = int(not passes[1]), int(not passes[0])
        n = crossed.counts[passes]
        share = n / total
        axes.fill_between([x, x + 1], y, y + 1, color=colour(0), alpha=0.08 + 0.55 * share, linewidth=0)
        number = f"{n:,}  ({percent(share)} %)"
        axes.text(
            x + 0.5, y + (0.2 if captions else 0.5), number, ha="center", va="center", fontsize=11, fontweight="bold"
        )
        lines = [textwrap.shorten(text, 130, placeholder="…") for text in captions.get(passes, ())]
        wrapped = "\n".join("\n   ".join(textwrap.wrap(line, 44)) for line in lines)
        axes.text(x + 0.04, y + 0.34, wrapped, va="top", fontsize=7, linespacing=1.25)
    for at in (0, 1, 2):
        axes.plot([at, at], [0, 2], color=INK, linewidth=0.8)
        axes.plot([0, 2], [at, at], color=INK, linewidth=0.8)
    axes.set_xticks([0.5, 1.5], [f"{second} passes", f"{second} fails"])
    axes.set_yticks([0.5, 1.5], [f"{first} passes", f"{first} fails"], rotation=90, va="center")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set(xlim=(-0.005, 2.005), ylim=(2.005, -0.005))
    axes.spines[:].set_visible(False)
    heading(figure, title)
    return figure
