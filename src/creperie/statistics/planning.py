"""Power analysis by simulation: how many items does a claim need? Simulated results are judged by the same functions as
real ones.

Items of the same image have the correlation `icc`. To simulate it, one answer is drawn for each image; with probability
√icc, an item copies the answer of its image. Raters agree in the same way: with probability √kappa, a rater copies the
common answer of the item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from creperie.auditing import (
    CUES,
    EARLY,
    STEPS,
    THRESHOLD,
    AttackerEntry,
    AttackerMargins,
    Pairs,
    last_look,
    leaks,
    looks_of,
    measure_attacker,
    planned_battery,
)
from creperie.core import UsageError, check_name, option, with_options
from creperie.metrics import difference_confidence, fleiss_kappa, share_interval
from creperie.scoring import Run
from creperie.statistics.items import answers_of

Claim = Literal["compare", "interval", "clean", "leak", "kappa"]
#: Maximum number of items that are tried.
MOST_ITEMS = 100_000
ALPHA = 0.05


@dataclass(frozen=True)
class PowerOptions:
    """The parameters of the study that is planned."""

    items: int | None = option(None, "Items; 500 by default, or as many as the runs have.", minimum=4)
    per_image: int = option(1, "Items that share an image.", minimum=1)
    icc: float = option(0.1, "Correlation of items that share an image.", minimum=0, maximum=1)
    accuracy: float | None = option(
        None,
        "Accuracy of the better model (0.75), of all attackers (0.5) or of the one that leaks (0.6).",
        minimum=0,
        maximum=1,
    )
    difference: float | None = option(
        None, "Accuracy of the better model minus that of the other (0.03); runs have their own.", minimum=0, maximum=1
    )
    discordant: float | None = option(
        None,
        "Share of items that only one of two models gets right; by default as if they erred independently.",
        minimum=0,
        maximum=1,
    )
    width: float = option(0.02, "interval: the half-width to reach.", minimum=0, maximum=1)
    threshold: float = option(THRESHOLD, "clean, leak: the accuracy that an audit tolerates.", minimum=0, maximum=1)
    attackers: tuple[str, ...] = option(
        (), "clean, leak: attackers of the audit, by comma; by default the standard battery.", metavar="NAMES"
    )
    through: str = option("cues", "leak: the attacker that can see it.", metavar="NAME")
    raters: int = option(3, "kappa: answers per item.", minimum=2)
    kappa: float = option(0.75, "kappa: the agreement that is expected.", minimum=0, maximum=1)
    least: float = option(0.6, "kappa: the agreement to be shown.", minimum=0, maximum=1)
    target: float = option(0.8, "The power to reach.", minimum=0, maximum=1)
    simulations: int = option(1000, "Simulated studies; a fifth of them where other sizes are tried.", minimum=20)
    seed: int = option(0, "Random seed.")


@dataclass(frozen=True)
class PowerEstimate:
    """The fraction of simulated studies that support the claim, and the number of items at which this fraction
    reaches `target`.
    """

    claim: str
    items: int
    power: float
    error: float  #: standard error of the simulation
    needed: int | None  #: None: more than 100,000 items
    target: float
    curve: tuple[tuple[int, float], ...] = ()  #: every number of items that was simulated, and the power there
    difference: float = 0.0  #: compare: the difference of accuracies that is planned for

    def document(self) -> dict[str, Any]:
        return asdict(self)


@with_options(options=PowerOptions)
def power(claim: str, runs: Sequence[Run] = (), *, options: PowerOptions) -> PowerEstimate:
    """Return how often simulated studies support the claim, and how many items they need to reach the target power.

    The claim `compare` says that one model is better than another, `interval` that an accuracy is known to ± width, and
    `kappa` that the agreement of raters is above `least`. The claims `clean` and `leak` are verdicts of an audit.

    For `compare`, two runs may be given. Studies are then simulated by resampling the images of these runs, each with
    all its items.
    """
    check_name("claim", claim, get_args(Claim))
    if runs and claim != "compare":
        raise UsageError(f"runs are not used to plan {claim!r}", hint="leave them out, or plan for `compare`")
    pilot = _pilot(runs) if runs else None
    if pilot and options.difference is not None:
        hint = f"leave it out, or plan without runs: --discordant {pilot.discordant:.3g} --difference …"
        raise UsageError(
            "`difference=` cannot be given together with runs, which have a difference of their own", hint=hint
        )
    items = options.items or (len(pilot.right) if pilot else 500)
    usual = {"clean": 0.5, "leak": 0.6}.get(claim, 0.75)
    plan = replace(
        options,
        items=items,
        accuracy=usual if options.accuracy is None else options.accuracy,
        difference=pilot.difference if pilot else 0.03 if options.difference is None else options.difference,
    )
    simulators = {"compare": _better, "interval": _narrow, "clean": _audited, "leak": _audited, "kappa": _agreeing}
    shows = pilot.shows if pilot else simulators[claim]
    tried = {}

    def share(items: int, simulations: int = max(20, plan.simulations // 5)) -> float:
        if items not in tried:
            rng = np.random.default_rng(plan.seed)
            tried[items] = float(np.mean([shows(plan, items, rng, claim) for _ in range(simulations)]))
        return tried[items]

    reached = share(items, plan.simulations)
    error = math.sqrt(max(reached * (1 - reached), 0.25 / plan.simulations) / plan.simulations)
    needed = _smallest(share, items, plan.target)
    curve = tuple(sorted(tried.items()))
    return PowerEstimate(claim, items, reached, error, needed, plan.target, curve, plan.difference or 0.0)


def _smallest(share: Callable[[int], float], items: int, target: float) -> int | None:
    """Return the smallest number of items for which `share` reaches `target`, to within about 4 %; None if it
    never does. The search begins at `items`.
    """
    low = high = items
    while share(high) < target:
        if high >= MOST_ITEMS:
            return None
        low, high = high, min(2 * high, MOST_ITEMS)
    while low > 8 and share(low) >= target:
        low, high = low // 2, low
    for _ in range(4):
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if share(middle) >= target else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class _Pilot:
    """Two runs as pilot data. `right` says which items each run gets right, with the better run in the first column.
    `sizes` is the number of items of each image; items of the same image are next to each other.
    """

    right: np.ndarray
    sizes: np.ndarray

    @property
    def difference(self) -> float:
        return float(self.right[:, 0].mean() - self.right[:, 1].mean())

    @property
    def discordant(self) -> float:
        return float((self.right[:, 0] != self.right[:, 1]).mean())

    def shows(self, plan: PowerOptions, items: int, rng: np.random.Generator, claim: str) -> bool:
        """Simulate a study by drawing images, each with all its items, until there are enough items. Return whether the
        study shows a significant difference in favour of the better run.
        """
        mean = len(self.right) / len(self.sizes)
        drawn = rng.integers(len(self.sizes), size=int(items / mean * 1.5) + 50)
        drawn = drawn[: int(np.searchsorted(np.cumsum(self.sizes[drawn]), items)) + 1]
        sizes, starts = self.sizes[drawn], (np.cumsum(self.sizes) - self.sizes)[drawn]
        first = np.cumsum(sizes) - sizes
        places = np.arange(sizes.sum()) - np.repeat(first, sizes) + np.repeat(starts, sizes)
        better, worse = self.right[places].T
        return _sees(better, worse, np.repeat(np.arange(len(drawn)), sizes))


def _pilot(runs: Sequence[Run]) -> _Pilot:
    if len(runs) != 2:
        raise UsageError(
            f"a study is planned from two runs or from none, not from {len(runs)}",
            hint="give two runs of the same benchmark, or none",
        )
    answers = answers_of(runs)
    answered = ~np.isnan(answers.right).any(axis=1)
    right, codes = answers.right[answered], np.unique(answers.first.clusters[answered], return_inverse=True)[1]
    right = right[np.argsort(codes, kind="stable")]
    return _Pilot(right[:, np.argsort(-right.mean(axis=0), kind="stable")], np.bincount(codes))


def _sees(better: np.ndarray, worse: np.ndarray, clusters: np.ndarray) -> bool:
    """Return whether the first model is significantly better than the second: the interval of the difference between
    their accuracies lies above 0.
    """
    return difference_confidence(better, worse, clusters).interval(1 - ALPHA).low > 0


# -- one simulated study ---------------------------------------------------------------------------------------------


def _uniform(plan: PowerOptions, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a uniform random number from 0 to 1 for every item. Items of the same image have the correlation `icc`."""
    image = _images(plan, n)
    single, common = rng.random(n), rng.random(int(image[-1]) + 1)
    return np.where(rng.random(n) < math.sqrt(plan.icc), common[image], single)


