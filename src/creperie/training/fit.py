"""Training from Python: `creperie.train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.core import Progress, silent
from creperie.training.architecture import SmallConfig
from creperie.training.loop import Trained, TrainingJob, train
from creperie.training.negatives import Negatives, training_data
from creperie.training.presets import PRESETS
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import Student, new_small, open_student
from creperie.training.towers import TowersConfig


def train_model(
    data: BenchmarkSpec,
    model: str | TowersConfig | SmallConfig,
    out: str | Path,
    *,
    negatives: str | Sequence[str] = "own",
    tuning: str | Tuning = "full",
    steps: int | None = None,
    settings: TrainingSettings | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> Trained:
    """Train a model on a benchmark with images; `creperie train` from Python.

    `model` is the URI of a model to continue from, two towers to join (`TowersConfig`), or a small model to train from
    scratch (`SmallConfig`, or the name of a preset such as "small"). `negatives` are "own" (the items' false captions),
    makers or benchmarks; an empty list trains without any. `steps` shortens `settings`, whose warm-up it then caps at a
    tenth. Called again with the same arguments, it resumes. The result's `uri` names the trained model.
    """
    bench = as_benchmark(data)
    names = (negatives,) if isinstance(negatives, str) else tuple(negatives)
    how = settings or TrainingSettings()
    if steps is not None:
        how = replace(how, steps=steps, warmup=min(how.warmup, steps // 10))
    if not names and how.objective == "negclip":
        how = replace(how, objective="clip")
    examples = training_data(bench, Negatives(names, seed=how.seed), progress)
    start = PRESETS[model].model if isinstance(model, str) and model in PRESETS else model
    student: Student
    if isinstance(start, SmallConfig):
        student, base = new_small(start, examples.captions(), how.seed), "scratch"
    else:
        student, base = open_student(start, how.seed, examples.captions()), str(start)
    way = Tuning(tuning) if isinstance(tuning, str) else tuning
    return train(TrainingJob(student, examples, how, way, base=base), out, device=device, progress=progress)
