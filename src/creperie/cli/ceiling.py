"""`creperie ceiling`: the highest accuracy that a benchmark's captions and labels allow."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import percent

COLUMNS = ["benchmark", "subset", "items", "same words", "order-blind, ties wrong", "ties half", "half-truths"]


@click.command()
@click.argument("benches", nargs=-1, required=True, metavar="BENCH…")
@click.option("--subsets", is_flag=True, help="Also every subset.")
@answers
def ceiling(benches: tuple[str, ...], subsets: bool) -> CommandResult:
    """How far a model that ignores word order can come on a benchmark, from its captions alone.

    Same words: items with a true and a false caption of the same words in another order, which such a model can only
    tie. Half-truths: items whose false captions only add to a true one.
    """
    from creperie.bench import load
    from creperie.statistics import ceilings

    rows = []
    for spec in benches:
        bench = load(spec)
        found = ceilings(bench)
        rows += [{"benchmark": bench.name, **c.document()} for c in (found if subsets else found[-1:])]

    def show() -> None:
        cells = [
            [
                *(Path(r["benchmark"]).name, r["subset"], f"{r['n']:,}", f"{r['same_words']:,}"),
                *(percent(r["order_blind"]), percent(r["order_blind_half"]), f"{r['half_truths']:,}"),
            ]
            for r in rows
        ]
        print_table("", COLUMNS, cells, right=COLUMNS[2:])
        say("[dim]% of items, image-to-text (itt)[/dim]")

    return CommandResult({"ceilings": rows}, show)
