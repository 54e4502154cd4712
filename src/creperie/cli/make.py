"""`creperie make`: generating foils and second true captions from captions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import Json, UsageError, counted, one_line, option, write_text
from creperie.engine import Engine, EngineOptions
from creperie.making import (
    MAKERS,
    NOT_CHOSEN,
    QUARANTINED,
    Captions,
    JobOptions,
    LLMMaker,
    Made,
    Maker,
    MakerOptions,
    build_maker,
    cost_sentence,
    estimate_cost,
    read_sources,
    sheet_of,
)
from creperie.making import make as make_benchmark

#: With fewer captions than this, starting processes takes longer than it saves.
FEW = 2_000


class MakeCommand(click.Command):
    """A command whose help lists the makers. They are imported only when the help is shown."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Makers"):
            needs = {name: f" Needs {entry.needs}." if entry.needs else "" for name, entry in MAKERS.items()}
            formatter.write_dl([(name, entry.help + needs[name]) for name, entry in MAKERS.items()])


@dataclass(frozen=True)
class MakeOutput:
    """Options for what `creperie make` prints and writes."""

    out: str | None = option(None, "The benchmark folder to write. May be left out with --show.", metavar="DIR")
    show: bool = option(False, "Show every candidate.")
    html: Path | None = option(None, "A contact sheet: images, captions, foils and gaps on one page.", metavar="FILE")
    dry_run: bool = option(False, "llm: makers: only show how many calls, tokens and dollars it would take.")


@click.command(cls=MakeCommand)
@click.argument("maker")
@click.option(
    "--captions",
    required=True,
    multiple=True,
    metavar="FILE|BENCH",
    help="A benchmark, or text, CSV, TSV, JSON lines, Parquet or tar files; several: repeat it, or give a pattern.",
)
@options_of("output", MakeOutput)
@options_of("job", JobOptions)
@options_of("options", MakerOptions)
@options_of("where", EngineOptions)
@answers
def make(
    maker: str,
    captions: tuple[str, ...],
    output: MakeOutput,
    job: JobOptions,
    options: MakerOptions,
    where: EngineOptions,
) -> CommandResult:
    """Generate foils and second true captions from captions.

    If the command is interrupted, run it again to continue. All candidates, with the reasons for rejecting some of
    them, are kept in candidates.parquet beside the items.
    """
    if output == MakeOutput():
        raise UsageError(
            "no output folder given", hint="pass --out DIR; to look without saving, pass --show or --html FILE"
        )
    sources = read_sources("\n".join(captions), job, options.seed)
    chosen = build_maker(maker, options, sources)
    expected = _estimate(chosen, sources, announce=not output.dry_run)
    if output.dry_run:
        if not expected:
            raise UsageError(
                f"{maker} sends no requests, so --dry-run has nothing to estimate",
                hint="leave out --dry-run; to see some foils, pass --limit 5 --show",
            )
        price = cost_sentence(expected["estimate"])
        return CommandResult({"maker": maker, "dry_run": True, **expected}, lambda: say(price))
    engine = _engine(where, chosen, sources) if output.out else None
    made = make_benchmark(chosen, sources, output.out, options=options, job=job, engine=engine, progress=bar)
    document = {"out": output.out, "maker": maker, "shard": job.shard, **made.report, **expected}
    if chosen.ledger:
        document["ledger"] = dict(chosen.ledger)
    if output.html is not None:
        write_text(output.html, sheet_of(made, sources.images))
        document["html"] = str(output.html)
    texts = {s.id: s.text for s in sources.sources}
    document["nothing"] = [
        {"id": o.source, "source": texts[o.source], "why": why} for o in made.read_outcomes() if (why := o.why_nothing)
    ]
    if output.show:
        document["candidates"] = _candidates(sources, made)
        document["quarantined"] = _quarantined(made)
    nothing = not made.report["made"]
    if nothing:
        document["advice"] = _advice(document, chosen)
    return CommandResult(document, lambda: _show(document), code=3 if nothing else None)


def _advice(document: Json, maker: Maker) -> str:
    """Return why no items were generated, and what the user can do about it."""
    reasons: Counter[str] = Counter(document["skipped"]) + Counter(document["reasons"])
    for why in document["missing"].values():
        reasons.update(why)
    top = "; ".join(f"{reason} ({n:,})" for reason, n in reasons.most_common(3))
    steps = "try more captions, or `creperie make all` for every kind"
    if reasons and reasons.most_common(1)[0][0].startswith("not in English"):
        steps = "give captions in English: others can be imported, audited and scored, but not edited"
    elif maker.name == "all" or maker.name.startswith("rules:"):
        steps += "; --band 12 allows less likely foils"
    elif maker.name.startswith("mine:"):
        steps = "give captions of more images; captions of a text file have no images"
    elif maker.name.startswith("llm:"):
        steps = "name a larger model, or one whose server follows a JSON schema; --show shows its answers"
    return f"nothing was made: {top or 'there are no captions'}. To get foils, {steps}."


