"""`creperie table` and `creperie figure`: published tables and figures with our runs beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.options import as_one, names, pairs_of
from creperie.cli.output import CommandResult, answers, echo, print_table, say
from creperie.core import UsageError, split_names, write_text

if TYPE_CHECKING:
    from creperie.reporting import FigureOptions, PublishedTable, TableChoice

FORMATS = ("text", "markdown", "latex", "csv", "html")


@click.command()
@click.argument("name", metavar="PAPER/NUMBER|list|RUN")
@click.argument("runs", nargs=-1, metavar="RUN…")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it into this file.")
@click.option("--same", multiple=True, metavar="URI=ROW", help="This model of a run is that row of the paper.")
@click.option("--any", "any_benchmark", is_flag=True, help="Take runs on other benchmarks whose subsets fit.")
@click.option("--rows", default="model", show_default=True, help="Own table: model, benchmark, task, subset, by comma.")
@click.option("--columns", default="subset", show_default=True, help="Own table: what goes across, by comma.")
@click.option("--task", "task_name", default="", help="Own table: of this task only.")
@click.option("--intervals/--no-intervals", default=True, help="Own table: with intervals (yes).")
@answers
def table(
    name: str,
    runs: tuple[str, ...],
    form: str,
    out: Path | None,
    same: tuple[str, ...],
    any_benchmark: bool,
    rows: str,
    columns: str,
    task_name: str,
    intervals: bool,
) -> CommandResult:
    """A published table with your runs beside it, or a table of your own runs.

    \b
    creperie table list
    creperie table sugarcrepe++/16 runs/…
    creperie table runs --rows model --columns subset --format latex

    Beside a published table, your rows are marked; below them are the 95 % interval, the number of items, and the
    difference to the printed row of the same model. In a table of your own, the best value of a column is bold.
    """
    from creperie.reporting import TableChoice, fill_table, published_table, published_tables, render_table

    if Path(name).is_dir():
        choice = TableChoice(tuple(split_names(rows)), tuple(split_names(columns)), task_name, intervals)
        return _own_table((name, *runs), choice, form, out)
    if name == "list":
        if runs:
            raise UsageError("`table list` takes no runs", hint="creperie table PAPER/NUMBER RUN…")
        return _list_answer(published_tables())
    filled = fill_table(
        published_table(name), runs, same=pairs_of(same, "--same", "URI=ROW", last=True), any_benchmark=any_benchmark
    )
    return text_result(filled.document(), render_table(filled, form), out)


def _own_table(places: tuple[str, ...], choice: TableChoice, form: str, out: Path | None) -> CommandResult:
    from creperie.reporting import render_run_table, run_table, runs_in
    from creperie.scoring import load_run

    made = run_table([load_run(path) for path in runs_in(places)], choice)
    return text_result(made.document(), render_run_table(made, form), out)


def text_result(document: dict[str, Any], text: str, out: Path | None) -> CommandResult:
    """A table as the answer of a command: into a file, or onto the screen."""
    if out is not None:
        write_text(out, text)
    shown = {**document, "written": str(out) if out else None}
    return CommandResult(shown, lambda: say(f"written: {out}") if out else echo(text.rstrip("\n")))


def _list_answer(tables: list[PublishedTable]) -> CommandResult:
    document = {
        "tables": [
            {
                "table": t.key,
                "paper": t.title,
                "where": t.where,
                "caption": t.caption,
                "rows": len(t.rows),
                "columns": [c.name for c in t.columns],
                "benchmarks": t.benchmarks(),
                "tasks": sorted({task for c in t.columns for task in c.tasks}),
            }
            for t in tables
        ]
    }

    def show() -> None:
        rows = [[t.key, str(len(t.rows)), _filled_by(t), t.caption] for t in tables]
        print_table("", ["table", "rows", "filled by runs on", "what it shows"], rows, right=["rows"])
        say("\ncreperie table PAPER/NUMBER RUN… prints one with runs beside it; without a run, as published.")

    return CommandResult(document, show)


def _filled_by(table: PublishedTable) -> str:
    tasks = list(dict.fromkeys(task for c in table.columns for task in c.tasks[:1]))
    shown = ", ".join(tasks[:3]) + (", …" if len(tasks) > 3 else "")
    names = table.benchmarks()
    benches = ", ".join(names[:2]) + (", …" if len(names) > 2 else "")
    return f"{benches} ({shown})" if tasks else "–"


@click.command()
@click.argument("name", required=False)
@click.argument("sources", nargs=-1, metavar="RUN|BENCH…")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="FILE.svg, .pdf or .png.")
@click.option("--task", "-t", "tasks", multiple=True, callback=names, help="Tasks, by comma or repeated.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmark, if it is not found automatically.")
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
@click.option("--syntax", is_flag=True, help="`likeness` by SLS, trees by NLTK's treebank or link-grammar.")
@click.option("--parser", default="", metavar="SPEC", help="For SLS: stanford:FOLDER, benepar:MODEL or pcfg:TREEBANK.")
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
