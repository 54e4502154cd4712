"""Limits that the captions of a benchmark set: the highest accuracy that a model can reach without regard to word
order, and the items in which every foil is a true caption with words added (half-truths).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from creperie.bench import Benchmark
from creperie.core import UsageError
from creperie.lang import words
from creperie.metrics import TIE, Layout, MetricSettings, Result, Ties, codes_of, evaluate, outcomes, scores_blind_to
from creperie.scoring import Run, layout_of_bench
from creperie.statistics.table import bench_of


@dataclass(frozen=True)
class Ceiling:
    """How the captions of a benchmark, or of one subset, limit the accuracy of models.

    `same_words` counts items with a true and a false caption that have the same words in a different order.
    `order_blind` is the highest accuracy that a model can reach in the task `itt` (find the caption of an image)
    without regard to word order, if a tie counts as wrong. `order_blind_half` is the same if a tie counts half.
    `half_truths` counts items in which every false caption has all words of a true one, in the same order, and more.
    """

    subset: str
    n: int
    same_words: int
    order_blind: float
    order_blind_half: float
    half_truths: int

    def document(self) -> dict[str, Any]:
        return asdict(self)


def ceilings(bench: Benchmark) -> list[Ceiling]:
    """Return how the captions limit the accuracy on every subset and on all items together."""
    layout = layout_of_bench(bench)
    bags = [tuple(sorted(words(caption))) for caption in chain.from_iterable(_captions(bench))]
    scores = scores_blind_to(layout, codes_of(bags)[0])
    subsets = np.array(bench.column("subset").to_pylist(), dtype=object)
    rows = {ties: evaluate("itt", layout, scores, subsets=subsets, settings=MetricSettings(ties)) for ties in TIE_RULES}
    same = outcomes("itt", layout, scores) == TIE
    half = half_truths(_captions(bench), layout)
    limits = []
    for wrong, halved in zip(*rows.values(), strict=True):
        of_subset = subsets == wrong.subset if wrong.subset != "all" else np.ones(len(subsets), bool)
        if wrong.subset != "macro":
            alike, extended = (int(mask[of_subset].sum()) for mask in (same, half))
            limits.append(Ceiling(wrong.subset, wrong.n, alike, wrong.accuracy, halved.accuracy, extended))
    return limits if len(limits) > 2 else limits[-1:]


TIE_RULES: tuple[Ties, ...] = ("wrong", "half")


def half_truths(captions: Sequence[Sequence[str]], layout: Layout) -> np.ndarray:
    """Return a boolean for each item: True if every false caption extends a true one, that is, has all its words in the
    same order and at least one more.

    A model whose scores rise with the number of things that a caption mentions is worse than chance on such items
    (Kargi, Uselis and Oh 2026).
    """
    mask = np.zeros(len(layout), bool)
    for group in layout.groups:
        true, false = np.flatnonzero(group.match.any(axis=0)), np.flatnonzero(~group.match.any(axis=0))
        for n in group.items if len(true) and len(false) else ():
            texts = [words(caption) for caption in captions[n]]
            mask[n] = all(any(_extends(texts[f], texts[t]) for t in true) for f in false)
    return mask


def half_truth_accuracy(run: Run, bench: Benchmark) -> list[Result]:
    """Return the accuracy of a run on the half-truth items of its benchmark (see `half_truths`), by subset; empty if
    there are no such items.

    The task is `itt`, or `blind` for a model that sees no images. The chance level is that of the task.
    """
    if not run.fits(bench):
        raise UsageError(
            "is not the benchmark that was scored",
            where=bench.name,
            hint=f"pass the {run.benchmark!r} with the hash {run.hash[:12]}",
        )
    some = np.flatnonzero(half_truths(_captions(bench_of(run, [bench])), run.layout))
    task = "itt" if "image_text" in run.inputs else "blind"
    return Run(run.document, run.table.take(some), run.path).evaluate([task]) if len(some) else []


def _extends(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Return whether the longer text has all words of the shorter one, in the same order, and at least
    one more word.
    """
    rest = iter(longer)
    return len(longer) > len(shorter) and all(word in rest for word in shorter)


def _captions(bench: Benchmark) -> list[list[str]]:
    return bench.column("captions").to_pylist()
