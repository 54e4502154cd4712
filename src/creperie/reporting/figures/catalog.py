"""The figures by name: what each shows, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.core import packaged_toml, unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureOptions:
    """Every figure reads the few of these that mean something to it."""

    tasks: tuple[str, ...] = ()
    benches: tuple[str, ...] = ()  #: where runs' items are, for figures that show some
    attackers: tuple[str, ...] = ()
    lm: str = ""
    plausibility: str = ""
    grammar: str = ""
    seed: int = 0
    against: Path | None = None
    column: str = ""
    key: str = "model"
    tag: str = ""
    syntax: bool = False
    parser: str = ""  #: a constituency parser for `syntax`, in place of link-grammar
    most: int = 20


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
