"""`creperie table` and `creperie figure`: published tables and figures, with your own runs beside them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from creperie.cli.options import options_of, pairs_of
from creperie.cli.output import CommandResult, answers, print_table, say, text_result
from creperie.core import WIDE, UsageError, listing, option
from creperie.reporting import (
    DRAWINGS,
    TABLE_FORMS,
    FigureOptions,
    PublishedTable,
    TableChoice,
    column_correlations,
    draw_figure,
    fill_table,
    known_places,
    known_rows,
    known_tables,
    published_table,
    render_rows,
    render_run_table,
    render_table,
    run_table,
    runs_in,
    save_figure,
    without_place,
)
from creperie.scoring import load_run


@dataclass(frozen=True)
class TableOutput:
    """The format of a table, and where it is written."""

    form: str = option("text", "How the table is written.", flags="--format", choices=TABLE_FORMS)
    out: Path | None = option(None, "Write it into this file.", metavar="FILE")

    @property
    def width(self) -> int:
        """The number of characters per line: the terminal's width, or the constant `WIDE` if the output is a file."""
        return shutil.get_terminal_size().columns if self.out is None and sys.stdout.isatty() else WIDE


@click.command()
@click.argument("name", metavar="PAPER/NUMBER|known/BENCH|list|RUN")
@click.argument("runs", nargs=-1, metavar="RUN…")
@options_of("output", TableOutput)
@options_of("choice", TableChoice)
@click.option("--same", multiple=True, metavar="URI=ROW", help="Put this model of a run beside this row of the paper.")
@click.option("--any", "any_benchmark", is_flag=True, help="Take runs on other benchmarks whose subsets fit.")
@click.option("--correlate", is_flag=True, help="Correlate the columns of a published table over its models.")
@answers
def table(
    name: str,
    runs: tuple[str, ...],
    output: TableOutput,
    choice: TableChoice,
    same: tuple[str, ...],
    any_benchmark: bool,
    correlate: bool,
) -> CommandResult:
    """Print a published table with your runs beside it, or a table of your own runs.

    \b
    creperie table list
    creperie table sugarcrepe++/16 runs/…
    creperie table known/sugarcrepe runs/…
    creperie table mieb/1 --correlate
    creperie table runs --rows model --columns subset --format latex

    In a published table, your rows are marked. Below each are its 95 % intervals, the number of items, and the
    difference from the published row of the same model. In a table of your own, the best value of a column is bold.
    """

    own = {f"--{field}": getattr(choice, field) != default for field, default in vars(TableChoice()).items()}
    beside = {"--same": same, "--any": any_benchmark}
    others = {**beside, "--correlate": correlate}
    if Path(name).is_dir():
        _refuse("a table of your own runs", others)
        made = run_table([load_run(path) for path in runs_in((name, *runs))], choice)
        return text_result(made.document(), render_run_table(made, output.form, output.width), output.out)
    if name == "list":
        _refuse("the list of tables", {**own, **others, "RUN": runs, "--out": output.out})
        return _list_answer()
    if name.startswith("known/"):
        _refuse("published results", {**own, **others})
        return _known_result(name.removeprefix("known/"), runs, output)
    if correlate:
        _refuse("--correlate", {**own, **beside, "RUN": runs})
        return _correlations(published_table(name), output)
    _refuse("a published table", own)
    alike = pairs_of(same, "--same", "URI=ROW", last=True)
    filled = fill_table(published_table(name), runs_in(runs), same=alike, any_benchmark=any_benchmark, partial=True)
    return text_result(filled.document(), render_table(filled, output.form, output.width), output.out)


def _refuse(mode: str, given: Mapping[str, object]) -> None:
    """Raise an error if an option or argument in `given` has a value, because it would have no effect in this mode."""
    if unused := [name for name, value in given.items() if value]:
        verb = "has" if len(unused) == 1 else "have"
        raise UsageError(f"{listing(unused)} {verb} no effect on {mode}", hint=f"leave out {listing(unused)}")


