"""Figures of fits, items, rankings and power, readable without colour."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import UsageError, missing_extra
from creperie.statistics.analyse import Analysed
from creperie.statistics.items import ItemStudy
from creperie.statistics.planning import PowerEstimate
from creperie.statistics.rankings import Robustness

FORMATS = (".svg", ".pdf", ".png")
#: Lines differ in dash, marker and grey as well as in hue, so that they can be told apart in print.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0b3c6f", "linestyle": "-", "marker": "o"},
    {"color": "#d9730d", "linestyle": "--", "marker": "s"},
    {"color": "#5b8c5a", "linestyle": "-.", "marker": "^"},
    {"color": "#8c4a8c", "linestyle": ":", "marker": "D"},
    {"color": "#777777", "linestyle": (0, (5, 1)), "marker": "v"},
)
#: The label of the crosses: observed means, not adjusted by the model.
PLAIN = "plain mean of the rows"
_WIDE = 3
_LONG = 38


def plot_interactions(fits: Sequence[Analysed], names: tuple[str, str], path: str | Path) -> Path:
    """Draw the estimated means of all combinations of two factors, with 95 % intervals, into a file."""
    return _saved(path, lambda: _figure([f for f in fits if f.cells], names))


def plot_power(estimate: PowerEstimate, path: str | Path) -> Path:
    """Draw the power at every simulated number of items, and the target."""

    def draw(axis: Any) -> None:
        sizes, shares = zip(*estimate.curve)
        axis.plot(sizes, shares, **STYLES[0], label=estimate.claim)
        axis.axhline(estimate.target, **{**STYLES[1], "marker": ""}, label="target")
        axis.set(ylim=(0, 1.02), xlabel="items", ylabel="studies that show it")

    return _saved(path, lambda: _single(draw))


def plot_items(study: ItemStudy, path: str | Path) -> Path:
    """Draw every item by difficulty and discrimination; without a response model, by share right and item–rest
    correlation.
    """

    def draw(axis: Any) -> None:
        fit, right = study.fit, np.nanmean(study.answers.right, axis=1)
        x, y = (right, study.rest) if fit is None else (fit.difficulty, fit.discrimination)
        for kind, style in zip(dict.fromkeys(sorted(study.kinds)), STYLES):
            of_kind = study.kinds == kind
            axis.plot(x[of_kind], y[of_kind], **{**style, "linestyle": ""}, markersize=3, alpha=0.6, label=kind)
        names = ("share of models that are right", "item–rest correlation")
        axis.set(**dict(zip(("xlabel", "ylabel"), names if fit is None else ("difficulty", "discrimination"))))

    return _saved(path, lambda: _single(draw))


def plot_ranks(robustness: Robustness, path: str | Path) -> Path:
    """Draw the rank of every model under every choice."""

    def draw(axis: Any) -> None:
        for k, row in enumerate(robustness.ranks):
            again = {"markerfacecolor": "white", "linewidth": 0.8} if k >= len(STYLES) else {}
            axis.plot(robustness.choices, row.ranks, **STYLES[k % len(STYLES)], **again, label=_short(row.name))
        axis.set(ylabel="rank", yticks=range(1, len(robustness.ranks) + 1))
        axis.invert_yaxis()
        axis.tick_params(axis="x", rotation=20)

    return _saved(path, lambda: _single(draw))


def _single(draw: Callable[[Any], None]) -> Any:
    """Return a figure with one panel and a legend beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axis = figure.subplots()
    draw(axis)
    _plain(axis)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _saved(path: str | Path, draw: Callable[[], Any]) -> Path:
    """Write a figure and return its path. The bytes are reproducible: the file holds no date and no random names."""
    file = Path(path)
    if file.suffix not in FORMATS:
        raise UsageError("not the name of a picture", where=str(file), hint="end it in " + ", ".join(FORMATS))
    try:
        from matplotlib import rc_context
    except ImportError as e:
        raise missing_extra("matplotlib", "report") from e
    file.parent.mkdir(parents=True, exist_ok=True)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(file.suffix)
    with rc_context({"font.size": 9, "svg.hashsalt": "creperie", "svg.fonttype": "none"}):
        draw().savefig(file, dpi=200, metadata=undated)
    return file


def _plain(axis: Any) -> None:
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _figure(shown: Sequence[Analysed], names: tuple[str, str]) -> Any:
    from matplotlib.figure import Figure

    if not shown:
        raise UsageError(
            f"no fitted model has both factors {names[0]!r} and {names[1]!r}", hint="name two factors of `fixed=`"
        )
    columns = min(_WIDE, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(3.4 * columns + 0.6, 3.0 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, one in zip(axes, shown):
        _panel(axis, one, names)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    for k in range(0, len(shown), columns):
        axes[k].set_ylabel(_outcome(shown[k]))
    _legend(figure, axes, names[1])
    return figure


def _legend(figure: Any, axes: Any, title: str) -> None:
    """Draw one legend for all panels, below them."""
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    handles[PLAIN] = handles.pop(PLAIN)
    columns = min(4, len(handles))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, title=title
    )


def _panel(axis: Any, one: Analysed, names: tuple[str, str]) -> None:
    levels = list(dict.fromkeys(c.x for c in one.cells))
    lines = list(dict.fromkeys(c.line for c in one.cells))
    for k, line in enumerate(lines):
        style = STYLES[k % len(STYLES)]
        cells = [c for c in one.cells if c.line == line]
        shift = (k - (len(lines) - 1) / 2) * 0.08
        x = [levels.index(c.x) + shift for c in cells]
        y = [c.estimate for c in cells]
        error = [[c.estimate - c.low for c in cells], [c.high - c.estimate for c in cells]]
        axis.errorbar(x, y, yerr=error, label=_short(line), capsize=3, markersize=5, linewidth=1.5, **style)
        raw = [c.raw for c in cells]
        axis.plot(x, raw, "x", color="#555555", markersize=4, alpha=0.8, label=PLAIN if k == 0 else None)
    axis.set_xticks(range(len(levels)), levels)
    axis.set_xlim(-0.5, len(levels) - 0.5)
    axis.set_xlabel(names[0])
    axis.set_title(f"{_short(one.sample)}\n{one.label}" if one.label else _short(one.sample), fontsize=9)
    _plain(axis)


def _short(name: str) -> str:
    name = re.sub(r"^\w+:.*/(?:\d+-)?([^/]+)/model$", r"\1", name)  # a stage of a recipe trained it
    return name if len(name) <= _LONG else "…" + name[-_LONG + 1 :]


def _outcome(one: Analysed) -> str:
    if one.analysis.outcome == "chosen":
        return "probability that the caption is chosen" if one.fit.family == "logistic" else "share of captions chosen"
    return one.analysis.outcome
