"""One style for all figures. Shapes and hatches repeat what colours show, so that figures are legible in grey and for
the colour-blind.
"""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

from creperie.core import Json, UsageError, draft_of, missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
Marks = dict[str, Any]  #: drawn marks by their names in the legend
INK, SOFT, LINE = "#1d1d1f", "#5f6368", "#d6d2ca"
#: Okabe and Ito's colours, ordered so that neighbours also differ in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D1F", "#7A7A7A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo", "--")
FORMATS = ("svg", "pdf", "png")
#: Text stays text: it can be searched, its font follows the page's, and a $ in a caption stays a $.
SETTINGS: Json = json.loads(files("creperie.reporting.figures").joinpath("style.json").read_text())


@contextmanager
def house_style(salt: str = "") -> Iterator[None]:
    """Use the house style within the block. `salt` determines the ids inside an SVG."""
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("matplotlib", "report") from None
    with matplotlib.rc_context(SETTINGS | ({"svg.hashsalt": salt} if salt else {})):
        yield


def styled(function: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function so that the figure it returns is drawn in the house style."""

    @functools.wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with house_style():
            return function(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches. It has no window, and does not change matplotlib's global
    state.
    """
    from matplotlib.figure import Figure as Empty

    return Empty(figsize=(width, height))


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of this size in inches with one pair of axes."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


def beside(k: int, n: int, room: float = 0.8) -> float:
    """Return the offset of the k-th of n marks from the middle of their group, which is `room` wide.

    >>> [round(beside(k, 2), 1) for k in (0, 1)]
    [-0.2, 0.2]
    """
    return (k - (n - 1) / 2) * room / max(1, n)


def colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def marker(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


def hatch(k: int) -> str:
    return HATCHES[k % len(HATCHES)]


def percent_axis(axes: Axes, which: Literal["x", "y"] = "x", label: str = "accuracy, %") -> None:
    """Label an axis in percent. Its values are proportions from 0 to 1."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    axis.set_label_text(label)
    axes.grid(axis=which)


def line_axis(axes: Axes, names: Iterable[str]) -> None:
    """Label the rows of a chart with these names, from top to bottom."""
    lines = list(names)
    axes.set_yticks(range(len(lines)), lines)
    axes.set_ylim(len(lines) - 0.5, -0.5)


def heading(figure: Figure, title: str) -> None:
    """Write the title of a figure with several panels."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file, in the format of the file's suffix, and return the path. The file appears only when it
    is complete.
    """
    if not hasattr(figure, "savefig"):
        what = f"`figure=` is of type {type(figure).__name__}, expected a figure of matplotlib"
        raise UsageError(what, hint="make one with `creperie.figure`")
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        what = f"figures cannot be written as {target.suffix}" if kind else "the file name has no ending"
        raise UsageError(what, where=str(path), hint="end it in .svg, .pdf or .png")
    # No dates and fixed ids: the same figure gives the same file.
    dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with house_style("creperie"), draft_of(target) as draft:
        figure.savefig(draft, format=kind, metadata=dateless)
    return target


def inline_svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element. Black becomes the page's text colour, and ids begin with `name`."""
    written = io.StringIO()
    with house_style(name):
        figure.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for shade, place in ((INK, "currentColor"), (SOFT, "var(--soft)"), (LINE, "var(--line)")):
        svg = svg.replace(shade, place)
    return svg.strip()


def legend_below(figure: Figure, marks: Marks, title: str = "") -> None:
    """Add a legend below all axes, with as many columns as the longest name allows."""
    longest = 0.5 + 0.075 * max(map(len, marks), default=1)  # inches, at the legend's size
    ncols = max(1, min(4, int(figure.get_figwidth() // longest), len(marks)))
    figure.set_figheight(figure.get_figheight() + 0.2 * max(0, len(marks) / ncols - 3))  # for a long one
    place: Any = {"loc": "outside lower left", "ncols": ncols, "title": title or None, "alignment": "left"}
    figure.legend(list(marks.values()), list(marks), **place)
