"""`creperie train`: train with hard negatives, tune in several ways, and see whether a gain is honest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.app import CommandGroup
from creperie.cli.options import engine_options, load_part, names, option, option_group, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, silent

if TYPE_CHECKING:
    from creperie.engine import Engine
    from creperie.training import TextTable, TowersConfig, TrainingSettings, TrainingStudy


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


#: The options of a training. Defaults are the published ones.
_trains = option_group(
    "settings",
    "creperie.training:TrainingSettings",
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
)
_DEVICE: dict[str, Any] = {"default": "auto", "show_default": True, "help": "cpu, cuda, mps or auto."}


def _follows() -> bool:
    """Is this one of several processes that train together, and not the first, which speaks for all?"""
    return int(os.environ.get("RANK", "0")) > 0


def _alone(command: str) -> None:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(f"`train {command}` runs in one process", hint="start `train fit` with accelerate launch")


@dataclass(frozen=True)
class FitCall:
    """What `train fit` was asked."""

    model: str | None = option(metavar="URI|JSON", help="A model to continue from, or a JSON file with settings.")
    image_tower: str = option(
        default="", metavar="URI", help="Join two towers: a vision model (hf:, open_clip:, timm:, onnx:)."
    )
    text_tower: str = option(
        default="", metavar="URI", help="Join two pretrained towers: a sentence encoder (st: or hf:)."
    )
    head: str = option(default="residual", show_default=True, help="Of joined towers: linear, mlp or residual.")
    train_towers: tuple[str, ...] = option(
        default="", callback=names, help="Towers whose own weights are trained: image, text, by comma."
    )
    data: str = option(required=True, metavar="BENCH", help="A benchmark with images.")
    images: str | None = option(metavar="DIR", help="Where its images are: a folder, zip or tar.")
    subsets: tuple[str, ...] = option(
        "--subset", default="", callback=names, help="Only these subsets of --data, by comma."
    )
    negatives: tuple[str, ...] = option(
        default="own", show_default=True, callback=names, help="own, makers, benchmarks, or none."
    )
    refined: bool = option(is_flag=True, help="Keep only foils that pass a grid refinement against blind attackers.")
    held_out: str | None = option(metavar="BENCH", help="Pairs to evaluate during training, for --patience.")
    tuning: str = option(default="full", show_default=True, help="full, text (tower only), lora or frozen.")
    rank: int = option(default=2, show_default=True, help="Rank of the LoRA adapters.")
    targets: tuple[str, ...] = option(
        default="q_proj,v_proj", show_default=True, callback=names, help="Layers to adapt with LoRA."
    )
    truncate: bool = option(is_flag=True, help="Truncate captions that exceed the context.")
    tensorboard: bool = option(is_flag=True, help="Also write metrics for TensorBoard.")
    out: Path = option(required=True, type=click.Path(path_type=Path), help="The run folder.")
    force: bool = option(is_flag=True, help="Start over in a folder that holds a training.")
    device: str = option(**_DEVICE)

    def start(self) -> str | TowersConfig:
        """What to start from: a model, or two towers to join."""
        from creperie.training import TowersConfig

        if self.image_tower or self.text_tower:
            if self.model:
                raise UsageError("--model and --image-tower exclude each other")
            return TowersConfig(self.image_tower, self.text_tower, self.head, trained=self.train_towers)
        if not self.model:
            raise UsageError("nothing to train", hint="pass --model, or --image-tower and --text-tower")
        return f"{self.model}?trained={','.join(self.train_towers)}" if self.train_towers else self.model


@train.command()
@_trains
@engine_options
@options_of("call", FitCall)
@answers
def fit(call: FitCall, settings: TrainingSettings, engine: Engine | None) -> CommandResult:
    """Train a model. The same command resumes an interrupted training.

    --engine, --address and --workers say where makers that --negatives names write their foils.
    """
    from creperie.bench import load
    from creperie.training import Negatives, TrainingJob, Tuning, open_student, train_set, training_data
    from creperie.training import train as run

    progress = silent if _follows() else bar
    foils = tuple(name for name in call.negatives if name != "none")
    if not foils and settings.objective == "negclip":  # without foils NegCLIP's loss is CLIP's
        settings = replace(settings, objective="clip")
    tuning = Tuning(call.tuning, call.rank, 2 * call.rank, call.targets)
    start, bench = call.start(), load_part(call.data, call.images, call.subsets)
    examples = training_data(bench, Negatives(foils, call.refined, settings.seed), progress, engine)
    student = open_student(start, settings.seed, examples.captions())
    held = train_set(load(call.held_out, images=call.images)) if call.held_out else None
    job = TrainingJob(student, examples, settings, tuning, held, str(start), call.truncate)
    done = run(job, call.out, device=call.device, force=call.force, tensorboard=call.tensorboard, progress=progress)
    if _follows():
        raise SystemExit(0)
    document = {"run": str(call.out), "model": done.uri, **{k: v for k, v in done.document.items() if k != "job"}}

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


@dataclass(frozen=True)
class TuneCall:
    """What `train tune` was asked."""

    model: str = option(required=True, metavar="URI", help="hf: or clip: model to start from.")
    data: str = option(required=True, metavar="BENCH", help="A benchmark with images.")
    images: str | None = option(metavar="DIR", help="Where its images are.")
    ways: tuple[str, ...] = option(
        default="frozen,full,lora", show_default=True, callback=names, help="Of frozen, full, text, lora."
    )
    share: float = option(default=0.4, show_default=True, help="Share of each subset to train on.")
    train_on: tuple[str, ...] = option(
        default="", callback=names, help="Train on these subsets only; the others show forgetting."
    )
    rank: int = option(default=2, show_default=True, help="Rank of the LoRA adapters.")
    pairs: int = option(default=500, show_default=True, help="Held-out pairs for measuring recall.")
    out: Path = option(required=True, type=click.Path(path_type=Path), help="A folder for the runs.")
    device: str = option(**_DEVICE)


@train.command()
@_trains
@options_of("call", TuneCall)
@answers
def tune(call: TuneCall, settings: TrainingSettings) -> CommandResult:
    """Tune in several ways on a share of every subset and test on the rest: the shape of SugarCrepe++'s Table 13."""
    from creperie.bench import load
    from creperie.training import Tuning, TuningPlan, table_13
    from creperie.training import tune as run

    _alone("tune")
    lora = Tuning("lora", call.rank, 2 * call.rank)
    plan = TuningPlan(settings, call.ways, lora, call.share, call.train_on, call.pairs)
    found = run(load(call.data, images=call.images), call.model, plan, call.out, device=call.device, progress=bar)
    return CommandResult(found.document, lambda: _show_tables(table_13(found)))


