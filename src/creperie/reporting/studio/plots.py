"""Scatter plots of two measures: two models by subset, or two benchmarks or tasks by model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from creperie.core import Json, UsageError, csv_text
from creperie.metrics import pearson, task
from creperie.reporting.gather import covered
from creperie.reporting.leaderboard import Board, LeaderboardEntry
from creperie.reporting.studio.query import StudioQuery


@dataclass
class PlotAxis:
    """A possible axis of a scatter plot: the accuracies of one model on each subset, or of each model on one benchmark
    and task.
    """

    label: str
    key: str
    hash: str  #: of the benchmark
    by: str  #: what a dot is: a subset or a model
    dots: dict[str, tuple[float, str]] = field(default_factory=dict)  #: accuracy in percent, what it rests on
    items: int = 0  #: on which all its dots rest


def plot_axes(board: Board) -> dict[str, PlotAxis]:
    """Return the axes that can be drawn from the runs, by key."""
    axes: dict[str, PlotAxis] = {}
    for entry in board.entries:
        for result in entry.document["results"]:
            if result["accuracy"] is None or result["n"] < 2 or task(result["task"]).is_rank:
                continue
            shown = 100 * float(result["accuracy"]), covered(result["n"], result["void"])
            for axis, dot in _places(board, entry, result):
                axes.setdefault(axis.key, axis).dots[dot] = shown
                axes[axis.key].items += result["n"]
    return {key: axis for key, axis in axes.items() if len(axis.dots) > 1}


def _places(board: Board, entry: LeaderboardEntry, result: Json) -> Iterator[tuple[PlotAxis, str]]:
    """Yield the axis on which a result is a value, and the name of its dot. A result over all items belongs to the axis
    of its benchmark and task, and its dot is named after the model. A result on a subset belongs to the axis of its
    model, and its dot is named after the subset. Nothing is yielded for a macro average.
    """
    name, model = result["task"], board.model_names[entry.model]
    where = f"{board.bench_name(entry)}, {name}" + " without the image" * bool(entry.blinded)
    if result["subset"] == "all":
        yield PlotAxis(where, f"{entry.content} {name}", entry.hash, "model"), model
    elif result["subset"] != "macro":
        yield PlotAxis(f"{model} on {where}", f"{entry.name} {name}", entry.hash, "subset"), result["subset"]


def chosen_axes(axes: dict[str, PlotAxis], query: StudioQuery) -> list[PlotAxis]:
    """Return the two axes that the query names. If it names none, return two axes with at least two dots (models or
    subsets) that have a value on both, preferably axes of the same benchmark with many items. Return an empty list if
    there are no such axes.
    """
    if query.get("x") or query.get("y"):
        for key in (query["x"], query["y"]):
            if key not in axes:
                raise UsageError("there is no such axis", hint="choose another")
        return [axes[query["x"]], axes[query["y"]]]
    pairs = [list(pair) for pair in combinations(axes.values(), 2) if len(_shared(*pair)) > 1]

    def order(pair: list[PlotAxis]) -> tuple[bool, bool, int]:
        x, y = pair
        by_text = task(x.key.rpartition(" ")[2]).needs == "text"
        return x.hash != y.hash, by_text, -min(x.items, y.items)

    return min(pairs, key=order, default=[])


def _shared(x: PlotAxis, y: PlotAxis) -> list[str]:
    return [dot for dot in x.dots if dot in y.dots] if x.by == y.by else []


def scatter_of(x: PlotAxis, y: PlotAxis) -> Json:
    """Return the data of a scatter plot of two axes. Raise a UsageError if fewer than two dots have a value on both
    axes.

    Both axes have the same scale, so that dots on the diagonal have equal values.
    """
    shared = _shared(x, y)
    if len(shared) < 2:
        raise UsageError(
            f"{x.label} and {y.label} have fewer than two {x.by}s in common",
            hint="choose two axes with one value per model, or two with one value per subset",
        )
    dots = sorted(((dot, *x.dots[dot], *y.dots[dot]) for dot in shared), key=lambda dot: -dot[3])
    values = [value for dot in dots for value in (dot[1], dot[3])]
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
    found = pearson([dot[1] for dot in dots], [dot[3] for dot in dots])
    span = "" if math.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]".replace("-", "−")
    correlation_text = (
        "" if math.isnan(found.value) or len(dots) < 3 else f"r = {found.value:.2f}{span}, ".replace("-", "−")
    )
    named: dict[tuple[float, float], list[str]] = {}  # numbers of the dots at a place
    for k, (_, a, _, b, _) in enumerate(dots, 1):
        named.setdefault((a, b), []).append(str(k))
    heads = [x.by, x.label, "n", y.label, "n"]
    scale = (min(low, high - 10), high)
    return {
        "dots": dots,
        "scale": scale,
        "named": named,
        "r": f"{correlation_text}n = {len(dots)} {x.by}s",
        "csv": csv_text(heads, dots),
    }
