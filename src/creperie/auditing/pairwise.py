"""Comparing two benchmarks made from the same captions, foil by foil: whose foils are better?

Two foils are compared if they have the same true caption (apart from case and spaces) and are of the same kind. There
are two results, as in Table 4 of SugarCrepe: the mean score of each benchmark's foils, and how often the foil of the
second benchmark scores higher than that of the first. In Table 9 of that paper, people compare the same foils.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import TextAttacker
from creperie.auditing.measure import mean_of
from creperie.bench import Benchmark, Item
from creperie.core import DataError, Progress, UsageError, by_key
from creperie.metrics import share_interval

#: Kinds of foil under other names. The paper compares CREPE's negations with its own additions: both ask whether
#: something is there at all.
SAME_KIND = {"negate": "negate / add", "add": "negate / add", "atom": "replace", "atomic": "replace"}


@dataclass(frozen=True)
class PairwiseRow:
    """The result of comparing two benchmarks on one kind of foil with one attacker."""

    kind: str
    attacker: str
    n: int  #: matched pairs of negatives
    first: float  #: mean score of the first benchmark's negatives
    second: float
    better: float  #: how often the second benchmark's negative scores higher; ties count half
    low: float
    high: float
    ties: int


@dataclass(frozen=True)
class FoilPair:
    """Two foils of the same kind for the same true caption (`source`), one from each benchmark. `subset` and `item` are
    those of the first foil.
    """

    kind: str
    source: str
    subset: str
    item: str
    first: str
    second: str


def kind_of(subset: str) -> str:
    """Return the kind of foil in a subset, given by the first word of the subset's name; "negate" and "add" are one
    kind.

    >>> kind_of("swap_obj"), kind_of("replace-relation"), kind_of("negate"), kind_of("add_att")
    ('swap', 'replace', 'negate / add', 'negate / add')
    """
    name = subset.replace("-", "_").partition("_")[0].lower()
    return SAME_KIND.get(name, name)


def pair_foils(a: Iterable[Item], b: Iterable[Item]) -> list[FoilPair]:
    """Return pairs of foils, one from each benchmark, that have the same true caption and kind. Each foil is used only
    once.

    Foils in subsets with the same name are paired first. The remaining foils are paired in the order in which they
    occur.
    """
    theirs = _by_source(b)
    return [
        FoilPair(*key, *foil, other)
        for key, foils in _by_source(a).items()
        for foil, other in _paired(foils, theirs.get(key, []))
    ]


#: A foil: its subset, its item, its text.
_Foil = tuple[str, str, str]


def _by_source(items: Iterable[Item]) -> dict[tuple[str, str], list[_Foil]]:
    """Return the foils by (kind, true caption)."""
    return by_key(
        ((kind_of(item.subset), source), (item.subset, item.id, text))
        for item in items
        for source in (" ".join(caption.lower().rstrip(" .").split()) for caption in item.positives[:1])
        for text in item.negatives
    )


def _paired(own: list[_Foil], theirs: list[_Foil]) -> Iterable[tuple[_Foil, str]]:
    free = list(theirs)
    waiting = []
    for foil in own:
        same = next((other for other in free if other[0] == foil[0]), None)
        if same is None:
            waiting.append(foil)
            continue
        free.remove(same)
        yield foil, same[2]
    yield from ((foil, other[2]) for foil, other in zip(waiting, free))


def compare_pairwise(
    a: Benchmark, b: Benchmark, attackers: Sequence[TextAttacker], *, progress: Progress
) -> list[PairwiseRow]:
    """Return one row for each kind of foil and attacker. A row has the mean score of each benchmark's foils, and how
    often the foil of `b` scores higher.
    """
    matches = pair_foils(a, b)
    if not matches:
        hint = "compare benchmarks made from the same captions, with subsets of the same name or beginning"
        raise DataError(
            "the two benchmarks share no true caption within a kind of foil", where=f"{a.name}, {b.name}", hint=hint
        )
    kinds = list(dict.fromkeys(m.kind for m in matches))
    rows = []
    for attacker in attackers:
        left = attacker.scores([m.first for m in matches], progress)
        right = attacker.scores([m.second for m in matches], progress)
        for name in (*kinds, "all") if len(kinds) > 1 else kinds:
            of_kind = np.array([name in ("all", m.kind) for m in matches])
            sources = [m.source for m, keep in zip(matches, of_kind) if keep]
            rows.append(_row(name, attacker.name, left[of_kind], right[of_kind], sources))
    return rows


def _row(kind: str, attacker: str, left: np.ndarray, right: np.ndarray, sources: Sequence[str]) -> PairwiseRow:
    better = 0.5 + 0.5 * (right > left) - 0.5 * (right < left)
    clusters = np.unique(np.array(sources), return_inverse=True)[1]
    sure = share_interval(better, clusters)
    return PairwiseRow(
        kind,
        attacker,
        len(left),
        mean_of(left),
        mean_of(right),
        float(better.mean()),
        sure.low,
        sure.high,
        int((left == right).sum()),
    )


def scoring_attackers(attackers: Sequence[object]) -> list[TextAttacker]:
    """Return the attackers that score captions one by one. Other attackers cannot give a score to a single caption."""
    chosen = [a for a in attackers if isinstance(a, TextAttacker)]
    if not chosen:
        raise UsageError(
            "none of these attackers scores captions one by one",
            hint="choose others, such as grammar, frequency or lm-mean",
        )
    return chosen
