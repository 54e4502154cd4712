"""`creperie train`: train with hard negatives, tune in several ways, and see whether a gain is honest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.app import CommandGroup
from creperie.cli.engines import engine_options
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, silent

if TYPE_CHECKING:
    from creperie.engine import Engine
    from creperie.training import (
        Negatives,
        TextTable,
        TowersConfig,
        TrainingSettings,
        TrainingStudy,
        Tuning,
        TuningPlan,
    )


class TrainGroup(CommandGroup):
    """`creperie train --model …` is `creperie train fit --model …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("--") and args[0] != "--help":
            args = ["fit", *args]
        return super().parse_args(ctx, args)


@click.group(cls=TrainGroup)
def train() -> None:
    """Hard-negative training and fine-tuning of CLIP-shaped models.

    \b
      creperie train --model hf:CLIP --data BENCH --negatives rules:swap,rules:negate --out out/mine
      creperie train tune --model hf:CLIP --data BENCH --out out/tuned      frozen, full, LoRA (Table 13)
      creperie train study --world --out out/study                          does the gain survive? (Tables 5 and 10)
    """


def _trains(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a training. Defaults are the published ones."""
    options = [
        click.option("--objective", default="negclip", show_default=True, help="clip, negclip or triple (P1, P2, N)."),
        click.option("--epochs", default=30, show_default=True),
        click.option("--steps", type=int, help="Stop after this many optimiser steps."),
        click.option("--batch", default=256, show_default=True, help="Images per batch."),
        click.option("--lr", default=1e-4, show_default=True, help="Highest learning rate."),
        click.option("--weight-decay", default=0.1, show_default=True),
        click.option("--warmup", default=1000, show_default=True, help="Steps of warm-up; a cosine follows."),
        click.option("--pull", default=0.0, show_default=True, help="Weight of the pull between P1 and P2."),
        click.option("--clip-norm", default=0.0, show_default=True, help="Clip gradients at this norm; 0: never."),
        click.option("--accumulate", default=1, show_default=True, help="Batches per optimiser step."),
        click.option("--precision", default="float32", show_default=True, help="float32 or bfloat16."),
        click.option("--recompute", is_flag=True, help="Gradient checkpointing: less memory, more time."),
        click.option("--save-every", default=0, help="Steps between checkpoints (default: one epoch)."),
        click.option("--check-every", default=0, help="Steps between held-out evaluations (default: one epoch)."),
        click.option("--patience", default=0, help="Evaluations without improvement before it stops; 0: never."),
        click.option("--seed", default=0, show_default=True),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, mps or auto."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _follows() -> bool:
    """Is this one of several processes that train together, and not the first, which speaks for all?"""
    return int(os.environ.get("RANK", "0")) > 0


def _alone(command: str) -> None:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(f"`train {command}` runs in one process", hint="start `train fit` with accelerate launch")


def _foils(how: dict[str, Any]) -> Negatives:
    """Which foils were asked for, taken out of the options; without any, NegCLIP's loss is CLIP's."""
    from creperie.training import Negatives

    names = tuple(n for n in _listed(how.pop("negatives")) if n != "none")
    if not names and how["objective"] == "negclip":
        how["objective"] = "clip"
    return Negatives(names, how.pop("refined"), how["seed"])


def _tuning(how: dict[str, Any]) -> Tuning:
    from creperie.training import Tuning

    rank = how.pop("rank")
    return Tuning(how.pop("tuning"), rank, 2 * rank, tuple(how.pop("targets").split(",")))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _start(model: str | None, joined: dict[str, str]) -> str | TowersConfig:
    """What to start from: a model, or two towers to join."""
    from creperie.training import TowersConfig

    trained = _listed(joined["train_towers"])
    if joined["image_tower"] or joined["text_tower"]:
        if model:
            raise UsageError("--model and --image-tower exclude each other")
        return TowersConfig(joined["image_tower"] or "", joined["text_tower"] or "", joined["head"], trained=trained)
    if not model:
        raise UsageError("nothing to train", hint="pass --model, or --image-tower and --text-tower")
    if trained:
        return f"{model}?trained={','.join(trained)}"
    return model


def _settings(how: dict[str, Any]) -> TrainingSettings:
    from creperie.training import TrainingSettings

    return TrainingSettings(**how)


@train.command()
@click.option("--model", metavar="URI|JSON", help="A model to continue from, or a JSON file with settings.")
@click.option("--image-tower", metavar="URI", help="Join two pretrained towers: a vision transformer (hf:).")
@click.option("--text-tower", metavar="URI", help="Join two pretrained towers: a sentence encoder (st: or hf:).")
@click.option("--head", default="residual", show_default=True, help="Of joined towers: linear, mlp or residual.")
@click.option("--train-towers", default="", help="Towers whose own weights are trained: image, text, by comma.")
@click.option("--data", required=True, metavar="BENCH", help="A benchmark with images.")
@click.option("--images", metavar="DIR", help="Where its images are: a folder, zip or tar.")
@click.option("--subset", default="", help="Only these subsets of --data, by comma.")
@click.option(
    "--negatives", default="own", show_default=True, help="Comma-separated: own, makers, benchmarks; none: no foils."
)
@click.option("--refined", is_flag=True, help="Keep only foils that pass a grid refinement against blind attackers.")
@click.option("--held-out", metavar="BENCH", help="Pairs to evaluate during training, for --patience.")
@click.option("--tuning", default="full", show_default=True, help="full, text (tower only), lora or frozen.")
@click.option("--rank", default=2, show_default=True, help="Rank of the LoRA adapters.")
@click.option("--targets", default="q_proj,v_proj", show_default=True, help="Layers to adapt with LoRA.")
@click.option("--truncate", is_flag=True, help="Truncate captions that exceed the context.")
@click.option("--tensorboard", is_flag=True, help="Also write metrics for TensorBoard.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--force", is_flag=True, help="Start over in a folder that holds a training.")
@_trains
@engine_options
@answers
def fit(
    model: str | None,
    data: str,
    images: str | None,
    subset: str,
    held_out: str | None,
    truncate: bool,
    out: Path,
    device: str,
    engine: Engine | None,
    **how: Any,
) -> CommandResult:
    """Train a model. The same command resumes an interrupted training.

    --engine, --address and --workers say where makers that --negatives names write their foils.
    """
    from creperie.bench import load
    from creperie.training import TrainingJob, open_student, train_set, training_data
    from creperie.training import train as run

    progress = silent if _follows() else bar
    foils, tuning, run_as = _foils(how), _tuning(how), {name: how.pop(name) for name in ("force", "tensorboard")}
    start = _start(model, {name: how.pop(name) for name in ("image_tower", "text_tower", "head", "train_towers")})
    settings = _settings(how)
    bench = load(data, images=images)
    examples = training_data(bench.only(_listed(subset)) if subset else bench, foils, progress, engine)
    student = open_student(start, settings.seed, examples.captions())
    held = train_set(load(held_out, images=images)) if held_out else None
    job = TrainingJob(student, examples, settings, tuning, held, str(start), truncate)
    done = run(job, out, device=device, progress=progress, **run_as)
    if _follows():
        raise SystemExit(0)
    document = {"run": str(out), "model": done.uri, **{k: v for k, v in done.document.items() if k != "job"}}

    def show() -> None:
        found = done.document
        loss = "–" if found["loss"] is None else f"{found['loss']:.4f}"
        say(f"{found['steps']} steps, loss {loss}, {found['samples_per_s']:,.0f} samples/s on {found['device']}")
        if found["batches_without_foils"]:
            say(f"{found['batches_without_foils']} batches had no foil and were trained with CLIP's loss alone")
        if found["captions_cut"]:
            say(f"{found['captions_cut']} captions were truncated to fit the context")
        say(f"Score it: creperie score BENCH --model {done.uri}")

    return CommandResult(document, show)


@train.command()
@click.option("--model", required=True, metavar="URI", help="hf: or clip: model to start from.")
@click.option("--data", required=True, metavar="BENCH", help="A benchmark with images.")
@click.option("--images", metavar="DIR", help="Where its images are.")
@click.option("--ways", default="frozen,full,lora", show_default=True, help="Of frozen, full, text, lora.")
@click.option("--share", default=0.4, show_default=True, help="Share of each subset to train on.")
@click.option("--train-on", default="", help="Train on these subsets only; the others show forgetting.")
@click.option("--rank", default=2, show_default=True, help="Rank of the LoRA adapters.")
@click.option("--pairs", default=500, show_default=True, help="Held-out pairs for measuring recall.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder for the runs.")
@_trains
@answers
def tune(model: str, data: str, images: str | None, out: Path, device: str, **how: Any) -> CommandResult:
    """Tune in several ways on a share of every subset and test on the rest: the shape of SugarCrepe++'s Table 13."""
    from creperie.bench import load
    from creperie.training import table_13
    from creperie.training import tune as run

    _alone("tune")
    found = run(load(data, images=images), model, _plan(how), out, device=device, progress=bar)
    return CommandResult(found.document, lambda: _show_tables(table_13(found)))


def _plan(how: dict[str, Any]) -> TuningPlan:
    from creperie.training import Tuning, TuningPlan

    ways, some, rank = _listed(how.pop("ways")), _listed(how.pop("train_on")), how.pop("rank")
    share, pairs = how.pop("share"), how.pop("pairs")
    return TuningPlan(_settings(how), ways, Tuning("lora", rank, 2 * rank), share, some, pairs)


@train.command()
@click.option("--model", required=True, metavar="URI", help="A dual encoder.")
@click.option("--data", required=True, metavar="BENCH", help="Images with captions.")
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip or tar.")
@click.option("--subset", default="", help="Only these subsets of --data, by comma.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, mps or auto.")
@answers
def recall(model: str, data: str, images: str | None, subset: str, device: str) -> CommandResult:
    """Retrieval: recall at 1, 5 and 10 from image to text and from text to image, with intervals."""
    from creperie.bench import load
    from creperie.training import recalls

    bench = load(data, images=images)
    found = recalls(bench.only(_listed(subset)) if subset else bench, model, device=device, progress=bar)

    def show() -> None:
        rows = [(r.direction, f"R@{r.at}", f"{r.percent:.1f}", f"[{r.low:.1f}, {r.high:.1f}]") for r in found.rows]
        print_table(f"{found.images:,} images, {found.captions:,} captions", ("", "", "%", "95 %"), rows)
        if found.tied:
            say(f"{found.tied} queries tie with a wrong answer, which is ranked first")

    return CommandResult(found.document, show)


@train.command()
@click.option("--world", is_flag=True, help="On the built-in world, which needs no download.")
@click.option("--preset", default="small", show_default=True, help="small (minutes on two cores), demo, large (a GPU).")
@click.option("--seeds", default=2, show_default=True, help="How many.")
@click.option("--arms", default="none,replace,swap,negate,all,refined", show_default=True, help="By comma, or every.")
@click.option("--steps", type=int, help="On the world: of the base training, in place of the preset's.")
@click.option("--arm-steps", type=int, help="On the world: of every arm, likewise.")
@click.option("--pairs", type=int, help="On the world: pictures for the base training, likewise.")
@click.option("--items", type=int, help="On the world: of every kind in the exam, likewise.")
@click.option("--model", metavar="URI", help="On data of your own: the model that every arm starts from.")
@click.option("--data", metavar="BENCH", help="On data of your own: pictures and true captions to train on.")
@click.option("--biased", metavar="BENCH", help="On data of your own: the test with template foils.")
@click.option("--clean", metavar="BENCH", help="On data of your own: the test without give-aways.")
@click.option("--images", metavar="DIR", help="Where the pictures of all three are.")
@click.option("--epochs", default=5, show_default=True, help="Of every arm, on data of your own.")
@click.option("--batch", default=256, show_default=True, help="Likewise.")
@click.option("--lr", default=1e-5, show_default=True, help="Likewise.")
@click.option("--warmup", default=50, show_default=True, help="Likewise.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, mps or auto.")
@click.option("--out", default=Path("out/study"), show_default=True, type=click.Path(path_type=Path))
@engine_options
@answers
def study(world: bool, preset: str, seeds: int, arms: str, device: str, out: Path, **how: Any) -> CommandResult:
    """Train with every type of hard negatives, test on biased and on clean foils: Tables 5 and 10 of SugarCrepe.

    Arms: none, replace, swap, negate, all; the last four refined: replace-refined, swap-refined, negate-refined and
    refined (all of them); every: the nine. One base is trained a seed; every arm goes on from it. Killed and called
    again, it goes on; study.json in the folder holds the tables at any time.

    On data of your own (--model, --data, --biased, --clean) the foils come from rules:replace, rules:swap and
    rules:negate on the captions of --data, written where --engine, --address and --workers say, and every arm
    fine-tunes --model.
    """
    from creperie.training import changed_preset, find_preset, study_tables, write_study
    from creperie.training import run_study as run

    _alone("study")
    wanted = tuple(a.strip() for a in arms.split(",") if a.strip())

    def tell(so_far: TrainingStudy) -> None:
        write_study(so_far, out)

    sizes = {name: how.pop(name) for name in ("steps", "arm_steps", "pairs", "items")}
    if world:
        chosen = find_preset(preset)
        chosen = changed_preset(chosen, **sizes) if any(sizes.values()) else chosen
        found = run(chosen, out, seeds=range(seeds), arms=wanted, device=device, progress=bar, tell=tell)
    else:
        found = _study_of_own(how, range(seeds), wanted, device, out, tell)
    document = write_study(found, out)

    def show() -> None:
        _show_tables(*study_tables(found))
        say(f"{found.seconds:,.0f} s; models and numbers in {out}")

    return CommandResult(document, show)


def _study_of_own(
    own: dict[str, Any],
    seeds: range,
    arms: tuple[str, ...],
    device: str,
    out: Path,
    tell: Callable[[TrainingStudy], None],
) -> TrainingStudy:
    from creperie.bench import load
    from creperie.training import StudyQuestion, TrainingSettings, study_of

    names = ("model", "data", "biased", "clean")
    if not all(own[name] for name in names):
        raise UsageError("no training data given", hint="pass --world, or --model, --data, --biased and --clean")
    data, biased, clean = (load(own[name], images=own["images"]) for name in names[1:])
    settings = TrainingSettings(**{name: own[name] for name in ("epochs", "batch", "lr", "warmup")})
    question = StudyQuestion(own["model"], data, biased, clean, settings, own["engine"])
    return study_of(question, out, seeds=seeds, arms=arms, device=device, progress=bar, tell=tell)


def _show_tables(*tables: TextTable) -> None:
    from rich.markup import escape

    for table in tables:
        print_table(table.title, table.columns, table.rows, right=table.columns[1:])
        say(f"[dim]{escape(table.note)}[/dim]\n")
