"""Refinement across families of attackers, one family always held out: does selection help against what it never saw?

Every family that wins on a benchmark is held out in turn. Items are selected against the attackers of all the other
families together, each half of the benchmark with answers that were learned on that half alone; then the family that
was held out is measured on what stays, trained on the other refined half. The *retention curve* asks for less and
less: only the share of the items that the other families together are least sure about may stay, and is balanced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from creperie.auditing import (
    LEAST_KEPT,
    Attacker,
    AttackerModels,
    EnsembleAttacker,
    Pairs,
    family_of,
    grouped_folds,
    make_attackers,
    one_thread,
    pairs_of,
    repaired,
    sendable,
)
from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.core import DataError, Progress, percent, silent
from creperie.refining.crossfit import gap_of, sureness
from creperie.refining.optimal import optimal
from creperie.refining.standing import ALL, AttackerFigure, figures_of

#: Shares of the items that may stay, along the curve.
SHARES = (1.0, 0.6, 0.3, 0.15)
#: Bins per sign of a gap: with a dozen attackers at once, finer ones leave next to nothing.
BINS = 3
#: A family is held when it stays within one half ± this much.
WITHIN = 0.03
#: Of which another attacker of the same family is made, or which take minutes.
LEFT_OUT = ("learned", "learned-boosted", "ensemble", "finetuned", "judge")


@dataclass(frozen=True)
class RotationPoint:
    """What a held-out family reaches on what was selected against all others."""

    held_out: str  #: the family
    share: float  #: of the items that might stay
    kept: int
    attacker: str  #: the family's strongest on what stays
    figure: AttackerFigure

    @property
    def held(self) -> bool:
        return abs(self.figure.accuracy - 0.5) <= WITHIN

    def document(self) -> dict[str, Any]:
        return {**asdict(self), **self.figure.document(), "held": self.held}


@dataclass(frozen=True)
class Rotation:
    """Every family that wins before, held out in turn, along the retention curve."""

    benchmark: str
    items: int
    seed: int
    seen: dict[str, tuple[str, ...]]  #: the attackers of every family
    before: dict[str, RotationPoint]  #: the families that win, or that were asked for
    points: tuple[RotationPoint, ...]

    def reached(self, family: str) -> RotationPoint | None:
        """The largest selection of useful size that holds the family, never having seen it."""
        mine = [p for p in self.points if p.held_out == family and p.held and p.kept >= LEAST_KEPT * self.items]
        return max(mine, key=lambda p: p.kept, default=None)

    @property
    def withstands(self) -> bool:
        return all(self.reached(family) for family in self.before)

    @property
    def text(self) -> str:
        """What selection can do about this benchmark."""
        if not self.before:
            return "no family of attackers wins: nothing to refine"
        lost = [family for family in self.before if self.reached(family) is None]
        if not lost:
            least = min((p for f in self.before if (p := self.reached(f))), key=lambda p: p.kept)
            return f"selection withstands every held-out family, at the cost of all but {least.kept:,} items at most"
        return (
            f"selection does not get there: {', '.join(lost)}, held out, stays more than {100 * WITHIN:g} points off "
            f"chance at every size down to {100 * LEAST_KEPT:g} % of the items: find twins "
            "(`creperie make mine:twins`) or rewrite the foils"
        )

    def document(self) -> dict[str, Any]:
        before, curve = ([p.document() for p in points] for points in (self.before.values(), self.points))
        return {**vars(self), "withstands": self.withstands, "text": self.text, "before": before, "points": curve}


def rotate(
    bench: BenchmarkSpec,
    models: AttackerModels | None = None,
    *,
    attackers: Sequence[str] = (),
    held_out: Sequence[str] = (),
    repair: bool = False,
    shares: Sequence[float] = SHARES,
    bins: int = BINS,
    time_limit: float = 5.0,
    progress: Progress = silent,
) -> Rotation:
    """Hold out one family of attackers after the other; attackers named in `held_out` are never selected against.

    `attackers` are the standard battery where none is named.
    """
    models = models or AttackerModels()
    bench = as_benchmark(bench)
    pairs = pairs_of(repaired(bench) if repair else bench)
    if not len(pairs):
        raise DataError("no item has both a true and a false caption", where=bench.name)
    battery = [name for name in sendable(attackers, models)[0] if name not in (*LEFT_OUT, *held_out)]
    sent = {a.name: a for a in make_attackers((*battery, *held_out), models)}
    families: dict[str, tuple[str, ...]] = {}
    for name in sent:
        families[family_of(name)] = (*families.get(family_of(name), ()), name)
    halves = grouped_folds(pairs.group, 2, models.seed + 1)
    run = _Rotating(pairs, sent, families, [halves == h for h in np.unique(halves)], models.seed, progress)
    with one_thread():
        first = {f: run.strongest(f, 1.0, np.ones(pairs.n_items, dtype=bool)) for f in families}
        asked = {family_of(name) for name in held_out}
        before = {f: p for f, p in first.items() if f in asked or (p.figure.p < 0.05 and not p.held)}
        points = []
        with progress("held-out families", len(before) * len(shares), "selections") as advance:
            for family in before:
                seen = [sent[name] for name in battery if family_of(name) != family]
                for share in shares if seen else ():
                    keep = run.select(seen, share, bins, time_limit)
                    if keep.sum() > 1:
                        points.append(run.strongest(family, share, keep))
                    advance(1)
    return Rotation(bench.name, pairs.n_items, models.seed, families, before, tuple(points))


@dataclass(frozen=True)
class _Rotating:
    pairs: Pairs
    sent: Mapping[str, Attacker]
    families: Mapping[str, tuple[str, ...]]
    halves: Sequence[np.ndarray]
    seed: int
    progress: Progress

    def select(self, seen: Sequence[Attacker], share: float, bins: int, time_limit: float) -> np.ndarray:
        """Of each half, the share that the seen attackers together are least sure about, balanced.

        What they learn, they learn on that half.
        """
        keep = np.zeros(self.pairs.n_items, dtype=bool)
        for mine in self.halves:
            own = self.pairs.of_items(mine)
            sure = np.abs(sureness(own, EnsembleAttacker(seen, seed=self.seed).margins(own)))
            rows = np.argsort(sure, kind="stable")[: round(share * len(sure))]
            table = np.stack([gap_of(own, a, self.progress)[rows] for a in seen], axis=1)
            if len(rows):
                chosen = optimal(table, bins=bins, seed=self.seed, time_limit=time_limit)
                keep[np.flatnonzero(mine)[rows]] = chosen.keep
        return keep

    def strongest(self, family: str, share: float, keep: np.ndarray) -> RotationPoint:
        """The family's strongest attacker on these items, trained on the other half of them."""
        stays = replace(self.pairs.of_items(keep), fold=self.halves[-1][keep].astype(np.int64))
        found = figures_of(stays, [self.sent[name] for name in self.families[family]], self.seed, self.progress)
        name = max(found, key=lambda n: abs(found[n][ALL].accuracy - 0.5))
        return RotationPoint(family, share, int(keep.sum()), name, found[name][ALL])


def rotation_rows(found: Rotation) -> list[list[str]]:
    """The curve as a table: one row per held-out family, before and at each share."""
    rows = []
    for family, before in found.before.items():
        mine = [p for p in found.points if p.held_out == family]
        rows.append([family, _shown(before), *(f"{p.kept:,}: {_shown(p)}" for p in mine)])
    return rows


def _shown(point: RotationPoint) -> str:
    f = point.figure
    return f"{percent(f.accuracy)} [{percent(f.low)}, {percent(f.high)}] {point.attacker}"
