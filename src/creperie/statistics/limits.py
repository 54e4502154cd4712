"""What a benchmark's captions allow: how far a model without word order can come, and which foils are half-truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from creperie.bench import Benchmark
from creperie.lang import words
from creperie.metrics import TIE, Layout, MetricSettings, Ties, codes_of, evaluate, outcomes, scores_blind_to
from creperie.scoring import Run, layout_of_bench


@dataclass(frozen=True)
class Ceiling:
    """A subset of a benchmark, or all of it.

    `same_words` counts items with a true and a false caption of the same words in another order; `order_blind` is the
    highest accuracy (itt) of a model that ignores order where a tie is wrong, `order_blind_half` where it counts half.
    `half_truths` counts items whose false captions all add to a true one.
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
    """The ceilings of every subset and of all items together."""
    layout = layout_of_bench(bench)
    bags = [tuple(sorted(words(caption))) for caption in chain.from_iterable(_captions(bench))]
    scores = scores_blind_to(layout, codes_of(bags)[0])
    subsets = np.array(bench.column("subset").to_pylist(), dtype=object)
    rows = {ties: evaluate("itt", layout, scores, subsets=subsets, settings=MetricSettings(ties)) for ties in TIE_RULES}
    same = outcomes("itt", layout, scores) == TIE
    half = half_truths(_captions(bench), layout)
    found = []
    for wrong, halved in zip(*rows.values(), strict=True):
        mine = subsets == wrong.subset if wrong.subset != "all" else np.ones(len(subsets), bool)
        if wrong.subset != "macro":
            counts = int(same[mine].sum()), int(half[mine].sum())
            found.append(Ceiling(wrong.subset, wrong.n, counts[0], wrong.accuracy, halved.accuracy, counts[1]))
    return found if len(found) > 2 else found[-1:]


TIE_RULES: tuple[Ties, ...] = ("wrong", "half")


def half_truths(captions: Sequence[Sequence[str]], layout: Layout) -> np.ndarray:
    """Which items ask to reject a half-truth: every false caption holds all words of a true one in order, and more.

    The half-truth accuracy is `itt` on these items; its chance level and tie rule are those of `itt`. A model whose
    scores grow with what a caption mentions falls below chance (Kargi, Uselis and Oh 2026).
    """
    found = np.zeros(len(layout), dtype=bool)
    for group in layout.groups:
        true, false = np.flatnonzero(group.match.any(axis=0)), np.flatnonzero(~group.match.any(axis=0))
        for n in group.items if len(true) and len(false) else ():
            texts = [words(caption) for caption in captions[n]]
            found[n] = all(any(_extends(texts[f], texts[t]) for t in true) for f in false)
    return found


def half_truth_accuracy(run: Run, bench: Benchmark, settings: MetricSettings | None = None) -> list[Any]:
    """The results of `itt` on the half-truths of a run's benchmark, by subset."""
    kept = np.flatnonzero(half_truths(_captions(bench), run.layout))
    part = Run(run.document, run.table.take(kept), run.path)
    return part.evaluate(["itt"], settings) if len(kept) else []


def _extends(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Whether the longer text has all words of the shorter one in order, and others."""
    rest = iter(longer)
    return len(longer) > len(shorter) and all(word in rest for word in shorter)


def _captions(bench: Benchmark) -> list[list[str]]:
    found: list[list[str]] = bench.column("captions").to_pylist()
    return found
