"""The figures by name: what each shows, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from creperie.core import unknown
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
    d.name: d
    for d in (
        Drawing("accuracy", "accuracy by subset against chance and people", "RUN…", "of_runs:draw_accuracy"),
        Drawing("imagenet", "ImageNet against SugarCrepe, as printed and by runs", "[RUN…]", "of_tables:draw_imagenet"),
        Drawing("multiples", "the same, one panel per model", "RUN…", "of_runs:draw_multiples"),
        Drawing("margins", "histograms of the models' margins", "RUN…", "of_runs:draw_margins"),
        Drawing("confusion", "two tasks crossed (ITT × TOT), with items", "RUN", "of_runs:draw_confusion"),
        Drawing("ranks", "how ranks change between tasks (SC, SC++) or benchmarks", "RUN…", "of_runs:draw_ranks"),
        Drawing("scatter", "accuracy against an external value, with r", "RUN… --against", "of_runs:draw_scatter"),
        Drawing("gaps", "blind attackers' gaps before and after a refinement", "BENCH [BENCH]", "of_benches:draw_gaps"),
        Drawing("plane", "gaps of two attackers over the grid", "BENCH [BENCH]", "of_benches:draw_plane"),
        Drawing("syntaxbias", "distributions of SyntaxBias scores", "BENCH… --lm", "of_benches:draw_syntaxbias"),
        Drawing("likeness", "likeness of captions: P1-P2, P1-N, P2-N", "BENCH", "of_benches:draw_likeness"),
        Drawing("words", "words that tell true from false; with --tag, its values", "BENCH", "of_benches:draw_words"),
        Drawing("topics", "topics of the true captions", "BENCH", "of_topics:draw_topics"),
        Drawing("categories", "COCO super-categories", "BENCH --against", "of_topics:draw_categories"),
        Drawing("shuffles", "scores of captions and their shuffles", "PROBE.json", "of_probes:draw_shuffles"),
        Drawing("cases", "SADE's three cases", "PROBE.json", "of_probes:draw_cases"),
        Drawing("noise", "what noise in place of the images costs", "PROBE.json", "of_probes:draw_noise"),
    )
}


def draw_figure(name: str, sources: Sequence[str], options: FigureOptions | None = None) -> Figure:
    """The figure of this name."""
    if name not in DRAWINGS:
        raise unknown("figure", name, DRAWINGS)
    module, _, function = DRAWINGS[name].function.partition(":")
    made: Draw = getattr(import_module(f"creperie.reporting.figures.{module}"), function)
    return made(sources, options or FigureOptions())
