"""A stage that trains a model on a benchmark with pictures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from creperie.bench import load
from creperie.core import read_json, write_json
from creperie.recipes.steps import StageJob

MODEL = "model"
TRAINED = "trained.json"


def run_train(job: StageJob) -> dict[str, Any]:
    """Train with the items' foils, or with what makers give; a killed training goes on at its last checkpoint."""
    from creperie.training import Negatives, TrainingJob, TrainingSettings, Tuning, open_student, train, training_data

    names = ("objective", "epochs", "batch", "lr", "warmup", "seed", "save_every")
    settings = TrainingSettings(steps=job.option("steps") or None, **{name: job.option(name) for name in names})
    examples = training_data(load(job.input), Negatives(tuple(job.option("negatives")), seed=settings.seed))
    student = open_student(job.option("model"), settings.seed, examples.captions())
    training = TrainingJob(
        student, examples, settings, Tuning(job.option("tuning")), base=Path(job.option("model")).name
    )
    done = train(training, job.work / "run", device=job.option("device"), progress=job.progress)
    shutil.copytree(done.folder / MODEL, job.out / MODEL)
    told = {"kind": student.kind, "examples": len(examples), "steps": done.document["steps"]}
    write_json(job.out / TRAINED, told)
    return told | {"loss": done.document["loss"]}


def trained_model(place: str) -> str:
    """The URI of the model in a stage's folder; empty where there is none."""
    folder = Path(place)
    if not (folder / TRAINED).is_file():
        return ""
    return f"{read_json(folder / TRAINED)['kind']}:{folder / MODEL}"
