"""The function `creperie.train`: train a model on a benchmark with images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.core import Progress, UsageError, automatic, silent, with_options
from creperie.engine import Engine
from creperie.training.architecture import SmallConfig, Student
from creperie.training.loop import Trained, TrainingJob, train_job
from creperie.training.negatives import FoilRefinement, Negatives, training_data
from creperie.training.options import TowerOptions, TrainOptions
from creperie.training.presets import PRESETS
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import new_small, open_student
from creperie.training.towers import TowersConfig


@with_options(options=TrainOptions, settings=TrainingSettings, towers=TowerOptions)
def train(
    data: BenchmarkSpec,
    model: str | TowersConfig | SmallConfig | None,
    out: str | Path,
    *,
    options: TrainOptions,
    settings: TrainingSettings,
    towers: TowerOptions,
    engine: Engine | None = None,
    progress: Progress | None = automatic,
) -> Trained:
    """Train a model on a benchmark with images and return the result, whose `uri` names the trained model.

    `model` is the URI of a model to continue from, or a small model to train from scratch (`SmallConfig`, or the name
    of a preset such as "small"). With None, the two towers named in `towers` are joined. If foils are made for the
    training, the makers (such as `rules:swap`) run on `engine`. After an interruption, the same call resumes the
    training.
    """
    progress = progress or silent
    foils = tuple(name for name in options.negatives if name != "none")
    if settings.steps is not None and settings.warmup >= settings.steps:  # the warm-up would not end: shorten it
        settings = replace(settings, warmup=settings.steps // 10)
    if not foils and settings.objective == "negclip":  # without foils, NegCLIP's loss equals CLIP's
        settings = replace(settings, objective="clip")
    refinement = FoilRefinement() if options.refined else None
    examples = training_data(as_benchmark(data), Negatives(foils, refinement, settings.seed), progress, engine)
    start = _start(model, towers)
    student: Student
    if isinstance(start, SmallConfig):
        student, base = new_small(start, examples.captions(), settings.seed), "scratch"
    else:
        student, base = open_student(start, settings.seed, examples.captions()), str(start)
    tuning = Tuning(options.tuning, options.rank, 2 * options.rank, options.targets)
    job = TrainingJob(student, examples, settings, tuning, base, options.truncate)
    return train_job(job, out, device=options.device, force=options.force, progress=progress)


def _start(model: str | TowersConfig | SmallConfig | None, towers: TowerOptions) -> str | TowersConfig | SmallConfig:
    """Return the model to start from, as a URI or configuration. Two towers to join are returned as a TowersConfig."""
    if towers.image_tower or towers.text_tower:
        if model is not None:
            raise UsageError("`model=` and `image_tower=` exclude each other", hint="leave out one of them")
        return TowersConfig(towers.image_tower, towers.text_tower, towers.head, trained=towers.train_towers)
    if model is None:
        raise UsageError("nothing to train", hint="pass `model=`, or `image_tower=` and `text_tower=`")
    if isinstance(model, str) and model in PRESETS:
        return PRESETS[model].model
    if isinstance(model, str) and towers.train_towers:
        return f"{model}?trained={','.join(towers.train_towers)}"
    return model
