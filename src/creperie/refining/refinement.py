"""Refining a benchmark until the attackers have no advantage. Every item that is removed for this is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa

from creperie.auditing import (
    CUES,
    Attacker,
    AttackerModels,
    Audit,
    AuditOptions,
    Judgement,
    Measure,
    Pairs,
    TextAttacker,
    attacked_part,
    changed_options,
    grouped_folds,
    item_features,
    learns,
    make_attackers,
    next_command,
    one_thread,
    pairs_of,
    repaired,
    unjudged,
)
from creperie.auditing import audit as run_audit
from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark, items_of
from creperie.core import DataError, Framed, Progress, automatic, html_table, late, percent, silent, with_options
from creperie.engine import Engine
from creperie.refining.plan import FRESH, RefinePlan
from creperie.refining.select import Choice, RefinementMethod, SelectionPool
from creperie.refining.standing import (
    ALL,
    AttackerStanding,
    attacker_gaps,
    figures_for_json,
    figures_from_audit,
    figures_of,
)


@dataclass(frozen=True)
class Removal:
    """An item that was removed, and the reason why."""

    row: int  #: index in the original benchmark
    reason: str  #: a key of `REASONS`
    detail: str


@dataclass(frozen=True, eq=False)
class RemovedRows(Sequence[Removal]):
    """The items removed from a large benchmark, as a sequence. Each `Removal` is created when it is accessed."""

    rows: np.ndarray
    unsolvable: np.ndarray  #: a mask over all items
    method: RefinementMethod
    pool: SelectionPool  #: all items, in order

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Removal: ...
    @overload
    def __getitem__(self, at: slice) -> list[Removal]: ...
    def __getitem__(self, at: int | slice) -> Removal | list[Removal]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        row = int(self.rows[at])
        if self.unsolvable[row]:
            return Removal(row, "unsolvable", "")
        return Removal(row, self.method.reason, self.method.detail(self.pool, row))


def reasons_of(removed: Sequence[Removal]) -> dict[str, int]:
    """Return the number of removed items by reason."""
    if not isinstance(removed, RemovedRows):
        return dict(Counter(r.reason for r in removed))
    lost = int(removed.unsolvable[removed.rows].sum())
    return {name: n for name, n in (("unsolvable", lost), (removed.method.reason, len(removed) - lost)) if n}


@dataclass(frozen=True)
class SubsetOutcome:
    """The result of a refinement on one subset. If the items of all subsets are chosen together, it is the result on
    all items.
    """

    name: str
    items: int
    unsolvable: int
    choice: Choice

    @property
    def kept(self) -> int:
        return int(self.choice.keep.sum())

    def joined(self, other: SubsetOutcome) -> SubsetOutcome:
        """Return the outcome on a whole subset, given the outcomes on its two halves."""
        counts = self.items + other.items, self.unsolvable + other.unsolvable
        return SubsetOutcome(self.name, *counts, self.choice.joined(other.choice))


@dataclass(frozen=True)
class Refined(Framed):
    """A refined benchmark, the items that were removed, and the attackers' results before and after."""

    bench: Benchmark
    original: Benchmark
    plan: RefinePlan
    seed: int
    removed: Sequence[Removal]
    outcomes: tuple[SubsetOutcome, ...]
    standings: tuple[AttackerStanding, ...]
    audit: Audit | None = None  #: the audit of the kept items, also by attackers not used in the selection
    audit_options: Mapping[str, Any] = field(default_factory=dict)  #: the non-default options of that audit
    folder: str = ""  #: where it was written
    spec: str = ""  #: how the original is named in commands
    part: str = ""  #: the options that select the part that was refined, as they are typed

    @property
    def judgement(self) -> Judgement:
        """The verdict of the final audit on the kept items."""
        if self.audit is not None:
            return self.audit.whole
        return unjudged("not run" if len(self.bench) else "nothing left", len(self.bench))

    @property
    def next(self) -> str:
        """The command to type next."""
        original = self.spec or self.original.name
        spec, part = (self.folder, "") if self.folder else (self.spec or self.bench.name, self.part)
        return next_command(self.judgement, spec, part, original=original, before=len(self.original))

    def save(self, folder: str | Path, *, force: bool = False) -> Benchmark:
        """Write the refined benchmark, the removed items and the report to a folder. Return the benchmark as loaded
        from there.
        """
        return late("creperie.refining", "write_refined")(self, folder, force=force)

    def __repr__(self) -> str:
        size = f"{len(self.bench):,} of {len(self.original):,} items"
        return f"Refined({self.original.name!r} by {self.plan.method}: {size}; {self.judgement.text})"

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

    def frame(self) -> pa.Table:
        """Return an Arrow table of the attackers' results, with one row per attacker, subset and stage (before or
        after).
        """
        stages = ("before", "repaired", "after")
        rows = [
            {"attacker": s.name, "held_out": s.held_out, "subset": name, "stage": stage, **figures_for_json(figure)}
            for s in self.standings
            for stage in stages
            for name, figure in getattr(s, stage).items()
        ]
        return pa.Table.from_pylist(rows)


