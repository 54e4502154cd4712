"""`creperie table`: a published table with our runs beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import UsageError, split_names, write_text

if TYPE_CHECKING:
    from creperie.reporting import PublishedTable, TableChoice

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

    Beside a published table, your rows are marked; below them stand the 95 % interval, the number of items, and the
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
    filled = fill_table(published_table(name), runs, same=_pairs(same), any_benchmark=any_benchmark)
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
    return CommandResult(shown, lambda: say(f"written: {out}") if out else print(text, end=""))


def _pairs(same: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in same:
        uri, equals, row = text.rpartition("=")
        if not equals or not uri or not row:
            raise UsageError(f"--same {text!r} is not an URI=ROW", hint="write --same 'hf:/my/clip=CLIP'")
        pairs[uri] = row
    return pairs


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
