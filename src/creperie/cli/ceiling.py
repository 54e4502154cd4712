"""`creperie ceiling`: the highest accuracy that the captions and labels of a benchmark allow."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import UsageError, percent

COLUMNS = ["benchmark", "subset", "items", "same words", "order-blind, ties wrong", "ties half", "half-truths"]
LABELS, SHARES = ("model", "task", "subset", "n"), ("accuracy", "low", "high", "chance")


@click.command()
@click.argument("benches", nargs=-1, required=True, metavar="BENCH…")
@click.option("--subsets", is_flag=True, help="Show every subset, too.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Also this run's accuracy on half-truths.")
@answers
def ceiling(benches: tuple[str, ...], subsets: bool, runs: tuple[str, ...]) -> CommandResult:
    """Compute the highest accuracy that a model without word order can reach, from the captions of a benchmark alone.

    The table counts two kinds of items. In "same words", a true and a false caption have the same words in a different
    order: a model without word order gives both the same score. In "half-truths", the false captions say everything
    that a true caption says, and something more; with `--run`, the command says how often a model rejects these false
    captions.
    """
    from creperie.bench import load
    from creperie.scoring import load_run
    from creperie.statistics import ceilings, half_truth_accuracy

    if runs and len(benches) > 1:
        raise UsageError("--run works only with a single benchmark", hint="give one BENCH")
    rows, accuracies = [], []
    for spec in benches:
        bench = load(spec)
        by_subset = ceilings(bench)
        rows += [{"benchmark": bench.name, **c.document()} for c in (by_subset if subsets else by_subset[-1:])]
    for run in map(load_run, runs):
        accuracies += [{"model": run.model, **r.as_dict()} for r in half_truth_accuracy(run, bench)]
    accuracies = [row for row in accuracies if subsets or row["subset"] == "all"]

    def show() -> None:
        cells = []
        for r in rows:
            shares = map(percent, (r["order_blind"], r["order_blind_half"]))
            name = Path(r["benchmark"]).name
            cells.append([name, r["subset"], r["n"], r["same_words"], *shares, r["half_truths"]])
        print_table(COLUMNS, cells)
        say("[dim]% of items, image-to-text (itt)[/dim]")
        if accuracies:
            shown = [[*(r[k] for k in LABELS), *(percent(r[k]) for k in SHARES)] for r in accuracies]
            print_table([*LABELS, *SHARES], shown, title="half-truths, % right")

    return CommandResult({"ceilings": rows, "half_truth_accuracy": accuracies}, show)
