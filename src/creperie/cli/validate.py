"""`creperie validate`: a language model looks over the captions of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from creperie.cli.options import engine_options
from creperie.cli.output import CommandResult, answers, bar, print_table, say

if TYPE_CHECKING:
    from creperie.engine import Engine

#: How many findings are shown to people; --json and --out hold all.
MOST_SHOWN = 20


@click.command()
@click.argument("bench")
@click.option("--model", required=True, metavar="URI", help="The validator, such as api:gpt-4o-mini.")
@click.option("--out", metavar="DIR", help="A folder for all verdicts.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N items.")
@click.option("--prompts", default="", metavar="DIR", help="A folder with a validate.toml of your own.")
@engine_options
@click.option("--dry-run", is_flag=True, help="Only say how many calls, tokens and dollars it would take.")
@answers
def validate(
    bench: str, model: str, out: str | None, limit: int | None, prompts: str, dry_run: bool, engine: Engine | None
) -> CommandResult:
    """Do the true captions of an item say the same, and its false ones something else?

    Exit code 1 where some do not. The validator's corrections are kept beside its verdicts.
    """
    from creperie.bench import load
    from creperie.making import all_pairs, cost_sentence, estimate_pairs
    from creperie.making import validate as validate_benchmark

    loaded = load(bench)
    expected = estimate_pairs(all_pairs(loaded, limit)[0], model, prompts)
    if dry_run:
        document = {"bench": loaded.name, "dry_run": True, "estimate": expected}
        return CommandResult(document, lambda: say(cost_sentence(expected)))
    click.echo(cost_sentence(expected), err=True)
    found = validate_benchmark(loaded, model, limit=limit, out=out, prompts=prompts, engine=engine, progress=bar)
    document = {**found.document, "estimate": expected, "out": out}
    return CommandResult(document, lambda: _show(document), ok=not document["findings"])


def _show(document: dict[str, Any]) -> None:
    from rich.markup import escape

    for finding in document["findings"][:MOST_SHOWN]:
        name = escape(f"{finding['subset']}/{finding['item']}")
        say(f"[red]✗[/red] [bold]{name}[/bold] {escape(finding['message'])}")
        say(f"    {escape(finding['first'])}")
        say(f"    {escape(finding['second'])}")
        if finding["correction"]:
            say(f"    [green]correction:[/green] {escape(finding['correction'])}")
    more = len(document["findings"]) - MOST_SHOWN
    if more > 0:
        say(f"… and {more:,} more (--json and --out hold all)")
    rows = [(name, f"{n['items']:,}", f"{n['failed']:,}") for name, n in document["subsets"].items()]
    rows.append(("all", f"{document['items']:,}", f"{document['failed']:,}"))
    print_table("", ["subset", "items", "failed"], rows, right=("items", "failed"))
    if document["skipped"]:
        say(f"{document['skipped']:,} items have one caption only and were not asked about")
    if ledger := document.get("ledger"):
        asked = f"{ledger['calls']:,} calls, {ledger['cached']:,} answers kept from before"
        tokens = f"{ledger['tokens_in']:,} tokens read, {ledger['tokens_out']:,} written"
        say(f"{asked}, {tokens}, ${ledger['cost']:.4f}")
    if document["out"]:
        say(f"written to {escape(document['out'])} (validation.json, verdicts.parquet)")
