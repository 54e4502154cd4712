"""The largest honest subset: refine a benchmark until the attackers have no edge, and say what that took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from creperie.auditing import (
    Attacker,
    AttackerModels,
    Audit,
    AuditOptions,
    Judgement,
    Pairs,
    changed_options,
    grouped_folds,
    make_attackers,
    one_thread,
    pairs_of,
    repaired,
    unjudged,
)
from creperie.auditing import audit as run_audit
from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark, items_of
from creperie.core import DataError, Progress, automatic, html_table, percent, silent, with_options
from creperie.refining.plan import RefinePlan, fresh
from creperie.refining.select import Choice, SelectionPool
from creperie.refining.standing import ALL, AttackerFigure, AttackerStanding, figures_in, figures_of, gap_of


@dataclass(frozen=True)
class Removal:
    """An item that was left out, and why."""

    row: int  #: in the benchmark that was refined
    subset: str
    id: str
    reason: str  #: a key of `REASONS`
    detail: str


@dataclass(frozen=True)
class SubsetOutcome:
    """What a refinement left of one subset (or of all, chosen together)."""

    name: str
    items: int
    unsolvable: int
    choice: Choice

    @property
    def kept(self) -> int:
        return int(self.choice.keep.sum())

    def joined(self, other: SubsetOutcome) -> SubsetOutcome:
        """This half of a subset and the other."""
        counts = self.items + other.items, self.unsolvable + other.unsolvable
        return SubsetOutcome(self.name, *counts, self.choice.joined(other.choice))


@dataclass(frozen=True)
class Refined:
    """A refined benchmark, what left it, and how the attackers stand before and after."""

    bench: Benchmark
    original: Benchmark
    plan: RefinePlan
    seed: int
    removed: tuple[Removal, ...]
    outcomes: tuple[SubsetOutcome, ...]
    standings: tuple[AttackerStanding, ...]
    audit: Audit | None = None  #: of what stays, by attackers that the selection never saw, too
    audit_options: Mapping[str, Any] = field(default_factory=dict)  #: of that audit, where they are not the defaults
    folder: str = ""  #: where it was written

    @property
    def judgement(self) -> Judgement:
        """The verdict on what stays: that of the final audit."""
        if self.audit is not None:
            return replace(self.audit.whole, spec=self.folder or self.bench.name)
        if not len(self.bench):
            return unjudged("nothing left", self.original.name)
        return unjudged("not run", self.folder or self.bench.name, len(self.bench))

    def __repr__(self) -> str:
        kept = f"{len(self.bench):,} of {len(self.original):,} items"
        return f"Refined({self.original.name!r} by {self.plan.method}: {kept}; {self.judgement.text})"

    def _repr_html_(self) -> str:
        rows = [
            (
                s.name,
                "held out" if s.held_out else "",
                *(percent(f[ALL].accuracy if ALL in f else None) for f in (s.before, s.after)),
            )
            for s in self.standings
        ]
        return html_table(repr(self), ("attacker", "", "before, %", "after, %"), rows)

    def to_pandas(self) -> Any:
        """One row per attacker and subset, before and after, as a pandas data frame."""
        import pyarrow as pa

        stages = ("before", "repaired", "after")
        rows = [
            {"attacker": s.name, "held_out": s.held_out, "subset": name, "stage": stage, **figure.document()}
            for s in self.standings
            for stage in stages
            for name, figure in getattr(s, stage).items()
        ]
        return pa.Table.from_pylist(rows).to_pandas()


@with_options(plan=RefinePlan, models=AttackerModels)
def refine(
    bench: BenchmarkSpec, *, plan: RefinePlan, models: AttackerModels, progress: Progress | None = automatic
) -> Refined:
    """Refine a benchmark: each subset on its own, as published, unless the plan says otherwise; audit what stays.

    `bench` is a benchmark, a spec or a path.
    """
    bench, progress = as_benchmark(bench), progress or silent
    selection = plan.selection(models)
    sent = make_attackers((*selection, *plan.watched(models)), models)
    start = repaired(bench) if plan.repair else bench
    pairs = pairs_of(start)
    if not len(pairs):
        raise DataError("no item has both a true and a false caption", where=bench.name)
    halves = grouped_folds(pairs.group, 2, models.seed + 1)
    with one_thread():
        before = figures_of(pairs_of(bench) if plan.repair else pairs, sent, models.seed, progress)
        mended = figures_of(pairs, sent, models.seed, progress) if plan.repair else {}
        seen = [a for a in sent if a.name in selection]
        chosen = _Choosing(start, pairs, plan, models.seed, progress).by_halves(seen, halves)
    result = _kept(start, chosen.keep, plan, selection, models.seed, chosen.removed)
    audited, after = None, dict[str, dict[str, AttackerFigure]]()
    final = AuditOptions(plan.audited_by(models), plan.tolerated)
    if chosen.keep.any() and plan.audit:
        audited = run_audit(result, options=final, models=models, progress=progress)
        after = figures_in(audited)
    elif chosen.keep.any():
        stays = replace(pairs.of_items(chosen.keep), fold=halves[chosen.keep])
        with one_thread():
            after = figures_of(stays, sent, fresh(models), progress)
    leaking = [(row.attacker, row.subset) for row in audited.rows if row.leaks] if audited else []
    standings = [
        AttackerStanding(
            name,
            name not in selection,
            before.get(name, {}),
            after.get(name, {}),
            mended.get(name, {}),
            tuple(subset for attacker, subset in leaking if attacker == name),
        )
        for name in dict.fromkeys((*before, *after))
    ]
    parts = chosen.removed, chosen.outcomes, tuple(standings)
    return Refined(result, bench, plan, models.seed, *parts, audited, changed_options(final, models))


@dataclass(frozen=True)
class _Chosen:
    keep: np.ndarray
    outcomes: tuple[SubsetOutcome, ...]
    removed: tuple[Removal, ...]


@dataclass(frozen=True)
class _Choosing:
    """Chooses items of a benchmark by a plan."""

    bench: Benchmark
    pairs: Pairs
    plan: RefinePlan
    seed: int
    progress: Progress

    def by_halves(self, seen: Sequence[Attacker], halves: np.ndarray) -> _Chosen:
        """Where gaps are learned, each half is chosen with what was learned on that half alone."""
        how, everything = self.plan.how, np.ones(self.pairs.n_items, dtype=bool)
        gaps = np.zeros((self.pairs.n_items, len(seen)))
        if how.asks or how.surplus is not None:
            return self._choose(everything, gaps, seen)
        learned = halves.any() and any(a.directed for a in seen)
        chosen = []
        for mine in [halves == h for h in range(2)] if learned else [everything]:
            own = self.pairs.of_items(mine)
            gaps[mine] = np.stack([gap_of(own, a, self.progress) for a in seen], axis=1)
            chosen.append(self._choose(mine, gaps, seen))
        return chosen[0] if len(chosen) == 1 else _both(chosen[0], chosen[1])

    def _choose(self, among: np.ndarray, gaps: np.ndarray, seen: Sequence[Attacker]) -> _Chosen:
        """Choose within every part of some items; a mask over all items, the outcomes, and why items left."""
        bench, pairs, method = self.bench, self.pairs, self.plan.how
        ids, subsets = bench.column("id").to_pylist(), bench.column("subset").to_pylist()
        keep = np.zeros(pairs.n_items, dtype=bool)
        lost = np.flatnonzero(pairs.unsolvable & among).tolist()
        removed = [Removal(i, subsets[i], ids[i], "unsolvable", "") for i in lost]
        by_subset = {name: pairs.subset == s for s, name in enumerate(pairs.subsets)}
        masks = {ALL: np.ones(pairs.n_items, dtype=bool)} if self.plan.together else by_subset
        outcomes, names = [], tuple(a.name for a in seen)
        for name, mask in masks.items():
            inside = mask & among & ~pairs.unsolvable
            rows = np.flatnonzero(inside)
            surplus = tuple(map(method.surplus, items_of(bench.table.take(rows)))) if method.surplus else ()
            pool = SelectionPool(name, pairs.of_items(inside), names, gaps[rows], surplus, tuple(seen))
            choice = method.choose(pool, self.plan.settings(self.seed), self.progress)
            keep[rows] = choice.keep
            removed += [
                Removal(int(rows[k]), subsets[rows[k]], ids[rows[k]], method.reason, method.detail(pool, k))
                for k in np.flatnonzero(~choice.keep).tolist()
            ]
            counts = int((mask & among).sum()), int((mask & among & pairs.unsolvable).sum())
            outcomes.append(SubsetOutcome(name, *counts, choice))
        return _Chosen(keep, tuple(outcomes), tuple(sorted(removed, key=lambda r: r.row)))


def _both(first: _Chosen, second: _Chosen) -> _Chosen:
    """The choices from two halves as one."""
    outcomes = [a.joined(b) for a, b in zip(first.outcomes, second.outcomes, strict=True)]
    removed = sorted((*first.removed, *second.removed), key=lambda r: r.row)
    return _Chosen(first.keep | second.keep, tuple(outcomes), tuple(removed))


def _kept(
    start: Benchmark,
    keep: np.ndarray,
    plan: RefinePlan,
    selection: Sequence[str],
    seed: int,
    removed: Sequence[Removal],
) -> Benchmark:
    """The kept items in their order, with a provenance that says what was done."""
    import pyarrow as pa

    codes = [r.reason for r in removed]
    settings = {
        "bins": plan.fineness or None,
        "together": plan.together,
        "threshold": plan.threshold,
        "time_limit": plan.time_limit,
    }
    table = start.table.filter(pa.array(keep))
    found = start.with_table(
        table,
        "refine",
        method=plan.method,
        attackers=list(selection),
        seed=seed,
        **settings,
        kept=int(keep.sum()),
        removed={code: codes.count(code) for code in dict.fromkeys(codes)},
    )
    return replace(found, skipped=start.skipped)
