"""Run slow attackers on a sample of the items, as large as the verdict needs.

The sample grows in steps, subset by subset: whole clusters in one seeded order, so each sample contains the previous
one. A subset in which a quick attacker leaks is decided: slow ones get one small sample. Any other subset is decided
when a slow attacker leaks, or when all are shown to stay below the threshold. Repeated looks at the results are
corrected for (Bonferroni over the looks that a subset may take).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import Attacker, TextAttacker
from creperie.auditing.measure import AttackerMargins, answers_of, measure_attacker
from creperie.auditing.model_attackers import Ensemble
from creperie.auditing.pairs import Pairs
from creperie.auditing.verdict import ALL, leaks
from creperie.core import Progress, silent

#: Items of a subset at each look.
STEPS = (100, 300, 1000)
#: Items of a subset that leaks already: enough to train the ensemble on two thirds of them.
FEW = 75


@dataclass(frozen=True, eq=False)
class Sample:
    """The items that slow attackers are run on."""

    keep: np.ndarray  #: a mask over the items
    looks: Mapping[str, int]  #: the largest number of looks, by subset and for "all"


def looks_of(items: int) -> int:
    """Return how often a subset of this many items may be looked at.

    >>> looks_of(80), looks_of(300), looks_of(7511)
    (1, 2, 3)
    """
    return 1 + sum(step < items for step in STEPS[:-1])


def drawn(pairs: Pairs, sizes: Mapping[str, int], seed: int) -> np.ndarray:
    """Return a mask over the items: at least `sizes[name]` (or all) of each subset, whole clusters in seeded order."""
    rank = np.random.Generator(np.random.PCG64(seed)).permutation(int(pairs.cluster.max(initial=0)) + 1)[pairs.cluster]
    keep = np.zeros(pairs.n_items, dtype=bool)
    for s, name in enumerate(pairs.subsets):
        members = np.flatnonzero((pairs.subset == s) & (pairs.per_item > 0))
        last = np.sort(rank[members])[min(sizes[name], len(members)) - 1] if len(members) else -1
        keep[members[rank[members] <= last]] = True
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
    """Run slow attackers on more and more items until every subset is decided or has no look left; return the sample.

    An ensemble decides nothing here, but its members are trained on the last sample meanwhile.
    """
    count = {name: int((pairs.subset == s).sum()) for s, name in enumerate(pairs.subsets)}
    looks = {name: looks_of(n) for name, n in count.items()}
    sizes = {name: FEW if name in decided else STEPS[0] for name in pairs.subsets}
    waiting = [name for name in pairs.subsets if name not in decided]
    for larger in (*STEPS[1:], 0):
        some = pairs.of_items(drawn(pairs, sizes, seed))
        last = not larger or all(sizes[name] >= count[name] for name in waiting)
        single = [a for a in attackers if not _ensemble(a)]
        _run_together(attackers if last else single, some, seed, progress)
        answers = [answers_of(attacker, some, seed, progress) for attacker in single]
        waiting = [
            name
            for name in waiting
            if sizes[name] < count[name]
            and not _settled(answers, some.subset == pairs.subsets.index(name), looks[name], tests, threshold)
        ]
        if not waiting or not larger:
            break
        sizes |= dict.fromkeys(waiting, larger)
    return Sample(drawn(pairs, sizes, seed), {**looks, ALL: max(looks.values(), default=1)})


#: The interval at which Python switches threads, in seconds; its default, 5 ms, would slow a language model down.
TURN = 0.0005


def _run_together(attackers: Sequence[Attacker], pairs: Pairs, seed: int, progress: Progress) -> None:
    """Score captions with language models while the other attackers learn in a second thread; all of them cache their
    answers. An ensemble trains its members.
    """
    scoring = [a for a in attackers if isinstance(a, TextAttacker)]
    for attacker in scoring:
        attacker.score([])  # loads its model: no library is imported in two threads at once

    def learn() -> None:
        for attacker in attackers:
            if ensemble := _ensemble(attacker):
                ensemble.train_members(pairs)
            elif attacker not in scoring:
                answers_of(attacker, pairs, seed)

    turn = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        with ThreadPoolExecutor(1) as beside:
            learned = beside.submit(learn)
            for attacker in scoring:
                attacker.margins(pairs, progress)
            learned.result()
    finally:
        sys.setswitchinterval(turn)


def _ensemble(attacker: Attacker) -> Ensemble | None:
    learner = getattr(attacker, "learner", None)
    return learner if isinstance(learner, Ensemble) else None


def _settled(
    answers: Sequence[AttackerMargins], of_subset: np.ndarray, looks: int, tests: int, threshold: float
) -> bool:
    """Return True if an attacker leaks significantly on these items, or all are shown to stay below the threshold."""
    figures = [measure_attacker(margins.of_items(of_subset), looks) for margins in answers]
    if any(leaks(m, m.p * tests, threshold) for m in figures):
        return True
    return all(max(m.high, 1 - m.low) < threshold for m in figures)


def spread_over(pairs: Pairs, sample: Sample, answers: AttackerMargins) -> AttackerMargins:
    """Return answers about a sample as answers about all pairs, with NaN outside the sample."""
    asked = sample.keep[pairs.item]
    raw, log_odds = np.full(len(pairs), np.nan, dtype=np.float32), np.zeros(len(pairs))
    spreads = np.ones(pairs.n_items)
    raw[asked], log_odds[asked], spreads[sample.keep] = answers.raw, answers.log_odds, answers.spreads
    return AttackerMargins(pairs, raw, log_odds, answers.directed, spreads)