@with_options(plan=RefinePlan, models=AttackerModels)
def refine(
    bench: BenchmarkSpec,
    *,
    plan: RefinePlan,
    models: AttackerModels,
    engine: Engine | None = None,
    progress: Progress | None = automatic,
) -> Refined:
    """Refine a benchmark and audit the result. `bench` is a benchmark, a spec or a path. As in the papers, subsets are
    refined separately, unless the option `together` is set.

    A benchmark of more than `SAMPLE` items is scored piece by piece, on `engine` if one is given. The attackers'
    results are then measured on a random sample. This requires a method that uses only the attackers' gaps, and
    attackers that score captions one by one.
    """
    bench, progress = as_benchmark(bench), progress or silent
    selection = plan.selection(models)
    sent = make_attackers((*selection, *plan.watched(models)), models)
    seen = [a for a in sent if a.name in selection]
    start = repaired(bench) if plan.repair else bench
    streams = plan.by_gaps and all(isinstance(a, TextAttacker) for a in seen)
    part = attacked_part(start, models.seed, full=not streams)
    in_pieces, pairs = part is not start, pairs_of(part)
    if not len(pairs):
        raise DataError(
            "no item has both a true and a false caption", where=bench.name, hint="refine a benchmark with foils"
        )
    halves = grouped_folds(pairs.group, 2, models.seed + 1)
    threads = one_thread if any(learns(a) for a in sent) else nullcontext  # only these load numerical libraries
    with threads():
        before = figures_of(pairs_of(bench) if plan.repair else pairs, sent, models.seed, progress)
        restyled = figures_of(pairs, sent, models.seed, progress) if plan.repair else {}
        choosing = _Chooser(start, pairs, plan, models.seed, progress)
        chosen = choosing.in_pieces(seen, models, engine) if in_pieces else choosing.by_halves(seen, halves)
    result = _benchmark_of(start, chosen.keep, plan, selection, models.seed, chosen.removed)
    audited, after = None, dict[str, dict[str, Measure]]()
    judges = plan.audit_models(models)
    final = AuditOptions(plan.audited_by(judges) if plan.audit else ())
    if chosen.keep.any() and plan.audit:
        audited = run_audit(result, options=final, models=judges, engine=engine, progress=progress)
        after = {
            name: figures for name, figures in figures_from_audit(audited).items() if name in before or name != CUES
        }
    elif chosen.keep.any():
        if in_pieces:
            pairs = pairs_of(attacked_part(result, models.seed))
            stays = replace(pairs, fold=grouped_folds(pairs.group, 2, models.seed + 1))
        else:
            stays = replace(pairs.of_items(chosen.keep), fold=halves[chosen.keep])
        with threads():
            after = figures_of(stays, sent, models.seed + FRESH, progress)
    leaking = [(row.attacker, row.subset) for row in audited.rows if row.leaks] if audited else []
    standings = [
        AttackerStanding(
            name,
            name not in selection,
            before.get(name, {}),
            after.get(name, {}),
            restyled.get(name, {}),
            tuple(subset for attacker, subset in leaking if attacker == name),
        )
        for name in dict.fromkeys((*before, *after))
    ]
    parts = chosen.removed, chosen.outcomes, tuple(standings)
    return Refined(result, bench, plan, models.seed, *parts, audited, changed_options(final, judges))


@dataclass(frozen=True)
class _Chosen:
    keep: np.ndarray
    outcomes: tuple[SubsetOutcome, ...]
    removed: Sequence[Removal]