def _known_result(benchmark: str, runs: tuple[str, ...], output: TableOutput) -> CommandResult:
    """Return all published results on a benchmark, with the results of `runs` placed among them."""
    own = [load_run(path) for path in runs_in(runs)]
    heads = ["definition", "model", "source", "%"]
    rows = known_rows(benchmark, own)
    places = [place for run in own for place in known_places(run)]
    heads_of_runs = {place.column.head for place in places}
    rows = [row for row in rows if not own or row[0] in heads_of_runs]
    without = [why for run in own for why in without_place(run, benchmark)]
    shown = "only definitions that fit a run are shown; " if own else ""
    notes = [f"{place.model}: {place}" if len(own) > 1 else str(place) for place in places] + without
    notes += [f"▶ your runs; {shown}each definition has an order of its own; `creperie table list`: sources"]
    table = render_rows(heads, [[*who, f"{value:.2f}"] for *who, value in rows], output.form, left=3, notes=notes)
    text = table if rows else "\n".join(without)
    listed = [dict(zip(heads, row)) for row in rows]
    document = {"rows": listed, "known": [place.document() for place in places], "without_place": without}
    return text_result(document, text, output.out)


def _correlations(table: PublishedTable, output: TableOutput) -> CommandResult:
    """Return the rank correlations between the columns of a published table."""
    correlations = column_correlations(table)
    found = correlations.pairs
    if not found:
        what = "has no two columns of different items to correlate"
        raise UsageError(what, where=table.key, hint="choose another table; `creperie table list` shows them")
    cells = {(a, b): f"{c.value:.2f} [{c.low:.2f}, {c.high:.2f}]" for a, b, c in found}
    names = list(dict.fromkeys(name for pair in cells for name in pair))
    rows = [[a, *(cells.get((a, b), "") for b in names[1:])] for a in names[:-1]]
    sizes = sorted({c.n for *_, c in found})
    models = " to ".join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1])))
    how = "models, siblings as independent, of figures as printed"
    notes = [f"Spearman's rank correlation and 95 % interval over {models} {how}; {table.citation}"]
    if correlations.left_out:
        notes += [f"without rows that are no models of images: {', '.join(correlations.left_out)}"]
    text = render_rows(["", *names[1:]], rows, output.form, notes=notes)
    document = {"table": table.key, "correlations": [{"a": a, "b": b, **vars(c)} for a, b, c in found]}
    document["left_out"] = correlations.left_out
    return text_result(document, text, output.out)


def _list_answer() -> CommandResult:
    tables = known_tables()
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
        rows = []
        for t in tables:
            tasks = dict.fromkeys(task for c in t.columns for task in c.tasks[:1])
            filled_by = f"{listing(t.benchmarks(), 2)} ({listing(tasks)})" if tasks else "–"
            rows.append([t.key, str(len(t.rows)), filled_by, t.caption])
        print_table(["table", "rows", "filled by runs on", "what it shows"], rows)
        say("\ncreperie table PAPER/NUMBER RUN… prints one with runs beside it; without a run, as published.")

    return CommandResult(document, show)


@click.command()
@click.argument("name", required=False)
@click.argument("sources", nargs=-1, metavar="RUN|BENCH…")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="FILE.svg, .pdf or .png.")
@options_of("options", FigureOptions)
@answers
def figure(name: str | None, sources: tuple[str, ...], out: Path | None, options: FigureOptions) -> CommandResult:
    """Draw the figure NAME. Without a name, list the figures that can be drawn.

    \b
      creperie figure accuracy runs/… --out accuracy.pdf
      creperie figure gaps out/mine out/honest --attackers length-words,surface --out gaps.svg
    """
    if name is None:
        rows = [(d.name, d.sources, d.what) for d in DRAWINGS.values()]
        listed = {"figures": [{"name": n, "sources": s, "what": w} for n, s, w in rows]}
        return CommandResult(listed, lambda: print_table(["figure", "drawn from", "what it shows"], rows))
    if name in DRAWINGS and not sources and not DRAWINGS[name].sources.startswith("["):
        needed = DRAWINGS[name].sources
        raise UsageError(f"figure {name} needs {needed}", hint=f"run `creperie figure {name} {needed}`")
    if out is None:
        raise UsageError("no output file given", hint="pass --out FILE.svg, .pdf or .png")
    path = save_figure(draw_figure(name, sources, options), out)
    return CommandResult({"figure": name, "file": str(path)}, lambda: say(f"{path}"))
