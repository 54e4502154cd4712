"""What a refinement method is, what it is given, and what it answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from creperie.auditing import LEAST_KEPT, Attacker, Pairs
from creperie.bench import Item
from creperie.core import Progress

#: An accuracy is shown to be near one half when its interval lies within one half ± this much.
NEAR = 0.05
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ItemSurplus:
    """What an item adds to a balance: how much more often something is true than false."""

    pairs: tuple[tuple[tuple[str, ...], int], ...]  #: what (its side first) and the surplus; empty: symmetric
    asks: str = ""  #: items with the same images and true captions: one of them is enough


@dataclass(frozen=True, eq=False)
class SelectionPool:
    """The items to choose from: a subset, or all of them. `gaps` is items × attackers."""

    name: str
    pairs: Pairs
    names: tuple[str, ...]
    gaps: np.ndarray
    surplus: tuple[ItemSurplus, ...] = ()  #: of every item, for methods that balance what captions hold
    attackers: tuple[Attacker, ...] = ()  #: for methods that ask them


@dataclass(frozen=True)
class ChoiceSettings:
    """The settings of a plan that a method may look at."""

    bins: int = 0
    threshold: float | None = None
    time_limit: float = 60.0
    seed: int = 0


@dataclass(frozen=True)
class Structural:
    """A cue that selection cannot remove: balancing it leaves too little."""

    attacker: str
    share: float  #: of the items, at most


@dataclass(frozen=True)
class Selection:
    """Which items are kept, and how good that is: `bound` is the most that any balanced subset could keep."""

    keep: np.ndarray
    bound: float
    proven: bool  #: True when no balanced subset is larger
    off: int = 0  #: by how many items the histograms miss balance where time ran out; the signs balance in any case


@dataclass(frozen=True)
class Filtered:
    """Which items stay below a threshold of the score, and what the tests say of those that stay."""

    keep: np.ndarray
    threshold: float
    mean: float
    p_value: float
    accuracy: float  #: of the model, ties half
    low: float  #: of its 90 % interval
    high: float
    test: str = "two-sided sign test"

    @property
    def balanced(self) -> bool:
        """Neither caption is preferred, and that is shown."""
        return self.p_value >= LEVEL and self.low > 0.5 - NEAR and self.high < 0.5 + NEAR


Curve = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """What stays of a pool, and what is known about it."""

    keep: np.ndarray
    curve: Curve = ()  #: the conditions so far, and how many items stayed
    selection: Selection | None = None
    filtered: Filtered | None = None
    structural: tuple[Structural, ...] = ()

    def joined(self, other: Choice) -> Choice:
        """The choices from two halves of a pool, made under the same conditions."""
        sizes = tuple((label, one + two) for (label, one), (_, two) in zip(self.curve, other.curve, strict=True))
        chosen = None
        if self.selection and other.selection:
            a, b = self.selection, other.selection
            chosen = Selection(np.r_[a.keep, b.keep], a.bound + b.bound, a.proven and b.proven, a.off + b.off)
        hopeless = tuple(dict.fromkeys((*self.structural, *other.structural)))
        return Choice(np.r_[self.keep, other.keep], sizes, chosen, self.filtered, hopeless)


def gap_detail(pool: SelectionPool, item: int) -> str:
    """Why an item left, in its own numbers: the attackers that speak for its true caption, and those against."""
    gaps = [f"{name} {gap:+.3g}" for name, gap in zip(pool.names, pool.gaps[item]) if gap]
    return ", ".join(gaps) or "no simple attacker has an opinion on it"


@dataclass(frozen=True)
class RefinementMethod:
    """A way to choose items. Each is declared in the module that holds it; `methods.METHODS` lists all."""

    name: str
    does: str  #: one line for help pages
    reason: str  #: the code of its removals
    why: str  #: what that code means
    choose: Callable[[SelectionPool, ChoiceSettings, Progress], Choice]
    attackers: tuple[str, ...]  #: selected against (or measured) when nobody chooses
    bins: int = 0  #: per sign of a gap, unless told otherwise; 0: it has none
    asks: bool = False  #: it asks the attackers itself, in place of gaps
    surplus: Callable[[Item], ItemSurplus] | None = None  #: what it balances in place of gaps
    detail: Callable[[SelectionPool, int], str] = field(default=gap_detail)


def by_gaps(
    pool: SelectionPool,
    settings: ChoiceSettings,
    balanced: Callable[[np.ndarray, float], tuple[np.ndarray, Selection | None]],
) -> Choice:
    """The choice of a method that balances gaps, with a curve of what stays as attackers are added."""
    keep, chosen = balanced(pool.gaps, settings.time_limit)
    curve = [("all", len(keep))]
    for k in range(1, pool.gaps.shape[1]):
        # Fewer conditions are easier; a good answer is enough for a point of a curve.
        some, _ = balanced(pool.gaps[:, :k], settings.time_limit / 10)
        curve.append((f"+ {pool.names[k - 1]}", int(some.sum())))
    curve.append((f"+ {pool.names[-1]}", int(keep.sum())))
    return Choice(keep, tuple(curve), chosen, structural=structural_cues(pool))


def structural_cues(pool: SelectionPool) -> tuple[Structural, ...]:
    """Attackers whose gaps are nearly all on one side."""
    n = len(pool.gaps)
    cues = []
    for name, gap in zip(pool.names, pool.gaps.T):
        above, below = int((gap > 0).sum()), int((gap < 0).sum())
        share = (2 * min(above, below) + n - above - below) / n if n else 1.0
        if share < LEAST_KEPT:
            cues.append(Structural(name, share))
    return tuple(cues)
