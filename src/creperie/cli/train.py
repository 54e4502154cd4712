"""`creperie train`: training with hard negatives, fine-tuning in several ways, and testing whether a gain
is genuine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.bench import ImageOptions, PartOptions, load, load_part
from creperie.cli.app import CommandGroup
from creperie.cli.options import FILE, engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, option
from creperie.models import DeviceOptions
from creperie.training import StudyOptions, TowerOptions, TrainingSettings, TrainOptions, TuneOptions

if TYPE_CHECKING:
    from creperie.engine import Engine
    from creperie.training import StudyTable, TrainingPreset, TrainingStudy


class TrainGroup(CommandGroup):
    """A group in which `creperie train --model …` means `creperie train fit --model …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("--") and args[0] != "--help":
            args = ["fit", *args]
        return super().parse_args(ctx, args)


@click.group(cls=TrainGroup)
def train() -> None:
    """Train and fine-tune models of the CLIP kind with hard negatives.

    `tune` compares frozen, full and LoRA tuning (Table 13 of SugarCrepe++). `study` tests whether hard negatives also
    help on clean foils (Tables 5 and 10 of SugarCrepe).

    \b
      creperie train --model hf:CLIP --data BENCH --negatives rules:swap,rules:negate --out out/mine
      creperie train tune --model hf:CLIP --data BENCH --out out/tuned
      creperie train study --world --out out/study
    """


DATA = click.option("--data", required=True, metavar="BENCH", help="A benchmark with images.")


@train.command()
@click.option("--model", metavar="URI|JSON", help="A model to continue from, or a JSON file with settings.")
@DATA
@click.option("--out", required=True, type=FILE, help="The run folder.")
@options_of("part", PartOptions)
@options_of("options", TrainOptions)
@options_of("settings", TrainingSettings)
@options_of("towers", TowerOptions)
@engine_options
@answers
def fit(model: str | None, data: str, out: Path, part: PartOptions, **options: Any) -> CommandResult:
    """Train a model. The same command resumes an interrupted training.

    The makers named by --negatives run on the engine that --engine, --address and --workers describe.
    """
    from creperie.training import train as run

    done = run(load_part(data, part), model, out, progress=bar, **options)
    document = {"run": str(out), "model": done.uri, **{k: v for k, v in done.document.items() if k != "job"}}

    def show() -> None:
        result = done.document
        loss = "–" if result["loss"] is None else f"{result['loss']:.4f}"
        say(f"{result['steps']} steps, loss {loss}, {result['samples_per_s']:,.0f} samples/s on {result['device']}")
        if result["batches_without_foils"]:
            say(f"{result['batches_without_foils']} batches had no foil and were trained with CLIP's loss alone")
        if result["captions_cut"]:
            say(f"{result['captions_cut']} captions were truncated to fit the context")
        say(f"Score it: creperie score BENCH --model {done.uri}")

    return CommandResult(document, show)


@train.command()
@click.option("--model", required=True, metavar="URI", help="hf: or open_clip: model to start from.")
@DATA
@click.option("--out", required=True, type=FILE, help="The folder for the trainings.")
@options_of("place", ImageOptions)
@options_of("options", TuneOptions)
@options_of("settings", TrainingSettings)
@answers
def tune(model: str, data: str, out: Path, place: ImageOptions, **options: Any) -> CommandResult:
    """Fine-tune a model in several ways on part of every subset, and test it on the rest, as in Table 13 of
    SugarCrepe++.
    """
    from creperie.training import table_13
    from creperie.training import tune as run

    tuned = run(load(data, images=place.images), model, out, progress=bar, **options)
    return CommandResult(tuned.document, lambda: _show_tables(table_13(tuned)))


@train.command()
@click.option("--model", required=True, metavar="URI", help="A dual encoder.")
@DATA
@options_of("part", PartOptions)
@options_of("where", DeviceOptions)
@answers
def recall(model: str, data: str, part: PartOptions, where: DeviceOptions) -> CommandResult:
    """Measure recall at 1, 5 and 10 from image to text and from text to image, with intervals."""
    from creperie.training import recalls

    retrieval = recalls(load_part(data, part), model, device=where.device, progress=bar)

    def show() -> None:
        rows = [(r.direction, f"R@{r.at}", f"{r.percent:.1f}", f"[{r.low:.1f}, {r.high:.1f}]") for r in retrieval.rows]
        print_table(("", "", "%", "95 %"), rows, title=f"{retrieval.images:,} images, {retrieval.captions:,} captions")
        if retrieval.tied:
            say(f"{retrieval.tied} queries tie with a wrong answer, which is ranked first")

    return CommandResult(retrieval.document, show)


@dataclass(frozen=True)
class StudyData:
    """Options for the data of `train study`: the built-in world, or a model, its training data and two tests."""

    world: bool = option(False, "On the built-in world, which needs no download.")
    model: str | None = option(None, "Own data: the model that every arm starts from.", metavar="URI")
    data: str | None = option(None, "Own data: pictures and true captions to train on.", metavar="BENCH")
    biased: str | None = option(None, "Own data: the test with template foils.", metavar="BENCH")
    clean: str | None = option(None, "Own data: the test without give-aways.", metavar="BENCH")
    images: str | None = option(None, "Where the pictures of all three are.", metavar="DIR")
    dry_run: bool = option(False, "Only show how much would be trained.")
    out: Path = option(Path("out/study"), "The folder to write.", metavar="DIR")

    def own(self) -> tuple[str, str, str, str]:
        if not (self.model and self.data and self.biased and self.clean):
            raise UsageError(
                "no training data given", hint="pass --world, or all of --model, --data, --biased and --clean"
            )
        return self.model, self.data, self.biased, self.clean


@train.command()
@options_of("about", StudyData)
@options_of("options", StudyOptions)
@engine_options
@answers
def study(about: StudyData, options: StudyOptions, engine: Engine | None) -> CommandResult:
    """Train with every type of hard negatives, and test on biased and on clean foils: Tables 5 and 10 of SugarCrepe.

    Each arm trains with a different set of hard negatives. The arm `none` uses no foils; `replace`, `swap` and `negate`
    use foils of one type, and `all` uses all three types. The arms `replace-refined`, `swap-refined`, `negate-refined`
    and `refined` do the same with only the foils that are left after refinement. `every` stands for all nine. One base
    model is trained per seed, and every arm continues from it. The same command resumes an interrupted study;
    study.json in the folder always has the results so far.

    With data of your own (--model, --data, --biased, --clean), rules:replace, rules:swap and rules:negate generate the
    foils from the captions of --data, on the engine that --engine, --address and --workers name, and every arm
    fine-tunes --model.
    """
    from creperie.training import StudyQuestion, run_study, study_of, study_tables, write_study

    if about.dry_run:
        return _study_plan(about, options)

    def tell(so_far: TrainingStudy) -> None:
        write_study(so_far, about.out)

    how: Any = {"seeds": range(options.seeds), "arms": options.arms, "device": options.device}
    if about.world:
        finished = run_study(_preset(options), about.out, **how, progress=bar, tell=tell)
    else:
        model, *specs = about.own()
        data, biased, clean = (load(spec, images=about.images) for spec in specs)
        settings = TrainingSettings(epochs=options.epochs, batch=options.batch, lr=options.lr, warmup=options.warmup)
        question = StudyQuestion(model, data, biased, clean, settings, engine)
        finished = study_of(question, about.out, **how, progress=bar, tell=tell)
    document = write_study(finished, about.out)

    def show() -> None:
        _show_tables(*study_tables(finished))
        for note in finished.notes:
            say("{}", note)
        say(f"{finished.seconds:,.0f} s of training; models and numbers in {about.out}")

    return CommandResult(document, show)


def _preset(options: StudyOptions) -> TrainingPreset:
    from creperie.training import changed_preset, find_preset

    sizes = {name: getattr(options, name) for name in ("steps", "arm_steps", "pairs", "items")}
    chosen = find_preset(options.preset)
    return changed_preset(chosen, **sizes) if any(sizes.values()) else chosen


def _study_plan(about: StudyData, options: StudyOptions) -> CommandResult:
    """Return the plan of a study: how many training runs it needs, and how many images they process."""
    arms = 9 if "every" in options.arms else len({"none", *options.arms})  # the arm without hard negatives always runs
    if about.world:
        chosen = _preset(options)
        images = sum(n * (part.steps or 0) * part.batch for n, part in ((1, chosen.base), (arms, chosen.arm)))
    else:
        images = arms * options.epochs * len(load(about.own()[1]))
    trainings = options.seeds * (arms + about.world)
    plan = {"trainings": trainings, "images": options.seeds * images, "out": str(about.out)}
    effort = f"{trainings} trainings, {plan['images']:,} images seen in all, then {trainings} tests"
    return CommandResult(plan, lambda: say(f"{effort}; without --dry-run they are written to {about.out}"))


def _show_tables(*tables: StudyTable) -> None:
    for table in tables:
        print_table(table.columns, table.texts, title=table.title)
        say("[dim]{}[/dim]\n", table.note)
