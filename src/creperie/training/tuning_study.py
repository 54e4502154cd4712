"""Ways of tuning side by side: trained on a share of every subset, tested on the rest, and what was forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark
from creperie.core import Progress, UsageError, silent
from creperie.training.examples import TrainSet, train_set
from creperie.training.loop import TrainingJob, train
from creperie.training.settings import TrainingSettings
from creperie.training.split import split_by_image
from creperie.training.student import Student, open_student
from creperie.training.tuning import Tuning

WAYS = ("frozen", "full", "lora")
RECALLS = (1, 5, 10)


@dataclass(frozen=True)
class TuningPlan:
    """What to tune with: a share of every subset, or of some; the others are then looked at for forgetting."""

    settings: TrainingSettings
    ways: tuple[str, ...] = WAYS
    tuning: Tuning = field(default_factory=Tuning)
    share: float = 0.4
    train_on: tuple[str, ...] = ()  #: subsets; none: all
    pairs: int = 500  #: held-out pictures and captions for the recall


@dataclass(frozen=True)
class TuningResult:
    """One way of tuning: accuracy by subset in percent, recall on held-out pairs, what was trained."""

    way: str
    accuracy: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    recall: dict[str, float]
    trained_weights: int
    model: str


@dataclass(frozen=True)
class TuningComparison:
    """All ways on one split."""

    model: str
    subsets: tuple[str, ...]
    trained_on: tuple[str, ...]
    sizes: dict[str, tuple[int, int]]  #: subset → items in training, in the test
    rows: tuple[TuningResult, ...]

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def tune(
    bench: Benchmark,
    model: str,
    plan: TuningPlan,
    out: str | Path,
    *,
    device: str = "auto",
    progress: Progress = silent,
) -> TuningComparison:
    """Tune a model in several ways on the same examples and test all of them on the same items."""
    from creperie.scoring import ScoreOptions, score

    folder = Path(out)
    for name in plan.train_on:
        bench.only([name])  # an unknown subset is an error before any work
    learn, test = split_by_image(bench, plan.share, plan.settings.seed)
    trained_on = plan.train_on or tuple(bench.subsets)
    if not len(learn) or not len(test):
        raise UsageError("there are too few images to split", where=bench.name, hint="use another `share=`")
    data = train_set(learn.only(trained_on))
    held_out = train_set(test)
    rows = []
    for way in plan.ways:
        tuning = Tuning(way, plan.tuning.rank, plan.tuning.alpha, plan.tuning.targets)
        job = TrainingJob(open_student(model), data, plan.settings, tuning, base=model, truncate=True)
        done = train(job, folder / way, device=device, progress=progress)
        run = score(test, done.uri, tasks=["itt"], options=ScoreOptions(device=device), progress=progress)
        found = {r.subset: r for r in run.evaluate() if r.subset != "macro"}
        rows.append(
            TuningResult(
                way,
                {name: 100 * r.accuracy for name, r in found.items()},
                {name: 100 * r.low for name, r in found.items()},
                {name: 100 * r.high for name, r in found.items()},
                retrieval_recall(open_student(done.uri), held_out, plan.pairs),
                done.document["trained_weights"],
                done.uri,
            )
        )
    sizes = {name: (learn.subsets.get(name, 0), test.subsets.get(name, 0)) for name in bench.subsets}
    return TuningComparison(model, tuple(bench.subsets), trained_on, sizes, tuple(rows))


def retrieval_recall(student: Student, data: TrainSet, most: int) -> dict[str, float]:
    """Recall in percent on different pictures with a caption each: `i2t@1`, `t2i@5`, …"""
    import torch

    from creperie.training.losses import unit

    chosen = {e.image: e for e in data.examples}
    examples = list({e.caption: e for e in chosen.values()}.values())[:most]
    images, texts = [], []
    student.network.eval().to("cpu")
    with torch.no_grad():
        for k in range(0, len(examples), 64):
            part = examples[k : k + 64]
            pixels = student.pixels(
                torch.from_numpy(np.stack([student.prepare_image(data.open(e.image)) for e in part]))
            )
            shown, said, _ = student.network(pixels, student.ids(student.prepare_texts([e.caption for e in part])))
            images.append(unit(shown))
            texts.append(unit(said))
    scores = (torch.cat(images) @ torch.cat(texts).T).numpy()
    return {**_recalls("i2t", scores), **_recalls("t2i", scores.T)}


def _recalls(name: str, scores: np.ndarray, at: Sequence[int] = RECALLS) -> dict[str, float]:
    """Row i should find column i; columns that score the same as the right one count as before it.

    >>> _recalls("i2t", np.array([[0.9, 0.1], [0.8, 0.8]]), (1, 2))
    {'i2t@1': 50.0, 'i2t@2': 100.0}
    """
    own = np.diag(scores)[:, None]
    ranks = (scores >= own).sum(axis=1)
    return {f"{name}@{k}": 100 * float((ranks <= k).mean()) for k in at}
