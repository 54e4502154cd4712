"""A comparison of methods to fine-tune a model. Each method trains the model on a part of every subset. The model is
then tested on the rest of every subset, and for what it has forgotten.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark
from creperie.core import Progress, UsageError, seeded, silent, with_options
from creperie.metrics import clusters_of
from creperie.training.examples import train_set
from creperie.training.loop import TrainingJob, train_job
from creperie.training.options import TuneOptions
from creperie.training.retrieval import recalls
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import open_student


def split_by_image(bench: Benchmark, share: float, seed: int = 0) -> tuple[Benchmark, Benchmark]:
    """Split a benchmark in two: the first part has about `share` of the items of every subset, the second has the
    others. Items that share an image, directly or through other items, go to the same part.
    """
    # Groups of such items are assigned from the largest to the smallest; groups of equal size come in random order. For
    # each subset of a group, let N be the number of its items, and n how many of them are in the first part. A group
    # goes to the first part if this lowers the sum of |n − share · N| over these subsets.
    if not 0 < share < 1:
        raise UsageError(f"`share={share}` is out of range", hint="use a number between 0 and 1, such as 0.4")
    starts, images = bench.ragged("images")
    clusters = clusters_of(np.diff(starts), images.to_pylist())
    names, subsets = np.unique(bench.column("subset").to_pylist(), return_inverse=True)
    groups, group = np.unique(clusters, return_inverse=True)
    counts = np.zeros((len(groups), len(names)))
    np.add.at(counts, (group, subsets), 1)
    targets = share * counts.sum(axis=0)
    order = seeded(seed).permutation(len(groups))
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    taken, chosen = np.zeros(len(names)), np.zeros(len(groups), bool)
    for k in order.tolist():
        own = counts[k] > 0
        # taken if that brings the subsets of the group closer to their share
        with_it = np.abs(taken + counts[k] - targets)[own].sum()
        if with_it < np.abs(taken - targets)[own].sum():
            taken += counts[k]
            chosen[k] = True
    mask = chosen[group]
    why = f"share {share:g} of every subset, grouped by image, seed {seed}"
    return bench.filter(mask, why=f"train: {why}"), bench.filter(~mask, why=f"test: the rest of {why}")


@dataclass(frozen=True)
class TuningResult:
    """The result of one tuning method: the accuracy on each subset with its interval, the recall on held-out images
    (all in percent), and the number of trained weights.
    """

    way: str
    accuracy: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    recall: dict[str, float]
    trained_weights: int
    model: str


@dataclass(frozen=True)
class TuningComparison:
    """The results of all tuning methods on the same split."""

    model: str
    subsets: tuple[str, ...]
    trained_on: tuple[str, ...]
    sizes: dict[str, tuple[int, int]]  #: subset → number of training items and of test items
    rows: tuple[TuningResult, ...]

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


@with_options(options=TuneOptions, settings=TrainingSettings)
def tune(
    bench: Benchmark,
    model: str,
    out: str | Path,
    *,
    options: TuneOptions,
    settings: TrainingSettings,
    progress: Progress = silent,
) -> TuningComparison:
    """Tune a model by several methods on the same examples and test each result on the same items. Return the
    comparison.
    """
    from creperie.scoring import ScoreOptions, score

    for name in options.train_on:
        bench.only([name])  # raises an error for an unknown subset before any work is done
    learn, test = split_by_image(bench, options.share, settings.seed)
    trained_on = options.train_on or tuple(bench.subsets)
    if not len(learn) or not len(test):
        raise UsageError(
            "there are too few images to split",
            where=bench.name,
            hint="give a benchmark with more images, or use another `share=`",
        )
    data, pairs, device = train_set(learn.only(trained_on)), limited_pairs(test, options.pairs), options.device
    rows = []
    for way in options.ways:
        tuning = Tuning(way, options.rank, 2 * options.rank)
        own = replace(settings, lr=settings.lr * options.lora_rate) if way == "lora" else settings
        job = TrainingJob(open_student(model), data, own, tuning, base=model, truncate=True)
        done = train_job(job, Path(out) / way, device=device, progress=progress)
        run = score(test, done.uri, tasks=["itt"], options=ScoreOptions(device=device), progress=progress)
        results = {r.subset: r for r in run.evaluate() if r.subset != "macro"}
        ends = ("accuracy", "low", "high")
        accuracy, low, high = ({name: 100 * getattr(r, end) for name, r in results.items()} for end in ends)
        recall = {f"{r.direction} @{r.at}": r.percent for r in recalls(pairs, done.uri, device=device).rows}
        rows.append(TuningResult(way, accuracy, low, high, recall, done.document["trained_weights"], done.uri))
    sizes = {name: (learn.subsets.get(name, 0), test.subsets.get(name, 0)) for name in bench.subsets}
    return TuningComparison(model, tuple(bench.subsets), trained_on, sizes, tuple(rows))


def limited_pairs(bench: Benchmark, most: int) -> Benchmark:
    """Return a benchmark of at most `most` items. They are taken in order; items that share an image or a caption with
    an earlier one are left out.
    """
    seen: set[str] = set()
    chosen: list[bool] = []
    for item in bench:
        own = {*item.images, *item.captions}
        chosen.append(sum(chosen) < most and not own & seen)
        seen |= own if chosen[-1] else set()
    return bench.filter(chosen, why=f"at most {most} items with images and captions of their own")
