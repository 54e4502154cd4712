"""The catalog of figures: what each one shows, and from which data it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.core import option, packaged_toml, unknown
from creperie.scoring import AgainstOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureOptions(AgainstOptions):
    """The options of all figures. Each figure reads only those that apply to it."""

    tasks: tuple[str, ...] = option((), "Tasks, comma-separated.", flags="--task -t")
    benches: tuple[str, ...] = option(
        (), "The runs' benchmark, if it is not found automatically.", flags="--bench", whole=True
    )
    attackers: tuple[str, ...] = option((), "Blind attackers, comma-separated.")
    lm: str = option("", "A language model, for lm-mean and lm-sum.", metavar="URI")
    plausibility: str = option("", "A Vera checkpoint, for plausibility.", metavar="URI")
    grammar: str = option("", "A CoLA classifier, for grammar (else link-grammar).", metavar="URI")
    against: Path | None = option(None, "A CSV file with one value per model; or COCO annotations.", metavar="FILE")
    tag: str = option("", "A tag whose values `words` counts.")
    syntax: bool = option(False, "For `likeness`: compare syntax trees (SLS), by NLTK's treebank or link-grammar.")
    parser: str = option("", "For SLS: stanford:FOLDER, benepar:MODEL or pcfg:TREEBANK.", metavar="SPEC")
    most: int = option(20, "Number of bars of `words`.", minimum=1)
    seed: int = option(0, "Seed of random draws.")


Draw = Callable[[Sequence[str], FigureOptions], "Figure"]


@dataclass(frozen=True)
class Drawing:
    """A figure in the catalog: its name, what it shows, the sources that it takes, and the function that draws it."""

    name: str
    what: str
    sources: str  #: the sources in the notation of the command line
    function: str  #: module:name inside this package, imported when it is drawn


DRAWINGS = {
    name: Drawing(name, **record)
    for name, record in packaged_toml("creperie.reporting.figures", "figures.toml").items()
}


def draw_figure(name: str, sources: Sequence[str], options: FigureOptions | None = None) -> Figure:
    """Return the figure called `name`. `sources` are the runs, benchmarks or files from which it is drawn."""
    if name not in DRAWINGS:
        raise unknown("figure", name, DRAWINGS)
    module, _, function = DRAWINGS[name].function.partition(":")
    made: Draw = getattr(import_module(f"creperie.reporting.figures.{module}"), function)
    return made(sources, options or FigureOptions())
