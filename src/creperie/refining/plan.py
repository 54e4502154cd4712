"""What a refinement is asked to do, and which attackers it sends."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.auditing import AttackerModels, sendable
from creperie.core import UsageError, unknown
from creperie.refining import aflite, cells

METHODS = ("grid", "optimal", "aflite", "syntaxbias", "pair", "words")
#: What the selection is made against when nobody chooses; those with a model where it is given.
CHOSEN = {
    "grid": ("length-words", "surface"),
    "optimal": ("length-words", "length-chars", "surface", "frequency"),
    "aflite": ("length-words", "length-chars", "surface", "frequency", "learned"),
    "syntaxbias": ("lm-mean",),
    "pair": ("length-words", "surface"),  # only measured: symmetry needs no attacker
    "words": ("length-words", "length-chars", "surface", "frequency"),  # likewise
}
#: Methods that cut gaps into bins, and how many per sign unless told otherwise.
BINNED = {"grid": cells.BINS, "optimal": 10, "aflite": aflite.BINS}
TOLERATED = 0.55
#: Added to the seed for attackers trained after the refinement: their folds are new.
FRESH = 7919


@dataclass(frozen=True)
class RefinePlan:
    """How to refine. Empty names mean: the method's own choice."""

    method: str = "grid"
    attackers: tuple[str, ...] = ()  #: the selection is made against these
    held_out: tuple[str, ...] = ()  #: only measured, before and after
    bins: int | None = None  #: per sign of a gap; 50 for the grid, 10 otherwise
    joint: bool = False  #: also balance the sum and difference of every two attackers
    repair: bool = False  #: give the captions of every item one style first
    balance: str = ""  #: "subset" or a tag whose rare values are worth more
    together: bool = False  #: choose from all subsets at once, not from each on its own
    threshold: float | None = None  #: of syntaxbias; searched where not given
    time_limit: float = 60.0  #: seconds per subset for the integer programme
    tolerated: float = TOLERATED  #: the blind accuracy below which an attacker is shown to be held

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        if self.threshold is not None and self.method != "syntaxbias":
            raise UsageError("a threshold is for the method syntaxbias", hint="leave `threshold=` out")
        if (self.joint or self.balance) and self.method not in ("optimal", "aflite"):
            what = "`joint=True`" if self.joint else "`balance=True`"
            raise UsageError(f"{what} needs an integer programme", hint="use `method=` optimal or aflite")
        if self.bins is not None and self.method not in BINNED:
            raise UsageError(f"{self.method} has no bins", hint="leave `bins=` out")
        if self.bins is not None and not 1 <= self.bins <= 10_000:
            raise UsageError(f"`bins={self.bins}` is out of range", hint="from 1 (only the signs balance) to 10000")
        if self.method == "syntaxbias" and len(self.attackers) > 1:
            raise UsageError("syntaxbias filters by one attacker", hint="name one, or none for lm-mean")

    @property
    def fineness(self) -> int:
        """Bins per sign; 0 for methods that have none."""
        return BINNED.get(self.method, 0) if self.bins is None else self.bins

    def selection(self, models: AttackerModels) -> tuple[str, ...]:
        """The attackers that the selection is made against, by name."""
        if self.attackers:
            names = tuple(dict.fromkeys(self.attackers))
            return names if self.method != "aflite" or "learned" in names else (*names, "learned")
        if self.method == "syntaxbias":
            return CHOSEN["syntaxbias"]
        given = {
            "lm-mean": models.lm if models.lm != "none" else "",
            "plausibility": models.plausibility,
            "grammar": models.grammar,
        }
        return (*CHOSEN[self.method], *(name for name, uri in given.items() if uri))

    def reported(self, models: AttackerModels) -> tuple[str, ...]:
        """The attackers that the selection never sees, by name: the rest of the battery, and embeddings."""
        seen = self.selection(models)
        if self.held_out:
            return tuple(name for name in dict.fromkeys(self.held_out) if name not in seen)
        halves = {"learned-linear", *(("learned-boosted",) if "learned" in seen else ())}  # of what `learned` is
        slow = {"finetuned", "ensemble"}  # minutes each, twice: on request
        battery = [name for name in sendable((), models)[0] if name not in halves | slow]
        return tuple(name for name in battery if name not in seen)


def fresh(models: AttackerModels) -> int:
    """Another seed for attackers that are trained after the refinement."""
    return models.seed + FRESH
