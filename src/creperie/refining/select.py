"""One selection: from the gaps of a set of items to those that stay, with the reason of every item that does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creperie.auditing import LEAST_KEPT, Pairs
from creperie.core import Progress, silent
from creperie.refining.aflite import Round, aflite
from creperie.refining.cells import grid
from creperie.refining.optimal import Selection, joint_gaps, optimal
from creperie.refining.pair import ItemSurplus, even_part, symmetric_part
from creperie.refining.plan import RefinePlan
from creperie.refining.syntaxbias import Filtered, syntaxbias, syntaxbias_scores

#: What a reason means.
REASONS = {
    "unsolvable": "a true caption of the item is also a false one: no model can win it",
    "cell": "its cell of the gap grid held more items than the mirrored cell",
    "balance": "with it, the attackers' gaps would not mirror themselves at zero",
    "learned": "with it, learned attackers (or the simple ones) would win more items than they lose",
    "mirror": "a pair of its captions or images does not stand the other way round as often",
    "words": "its words, or two of them side by side, go or come more often than by chance",
    "likelihood": "its score lies above the threshold: the model prefers its true caption too clearly",
}
REASON_OF = {
    "grid": "cell",
    "optimal": "balance",
    "aflite": "learned",
    "syntaxbias": "likelihood",
    "pair": "mirror",
    "words": "words",
}


@dataclass(frozen=True, eq=False)
class SelectionPool:
    """The items to choose from: a subset, or all of them. `gaps` is items × attackers."""

    name: str
    pairs: Pairs
    names: tuple[str, ...]
    gaps: np.ndarray
    weights: np.ndarray | None = None
    surplus: tuple[ItemSurplus, ...] = ()  #: of every item, for the methods `pair` and `words`


@dataclass(frozen=True)
class Structural:
    """A cue that selection cannot remove: balancing it leaves too little."""

    attacker: str
    share: float  #: of the items, at most


Curve = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """What stays of a part, and what is known about it."""

    keep: np.ndarray
    curve: Curve = ()  #: the conditions so far, and how many items stayed
    selection: Selection | None = None
    rounds: tuple[Round, ...] = ()
    neutral: bool | None = None  #: of aflite and syntaxbias, by their own test
    filtered: Filtered | None = None
    structural: tuple[Structural, ...] = ()

    def joined(self, other: Choice) -> Choice:
        """The choices from two halves of a part; the rounds of an iteration are those of the half that took longer."""
        sizes = _stretched(self.curve, other.curve)
        longer = self if len(self.rounds) >= len(other.rounds) else other
        chosen = None
        if self.selection and other.selection:
            a, b = self.selection, other.selection
            kept = a.kept_weight + b.kept_weight
            chosen = Selection(np.r_[a.keep, b.keep], kept, a.bound + b.bound, a.proven and b.proven, a.off + b.off)
        return Choice(
            np.r_[self.keep, other.keep],
            sizes,
            chosen,
            longer.rounds,
            None if self.neutral is None else bool(self.neutral and other.neutral),
            self.filtered,
            tuple(dict.fromkeys((*self.structural, *other.structural))),
        )


def _stretched(first: Curve, second: Curve) -> Curve:
    """Two curves added up, the shorter one going on as it ended."""
    longer = first if len(first) >= len(second) else second
    return tuple(
        (label, first[min(k, len(first) - 1)][1] + second[min(k, len(second) - 1)][1])
        for k, (label, _) in enumerate(longer)
    )


def choose(part: SelectionPool, plan: RefinePlan, seed: int, progress: Progress = silent) -> Choice:
    """Refine one part by the plan's method."""
    if plan.method == "syntaxbias":
        return _by_threshold(part, plan)
    if plan.method == "pair":
        keep = symmetric_part(part.surplus, plan.time_limit)
        return Choice(keep, (("all", len(keep)), ("symmetric", int(keep.sum()))))
    if plan.method == "words":
        keep = even_part(part.surplus, seed, plan.time_limit)
        return Choice(keep, (("all", len(keep)), ("even", int(keep.sum()))))
    if plan.method == "aflite":
        return _by_learning(part, plan, seed, progress)
    keep, chosen = _balanced(part.gaps, part, plan, seed, plan.time_limit)
    curve = [("all", len(keep))]
    for k in range(1, part.gaps.shape[1]):
        # Fewer conditions are easier; a good answer is enough for a point of a curve.
        some, _ = _balanced(part.gaps[:, :k], part, plan, seed, plan.time_limit / 10)
        curve.append((f"+ {part.names[k - 1]}", int(some.sum())))
    curve.append((f"+ {part.names[-1]}", int(keep.sum())))
    return Choice(keep, tuple(curve), chosen, structural=_structural(part))


