"""`creperie figure`: figures from runs and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.options import as_one, names
from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import UsageError

if TYPE_CHECKING:
    from creperie.reporting import FigureOptions


@click.command()
@click.argument("name", required=False)
@click.argument("sources", nargs=-1, metavar="RUN|BENCH…")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="FILE.svg, .pdf or .png.")
@click.option("--task", "-t", "tasks", multiple=True, callback=names, help="Tasks, by comma or repeated.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmark, where it is not found by itself.")
@click.option("--attackers", multiple=True, callback=names, help="Blind attackers, by comma or repeated.")
@click.option("--lm", default="", metavar="URI", help="A language model, for lm-mean and lm-sum.")
@click.option("--plausibility", default="", metavar="URI", help="A Vera checkpoint, for plausibility.")
@click.option("--grammar", default="", metavar="URI", help="A CoLA classifier, for grammar (else link-grammar).")
@click.option(
    "--against", type=click.Path(path_type=Path, exists=True), help="CSV with one value per model; COCO annotations."
)
@click.option("--column", default="", help="The column of --against.")
@click.option("--key", default="model", show_default=True, help="The column of --against that holds the model's URI.")
@click.option("--tag", default="", help="A tag whose values `words` counts.")
@click.option("--syntax", is_flag=True, help="`likeness` by SLS: parses captions by link-grammar.")
@click.option("--parser", default="", metavar="SPEC", help="For SLS: stanford:FOLDER or benepar:MODEL.")
@click.option("--most", default=20, show_default=True, help="Bars of `words`.")
@click.option("--seed", default=0, show_default=True)
@as_one("options", "creperie.reporting:FigureOptions")
@answers
def figure(name: str | None, sources: tuple[str, ...], out: Path | None, options: FigureOptions) -> CommandResult:
    """Draw the figure NAME; without one, list what can be drawn.

    \b
      creperie figure accuracy runs/… --out accuracy.pdf
      creperie figure gaps out/mine out/honest --attackers length-words,surface --out gaps.svg
    """
    from creperie.reporting import DRAWINGS, draw_figure, save_figure

    if name is None:
        rows = [(d.name, d.sources, d.what) for d in DRAWINGS.values()]
        listed = {"figures": [{"name": n, "sources": s, "what": w} for n, s, w in rows]}
        return CommandResult(listed, lambda: print_table("", ["figure", "drawn from", "what it shows"], rows))
    if name in DRAWINGS and not sources and not DRAWINGS[name].sources.startswith("["):
        raise UsageError(f"{name} is drawn from {DRAWINGS[name].sources}", hint="name what to draw")
    if out is None:
        raise UsageError("nowhere to write to", hint="--out FILE.svg, .pdf or .png")
    path = save_figure(draw_figure(name, sources, options), out)
    return CommandResult({"figure": name, "file": str(path)}, lambda: say(f"{path}"))
