"""`creperie demo`: the built-in world, end to end."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.output import Answer, answers, bar, print_table, say

if TYPE_CHECKING:
    from creperie.bench import Benchmark
    from creperie.recipes.demo import Attacked, Scored


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Where to.")
@click.option("--items", type=click.IntRange(40), default=200, show_default=True, help="Items of each kind and form.")
@click.option("--seed", default=0, show_default=True)
@answers
def demo(out: Path, items: int, seed: int) -> Answer:
    """The built-in world, end to end, no download: make it, check it, attack it blindly, score real models on it."""
    from creperie.recipes import demo as story

    start = time.monotonic()
    bench = story.make_world_of(out / "world", items, seed, bar)
    sheet = out / "world.png"
    story.picture_book(bench, sheet)
    errors = story.errors_in(bench, bar)
    attacked = story.attack(bench, seed, bar)
    scored, absent = story.score_models(bench, out / "runs", bar)
    seconds = time.monotonic() - start

    def show() -> None:
        _show_world(bench, out, sheet, errors)
        _show_attacks(attacked)
        _show_scores(scored, absent)
        _show_next(out, seconds)

    document = {
        "world": str(out / "world"),
        "picture": str(sheet),
        "items": len(bench),
        "errors": errors,
        "attacked": [asdict(a) for a in attacked],
        "scored": [asdict(s) for s in scored],
        "absent": absent,
        "seconds": round(seconds, 1),
    }
    return Answer(document, show, ok=errors == 0)


def _show_world(bench: Benchmark, out: Path, sheet: Path, errors: int) -> None:
    from creperie.recipes.demo import examples

    say("[bold]1. A world.[/bold] Drawn scenes; a caption is called true or false only where the scene proves it.\n")
    for item in examples(bench):
        say(f"   [dim]{item.subset}[/dim]")
        say(f"   [green]✓ {item.captions[0]}[/green]")
        say(f"   [red]✗ {item.captions[1]}[/red]\n")
    found = "no errors" if errors == 0 else f"{errors} errors"
    say(f"   {len(bench):,} items in {out / 'world'}, pictures in {sheet}; `creperie data check` finds {found}.\n")


def _show_attacks(attacked: list[Attacked]) -> None:
    say("[bold]2. Blind attackers.[/bold] They see no image. On an honest benchmark they guess: 50 %.\n")
    names = list(attacked[0].accuracy)
    rows = []
    for a in attacked:
        strongest = max(names, key=lambda n: a.accuracy[n])
        cells = [f"{100 * a.accuracy[n]:.1f}" for n in names]
        interval = f"[{100 * a.low[strongest]:.1f}, {100 * a.high[strongest]:.1f}]"
        rows.append([a.subset, a.giveaway or "none, by design", *cells, interval, a.verdict])
    columns = ["foils", "give-away", *[f"{n} %" for n in names], "best, 95 %", "verdict"]
    print_table("", columns, rows, right=[f"{n} %" for n in names])
    say()


def _show_scores(scored: list[Scored], absent: list[str]) -> None:
    say("[bold]3. Real models[/bold] from installed packages, on the same world.\n")
    rows = [
        [
            s.model,
            s.task,
            s.subset,
            str(s.n),
            f"{100 * s.accuracy:.1f}",
            f"[{100 * s.low:.1f}, {100 * s.high:.1f}]",
            f"{100 * s.chance:.1f}",
        ]
        for s in scored
    ]
    if rows:
        columns = ["model", "task", "foils", "n", "accuracy %", "95 %", "chance %"]
        print_table("", columns, rows, right=["n", "accuracy %", "chance %"])
    for package in absent:
        say(f"   not run: the package {package} is not installed (`make demo` installs it)")
    say()


def _show_next(out: Path, seconds: float) -> None:
    say(f"[bold]Done in {seconds:.0f} s.[/bold] Next, with your own data:\n")
    for line in (
        "creperie data list                                   every benchmark, its size, licence, chance level",
        "creperie data import my.csv --image file --positive caption --negative foil --out out/mine",
        "creperie audit out/mine                              is it hackable, and through what?",
        f"creperie score {out / 'world'} --model hf:openai/clip-vit-base-patch32",
    ):
        say(f"   {line}")