def _estimate(maker: Maker, captions: Captions, *, announce: bool) -> Json:
    """Return the expected cost if the maker asks a language model, else an empty dictionary. With `announce`, the cost
    is printed before any request is sent.
    """
    if not maker.name.startswith("llm:"):
        return {}

    assert isinstance(maker, LLMMaker)
    expected = estimate_cost(maker, captions.sources)
    if announce:
        click.echo(cost_sentence(expected), err=True)
    return {"estimate": expected}


def _engine(where: EngineOptions, maker: Maker, captions: Captions) -> Engine:
    """Return the engine to use. If there are many captions and the user did not set the number of workers, it uses all
    cores.
    """
    if where.engine == "ray" and isinstance(maker, LLMMaker) and maker.options.model.startswith("api:"):
        what, hint = "a maker that waits for a server gains nothing from Ray", "leave out --engine ray"
        raise UsageError(what, hint=f"{hint}; to send more requests at a time, add &concurrency=N to the model")
    return where.choose(many=len(captions.sources) >= FEW)


def _candidates(captions: Captions, made: Made) -> list[Json]:
    texts = {s.id: s.text for s in captions.sources}
    return [
        {
            "source": texts[o.source],
            "text": v.candidate.text,
            "role": v.candidate.role,
            "kind": v.candidate.kind,
            "edit": v.candidate.edit,
            "id": o.source,
            "group": v.candidate.subset,
            "rejected": v.reason or None,
        }
        for o in made.outcomes
        for v in o.verdicts
        if v.reason != NOT_CHOSEN and not v.reason.startswith(QUARANTINED)
    ] + [
        {"source": texts[o.source], "id": o.source, "kind": kind, "missing": why}
        for o in made.outcomes
        for kind, why in o.missing.items()
    ]


def _quarantined(made: Made) -> list[dict[str, str]]:
    """Return the answers of a language model that could not be parsed and gave no candidates."""
    return [
        {
            "id": o.source,
            "step": v.candidate.edit,
            "why": v.reason.removeprefix(QUARANTINED),
            "answer": v.candidate.text,
        }
        for o in made.outcomes
        for v in o.verdicts
        if v.reason.startswith(QUARANTINED)
    ]


def _show(document: Json) -> None:
    from rich.markup import escape

    places = {key: k for k, key in enumerate(dict.fromkeys(c["id"] for c in document.get("candidates", [])))}
    last = None
    for c in sorted(document.get("candidates", []), key=lambda c: places[c["id"]]):
        if c["id"] != last:
            say(f"\n[bold]{escape(c['source'])}[/bold]")
            last = c["id"]
        if "missing" in c:
            say(f"    [dim]{escape(c['kind'])}: {escape(c['missing'])}[/dim]")
            continue
        mark = "[green]✓[/green]" if c["role"] == "positive" else "[red]✗[/red]"
        note = f"  [yellow]rejected: {escape(c['rejected'])}[/yellow]" if c["rejected"] else ""
        kind = c["kind"] + (", simplified" if c["group"].endswith("-simplified") else "")
        say(f"  {mark} {escape(c['text'])}  [dim]{escape(kind)}[/dim]{note}")
    if last is not None:
        say()
    if unread := document.get("quarantined"):
        say("{} that could not be used:", counted(len(unread), "answer"))
        for one in unread:
            say("  [dim]{}, {}: {}[/dim]  {}", one["id"], one["step"], one["why"], repr(one_line(one["answer"], 120)))
        say()
    _show_counts(document)


#: counts of a ledger, and how they are called in the table
SPENT = {
    "calls": "requests paid",
    "cached": "answers kept from other jobs",
    "tokens_in": "tokens read",
    "tokens_out": "tokens written",
}


def _show_counts(document: Json) -> None:
    from rich.markup import escape

    sources, skipped = document["sources"], sum(document["skipped"].values())
    say(f"{counted(sources, 'caption')}, {sources - skipped:,} with candidates")
    rows = [(f"skipped: {reason}", n) for reason, n in document["skipped"].items()]
    for reason, n in document["reasons"].items():
        unread = reason.startswith(QUARANTINED)
        rows.append((f"answers not used: {reason.removeprefix(QUARANTINED)}" if unread else f"rejected: {reason}", n))
    rows = [(label, n) for label, n in rows if NOT_CHOSEN not in label]
    rows.append(("candidates made", document["made"]))
    rows += [(f"items: {subset}", n) for subset, n in document["subsets"].items()]
    if document["calls"]:
        rows.append(("calls of the model", document["calls"]))
    ledger = document.get("ledger", {})
    if "sampling" in ledger:
        rows.append(("sampling", ledger["sampling"]))
    elif ledger:
        rows += [(label, ledger[name]) for name, label in SPENT.items()]
        rows.append(("cost", f"${ledger['cost']:.4f}"))
    print_table(["", "n"], rows)
    for line in (document.get("note"), document.get("advice")):
        if line:
            say(escape(line))
    if document["shard"]:
        say(f"shard {document['shard']} written to {escape(document['out'])}; put all together with: creperie merge")
    elif document["out"]:
        what = "written to" if document["made"] else "no items; what was skipped or rejected is in"
        say(f"{what} {escape(document['out'])} (candidates and rejects: candidates.parquet, making.json)")