@train.command()
@click.option("--model", required=True, metavar="URI", help="A dual encoder.")
@click.option("--data", required=True, metavar="BENCH", help="Images with captions.")
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip or tar.")
@click.option("--subset", "subsets", default="", callback=names, help="Only these subsets of --data, by comma.")
@click.option("--device", **_DEVICE)
@answers
def recall(model: str, data: str, images: str | None, subsets: tuple[str, ...], device: str) -> CommandResult:
    """Retrieval: recall at 1, 5 and 10 from image to text and from text to image, with intervals."""
    from creperie.training import recalls

    found = recalls(load_part(data, images, subsets), model, device=device, progress=bar)

    def show() -> None:
        rows = [(r.direction, f"R@{r.at}", f"{r.percent:.1f}", f"[{r.low:.1f}, {r.high:.1f}]") for r in found.rows]
        print_table(f"{found.images:,} images, {found.captions:,} captions", ("", "", "%", "95 %"), rows)
        if found.tied:
            say(f"{found.tied} queries tie with a wrong answer, which is ranked first")

    return CommandResult(found.document, show)


@dataclass(frozen=True)
class StudyCall:
    """What `train study` was asked: on the world, or on data of one's own."""

    world: bool = option(is_flag=True, help="On the built-in world, which needs no download.")
    preset: str = option(default="small", show_default=True, help="small (minutes on two cores), demo, large (a GPU).")
    seeds: int = option(default=2, show_default=True, help="Number of seeds.")
    arms: tuple[str, ...] = option(
        default="none,replace,swap,negate,all,refined",
        show_default=True,
        callback=names,
        help="Arms, by comma, or every.",
    )
    steps: int | None = option(type=int, help="World: steps of the base training, instead of the preset's.")
    arm_steps: int | None = option(type=int, help="World: steps of every arm, instead of the preset's.")
    pairs: int | None = option(type=int, help="World: pictures for the base training, instead of the preset's.")
    items: int | None = option(type=int, help="World: items per kind in the exam, instead of the preset's.")
    model: str | None = option(metavar="URI", help="Own data: the model that every arm starts from.")
    data: str | None = option(metavar="BENCH", help="Own data: pictures and true captions to train on.")
    biased: str | None = option(metavar="BENCH", help="Own data: the test with template foils.")
    clean: str | None = option(metavar="BENCH", help="Own data: the test without give-aways.")
    images: str | None = option(metavar="DIR", help="Where the pictures of all three are.")
    epochs: int = option(default=5, show_default=True, help="Own data: epochs of every arm.")
    batch: int = option(default=256, show_default=True, help="Own data: images per batch.")
    lr: float = option(default=1e-5, show_default=True, help="Own data: learning rate.")
    warmup: int = option(default=50, show_default=True, help="Own data: steps of warm-up.")
    device: str = option(**_DEVICE)
    dry_run: bool = option(is_flag=True, help="Only say how much would be trained.")
    out: Path = option(default=Path("out/study"), show_default=True, type=click.Path(path_type=Path))


