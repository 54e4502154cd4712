"""Running slow attackers on a sample of the items that is as large as the verdict needs.

The sample of each subset grows in steps. Whole clusters are added in a random order that the seed fixes, so each sample
contains the previous one. If a quick attacker has found a leak in a subset, the subset is already decided, and slow
attackers get one small sample of it.

In any other subset they are tested after 100 and after 500 items. The sample stops growing once it is certain that
there is a leak, or that there is none. Otherwise it grows up to the limit of each attacker (`sampled` in
attackers.toml). The probability of error is divided among these tests: each early one gets a small part of it, the last
one the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from creperie.auditing.attackers import Attacker, TextAttacker
from creperie.auditing.measure import AttackerMargins, answers_of, measure_attacker
from creperie.auditing.model_attackers import Ensemble
from creperie.auditing.pairs import Pairs
from creperie.auditing.registry import entry_of
from creperie.auditing.verdict import ALL, leaks
from creperie.core import Progress, seeded, silent

#: Items of a subset at each early look.
STEPS = (100, 500)
#: The share of the error that each early look gets.
EARLY = 0.02
#: Items of a subset that leaks already: enough to train the ensemble on two thirds of them.
FEW = 75


@dataclass(frozen=True, eq=False)
class Sample:
    """The items on which slow attackers are run."""

    pairs: Pairs
    sizes: Mapping[str, int]  #: items by subset; an attacker takes at most as many as the registry says
    p_factors: Mapping[str, float]  #: by subset and for "all": what p-values are multiplied by, for earlier looks
    seed: int
    _parts: dict[tuple[int, ...], tuple[Pairs, Pairs]] = field(default_factory=dict, repr=False)

    def keep(self, attacker: str) -> np.ndarray:
        """Return a mask of the items on which an attacker is run."""
        return drawn(self.pairs, self._sizes(attacker), self.seed)

    def part(self, pairs: Pairs, attacker: str) -> Pairs:
        """Return the pairs that belong to an attacker's sampled items. `pairs` must be made from the same items as the
        pairs that were sampled.
        """
        key = id(pairs), *self._sizes(attacker).values()
        if key not in self._parts:
            self._parts[key] = pairs, pairs.of_items(self.keep(attacker))
        return self._parts[key][1]

    def _sizes(self, attacker: str) -> dict[str, int]:
        return {name: min(size, entry_of(attacker).sampled or size) for name, size in self.sizes.items()}


def looks_of(items: int) -> int:
    """Return the number of tests ("looks") that are allowed on a subset with this many items while its sample grows.
    Larger subsets may be tested more often.

    >>> looks_of(80), looks_of(300), looks_of(7511)
    (1, 2, 3)
    """
    return 1 + sum(step < items for step in STEPS)


def last_look(looks: int) -> float:
    """Return the factor by which the p-values of the last of `looks` tests of a subset are multiplied.

    >>> round(last_look(3), 4)
    1.0417
    """
    # A subset is tested repeatedly while its sample grows; the factor keeps the probability of an error in any of these
    # tests at the level of a single test.
    return 1 / (1 - EARLY * (looks - 1))


def drawn(pairs: Pairs, sizes: Mapping[str, int], seed: int) -> np.ndarray:
    """Return a mask of randomly drawn items. Clusters are drawn whole, until each subset has at least as many
    items as `sizes` says or is used up.
    """
    ordered, items, _ = pairs.by_content
    rank = np.empty(pairs.n_items, np.int64)
    rank[items] = seeded(seed).permutation(pairs.n_items)[ordered.cluster]
    keep = np.zeros(pairs.n_items, bool)
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
    """Run slow attackers on more and more items until every subset is decided (a significant leak, or certainly none)
    or no further test is allowed. Return the last sample.

    `decided` are the subsets in which quick attackers have already found a leak, and `tests` is the number of tests for
    which p-values are corrected. The members of an ensemble are trained on the last sample; the ensemble itself is not
    tested.
    """
    count = {name: int((pairs.subset == s).sum()) for s, name in enumerate(pairs.subsets)}
    p_factors = {name: last_look(looks_of(n)) for name, n in count.items()}
    sizes = {name: FEW if name in decided else STEPS[0] for name in pairs.subsets}
    waiting = [name for name in pairs.subsets if name not in decided]
    single = [a for a in attackers if not _ensemble(a)]
    most = max((entry_of(a.name).sampled for a in single), default=0)
    for larger in (*STEPS[1:], most, 0):
        sample = Sample(pairs, dict(sizes), {}, seed)
        waiting = [name for name in waiting if sizes[name] < count[name]]
        last = not larger or not waiting
        _run_together(attackers if last else single, sample, progress)
        if last:
            break
        answers = [answers_of(a, sample.part(pairs, a.name), seed, progress) for a in single]
        for name in list(waiting):
            if _is_decided(answers, pairs.subsets.index(name), 1 / EARLY, tests, threshold):
                waiting.remove(name)
                p_factors[name] = 1 / EARLY
        sizes |= dict.fromkeys(waiting, larger)
    several = max((looks_of(n) for n in count.values()), default=1)  # subsets may stop at different p_factors
    return Sample(pairs, sizes, {**p_factors, ALL: several}, seed)


#: The interval at which Python switches threads, in seconds; its default, 5 ms, would slow a language model down.
TURN = 0.0005


def _run_together(attackers: Sequence[Attacker], sample: Sample, progress: Progress) -> None:
    """Run the attackers on the sample. All answers are cached. Of an ensemble, only the members are trained."""
    # Language models score captions in this thread while the other attackers learn in a second thread.
    scoring = [a for a in attackers if isinstance(a, TextAttacker)]
    for attacker in scoring:
        attacker.score([])  # loads its model: no library is imported in two threads at once

    def learn() -> None:
        for attacker in attackers:
            part = sample.part(sample.pairs, attacker.name)
            if ensemble := _ensemble(attacker):
                ensemble.train_members(part)
            elif attacker not in scoring:
                answers_of(attacker, part, sample.seed)

    turn = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        with ThreadPoolExecutor(1) as beside:
            learned = beside.submit(learn)
            for attacker in scoring:
                attacker.margins(sample.part(sample.pairs, attacker.name), progress)
            learned.result()
    finally:
        sys.setswitchinterval(turn)


def _ensemble(attacker: Attacker) -> Ensemble | None:
    learner = getattr(attacker, "learner", None)
    return learner if isinstance(learner, Ensemble) else None


def _is_decided(answers: Sequence[AttackerMargins], subset: int, p_factor: float, tests: int, threshold: float) -> bool:
    """Return True if at least one attacker shows a significant leak on a subset, or if all attackers certainly stay
    below the threshold. p-values are multiplied by `p_factor` and by `tests`.
    """
    figures = [measure_attacker(margins.of_items(margins.pairs.subset == subset), p_factor) for margins in answers]
    if any(leaks(m, m.p * tests, threshold) for m in figures):
        return True
    return all(max(m.high, 1 - m.low) < threshold for m in figures)


def over_all_pairs(pairs: Pairs, keep: np.ndarray, answers: AttackerMargins) -> AttackerMargins:
    """Return answers that cover all pairs, given answers on the items in the mask `keep`. The margins of all other
    pairs are NaN.
    """
    asked = keep[pairs.item]
    raw, log_odds = np.full(len(pairs), np.nan, np.float32), np.zeros(len(pairs))
    spreads = np.ones(pairs.n_items)
    raw[asked], log_odds[asked], spreads[keep] = answers.raw, answers.log_odds, answers.spreads
    return AttackerMargins(pairs, raw, log_odds, answers.directed, spreads)
