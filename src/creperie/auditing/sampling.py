"""Slow attackers are asked about a sample of the items, as large as the verdict needs.

The sample grows in steps, subset by subset: whole clusters in one seeded order, so each step holds the one before. A
subset is decided when another attacker leaks there, when a slow one does, or when all slow ones are shown to stay
below the threshold. Looking several times is corrected for (Bonferroni over the looks that a subset may take).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import Attacker, learns
from creperie.auditing.measure import AttackerMargins, calibrated, measure_attacker
from creperie.auditing.pairs import Pairs
from creperie.auditing.verdict import ALL, LEVEL
from creperie.core import Progress, silent

#: Items of a subset at each look.
STEPS = (100, 300, 1000)


@dataclass(frozen=True, eq=False)
class Sample:
    """The items that slow attackers are asked about."""

    keep: np.ndarray  #: a mask over the items
    looks: Mapping[str, int]  #: by subset, and for all: how often it might have been looked at

    def of(self, pairs: Pairs) -> Pairs:
        return pairs.of_items(self.keep)


def looks_of(items: int) -> int:
    """How often a subset of so many items may be looked at.

    >>> looks_of(80), looks_of(300), looks_of(7511)
    (1, 2, 3)
    """
    return 1 + sum(step < items for step in STEPS[:-1])


def drawn(pairs: Pairs, sizes: Mapping[str, int], seed: int) -> np.ndarray:
    """A mask over the items: of every subset at least so many (or all), whole clusters in a seeded order."""
    rank = np.random.Generator(np.random.PCG64(seed)).permutation(int(pairs.cluster.max(initial=0)) + 1)[pairs.cluster]
    keep = np.zeros(pairs.n_items, dtype=bool)
    for s, name in enumerate(pairs.subsets):
        mine = np.flatnonzero((pairs.subset == s) & (pairs.per_item > 0))
        last = np.sort(rank[mine])[min(sizes[name], len(mine)) - 1] if len(mine) else -1
        keep[mine[rank[mine] <= last]] = True
    return keep


def sample_for(
    pairs: Pairs,
    attackers: Sequence[Attacker],
    decided: Collection[str],
    tests: int,
    threshold: float,
    seed: int,
    progress: Progress = silent,
) -> Sample:
    """Ask slow attackers about more and more items until every subset is decided, or its last look was taken."""
    count = {name: int((pairs.subset == s).sum()) for s, name in enumerate(pairs.subsets)}
    looks = {name: looks_of(n) for name, n in count.items()}
    sizes, waiting = dict.fromkeys(pairs.subsets, STEPS[0]), list(pairs.subsets)
    for larger in (*STEPS[1:], 0):
        some = pairs.of_items(drawn(pairs, sizes, seed))
        answers = [
            calibrated(some, a.margins(some, progress), directed=a.directed, seed=seed, learned=learns(a))
            for a in attackers
        ]
        waiting = [
            name
            for name in waiting
            if sizes[name] < count[name]
            and name not in decided
            and not _settled(answers, some.subset == pairs.subsets.index(name), looks[name], tests, threshold)
        ]
        if not waiting or not larger:
            break
        sizes |= dict.fromkeys(waiting, larger)
    return Sample(drawn(pairs, sizes, seed), {**looks, ALL: max(looks.values(), default=1)})


def _settled(answers: Sequence[AttackerMargins], mine: np.ndarray, looks: int, tests: int, threshold: float) -> bool:
    """True if an attacker leaks on these items beyond doubt, or every one is shown to stay below the threshold."""
    found = [measure_attacker(own.of_items(mine), looks) for own in answers]
    if any(m.p * tests < LEVEL and m.accuracy > threshold for m in found):
        return True
    return all(max(m.high, 1 - m.low) < threshold for m in found)


def spread_over(pairs: Pairs, sample: Sample, answers: AttackerMargins) -> AttackerMargins:
    """Answers about a sample as answers about all pairs: NaN where nobody asked."""
    asked = sample.keep[pairs.item]
    raw, log_odds = np.full(len(pairs), np.nan, dtype=np.float32), np.zeros(len(pairs))
    spreads = np.ones(pairs.n_items)
    raw[asked], log_odds[asked], spreads[sample.keep] = answers.raw, answers.log_odds, answers.spreads
    return AttackerMargins(pairs, raw, log_odds, answers.directed, spreads)