def _images(plan: PowerOptions, items: int) -> np.ndarray:
    return np.arange(items) // plan.per_image


def _better(plan: PowerOptions, items: int, rng: np.random.Generator, claim: str) -> bool:
    """Simulate a study of two models. Return whether it shows a significant difference in favour of the better one."""
    best, ahead = plan.accuracy or 0.0, plan.difference or 0.0
    other = best - ahead
    apart = best * (1 - other) + other * (1 - best) if plan.discordant is None else plan.discordant
    shares = np.array([(apart + ahead) / 2, (apart - ahead) / 2, 0, 0])
    shares[2:] = best - shares[0], 1 - best - shares[1]
    if shares.min() < -1e-9:
        raise UsageError(
            "no two models have these accuracies and this share of discordant items",
            hint="lower `difference=` or raise `discordant=`",
        )
    up_to = shares.clip(0).cumsum()
    kind = np.searchsorted(up_to / up_to[-1], _uniform(plan, items, rng), "right")
    better, worse = (np.isin(kind, kinds).astype(float) for kinds in ((0, 2), (1, 2)))
    return _sees(better, worse, _images(plan, items))


def _narrow(plan: PowerOptions, items: int, rng: np.random.Generator, claim: str) -> bool:
    """Simulate an accuracy, and return whether half the width of its interval is at most `plan.width`."""
    right = (_uniform(plan, items, rng) >= 1 - (plan.accuracy or 0.0)).astype(float)
    interval = share_interval(right, _images(plan, items))
    return interval.high - interval.low <= 2 * plan.width


