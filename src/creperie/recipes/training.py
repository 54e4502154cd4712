"""Stages that train models: one model, the study of hard negatives, or the ways of tuning that a paper compares."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from creperie.bench import load
from creperie.core import Json, UsageError, read_json, write_json
from creperie.recipes.steps import StageJob

MODEL = "model"
TRAINED = "trained.json"
TUNING = "tuning.json"


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block on one thread if there is no GPU."""
    # Several threads add numbers in a different order, which changes how sums are rounded. The trained weights would
    # therefore depend on the number of threads.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if torch.cuda.is_available() else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def run_train(job: StageJob) -> Json:
    """Train a model, with the items' own foils or with foils that makers generate. Training that was interrupted
    resumes at its checkpoint.
    """
    from creperie.training import TrainingSettings, TrainOptions, train

    how = {"options": job.settings(TrainOptions), "settings": job.settings(TrainingSettings)}
    done = train(load(job.input), _model(job), job.work / "run", progress=job.progress, **how)
    shutil.copytree(done.folder / MODEL, job.out / MODEL)
    kind, examples = done.uri.partition(":")[0], done.document["job"]["data"]["examples"]
    summary = {"kind": kind, "examples": examples, "steps": done.document["steps"]}
    write_json(job.out / TRAINED, summary)
    return summary | {"loss": done.document["loss"]}


def _model(job: StageJob, benchmarks: int = 1) -> str:
    """Return the model from which a stage starts: the option `model`, or else a model that an input stage trained. The
    first `benchmarks` inputs are skipped, because they are benchmarks.
    """
    model = job.option("model") or next(iter(trained_models(job.inputs[benchmarks:])), "")
    if not model:
        raise UsageError(
            f"stage {job.name!r} has no model",
            hint="name a model in `model`, or list in `from` a stage that trains a model",
        )
    return str(model)


def run_tiny(job: StageJob) -> Json:
    """Write a tiny checkpoint with random weights in place of a real one. Its scores are at chance level.

    The option `build` names the function that writes it, as `module:function`.
    """
    module, _, function = job.option("build").partition(":")
    getattr(import_module(module), function)(job.out / MODEL, job.option("seed"))
    write_json(job.out / TRAINED, {"kind": job.option("kind"), "queries": list(job.option("queries"))})
    return {"model": f"random weights, {function}", "ways": len(job.option("queries")) or 1}


def trained_models(places: Sequence[str]) -> list[str]:
    """Return the URIs of the models in the folders of stages. A generative model has one URI per way of asking it."""
    uris = []
    for folder in map(Path, places):
        if (folder / TRAINED).is_file():
            about = read_json(folder / TRAINED)
            uri = f"{about['kind']}:{folder / MODEL}"
            uris += [f"{uri}?{query}" for query in about.get("queries", ())] or [uri]
    return uris


@one_thread()
def run_trainings(job: StageJob) -> Json:
    """Train once per type of foil and seed, as for Tables 5 and 10 of SugarCrepe, and write the study.

    The inputs are the training data, a biased benchmark and a clean one. If the option `model` is not set, a further
    input is the stage that trained the model.
    """
    from creperie.auditing import AttackerModels
    from creperie.training import (
        STUDY_FILE,
        FoilRefinement,
        StudyOptions,
        StudyQuestion,
        TrainingSettings,
        study_of,
        write_study,
    )

    if len(job.inputs) < 3:
        raise UsageError(
            f"stage {job.name!r} needs training data, a biased test set and a clean test set",
            hint="name their stages in this order, for example `from: [lessons, rebuild, refine]`",
        )
    options = job.settings(StudyOptions)
    names = ("epochs", "steps", "batch", "lr", "warmup")
    settings = TrainingSettings(**{name: getattr(options, name) for name in names})
    attackers, bins = tuple(job.option("attackers")), job.option("bins") or None
    refinement = FoilRefinement(attackers, bins, job.settings(AttackerModels))
    data, biased, clean = (load(place) for place in job.inputs[:3])
    model = _model(job, 3)
    question = StudyQuestion(model, data, biased, clean, settings, refinement=refinement)
    how: Json = {"seeds": tuple(range(options.seeds)), "arms": options.arms, "device": options.device}
    study = study_of(question, job.work / "study", progress=job.progress, **how)
    document = write_study(study, job.out)
    tests = {"biased": biased, "clean": clean}
    sizes = {f"{which} {name}": n for which, bench in tests.items() for name, n in bench.subsets.items()}
    about = {"model": model, "data": data.name, "benchmarks": [biased.name, clean.name], "sizes": sizes}
    write_json(job.out / STUDY_FILE, without_seconds(document) | about)
    return {"trainings": len(study.sat), "arms": list(study.done), "finished": document["finished"]}


def without_seconds(value: Any) -> Any:
    """Return a document without its times. Two runs of the same work then write equal documents.

    >>> without_seconds({"seconds": 3.2, "sat": [{"arm": "swap", "seconds": 1.1}]})
    {'sat': [{'arm': 'swap'}]}
    """
    if isinstance(value, dict):
        return {name: without_seconds(part) for name, part in value.items() if name != "seconds"}
    return [without_seconds(part) for part in value] if isinstance(value, (list, tuple)) else value


@one_thread()
def run_tune(job: StageJob) -> Json:
    """Tune a model in the ways of Table 13 of SugarCrepe++ (not at all, all weights, LoRA), and test it on held-out
    items.

    The objective `triple` uses the multiple-negatives ranking loss of sentence-transformers, over all three captions of
    an item: P1, P2 (the second true caption) and N (the foil). The objective `negclip` does not use P2. The paper does
    not name its objective; it only says that sentence transformers are trained with the same one.
    """
    from creperie.training import TrainingSettings, TuneOptions, tune

    model, bench = _model(job), load(job.input)
    how = {"options": job.settings(TuneOptions), "settings": job.settings(TrainingSettings)}
    tuned = tune(bench, model, job.work / "tuned", progress=job.progress, **how)
    write_json(job.out / TUNING, {**tuned.document, "benchmark": bench.name})
    return {"model": Path(model.partition(":")[2]).name, "accuracy": {row.way: row.accuracy for row in tuned.rows}}
