"""`creperie make`: foils and second positives from captions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, write_text

if TYPE_CHECKING:
    from creperie.engine import Engine, Shard
    from creperie.making import Captions, Made, Maker, MakerOptions

#: With fewer captions than this, starting processes takes longer than they save.
FEW = 2_000


class MakeCommand(click.Command):
    """The help lists the makers; they are read when help is asked for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from creperie.making import MAKERS

        with formatter.section("Makers"):
            formatter.write_dl([(name, entry.help) for name, entry in MAKERS.items()])


@click.command(cls=MakeCommand)
@click.argument("maker")
@click.option("--captions", required=True, metavar="FILE|BENCH", help="A text, TSV, Parquet or tar file; a benchmark.")
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip, tar or Parquet file.")
@click.option("--out", metavar="DIR", help="The benchmark folder to write. May be left out with --show.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N captions.")
@click.option("--show", is_flag=True, help="Show every candidate.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N captions, drawn at random.")
@click.option("--html", metavar="FILE", help="A contact sheet: images, captions, foils and gaps on one page.")
@click.option("--foils", type=click.IntRange(min=1), default=1, show_default=True, help="Foils per kind and caption.")
@click.option("--apart", is_flag=True, help="Rule and grammar makers: every foil in an item of its own.")
@click.option("--as-published", is_flag=True, help="As the originals: broken articles, capitals and blanks stay.")
@click.option(
    "--matched/--unmatched",
    default=True,
    show_default=True,
    help="rules:replace, rules:vl-checklist: foils that length and frequency do not give away; or more foils.",
)
@click.option(
    "--tidy/--no-tidy", default=True, show_default=True, help="One surface style for all captions of an item."
)
@click.option("--parser", default="", metavar="NAME", help="A spaCy pipeline (default: the best that is installed).")
@click.option("--others", default="", metavar="FILE|BENCH", help="Fluent captions of other images (content).")
@click.option("--model", default="", metavar="URI", help="The generator of llm: makers, such as api:gpt-4o-mini.")
@click.option(
    "--evidence",
    type=click.Choice(("certain", "likely", "unchecked")),
    default="likely",
    show_default=True,
    help="mine:twins: how sure it must be that a caption is false of the other image.",
)
@click.option(
    "--image-model", default="", metavar="URI", help="mine:twins: an image encoder that finds near-duplicates."
)
@click.option(
    "--dry-run", is_flag=True, help="llm: makers: only show how many calls, tokens and dollars it would take."
)
@click.option("--grammar", default="", metavar="URI", help="A blind model that must find candidates as grammatical.")
@click.option("--fluency", default="", metavar="URI", help="A blind model that must find candidates as likely.")
@click.option("--lm", default=None, metavar="URI|none", help="The language model that judges plausibility.")
@click.option("--band", type=click.FloatRange(min=0), default=6.0, show_default=True, help="Its largest gap, in nats.")
@click.option("--corpus", default="", metavar="FILE|BENCH", help="Captions that tell which words people use where.")
@click.option("--reversible-only", is_flag=True, help="Only foils whose arguments could be exchanged.")
@click.option("--prompts", default="", metavar="DIR", help="Prompt files of your own for LLM makers.")
@click.option("--demonstrations", type=click.IntRange(min=0), default=0, help="Examples per prompt, the most similar.")
@click.option("--assemble", is_flag=True, help="llm: makers: the model names the edit, creperie writes the caption.")
@click.option("--nli", default="", metavar="URI", help="An entailment classifier: foils must not follow.")
@click.option("--margin", type=float, default=0.0, show_default=True, help="How much worse these may find them.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes (default: all cores for many).")
@click.option("--engine", default="local", show_default=True, metavar="local|ray", help="Where the work runs.")
@click.option("--address", default="", metavar="HOST:PORT", help="A Ray cluster (default: one started here).")
@click.option("--gpus", type=click.FloatRange(min=0), default=0, help="GPUs for every worker of Ray.")
@click.option("--shard", metavar="I/N", help="Only this share of the captions; `creperie merge` joins shards.")
@click.option("--force", is_flag=True, help="Replace what creperie wrote there, and drop an interrupted job.")
@answers
def make(
    maker: str,
    captions: str,
    images: str | None,
    out: str | None,
    limit: int | None,
    sample: int | None,
    html: str | None,
    show: bool,
    force: bool,
    dry_run: bool,
    shard: str | None,
    **choices: Any,
) -> CommandResult:
    """Make foils and second positives from captions.

    Interrupted, run the same command to continue. All candidates, with the reasons of those that were
    rejected, are kept in candidates.parquet beside the items.
    """
    from creperie.making import MakeRequest, Metered, build_maker, make_shard, preview, sampled, sheet_of
    from creperie.making import make as make_benchmark

    if out is None and not show and not dry_run and html is None:
        raise UsageError("nowhere to write", hint="pass --out DIR, or --show or --html FILE to look only")
    where = {name: choices.pop(name) for name in ("engine", "address", "gpus", "workers")}
    request = MakeRequest(maker, captions, _options(choices), limit, images)
    sources = request.read()
    if sample is not None:
        sources = sampled(sources, sample, request.options.seed)
    chosen = build_maker(maker, request.options, sources)
    expected = _estimate(chosen, sources, said=not dry_run)
    if dry_run:
        return _dry(maker, expected)
    share = _shard(shard, out)
    if out is None:
        made = preview(chosen, sources)
    elif share is not None:
        engine = _engine(where, chosen, sources, out)
        made = make_shard(request, sources, share, out, engine=engine, force=force, progress=bar)
    else:
        engine = _engine(where, chosen, sources, out)
        made = make_benchmark(chosen, sources, out, engine=engine, force=force, progress=bar)
    document = {"out": out, "maker": maker, "shard": shard, **made.report, **expected}
    if isinstance(chosen, Metered):
        document["ledger"] = dict(chosen.ledger)
    if html is not None:
        write_text(Path(html), sheet_of(made, sources.images))
        document["html"] = html
    if show:
        document["candidates"] = _candidates(sources, made)
    return CommandResult(document, lambda: _show(document))


