"""The figures by name: what each shows, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from creperie.core import packaged_toml, unknown
from creperie.reporting.figures.options import FigureOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Sequence[str], FigureOptions], "Figure"]


@dataclass(frozen=True)
class Drawing:
    """A named figure."""

    name: str
    what: str
    sources: str  #: as the command line shows it
    function: str  #: module:name inside this package, imported when it is drawn


DRAWINGS = {
    name: Drawing(name, **record)
    for name, record in packaged_toml("creperie.reporting.figures", "figures.toml").items()
}


def draw_figure(name: str, sources: Sequence[str], options: FigureOptions | None = None) -> Figure:
    """The figure of this name."""
    if name not in DRAWINGS:
        raise unknown("figure", name, DRAWINGS)
    module, _, function = DRAWINGS[name].function.partition(":")
    made: Draw = getattr(import_module(f"creperie.reporting.figures.{module}"), function)
    return made(sources, options or FigureOptions())