@dataclass(frozen=True)
class _Chooser:
    """Chooses the items of a benchmark to keep, according to a plan."""

    bench: Benchmark
    pairs: Pairs
    plan: RefinePlan
    seed: int
    progress: Progress

    def by_halves(self, seen: Sequence[Attacker], halves: np.ndarray) -> _Chosen:
        """Return the chosen items. If any of the attackers (`seen`) learns from items, the items to keep are chosen in
        each of the two `halves` separately, with the answers of attackers that learned from that half only. Otherwise
        all items are chosen together.
        """
        how, everything = self.plan.how, np.ones(self.pairs.n_items, bool)
        gaps = np.zeros((self.pairs.n_items, len(seen)))
        if how.asks or how.surplus is not None:
            return self._choose(everything, gaps, seen)
        learned = halves.any() and any(a.directed for a in seen)
        chosen = []
        for half in [halves == h for h in range(2)] if learned else [everything]:
            pairs = self.pairs.of_items(half)
            gaps[half] = np.stack([attacker_gaps(pairs, a, self.progress) for a in seen], axis=1)
            chosen.append(self._choose(half, gaps, seen))
        return chosen[0] if len(chosen) == 1 else _combined(chosen[0], chosen[1])

    def in_pieces(self, seen: Sequence[Attacker], models: AttackerModels, engine: Engine | None) -> _Chosen:
        """Choose the items of a benchmark that is too large for memory. Only three things are loaded for each item: its
        subset, its gap under each attacker (see `item_gaps`), and whether it is unsolvable. An item is unsolvable if
        one caption is both true and false.
        """
        method, names = self.plan.how, tuple(a.name for a in seen)
        with item_features(self.bench, seen, models, engine, self.progress) as features:
            gaps = np.stack([features.column(f"gap {name}") for name in names], axis=1)
            unsolvable, (subset, subsets) = features.column("unsolvable"), features.subsets()
        keep, outcomes = np.zeros(len(gaps), bool), []
        for code, name in [(-1, ALL)] if self.plan.together else list(enumerate(subsets)):
            mask = np.ones(len(gaps), bool) if code < 0 else subset == code
            rows = np.flatnonzero(mask & ~unsolvable)
            pool = SelectionPool(name, self.pairs, names, gaps[rows].astype(np.float64))
            choice = method.choose(pool, self.plan.settings(self.seed), self.progress)
            keep[rows] = choice.keep
            outcomes.append(SubsetOutcome(name, int(mask.sum()), int((mask & unsolvable).sum()), choice))
        everything = SelectionPool(ALL, self.pairs, names, gaps)
        return _Chosen(keep, tuple(outcomes), RemovedRows(np.flatnonzero(~keep), unsolvable, method, everything))

    def _choose(self, among: np.ndarray, gaps: np.ndarray, seen: Sequence[Attacker]) -> _Chosen:
        """Choose among the items in the mask `among`, subset by subset. Return a mask over all items, the outcomes and
        the removals.
        """
        bench, pairs, method = self.bench, self.pairs, self.plan.how
        keep = np.zeros(pairs.n_items, bool)
        removed = [Removal(row, "unsolvable", "") for row in np.flatnonzero(pairs.unsolvable & among).tolist()]
        by_subset = {name: pairs.subset == s for s, name in enumerate(pairs.subsets)}
        masks = {ALL: np.ones(pairs.n_items, bool)} if self.plan.together else by_subset
        outcomes, names = [], tuple(a.name for a in seen)
        for name, mask in masks.items():
            inside = mask & among & ~pairs.unsolvable
            rows = np.flatnonzero(inside)
            surplus = tuple(map(method.surplus, items_of(bench.table.take(rows)))) if method.surplus else ()
            pool = SelectionPool(name, pairs.of_items(inside), names, gaps[rows], surplus, tuple(seen))
            choice = method.choose(pool, self.plan.settings(self.seed), self.progress)
            keep[rows] = choice.keep
            removed += [
                Removal(int(rows[k]), method.reason, method.detail(pool, k))
                for k in np.flatnonzero(~choice.keep).tolist()
            ]
            counts = int((mask & among).sum()), int((mask & among & pairs.unsolvable).sum())
            outcomes.append(SubsetOutcome(name, *counts, choice))
        return _Chosen(keep, tuple(outcomes), tuple(sorted(removed, key=lambda r: r.row)))


def _combined(first: _Chosen, second: _Chosen) -> _Chosen:
    """Return the combined choices of two halves."""
    outcomes = [a.joined(b) for a, b in zip(first.outcomes, second.outcomes, strict=True)]
    removed = sorted((*first.removed, *second.removed), key=lambda r: r.row)
    return _Chosen(first.keep | second.keep, tuple(outcomes), tuple(removed))


def _benchmark_of(
    start: Benchmark,
    keep: np.ndarray,
    plan: RefinePlan,
    selection: Sequence[str],
    seed: int,
    removed: Sequence[Removal],
) -> Benchmark:
    """Return a benchmark of the kept items, in their order. A provenance step records the refinement."""
    refined = start.keeping(
        keep,
        "refine",
        method=plan.method,
        attackers=list(selection),
        seed=seed,
        bins=plan.fineness or None,
        together=plan.together,
        threshold=plan.threshold,
        p_value=plan.p_value,
        time_limit=plan.time_limit,
        kept=int(keep.sum()),
        removed=reasons_of(removed),
    )
    return replace(refined, skipped=start.skipped)
