"""Distributions: histograms of attackers' gaps and models' margins, and box plots of similarity and of scores after
shuffling words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import percent
from creperie.reporting.figures.style import (
    INK,
    LINE,
    SOFT,
    Marks,
    beside,
    colour,
    hatch,
    heading,
    legend_below,
    new_axes,
    new_figure,
    percent_axis,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def gap_histograms(gaps: Mapping[str, Mapping[str, np.ndarray]], *, title: str = "") -> Figure:
    """Return a figure with one panel per attacker. Each panel has one histogram per set of items, such as the items
    before and after refinement.

    `gaps` maps attacker and set to the gaps of the items. A gap is the attacker's score of the true caption minus that
    of the foil; above zero, it favours the true caption.
    """
    figure = new_figure(1.0 + 2.6 * len(gaps), 2.9)
    panels = figure.subplots(1, len(gaps), squeeze=False)[0]
    marks: Marks = {}
    for axes, (name, by) in zip(panels, gaps.items(), strict=True):
        scale = max((float(np.abs(_finite(v)).max(initial=0.0)) for v in by.values()), default=0.0) or 1.0
        for k, (group, values) in enumerate(by.items()):
            marks[group] = _shares(axes, _finite(values), np.linspace(-scale, scale, 32), k)
        axes.axvline(0, color=INK, linewidth=0.9, linestyle="--")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("gap: true − false")
        percent_axis(axes, "y", "share of items, %" if axes is panels[0] else "")
    heading(figure, title)
    legend_below(figure, marks)
    return figure


@styled
def margin_histograms(margins: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """Return a figure with one histogram of margins per model, stacked from top to bottom. A margin is a model's lead
    of the right candidate over a wrong one; wrong answers lie left of zero. Heights are percentages of items.
    """
    figure = new_figure(6.2, 0.9 + 0.85 * len(margins))
    panels = figure.subplots(len(margins), 1, squeeze=False)[:, 0]
    for axes, (name, values) in zip(panels, margins.items(), strict=True):
        _margins(axes, name, _finite(values))
    panels[-1].set_xlabel("margin: the least true minus the greatest false score")
    heading(figure, title)
    return figure


def _margins(axes: Axes, name: str, known: np.ndarray) -> None:
    """Draw the histogram of one model. Wrong and right answers have two colours; ties are a grey bar at zero."""
    scale = float(np.quantile(np.abs(known), 0.995)) if len(known) else 1.0
    edges = np.linspace(-(scale or 1.0), scale or 1.0, 41)
    width = float(edges[1] - edges[0])
    for side, shade, texture in ((known[known < 0], colour(5), hatch(1)), (known[known > 0], colour(0), "")):
        heights, _ = np.histogram(np.clip(side, edges[0], edges[-1]), edges)
        axes.bar(edges[:-1], heights, width, align="edge", color=shade, hatch=texture, edgecolor="white", linewidth=0.2)
    ties = int((known == 0).sum())
    if ties:
        axes.bar(0, ties, width, color=SOFT, edgecolor="white", linewidth=0.4)
    right = float((known > 0).mean()) if len(known) else float("nan")
    title = f"{name}: {percent(right)} % above zero" + (f", {ties:,} ties" if ties else "") + f" (n = {len(known):,})"
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set_title(title, fontsize=8.5, fontweight="normal")
    axes.set(yticks=[], xlim=(edges[0], edges[-1]))
    axes.spines["left"].set_visible(False)


@styled
def gap_plane(
    first: np.ndarray,
    second: np.ndarray,
    kept: np.ndarray | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    title: str = "",
) -> Figure:
    """Return a scatter plot of items: x and y are the gaps of two attackers, between −1 and 1. With the mask `kept`,
    the items that a refinement keeps have a different mark.

    Grid lines divide the plane into the paper's cells, 50 on each side of zero. Refinement keeps equally many
    items in two opposite cells, which mirror each other at both zero lines.
    """
    figure, axes = new_axes(4.8, 5.0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(np.linspace(-1, 1, 101), minor=True)
    axes.grid(which="both", linewidth=0.25)
    axes.tick_params(which="minor", length=0)
    stay = np.ones(len(first), bool) if kept is None else np.asarray(kept, bool)
    groups = [("left out", ~stay, "x", colour(1)), ("kept" if kept is not None else "items", stay, "o", colour(0))]
    marks: Marks = {}
    for name, mask, shape, shade in groups:
        if mask.any():
            style: Any = {"marker": shape, "color": shade, "alpha": 0.55, "linewidths": 0.8, "label": name}
            marks[name] = axes.scatter(first[mask], second[mask], s=9, **style)
    for line in (axes.axhline, axes.axvline):
        line(0, color=INK, linewidth=0.9)
    reach = float(np.abs(np.concatenate([first, second])).max(initial=0.02)) * 1.05
    span = (-reach, reach)
    x, y = (f"gap of {name}" for name in names)
    axes.set(xlim=span, ylim=span, xlabel=x, ylabel=y, aspect="equal", title=title)
    legend_below(figure, marks)
    return figure


@styled
def bias_distributions(scores: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """Return a figure of the distributions of SyntaxBias scores by benchmark or subset, with a line at zero and dots at
    the means. An item's score is its likelihood gap (true caption minus foil), divided by the largest gap.
    """
    figure, axes = new_axes(6.2, 0.8 + 0.62 * len(scores))
    edges = np.linspace(-1, 1, 42)
    for k, values in enumerate(scores.values()):
        known = _finite(values)
        counts, _ = np.histogram(known, edges)
        tall = 0.82 * counts / max(1, counts.max())
        base = len(scores) - 1 - k
        axes.fill_between(edges, base, base + np.append(tall, tall[-1:]), step="post", color=colour(0), alpha=0.55)
        axes.plot([-1, 1], [base, base], color=SOFT, linewidth=0.6)
        if len(known):
            axes.plot(known.mean(), base + 0.06, marker="o", markersize=4.5, color=INK)
    axes.axvline(0, color=colour(5), linewidth=1.1, linestyle="--")
    axes.set_yticks(np.arange(len(scores))[::-1] + 0.2, list(scores))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(
        xlim=(-1, 1), xlabel="gap divided by the largest; right of zero the true caption is preferred", title=title
    )
    return figure


def _finite(values: Sequence[float] | np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float64)
    return numbers[np.isfinite(numbers)]


def _shares(axes: Axes, values: np.ndarray, edges: np.ndarray, k: int) -> Any:
    counts, _ = np.histogram(values, edges)
    style: Any = {"color": LINE, "edgecolor": SOFT, "linewidth": 0.8}
    if k:
        style = {"facecolor": "none", "edgecolor": colour(k - 1), "hatch": hatch(k), "linewidth": 1.2}
    return axes.stairs(counts / max(1, counts.sum()), edges, fill=True, **style)


@dataclass(frozen=True)
class Box:
    """The five quantiles of a box plot, from whisker to whisker, and the mean."""

    points: tuple[float, float, float, float, float]
    mean: float = math.nan


@styled
def boxes_by_subset(groups: Mapping[str, Mapping[str, Box]], *, label: str, title: str = "") -> Figure:
    """Return box plots with one group per subset and one box per kind of pair. The kinds are P1-P2, P1-N and P2-N,
    where P1 and P2 are the two true captions of an item and N is its foil. `label` names the value axis. Whiskers
    span 5 to 95 %.
    """
    kinds = list(dict.fromkeys(kind for by in groups.values() for kind in by))
    figure, axes = new_axes(max(5.0, 1.2 + 0.36 * len(kinds) * len(groups)), 3.4)
    step = 0.8 / max(1, len(kinds))
    marks: Marks = {}
    for x, by in enumerate(groups.values()):
        for k, kind in enumerate(kinds):
            if kind in by and not math.isnan(by[kind].points[2]):
                at = x + beside(k, len(kinds))
                marks[kind] = _box(axes, by[kind], at, 0.85 * step, k)
    axes.set_xticks(range(len(groups)), list(groups), rotation=20 if len(groups) > 5 else 0)
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylabel=label, title=title)
    axes.grid(axis="y")
    legend_below(figure, {kind: marks[kind] for kind in kinds if kind in marks})
    axes.text(1.0, 1.01, "box: middle half; whiskers: 5 to 95 %", transform=axes.transAxes, ha="right", fontsize=7)
    return figure


@styled
def boxes_by_model(panels: Mapping[str, Mapping[str, Box]], *, title: str = "") -> Figure:
    """Return box plots with one panel per model and one box per kind of caption (original and shuffled). Each panel has
    its own scale.
    """
    figure = new_figure(1.0 + 2.5 * len(panels), 3.6)
    drawn = figure.subplots(1, len(panels), squeeze=False)[0]
    marks: Marks = {}
    for axes, (name, by) in zip(drawn, panels.items(), strict=True):
        for k, (kind, box) in enumerate(by.items()):
            marks[kind] = _box(axes, box, k, 0.7, k)
        axes.set_xticks([])
        axes.set_title(name, fontsize=9)
        axes.grid(axis="y")
    drawn[0].set_ylabel("score")
    heading(figure, title)
    legend_below(figure, marks)
    return figure


def _box(axes: Axes, box: Box, at: float, width: float, k: int) -> Any:
    low, first, middle, third, high = box.points
    stats: Sequence[dict[str, Any]] = [
        {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high, "mean": box.mean, "fliers": []}
    ]
    made = axes.bxp(
        stats,
        positions=[at],
        widths=width,
        showfliers=False,
        showmeans=not math.isnan(box.mean),
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour(k), "alpha": 0.75, "hatch": hatch(k), "edgecolor": INK, "linewidth": 0.8},
        whiskerprops={"color": INK, "linewidth": 0.9},
        capprops={"color": INK, "linewidth": 0.9},
        medianprops={"color": INK, "linewidth": 1.5},
        meanprops={"marker": "D", "markersize": 3.5, "markerfacecolor": "white", "markeredgecolor": INK},
    )
    return made["boxes"][0]
