"""`creperie items`: difficulty and discrimination of the items of a benchmark."""

from __future__ import annotations

import math
from pathlib import Path

import click

from creperie.cli.options import FILE, options_of
from creperie.cli.output import CommandResult, answers, print_table, say, show_notes
from creperie.core import Json, percent, points
from creperie.metrics import MetricSettings
from creperie.statistics import ItemOptions, ItemStudy, difficulty, write_table

LEGEND = {
    "right": "% of models",
    "difficulty": "the ability at which half of the models know it, if its label is right",
    "discrimination": "how sharply it separates models; below 0: the better ones get it wrong",
    "rest": "correlation with the other items; empty if all models do equally well",
    "text": "chance to be right without the picture, by the response model",
    "picture": "what the picture adds to it",
    "suspicion": "log odds that its label is wrong",
}
#: with too few models for a response model
CORRELATED = "−z of its correlation with the other items; suspicious above 1.645"


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…|FOLDER")
@options_of("options", ItemOptions)
@options_of("settings", MetricSettings)
@click.option("--top", default=20, show_default=True, help="How many suspicious items to print; --json has all.")
@click.option("--table", type=FILE, metavar="FILE", help="Write all items: .parquet, .csv.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the items: .svg, .pdf, .png.")
@answers
def items(
    runs: tuple[str, ...],
    options: ItemOptions,
    settings: MetricSettings,
    top: int,
    table: Path | None,
    plot: Path | None,
) -> CommandResult:
    """Compute item difficulty and discrimination, and find suspicious items, from many models' runs on a benchmark.

    A model that does not know an answer is assumed to guess, and a guess is right with a probability equal to the
    chance level of the task. The difficulty of an item is the ability at which half of the models know the answer. An
    item is suspicious if models, above all the better ones, get it wrong more often than guessing would: its label is
    wrong, or its label is right but the item misleads. With fewer than eight runs, an item is suspicious if models that
    get it right do worse on the other items than models that get it wrong. If every model also has a run without the
    real images (`score --image noise`), items are divided into those that models can answer from the text and those
    that need the picture.

    The short form is a small selection of items that should rank models as the whole benchmark does. The quality of
    this ranking is measured on models that were not used to choose the items, and compared with the quality for equally
    many random items. The exit code is 3 if the item response model did not converge.
    """
    from creperie.reporting import item_map, runs_in, save_figure

    study = difficulty(runs_in(runs), options=options, settings=settings)
    if table:
        write_table(study.frame().drop_columns("images") if table.suffix != ".parquet" else study.frame(), table)
    if plot:
        save_figure(item_map(study), plot)
    document = {**study.document(), "table": str(table) if table else None, "plot": str(plot) if plot else None}
    unsettled = study.fit is not None and not study.fit.converged
    return CommandResult(document, lambda: _show(study, document, top), code=3 if unsettled else None)


def _show(study: ItemStudy, document: Json, top: int) -> None:
    show_notes(document["notes"])
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in document["kinds"].items())
    say("{}", f"{document['benchmark']} by {document['task']}, {len(document['models'])} models: {kinds}")
    if document["solved_by"]:
        solved = ", ".join(f"{n:,} by {kind}" for kind, n in document["solved_by"].items())
        say("{}", f"known to at least half of the models: {solved}")
        heads = ["model", "right", "without the picture", "the picture adds"]
        cells = [
            [m["model"], percent(m["right"]), percent(m["text"])]
            + [points(m["picture"], m["picture_low"], m["picture_high"])]
            for m in document["models"]
        ]
        print_table(heads, cells)
        say("% of items as counted; the picture adds: points, with 95 % interval")
    suspects = [row for row in document["items"] if row["kind"] == "suspicious"]
    rows = suspects[:top]
    shown = ("difficulty", "discrimination", "rest", "text", "picture", "suspicion")
    columns = [c for c in shown if c in study.frame().column_names]
    cells = [[row["subset"], row["id"], percent(row["right"]), *(_number(row[c]) for c in columns)] for row in rows]
    if rows:
        print_table(["subset", "id", "right", *columns], cells, title="most suspicious first")
        legend = LEGEND if study.fit is not None else {**LEGEND, "suspicion": CORRELATED}
        last = rows[-1]["suspicion"]
        if alike := sum(math.isclose(row["suspicion"], last, rel_tol=1e-9) for row in suspects[top:]):
            say("{:,} more are as suspicious as the last one shown; --top shows more", alike)
        meant = (f"{name}: {legend[name]}" for name in ("right", *columns))
        say("{}", "; ".join(meant))
    if study.short is not None:
        short = study.short
        say(
            f"short form of {len(short.items):,} items: {percent(short.pairs)} % of pairs of models in the same order "
            f"({percent(short.random_pairs)} % with random items), accuracies off by {100 * short.error:.1f} points "
            f"({100 * short.random_error:.1f} with random items)"
        )
    for name in ("table", "plot"):
        if document[name]:
            say("wrote {}", document[name])


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.2f}"