def _audited(plan: PowerOptions, items: int, rng: np.random.Generator, claim: str) -> bool:
    """Simulate an audit. For the claim `clean`, return whether no attacker finds a leak; for `leak`, return whether the
    attacker `plan.through` finds one.
    """
    # In the standard battery, slow attackers answer only a sample of the items, as in a real audit. A real audit tests
    # them several times while the sample grows, so their p-values are corrected for that.
    battery = planned_battery(plan.attackers)
    common = _Common(plan, items, rng)
    if claim == "clean":
        every = (measure_attacker(common.answers(entry), common.p_factor(entry)) for entry in battery)
        return all(max(figures.high, 1 - figures.low) < plan.threshold for figures in every)
    by_name = {entry.name: entry for entry in battery}
    check_name("attacker", plan.through, by_name)
    through = by_name[plan.through]
    answers = common.answers(replace(through, tells=1.0))
    tests = len(battery) * (CUES_TRIED if through.name == CUES else 1)
    found = [measure_attacker(answers, common.p_factor(through))]
    for step in STEPS if common.p_factor(through) > 1 else ():
        found.append(measure_attacker(answers.of_items(np.arange(answers.pairs.n_items) < step), 1 / EARLY))
    return any(leaks(m, m.p * tests, plan.threshold) for m in found)


#: Correlation of the answers of two attackers of one family, such as length in words and in letters.
FAMILY = 0.6
#: How much more than coin flips the accuracies of learned attackers vary: 1.23 to 1.25 on SugarCrepe's captions.
NULL_SPREAD = 1.24
#: Cues that are frequent enough to be tested one by one, in a subset of SugarCrepe: 3 to 12.
CUES_TRIED = 12


@dataclass(frozen=True, eq=False)
class _Common:
    """The items of one simulated audit, and the random numbers that attackers of the same family share."""

    plan: PowerOptions
    items: int
    rng: np.random.Generator
    families: dict[str, tuple[np.ndarray, float]] = field(default_factory=dict)

    def p_factor(self, entry: AttackerEntry) -> float:
        return last_look(looks_of(self.items)) if entry.sampled and not self.plan.attackers else 1.0

    def answers(self, entry: AttackerEntry) -> AttackerMargins:
        """Return the margins of an attacker's simulated answers. For a learned attacker, the accuracy is drawn at
        random first, because it depends on the data that the attacker learned from.
        """
        plan, rng = self.plan, self.rng
        n = self.items if plan.attackers else min(self.items, entry.sampled or self.items)
        spread = NULL_SPREAD if entry.learned and entry.family != "language model" else 1.0
        if entry.family not in self.families:
            self.families[entry.family] = _uniform(plan, self.items, rng), float(rng.standard_normal())
        shared, far = self.families[entry.family]
        far = math.sqrt(FAMILY) * far + math.sqrt(1 - FAMILY) * float(rng.standard_normal())
        right = (plan.accuracy or 0.0) + far * math.sqrt(spread**2 - 1) / 2 / math.sqrt(n)
        drawn = np.where(rng.random(n) < math.sqrt(FAMILY), shared[:n], _uniform(plan, n, rng))
        margins = np.where(drawn < right, 1.0, -1.0) * (rng.random(n) < entry.tells)
        zeros = np.zeros(n, np.int64)
        pairs = Pairs(["", "."], zeros, zeros + 1, np.arange(n), zeros, zeros, ("planned",), _images(plan, n))
        return AttackerMargins(pairs, margins.astype(np.float32), margins, False, np.full(n, spread))


def _agreeing(plan: PowerOptions, items: int, rng: np.random.Generator, claim: str) -> bool:
    """Simulate ratings, and return whether they show that the raters' agreement is above `plan.least`."""
    common, single = (rng.random((items, n)) < (plan.accuracy or 0.0) for n in (1, plan.raters))
    answers = np.where(rng.random(single.shape) < math.sqrt(plan.kappa), common, single)
    return fleiss_kappa(answers.astype(float)).low > plan.least
