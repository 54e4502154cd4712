"""`creperie sensitivity`: what scores depend on (prompts, option orders, word order, fluency, the image)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from creperie.bench import PartOptions, load_part
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, option, percent
from creperie.models import PrecisionOptions

if TYPE_CHECKING:
    from creperie.auditing import Probed
    from creperie.scoring import Sensitivity

SHOWN = 5


@dataclass(frozen=True)
class ProbeOptions:
    """Options that say which inputs are varied, and how."""

    what: str = option(
        "prompts",
        "prompts: their wording and the order of options (vlm: and api: models with ?score=). order: four shuffles of "
        "the words. cases: shuffled, fluent and content-only captions. images: noise in their place.",
        flags="--to",
        choices=("prompts", "order", "cases", "images"),
    )
    prompts: tuple[str, ...] = option((), "Prompts by id or file#id, comma-separated; by default all of the kind.")
    captioner: str = option("", "order: the model that describes the images; else the first vlm:.", metavar="URI")
    others: str = option("", "cases: where the fluent captions come from.", metavar="FILE|BENCH")
    shuffles: tuple[str, ...] = option(
        (),
        "cases: how foils of the first case are shuffled; by default nouns and adjectives, and within trigrams.",
        metavar="NAMES",
    )
    seed: int = option(0, "Seed of shuffles, foils and noise.")


@click.command()
@click.argument("benchmark", metavar="BENCH")
@click.option("--model", "-m", "models", required=True, multiple=True, metavar="URI", help="May be repeated.")
@options_of("probe", ProbeOptions)
@options_of("part", PartOptions)
@options_of("place", PrecisionOptions)
@answers
def sensitivity(
    benchmark: str, models: tuple[str, ...], probe: ProbeOptions, part: PartOptions, place: PrecisionOptions
) -> CommandResult:
    """Measure what a model's scores depend on: prompts, word order, grammar, images.

    creperie sensitivity out/world --model "vlm:NAME?score=choice"

    creperie sensitivity out/world --to order --model hf:NAME --model lm:NAME
    """
    from creperie.scoring import ScoreOptions

    bench = load_part(benchmark, part)
    options = ScoreOptions(device=place.device, dtype=place.dtype)
    if probe.what != "prompts":
        from creperie.auditing import PROBES

        cases: dict[str, Any] = {"others": probe.others} | ({"shuffles": probe.shuffles} if probe.shuffles else {})
        more: dict[str, Any] = {"order": {"captioner": probe.captioner}, "cases": cases}.get(probe.what, {})
        probed = PROBES[probe.what](bench, models, options, seed=probe.seed, progress=bar, **more)

        def show() -> None:
            say(
                "[bold]{}[/bold]  {:,} {}",
                probed.benchmark,
                probed.items,
                "items" if probed.probe == "images" else "captions",
            )
            {"order": _show_order, "cases": _show_cases, "images": _show_images}[probed.probe](probed)
            for why, count in probed.left_out.items():
                if count:
                    say("[yellow]left out[/yellow]: {:,} captions ({})", count, why)

        return CommandResult(probed.document(), show)
    if len(models) > 1:
        raise UsageError(
            "prompts are varied for one model at a time", hint="pass --model only once, or pass --to order"
        )
    from creperie.scoring import sensitivity as measure

    measured = measure(bench, models[0], prompts=probe.prompts, options=options, progress=bar)
    return CommandResult(measured.document(), lambda: _show(measured))


def _show_order(probed: Probed) -> None:
    columns = ["score", "model", "captions", "n", "min", "25 %", "median", "75 %", "max"]
    columns += ["gap", "true above", "ties", "NaN"]
    rows = []
    for s in probed.spreads:
        points = [f"{q:.4g}" for q in s.quartiles]
        against: list[object] = ["", "", ""]
        if s.kind != "caption" and s.n:
            against = [f"{s.gap:.2f}", percent(s.above / s.n), s.ties]
        rows.append([s.metric, s.model, s.kind, s.n, *points, *against, s.void])
    print_table(columns, rows)
    say("[dim]scores as the model gives them; gap: mean difference to the true caption in pooled standard deviations;")
    say("[dim]true above: % of captions that score above their shuffle[/dim]")
    if probed.rows:
        say("[dim]compared with descriptions of the images by {}[/dim]", probed.rows[0]["by"])


def _show_cases(probed: Probed) -> None:

    columns = ["model", "case", "n", "accuracy", "low", "high", "chance", "ties"]
    rows = [[r["model"], r["subset"], r["n"], *(percent(r[k]) for k in columns[3:7]), r["ties"]] for r in probed.rows]
    print_table(columns, rows)
    say("[dim]% of captions above both foils. shuffled: against its own shuffles; fluent: against captions of other")
    say("[dim]things; content-only: its nouns and adjectives against those. The fall from fluent to content-only is")
    say("[dim]what fluency is worth to the model.[/dim]")


def _show_images(probed: Probed) -> None:

    columns = ["model", "subset", "n", "images", "noise", "drop", "chance", "ties", "ties (noise)"]
    rows = []
    for r in probed.rows:
        shares = (r["accuracy"], r["noise"]["accuracy"], r["drop"], r["chance"])
        rows.append([r["model"], r["subset"], r["n"], *map(percent, shares), r["ties"], r["noise"]["ties"]])
    print_table(columns, rows)
    say("[dim]accuracy in %; drop in points. A small drop above chance: the captions alone give it away.[/dim]")


def _show(measured: Sensitivity) -> None:
    say("[bold]{}[/bold]  {}", measured.benchmark, measured.model)
    subsets = list(dict.fromkeys(r.subset for r in measured.rows if r.subset != "all")) + ["all"]
    cells = {(r.prompt, r.order, r.subset): r for r in measured.rows}
    ways = list(dict.fromkeys((r.prompt, r.order) for r in measured.rows))
    columns = ["prompt", "order", *subsets, "unreadable"]
    rows = []
    for way in ways:
        own = [cells.get((*way, s)) for s in subsets]
        unread = own[-1].unread if own[-1] else ""
        rows.append([*way, *[percent(r.accuracy) if r else "" for r in own], unread])
    rows += [
        [f"spread over {name}", "", *[percent(measured.spread(s)[name]) for s in subsets], ""]
        for name in ("prompts", "orders", "all")
    ]
    print_table(columns, rows)
    for b in measured.biases:
        shown = ", ".join(f"{percent(c)} (right {percent(r)})" for c, r in zip(b.chosen, b.right, strict=True))
        none = f"; none or unreadable {percent(b.none)}" if b.none else ""
        say("position bias of {}, {} options: {}{}; distance {}", b.prompt, b.options, shown, none, percent(b.distance))
    say("[dim]accuracy in %; a spread is the largest minus the smallest accuracy[/dim]")
    if measured.unread:
        say(f"[yellow]unparsable-answer[/yellow]: {len(measured.unread):,}")
        for one in measured.unread[:SHOWN]:
            say("  {} {}: {}: {}", one["prompt"], one["order"], one["why"], repr(one["answer"][:100]))
