"""Two benchmarks on the same source captions, compared pair by pair: whose foils are better?

Table 4 of SugarCrepe: the average score of the hard negatives of each, and how often the second benchmark's negative
scores higher than the first's for the same source. Items are matched by their true captions (blanks and case aside)
within a kind of foil; where several items share a true caption they are matched in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import TextAttacker
from creperie.bench import Benchmark
from creperie.core import DataError, Progress, UsageError, silent
from creperie.metrics import Interval, MetricSettings, share_interval

#: From a subset's name to the kind of foil that is compared: the part before the underscore or hyphen.
Kind = Callable[[str], str]


@dataclass(frozen=True)
class PairwiseRow:
    """One attacker on one kind of foil of two benchmarks."""

    kind: str
    attacker: str
    n: int  #: matched pairs of negatives
    first: float  #: mean score of the first benchmark's negatives
    second: float
    better: float  #: how often the second's negative scores higher, ties half
    low: float
    high: float
    ties: int


@dataclass(frozen=True)
class Match:
    """Two negatives of one source."""

    kind: str
    first: str
    second: str
    source: str


def kind_of(subset: str) -> str:
    """The kind of foil that a subset's name begins with.

    >>> kind_of("swap_obj"), kind_of("replace-relation"), kind_of("negate")
    ('swap', 'replace', 'negate')
    """
    return subset.replace("-", "_").partition("_")[0]


def matched_negatives(a: Benchmark, b: Benchmark, kind: Kind = kind_of) -> list[Match]:
    """The negatives of two benchmarks that were made from the same true caption, by kind of foil."""
    first, second = _by_source(a, kind), _by_source(b, kind)
    found = []
    for (name, source), mine in first.items():
        found += [Match(name, x, y, source) for x, y in zip(mine, second.get((name, source), []))]
    if not found:
        raise DataError(
            "the two benchmarks share no true caption within a kind of foil",
            where=f"{a.name}, {b.name}",
            hint="compare benchmarks made from the same captions, with subsets of the same name or beginning",
        )
    return found


def _by_source(bench: Benchmark, kind: Kind) -> dict[tuple[str, str], list[str]]:
    piles: dict[tuple[str, str], list[str]] = {}
    for item in bench:
        if item.positives and item.negatives:
            source = " ".join(item.positives[0].lower().rstrip(" .").split())
            piles.setdefault((kind(item.subset), source), []).extend(item.negatives)
    return piles


def compare_pairwise(
    a: Benchmark, b: Benchmark, attackers: Sequence[TextAttacker], *, seed: int = 0, progress: Progress = silent
) -> list[PairwiseRow]:
    """Mean scores of both benchmarks' negatives, and how often the second's are better, by kind of foil."""
    matches = matched_negatives(a, b)
    kinds = list(dict.fromkeys(m.kind for m in matches))
    rows = []
    for attacker in attackers:
        left = attacker.scores([m.first for m in matches], progress)
        right = attacker.scores([m.second for m in matches], progress)
        for name in (*kinds, "all") if len(kinds) > 1 else kinds:
            mine = np.array([name in ("all", m.kind) for m in matches])
            sources = [m.source for m, keep in zip(matches, mine) if keep]
            rows.append(_row(name, attacker.name, left[mine], right[mine], sources, seed))
    return rows


def _row(
    kind: str, attacker: str, left: np.ndarray, right: np.ndarray, sources: Sequence[str], seed: int
) -> PairwiseRow:
    better = 0.5 + 0.5 * (right > left) - 0.5 * (right < left)
    clusters = np.unique(np.array(sources), return_inverse=True)[1]
    sure = share_interval(
        better, np.ones(len(better)), clusters, MetricSettings(ties="half", seed=seed, resamples=2000)
    )
    return PairwiseRow(
        kind,
        attacker,
        len(left),
        _mean(left),
        _mean(right),
        float(better.mean()),
        *_ends(sure),
        int((left == right).sum()),
    )


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values.astype(np.float64))) if len(values) else math.nan


def scoring_attackers(attackers: Sequence[object]) -> list[TextAttacker]:
    """The attackers that score captions one by one: the others say nothing about a caption alone."""
    chosen = [a for a in attackers if isinstance(a, TextAttacker)]
    if not chosen:
        raise UsageError(
            "none of these attackers scores captions one by one", hint="choose for example grammar, frequency, lm-mean"
        )
    return chosen
