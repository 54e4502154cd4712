"""Box plots: how alike captions are, and what shuffling words does to scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.reporting.figures.style import INK, colour, hatch, legend_below, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Box:
    """Five numbers in order, whiskers outside, and the mean."""

    points: tuple[float, float, float, float, float]
    mean: float = math.nan


@styled
def boxes_by_subset(
    groups: Mapping[str, Mapping[str, Box]], *, label: str, title: str = "", whiskers: str = "5 to 95 %"
) -> Figure:
    """One group of boxes per subset, one box per kind of pair (P1-P2, P1-N, P2-N)."""
    kinds = list(dict.fromkeys(kind for by in groups.values() for kind in by))
    figure = new_figure(max(5.0, 1.2 + 0.36 * len(kinds) * len(groups)), 3.4)
    axes = figure.subplots()
    step = 0.8 / max(1, len(kinds))
    marks: dict[str, Any] = {}
    for x, by in enumerate(groups.values()):
        for k, kind in enumerate(kinds):
            if kind in by and not math.isnan(by[kind].points[2]):
                at = x + (k - (len(kinds) - 1) / 2) * step
                marks[kind] = _box(axes, by[kind], at, 0.85 * step, k)
    axes.set_xticks(range(len(groups)), list(groups), rotation=20 if len(groups) > 5 else 0)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_ylabel(label)
    axes.grid(axis="y")
    axes.set_title(title)
    legend_below(figure, [marks[k] for k in kinds if k in marks], [f"{k}" for k in kinds if k in marks])
    axes.text(1.0, 1.01, f"box: middle half; whiskers: {whiskers}", transform=axes.transAxes, ha="right", fontsize=7)
    return figure


@styled
def boxes_by_model(panels: Mapping[str, Mapping[str, Box]], *, label: str = "score", title: str = "") -> Figure:
    """One panel per model with its own scale, one box per kind of caption: the caption beside its shuffles."""
    figure = new_figure(1.0 + 2.5 * len(panels), 3.6)
    drawn = figure.subplots(1, len(panels), squeeze=False)[0]
    marks: dict[str, Any] = {}
    for axes, (name, by) in zip(drawn, panels.items(), strict=True):
        for k, (kind, box) in enumerate(by.items()):
            marks[kind] = _box(axes, box, k, 0.7, k)
        axes.set_xticks([])
        axes.set_title(name, fontsize=9)
        axes.grid(axis="y")
    drawn[0].set_ylabel(label)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    legend_below(figure, list(marks.values()), list(marks))
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
