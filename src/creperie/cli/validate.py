"""`creperie validate`: checking the captions of a benchmark with a model, with or without its images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from creperie.bench import Benchmark, ImageOptions, load
from creperie.cli.options import engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import Json, UsageError, option

if TYPE_CHECKING:
    from creperie.engine import Engine

#: How many findings are shown to people; --json and --out hold all.
MOST_SHOWN = 20


@dataclass(frozen=True)
class ValidateOptions(ImageOptions):
    """Options that select the models that check a benchmark, and the number of items to check."""

    model: str = option("", "A language model that compares captions, such as api:gpt-4o-mini.", metavar="URI")
    nli: str = option("", "An NLI classifier that compares captions, such as hf:NAME.", metavar="URI")
    truth: bool = option(False, "Compare captions by the makers' rules of truth, without a model.")
    seer: str = option(
        "", "A model that looks at the images: vlm:, api:, hf:NAME?score=itm.", flags="--with", metavar="URI"
    )
    out: str | None = option(None, "A folder for all verdicts.", metavar="DIR")
    limit: int | None = option(None, "Only the first N items.", minimum=1, metavar="N")
    prompts: str = option("", "A folder with a validate.toml of your own.", metavar="DIR")
    dry_run: bool = option(False, "Only show how many calls, tokens and dollars it would take.")


@click.command()
@click.argument("bench")
@options_of("options", ValidateOptions)
@engine_options
@answers
def validate(bench: str, options: ValidateOptions, engine: Engine | None) -> CommandResult:
    """Check that the true captions of an item are true and agree with each other, and that its false captions are
    false.

    --model, --nli and --truth compare the captions of an item with each other. --with shows a vision-language model
    every image of an item with each of its captions. The exit code is 1 if a caption is in doubt. The validator's
    corrections are written beside its verdicts.
    """
    from creperie.making import all_pairs, cost_sentence, estimate_pairs
    from creperie.making import validate as validate_benchmark

    ways = [uri for uri in (options.model, options.nli, options.seer, "truth" if options.truth else "") if uri]
    if len(ways) != 1:
        raise UsageError(
            "expected exactly one of --model, --nli, --truth and --with", hint="run the command once for each"
        )
    uri = ways[0]
    if options.seer:
        return _judge_images(load(bench, images=options.images), bench, options)
    loaded = load(bench)
    pairs = all_pairs(loaded, options.limit)[0]
    asks = bool(options.model)
    expected = estimate_pairs(pairs, uri, options.prompts) if asks else {"calls": 2 * len(pairs), "cost": 0.0}
    price = cost_sentence(expected) if asks else f"{2 * len(pairs):,} pairs of captions to compare"
    if options.dry_run:
        return CommandResult({"bench": loaded.name, "dry_run": True, "estimate": expected}, lambda: say(price))
    click.echo(price, err=True)
    how: dict[str, Any] = {name: getattr(options, name) for name in ("limit", "out", "prompts")}
    validation = validate_benchmark(loaded, uri, nli=bool(options.nli), engine=engine, progress=bar, **how)
    document = {**validation.document, "estimate": expected, "out": options.out}
    doubted = {(f["subset"], f["item"]) for f in document["findings"] if f["code"] != "unreadable-verdict"}
    unanswered = document["failed"] - len(doubted) + document["undecided"]
    return _judged(document, len(doubted), unanswered, bench, _show)


def _judged(document: Json, failed: int, unanswered: int, bench: str, show: Callable[[Json], None]) -> CommandResult:
    """Return the result of a validation, with its verdict and exit code. The code is 1 if `failed` items have a refuted
    caption, else 3 if `unanswered` items were not decided. `show` prints the document. `bench` is named in the
    suggested next step.
    """
    from creperie.auditing import judge_validation

    verdict = judge_validation(document["items"], failed, unanswered, bench)

    def shown() -> None:
        show(document)
        say(f"verdict: {verdict['text']}")
        say(f"next: {verdict['next']}")

    return CommandResult({**document, **verdict}, shown, code=verdict["code"])


def _judge_images(bench: Benchmark, spec: str, options: ValidateOptions) -> CommandResult:
    """Let a vision-language model judge, for every item, whether each caption is true of each image. Return the
    result.
    """
    from creperie.scoring import expected_look, look

    chosen = bench.filter([k < options.limit for k in range(len(bench))]) if options.limit else bench
    expected = expected_look(chosen, options.seer, progress=bar)
    price = "price not known" if expected["cost"] is None else f"${expected['cost']:.4f}"
    effort = f"{expected['questions']:,} questions about images, about {expected['tokens_in']:,} tokens read, {price}"
    if options.dry_run:
        return CommandResult({"bench": bench.name, "dry_run": True, "estimate": expected}, lambda: say(effort))
    click.echo(effort, err=True)
    seen = look(chosen, options.seer, out=options.out, progress=bar).document
    document = {**seen, "estimate": expected, "out": options.out}
    unseen = sum(cells.get("not-seen", 0) for cells in document["cells"].values())
    return _judged(document, document["failed"], unseen, spec, _show_look)


def _show_look(document: Json) -> None:
    for finding in document["findings"][:MOST_SHOWN]:
        what = f"{finding['message']} (P {finding['p']:.2f}, image {finding['image']})"
        say("[red]✗[/red] [bold]{}/{}[/bold] {}", finding["subset"], finding["item"], what)
        say("    {}", finding["text"])
    codes = ("true-looks-false", "false-looks-true", "not-seen")
    rows = [(name, cells["cells"], *(cells.get(c, 0) for c in codes)) for name, cells in document["cells"].items()]
    print_table(["cells", "all", *codes], rows)
    if document["out"]:
        say("written to {} (looks.json, looks.parquet, people/)", document["out"])


def _show(document: Json) -> None:
    for finding in document["findings"][:MOST_SHOWN]:
        say("[red]✗[/red] [bold]{}/{}[/bold] {}", finding["subset"], finding["item"], finding["message"])
        say("    {}", finding["first"])
        say("    {}", finding["second"])
        if finding["correction"]:
            say("    [green]correction:[/green] {}", finding["correction"])
    more = len(document["findings"]) - MOST_SHOWN
    if more > 0:
        say(f"… and {more:,} more (--json and --out hold all)")
    rows = [(name, n["items"], n["failed"]) for name, n in document["subsets"].items()]
    rows.append(("all", document["items"], document["failed"]))
    print_table(["subset", "items", "failed"], rows)
    if document["skipped"]:
        say(f"{document['skipped']:,} items have only one caption and were not checked")
    if ledger := document.get("ledger"):
        asked = f"{ledger['calls']:,} calls, {ledger['cached']:,} answers kept from before"
        tokens = f"{ledger['tokens_in']:,} tokens read, {ledger['tokens_out']:,} written"
        say(f"{asked}, {tokens}, ${ledger['cost']:.4f}")
    if document["out"]:
        say("written to {} (validation.json, verdicts.parquet)", document["out"])
