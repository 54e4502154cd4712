"""The interface of refinement methods: their input, their settings and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from creperie.auditing import LEAST_KEPT, Attacker, Pairs, balanced_share
from creperie.bench import Item
from creperie.core import Progress

#: An accuracy is shown to be near one half when its interval lies within one half ± this much.
NEAR = 0.05
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ItemSurplus:
    """The numbers that a method balances, counted in one item: one for each word, or for each pair of captions or
    images.

    For a word, the number is how often it occurs in true captions, minus how often in false ones. For a pair, it is how
    often the first is true and the second false, minus how often the reverse holds. These numbers are called surpluses.
    """

    pairs: tuple[tuple[tuple[str, ...], int], ...]  #: what is counted (side first), and its surplus; empty: symmetric
    asks: str = ""  #: key shared by items with the same images and true captions: at most one is kept


@dataclass(frozen=True, eq=False)
class SelectionPool:
    """The items to choose from: those of one subset, or all. `gaps` is a matrix (items × attackers). A gap is positive
    if the attacker prefers the item's true captions, and negative if it prefers the false ones.
    """

    name: str
    pairs: Pairs
    names: tuple[str, ...]
    gaps: np.ndarray
    surplus: tuple[ItemSurplus, ...] = ()  #: of every item, for methods that balance surpluses
    attackers: tuple[Attacker, ...] = ()  #: for methods that run them


@dataclass(frozen=True)
class ChoiceSettings:
    """The settings that a refinement method may use, taken from a plan."""

    bins: int = 0
    threshold: float | None = None
    time_limit: float = 60.0
    seed: int = 0
    p_value: float | None = None


@dataclass(frozen=True)
class Structural:
    """An attacker whose advantage cannot be removed by leaving out items, because too few items would remain."""

    attacker: str
    share: float  #: share of the items that balancing would keep, at most


@dataclass(frozen=True)
class Selection:
    """The items that are kept. `bound` is an upper bound of the number of items in any balanced subset."""

    keep: np.ndarray
    bound: float
    proven: bool  #: True when no balanced subset is larger
    off: int = 0  #: imbalance of the histograms, in items, if time ran out; the signs balance in any case


@dataclass(frozen=True)
class Filtered:
    """The items that a filter keeps because their score is at most `threshold`, with the results of statistical tests
    on these items.
    """

    keep: np.ndarray
    threshold: float
    mean: float
    p_value: float
    accuracy: float  #: accuracy of the model; ties count half
    low: float  #: lower limit of its 90 % interval
    high: float
    test: str = "two-sided sign test"
    limit: float = LEVEL  #: p-values below it show a preference

    @property
    def balanced(self) -> bool:
        """True if a sign test shows no preference for true or false captions, and the interval of the accuracy lies
        near one half.
        """
        return self.p_value >= LEVEL and self.low > 0.5 - NEAR and self.high < 0.5 + NEAR


Curve = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """The items of a pool that are kept, with details of how the method found them."""

    keep: np.ndarray
    curve: Curve = ()  #: each condition added, and how many items remained
    selection: Selection | None = None
    filtered: tuple[Filtered, ...] = ()  #: one for each half of the pool that was filtered
    structural: tuple[Structural, ...] = ()

    def joined(self, other: Choice) -> Choice:
        """Return one choice, given the choices from the two halves of a pool. Both must have been made by the same
        method.
        """
        sizes = tuple((label, one + two) for (label, one), (_, two) in zip(self.curve, other.curve, strict=True))
        chosen = None
        if self.selection and other.selection:
            a, b = self.selection, other.selection
            chosen = Selection(np.r_[a.keep, b.keep], a.bound + b.bound, a.proven and b.proven, a.off + b.off)
        hopeless = tuple(dict.fromkeys((*self.structural, *other.structural)))
        return Choice(np.r_[self.keep, other.keep], sizes, chosen, self.filtered + other.filtered, hopeless)


def gap_detail(pool: SelectionPool, item: int) -> str:
    """Return an explanation for the removal of an item: the attackers' gaps on it. A gap is positive if the attacker
    prefers the true caption.
    """
    gaps = [f"{name} {gap:+.3g}" for name, gap in zip(pool.names, pool.gaps[item]) if gap]
    return ", ".join(gaps) or "no attacker has a gap on it"


@dataclass(frozen=True)
class RefinementMethod:
    """A method of choosing items. Each is declared in a module of its own, and `methods.METHODS` lists all of them."""

    name: str
    does: str  #: one line for help pages
    reason: str  #: the reason code of its removals
    why: str  #: what that code means
    choose: Callable[[SelectionPool, ChoiceSettings, Progress], Choice]
    attackers: tuple[str, ...]  #: the default attackers, selected against or only measured
    bins: int = 0  #: default number of bins per sign of a gap; 0: no bins
    asks: bool = False  #: True if it runs the attackers itself and uses no gaps
    surplus: Callable[[Item], ItemSurplus] | None = None  #: the surplus that it balances, instead of gaps
    detail: Callable[[SelectionPool, int], str] = field(default=gap_detail)


def by_gaps(
    pool: SelectionPool,
    settings: ChoiceSettings,
    balanced: Callable[[np.ndarray, float], tuple[np.ndarray, Selection | None]],
) -> Choice:
    """Return a choice made with the function `balanced`. The choice's `curve` shows how many items are kept if only the
    first attacker is balanced, if the first two are, and so on.

    `balanced(gaps, time_limit)` returns a mask of the items to keep, and a `Selection` or None. `gaps` is a matrix
    (items × attackers); a gap is positive if the attacker prefers the true caption.
    """
    keep, chosen = balanced(pool.gaps, settings.time_limit)
    curve = [("all", len(keep))]
    for k in range(1, pool.gaps.shape[1]):
        # Fewer conditions are easier, and a point of a curve need not be optimal.
        some, _ = balanced(pool.gaps[:, :k], settings.time_limit / 10)
        curve.append((f"+ {pool.names[k - 1]}", int(some.sum())))
    curve.append((f"+ {pool.names[-1]}", int(keep.sum())))
    return Choice(keep, tuple(curve), chosen, structural=structural_cues(pool))


def structural_cues(pool: SelectionPool) -> tuple[Structural, ...]:
    """Return the attackers that prefer the true caption (or the false one) in nearly all items. Leaving out items
    cannot balance them, because too few items would remain.
    """
    cues = (Structural(name, balanced_share(gap)) for name, gap in zip(pool.names, pool.gaps.T))
    return tuple(cue for cue in cues if cue.share < LEAST_KEPT)
