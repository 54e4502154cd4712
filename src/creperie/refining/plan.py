"""The options of a refinement, and the attackers that it uses."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.auditing import AttackerModels, entry_of, runnable_attackers
from creperie.core import UsageError, check_name, option
from creperie.refining.methods import METHODS
from creperie.refining.select import ChoiceSettings, RefinementMethod

#: Added to the seed for attackers trained after the refinement: their folds are new.
FRESH = 7919


@dataclass(frozen=True)
class RefinePlan:
    """The options of a refinement. If no attackers are named, the defaults of the method are used."""

    method: str = option(
        "grid", "How to choose. " + " ".join(f"{m.name}: {m.does}." for m in METHODS.values()), choices=METHODS
    )
    attackers: tuple[str, ...] = option((), "Attackers to select against (default: the method's own).", metavar="NAMES")
    held_out: tuple[str, ...] = option(
        (),
        "Run the final audit with these attackers and those selected against, not with the standard battery.",
        metavar="NAMES",
    )
    bins: int | None = option(None, "Bins per sign of a gap (grid 50, others 10); 1 balances signs alone.")
    repair: bool = option(False, "First give the captions of every item one surface style.")
    together: bool = option(False, "Choose from all subsets at once, not from each on its own.")
    threshold: float | None = option(None, "Score above which syntaxbias removes items, -1 to 1; searched by default.")
    p_value: float | None = option(
        None, "syntaxbias: search the largest threshold that leaves no preference with a p below this; SADE names 1e-5."
    )
    time_limit: float = option(60.0, "Seconds per subset to prove the optimum.")
    audit: bool = option(True, "End with an audit of the kept items; without it the verdict is *not run*.")

    def __post_init__(self) -> None:
        check_name("method", self.method, METHODS)
        if self.threshold is not None and self.method != "syntaxbias":
            raise UsageError(
                "`threshold=` works only with the method syntaxbias", hint="leave it out, or pass `method='syntaxbias'`"
            )
        if self.p_value is not None and (self.method != "syntaxbias" or self.threshold is not None):
            raise UsageError(
                "`p_value=` works only with the method syntaxbias and without a threshold",
                hint="leave out `p_value=` or `threshold=`",
            )
        if self.p_value is not None and not 0 < self.p_value < 1:
            raise UsageError(
                f"`p_value={self.p_value:g}` is not between 0 and 1", hint="give, for example, 1e-5, as SADE does"
            )
        if self.bins is not None and not self.how.bins:
            raise UsageError(f"the method {self.method} uses no bins", hint="leave `bins=` out")
        if self.bins is not None and not 1 <= self.bins <= 10_000:
            raise UsageError(
                f"`bins={self.bins}` is out of range", hint="give 1 to 10000; 1 balances only the signs of the gaps"
            )
        if self.method == "syntaxbias" and len(self.attackers) > 1:
            raise UsageError(
                "the method syntaxbias uses only one attacker",
                hint="name one in `attackers=`, or leave `attackers=` out to use lm-mean",
            )

    @property
    def how(self) -> RefinementMethod:
        """The method's entry in the registry."""
        return METHODS[self.method]

    @property
    def by_gaps(self) -> bool:
        """True if the choice of items depends only on the attackers' gaps (how much each attacker prefers an item's
        true captions), and captions are not changed.
        """
        return not (self.how.asks or self.how.surplus or self.repair)

    @property
    def fineness(self) -> int:
        """The number of bins into which a method sorts positive gaps, and also negative ones; 0 if the method uses no
        bins.
        """
        return self.how.bins if self.bins is None else self.bins

    def settings(self, seed: int) -> ChoiceSettings:
        """Return those settings of the plan that a method may use."""
        return ChoiceSettings(self.fineness, self.threshold, self.time_limit, seed, self.p_value)

    def selection(self, models: AttackerModels) -> tuple[str, ...]:
        """Return the names of the attackers against which items are selected."""
        if self.attackers:
            return tuple(dict.fromkeys(self.attackers))
        if self.method == "syntaxbias":
            return self.how.attackers
        given = {
            "lm-mean": models.lm if models.lm != "none" else "",
            "plausibility": models.plausibility,
            "grammar": models.grammar,
        }
        return (*self.how.attackers, *(name for name, uri in given.items() if uri))

    def watched(self, models: AttackerModels) -> tuple[str, ...]:
        """Return the names of attackers that are measured although the selection does not use them. These are the
        held-out attackers or, by default, all that are cheap to run.
        """
        seen = self.selection(models)
        if self.held_out or (self.attackers and not self.audit):
            return tuple(name for name in dict.fromkeys(self.held_out) if name not in seen)
        cheap = [name for name in runnable_attackers((), models)[0] if not entry_of(name).sampled]
        return tuple(name for name in cheap if name not in (*seen, "ensemble"))

    def audited_by(self, models: AttackerModels) -> tuple[str, ...]:
        """Return the names of the attackers for the final audit. If attackers are held out, return them and
        the attackers that the selection uses.

        Otherwise the audit runs the standard battery. Attackers that the selection uses and that are not in the battery
        are returned with a + in front. An empty tuple means the standard battery alone.
        """
        seen = self.selection(models)
        if self.held_out:
            return tuple(dict.fromkeys((*seen, *self.held_out)))
        battery = runnable_attackers((), models)[0]
        return tuple(f"+{name}" for name in seen if name not in battery)

    def audit_models(self, models: AttackerModels) -> AttackerModels:
        """Return the models for the final audit: all of `models`, unless the user chose the attackers for the
        selection. In that case, keep only the models that the user named and those that the chosen or held-out
        attackers need.
        """
        return models.asked_for((*self.attackers, *self.held_out)) if self.attackers else models