def _balanced(
    gaps: np.ndarray, part: SelectionPool, plan: RefinePlan, seed: int, time_limit: float
) -> tuple[np.ndarray, Selection | None]:
    if plan.method == "grid":
        return grid(gaps, seed=seed, bins=plan.fineness), None
    table = joint_gaps(gaps) if plan.joint else gaps
    chosen = optimal(table, bins=plan.fineness, weights=part.weights, seed=seed, time_limit=time_limit)
    return chosen.keep, chosen


def _by_learning(part: SelectionPool, plan: RefinePlan, seed: int, progress: Progress) -> Choice:
    simple = [k for k, name in enumerate(part.names) if name != "learned"]  # aflite trains its own, every round
    gaps = part.gaps[:, simple]
    found = aflite(
        part.pairs,
        joint_gaps(gaps) if plan.joint and len(simple) else gaps,
        bins=plan.fineness,
        weights=part.weights,
        seed=seed,
        time_limit=plan.time_limit,
        progress=progress,
    )
    curve = tuple((f"round {k}", r.kept) for k, r in enumerate(found.rounds))
    hopeless = list(_structural(part))
    first = found.rounds[0].fresh
    if 2 * (1 - first.accuracy) < LEAST_KEPT:
        hopeless.append(Structural("learned", 2 * (1 - first.accuracy)))
    return Choice(found.keep, curve, found.selection, found.rounds, found.neutral, structural=tuple(hopeless))


def _by_threshold(part: SelectionPool, plan: RefinePlan) -> Choice:
    found = syntaxbias(part.gaps[:, 0], plan.threshold)
    curve = (("all", len(found.keep)), (f"score ≤ {found.threshold:.4f}", int(found.keep.sum())))
    return Choice(found.keep, curve, neutral=found.balanced, filtered=found)


def _structural(part: SelectionPool) -> tuple[Structural, ...]:
    """Attackers whose gaps are nearly all on one side."""
    n = len(part.gaps)
    found = []
    for name, gap in zip(part.names, part.gaps.T):
        above, below = int((gap > 0).sum()), int((gap < 0).sum())
        share = (2 * min(above, below) + n - above - below) / n if n else 1.0
        if share < LEAST_KEPT:
            found.append(Structural(name, share))
    return tuple(found)


def detail_of(part: SelectionPool, item: int, plan: RefinePlan) -> str:
    """Why an item left, in its own numbers: the attackers that speak for its true caption, and those against."""
    if plan.method == "syntaxbias":
        return f"score {syntaxbias_scores(part.gaps[:, 0])[item]:.4f}"
    if plan.method == "pair":
        (side, first, second), _ = part.surplus[item].pairs[0]
        return f"{side}: {first!r} and {second!r}"
    if plan.method == "words":
        own = [(key[1], n) for key, n in part.surplus[item].pairs if len(key) == 2]
        return "; ".join(
            f"{what}: {', '.join(w for w, n in own if n * s > 0)}" for what, s in (("true", 1), ("false", -1))
        )
    said = [f"{name} {gap:+.3g}" for name, gap in zip(part.names, part.gaps[item]) if gap]
    return ", ".join(said) or "no simple attacker has an opinion on it"