@train.command()
@engine_options
@options_of("call", StudyCall)
@answers
def study(call: StudyCall, engine: Engine | None) -> CommandResult:
    """Train with every type of hard negatives, test on biased and on clean foils: Tables 5 and 10 of SugarCrepe.

    Arms: none, replace, swap, negate, all; the last four refined: replace-refined, swap-refined, negate-refined and
    refined (all of them); every: the nine. One base is trained per seed; every arm continues from it. Called again
    after an interruption, it resumes; study.json in the folder holds the tables at any time.

    On data of your own (--model, --data, --biased, --clean) the foils come from rules:replace, rules:swap and
    rules:negate on the captions of --data, written where --engine, --address and --workers say, and every arm
    fine-tunes --model.
    """
    from creperie.training import run_study as run
    from creperie.training import study_tables, write_study

    _alone("study")
    if call.dry_run:
        return _study_plan(call)

    def tell(so_far: TrainingStudy) -> None:
        write_study(so_far, call.out)

    if call.world:
        seeds = range(call.seeds)
        found = run(_preset(call), call.out, seeds=seeds, arms=call.arms, device=call.device, progress=bar, tell=tell)
    else:
        found = _study_of_own(call, engine, tell)
    document = write_study(found, call.out)

    def show() -> None:
        _show_tables(*study_tables(found))
        say(f"{found.seconds:,.0f} s; models and numbers in {call.out}")

    return CommandResult(document, show)


def _preset(call: StudyCall) -> Any:
    from creperie.training import changed_preset, find_preset

    sizes = {"steps": call.steps, "arm_steps": call.arm_steps, "pairs": call.pairs, "items": call.items}
    chosen = find_preset(call.preset)
    return changed_preset(chosen, **sizes) if any(sizes.values()) else chosen


def _study_plan(call: StudyCall) -> CommandResult:
    """How many trainings a study takes, and of how many images."""
    from creperie.bench import load

    arms = 9 if "every" in call.arms else len({"none", *call.arms})  # without hard negatives in any case
    if call.world:
        chosen = _preset(call)
        images = chosen.base.steps * chosen.base.batch + arms * chosen.arm.steps * chosen.arm.batch
    else:
        images = arms * call.epochs * len(load(_own(call)[1]))
    plan = {"trainings": call.seeds * (arms + call.world), "images": call.seeds * images, "out": str(call.out)}
    said = f"{plan['trainings']} trainings, {plan['images']:,} images seen in all, then {plan['trainings']} exams"
    return CommandResult(plan, lambda: say(f"{said}; without --dry-run they are written to {call.out}"))


def _own(call: StudyCall) -> tuple[str, str, str, str]:
    if not (call.model and call.data and call.biased and call.clean):
        raise UsageError("no training data given", hint="pass --world, or --model, --data, --biased and --clean")
    return call.model, call.data, call.biased, call.clean


def _study_of_own(call: StudyCall, engine: Engine | None, tell: Callable[[TrainingStudy], None]) -> TrainingStudy:
    from creperie.bench import load
    from creperie.training import StudyQuestion, TrainingSettings, study_of

    model, *specs = _own(call)
    data, biased, clean = (load(spec, images=call.images) for spec in specs)
    settings = TrainingSettings(epochs=call.epochs, batch=call.batch, lr=call.lr, warmup=call.warmup)
    question = StudyQuestion(model, data, biased, clean, settings, engine)
    return study_of(
        question, call.out, seeds=range(call.seeds), arms=call.arms, device=call.device, progress=bar, tell=tell
    )


def _show_tables(*tables: TextTable) -> None:
    from rich.markup import escape

    for table in tables:
        print_table(table.title, table.columns, table.rows, right=table.columns[1:])
        say(f"[dim]{escape(table.note)}[/dim]\n")
