"""Interaction plots: one panel per fit, one line per level, legible without colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from creperie.core import UsageError, missing_extra
from creperie.statistics.analyse import Analysed

FORMATS = (".svg", ".pdf", ".png")
#: Lines differ in dash, marker and grey as well as in hue, so that a copy on paper still tells them apart.
STYLES = (
    {"color": "#0b3c6f", "linestyle": "-", "marker": "o"},
    {"color": "#d9730d", "linestyle": "--", "marker": "s"},
    {"color": "#5b8c5a", "linestyle": "-.", "marker": "^"},
    {"color": "#8c4a8c", "linestyle": ":", "marker": "D"},
    {"color": "#777777", "linestyle": (0, (5, 1)), "marker": "v"},
)
#: What the crosses are: the rows' own means, before the model holds all else equal.
PLAIN = "plain mean of the rows"
_WIDE = 3
_LONG = 38


def plot_interactions(fits: Sequence[Analysed], names: tuple[str, str], path: str | Path) -> Path:
    """Draw the estimated means of two factors' combinations, with 95 % intervals, into a file."""
    file = Path(path)
    if file.suffix not in FORMATS:
        raise UsageError("not the name of a picture", where=str(file), hint="end it in " + ", ".join(FORMATS))
    shown = [f for f in fits if f.cells]
    if not shown:
        raise UsageError(
            f"no fitted model has both factors {names[0]!r} and {names[1]!r}", hint="name two factors of `fixed=`"
        )
    try:
        from matplotlib import rc_context
    except ImportError as e:
        raise missing_extra("matplotlib", "report") from e
    file.parent.mkdir(parents=True, exist_ok=True)
    # no date and no random names in the file: the same data give the same bytes
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(file.suffix)
    with rc_context({"font.size": 9, "svg.hashsalt": "creperie", "svg.fonttype": "none"}):
        _figure(shown, names).savefig(file, dpi=200, metadata=undated)
    return file


def _figure(shown: Sequence[Analysed], names: tuple[str, str]) -> Any:
    from matplotlib.figure import Figure

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
    """One legend below all panels, where it hides nothing."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    found[PLAIN] = found.pop(PLAIN)
    columns = min(4, len(found))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False, title=title)


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
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _short(name: str) -> str:
    name = re.sub(r"^\w+:.*/(?:\d+-)?([^/]+)/model$", r"\1", name)  # a stage of a recipe trained it
    return name if len(name) <= _LONG else "…" + name[-_LONG + 1 :]


def _outcome(one: Analysed) -> str:
    if one.analysis.outcome == "chosen":
        return "probability that the caption is chosen" if one.fit.family == "logistic" else "share of captions chosen"
    return one.analysis.outcome