def _options(choices: dict[str, Any]) -> MakerOptions:
    from creperie.making import MakerOptions

    lm = choices.pop("lm")
    if lm is not None:
        choices["lm"] = "" if lm == "none" else lm
    return MakerOptions(**choices)


def _estimate(maker: Maker, captions: Captions, *, said: bool) -> dict[str, Any]:
    """For LLM makers, what it will take; said before anything is asked."""
    if not maker.name.startswith("llm:"):
        return {}
    from creperie.making import LLMMaker, cost_sentence, estimate_cost

    assert isinstance(maker, LLMMaker)
    expected = estimate_cost(maker, captions.sources)
    if said:
        click.echo(cost_sentence(expected), err=True)
    return {"estimate": expected}


def _dry(name: str, expected: dict[str, Any]) -> CommandResult:
    if not expected:
        raise UsageError(f"{name} costs nothing", hint="leave out --dry-run; --limit 5 --show looks at some")
    from creperie.making import cost_sentence

    return CommandResult({"maker": name, "dry_run": True, **expected}, lambda: say(cost_sentence(expected["estimate"])))


def _shard(text: str | None, out: str | None) -> Shard | None:
    from creperie.engine import parse_shard

    if text and out is None:
        raise UsageError("--shard requires --out", hint="pass --out DIR, or leave out --shard to look only")
    return parse_shard(text) if text else None


def _engine(where: dict[str, Any], maker: Maker, captions: Captions, out: str) -> Engine:
    """The engine that was asked for. Without a number, all cores where there is much to do."""
    from creperie.engine import choose_engine

    name = where["engine"]
    if maker.name.startswith("llm:"):
        from creperie.making import LLMMaker

        if isinstance(maker, LLMMaker) and maker.options.model.startswith("api:"):
            if name == "ray":
                what, hint = "a maker that waits for a server gains nothing from Ray", "leave out --engine ray"
                raise UsageError(what, hint=f"{hint}: &concurrency= of the model says how many requests are in flight")
            choose_engine(name, address=where["address"])  # a name that there is not is told
            return maker.engine(captions, Path(out))
    cores = os.cpu_count() or 1
    workers = where["workers"] or (cores if name == "ray" or len(captions.sources) >= FEW else 1)
    return choose_engine(name, address=where["address"], workers=workers, gpus=where["gpus"])


def _candidates(captions: Captions, made: Made) -> list[dict[str, Any]]:
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
    ]


def _show(document: dict[str, Any]) -> None:
    from rich.markup import escape

    last = None
    for c in document.get("candidates", []):
        if c["id"] != last:
            say(f"\n[bold]{escape(c['source'])}[/bold]")
            last = c["id"]
        mark = "[green]✓[/green]" if c["role"] == "positive" else "[red]✗[/red]"
        note = f"  [yellow]rejected: {escape(c['rejected'])}[/yellow]" if c["rejected"] else ""
        say(f"  {mark} {escape(c['text'])}  [dim]{escape(_named(c))}[/dim]{note}")
    if last is not None:
        say()
    _show_counts(document)


def _named(candidate: dict[str, Any]) -> str:
    """The kind, and that it belongs to the simplified item."""
    return candidate["kind"] + (", simplified" if candidate["group"].endswith("-simplified") else "")


def _show_counts(document: dict[str, Any]) -> None:
    from rich.markup import escape

    sources, skipped = document["sources"], sum(document["skipped"].values())
    say(f"{sources:,} captions, {sources - skipped:,} with candidates")
    rows = [(f"skipped: {reason}", f"{n:,}") for reason, n in document["skipped"].items()]
    rows += [(f"rejected: {reason}", f"{n:,}") for reason, n in document["reasons"].items()]
    rows += [("candidates made", f"{document['made']:,}")]
    rows += [(f"items: {subset}", f"{n:,}") for subset, n in document["subsets"].items()]
    if document["calls"]:
        rows.append(("calls of the model", f"{document['calls']:,}"))
    if ledger := document.get("ledger"):
        rows.append(("asked of the server and paid", f"{ledger['calls']:,}"))
        rows.append(("answers kept from other jobs", f"{ledger['cached']:,}"))
        rows.append(("tokens read", f"{ledger['tokens_in']:,}"))
        rows.append(("tokens written", f"{ledger['tokens_out']:,}"))
        rows.append(("cost", f"${ledger['cost']:.4f}"))
    print_table("", ["", "n"], rows, right=("n",))
    if document["shard"]:
        say(f"shard {document['shard']} written to {escape(document['out'])}; put all together with: creperie merge")
    elif document["out"]:
        say(f"written to {escape(document['out'])} (candidates and rejects: candidates.parquet, making.json)")
