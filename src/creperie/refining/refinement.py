"""The largest honest subset: refine a benchmark until the attackers have no edge, and say what that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.auditing import Attacker, AttackerModels, LearnedAttacker, Pairs, item_gaps, pairs_of
from creperie.bench import TAG_PREFIX, Benchmark, items_of
from creperie.core import DataError, Progress, silent, unknown
from creperie.refining.crossfit import one_thread, sureness
from creperie.refining.embedding import EmbeddingAttacker, Remembering
from creperie.refining.pair import surplus_of_item
from creperie.refining.plan import RefinePlan, armed, encoder_of, fresh
from creperie.refining.repair import repair
from creperie.refining.select import REASON_OF, Choice, SelectionPool, choose, detail_of
from creperie.refining.standing import ALL, AttackerStanding, figures_of, judged


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

    @property
    def neutral(self) -> bool:
        """Something is left, and no attacker that the selection saw wins on it."""
        if not len(self.bench):
            return False
        own = [o.choice.neutral for o in self.outcomes if o.choice.neutral is not None]
        if self.plan.method == "syntaxbias":
            return all(own)
        return all(own) and not any(s.wins for s in self.standings if not s.held_out)


def refine(
    bench: Benchmark,
    plan: RefinePlan | None = None,
    models: AttackerModels | None = None,
    *,
    progress: Progress = silent,
) -> Refined:
    """Refine a benchmark: each subset on its own, as published, unless the plan says otherwise."""
    plan, models = plan or RefinePlan(), models or AttackerModels()
    selection, reported = plan.selection(models), plan.reported(models)
    encoder = encoder_of(models)
    attackers = armed((*selection, *reported), models, encoder)
    start = repair(bench) if plan.repair else bench
    pairs = pairs_of(start)
    if not len(pairs):
        raise DataError("no item has both a true and a false caption", where=bench.name)
    with one_thread():
        as_published = pairs_of(bench) if plan.repair else pairs
        before = figures_of(as_published, attackers, models.seed, progress)
        repaired = figures_of(pairs, attackers, models.seed, progress) if plan.repair else {}
        seen = [a for a in attackers if a.name in selection]
        gaps = np.stack([_gap(pairs, a, progress) for a in seen], axis=1)
        keep, outcomes, removed = _refine_parts(start, pairs, gaps, selection, plan, models.seed, progress)
        afterwards = _with_new_folds(attackers, models, encoder)
        after = figures_of(pairs.of_items(keep), afterwards, fresh(models).seed, progress) if keep.any() else {}
    standings = [
        AttackerStanding(
            a.name, a.name in reported, a.directed, before[a.name], after.get(a.name, {}), repaired.get(a.name, {})
        )
        for a in attackers
    ]
    result = _kept(start, keep, plan, selection, models.seed, removed)
    return Refined(result, bench, plan, models.seed, tuple(removed), tuple(outcomes), tuple(judged(standings)))


def _gap(pairs: Pairs, attacker: Attacker, progress: Progress) -> np.ndarray:
    """An attacker's gap for every item; no opinion is no gap."""
    margins = attacker.margins(pairs, progress)
    if isinstance(attacker, LearnedAttacker | EmbeddingAttacker):
        return sureness(pairs, margins)
    return np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))).astype(np.float64)


def _with_new_folds(
    attackers: Sequence[Attacker], models: AttackerModels, encoder: Remembering | None
) -> list[Attacker]:
    """The attackers to send afterwards: learned ones are made anew, the others keep what they know."""
    names = tuple(a.name for a in attackers if isinstance(a, LearnedAttacker | EmbeddingAttacker))
    anew = {a.name: a for a in armed(names, fresh(models), encoder)}
    return [anew.get(a.name, a) for a in attackers]


def _refine_parts(
    bench: Benchmark,
    pairs: Pairs,
    gaps: np.ndarray,
    names: Sequence[str],
    plan: RefinePlan,
    seed: int,
    progress: Progress,
) -> tuple[np.ndarray, list[SubsetOutcome], list[Removal]]:
    """Choose within every part; a mask over all items, the outcomes, and why items left, in their order."""
    ids, subsets = bench.column("id").to_pylist(), bench.column("subset").to_pylist()
    worth = _weights_from(bench, plan.balance)
    keep = ~pairs.unsolvable
    removed = [Removal(i, subsets[i], ids[i], "unsolvable", "") for i in np.flatnonzero(pairs.unsolvable).tolist()]
    masks = {ALL: np.ones(pairs.n_items, dtype=bool)} if plan.together else _by_subset(pairs)
    outcomes = []
    for name, mask in masks.items():
        rows = np.flatnonzero(mask & ~pairs.unsolvable)
        inside = np.zeros(pairs.n_items, dtype=bool)
        inside[rows] = True
        weights = None if worth is None else _rare_is_worth_more(worth[rows])
        surplus = tuple(surplus_of_item(i) for i in items_of(bench.table.take(rows))) if plan.method == "pair" else ()
        part = SelectionPool(name, pairs.of_items(inside), tuple(names), gaps[rows], weights, surplus)
        found = choose(part, plan, seed, progress)
        keep[rows] = found.keep
        reason = REASON_OF[plan.method]
        removed += [
            Removal(int(rows[k]), subsets[rows[k]], ids[rows[k]], reason, detail_of(part, k, plan))
            for k in np.flatnonzero(~found.keep).tolist()
        ]
        outcomes.append(SubsetOutcome(name, int(mask.sum()), int((mask & pairs.unsolvable).sum()), found))
    return keep, outcomes, sorted(removed, key=lambda r: r.row)


def _by_subset(pairs: Pairs) -> dict[str, np.ndarray]:
    return {name: pairs.subset == s for s, name in enumerate(pairs.subsets)}


def _weights_from(bench: Benchmark, balance: str) -> np.ndarray | None:
    """The category of every item, as a number."""
    if not balance:
        return None
    column = "subset" if balance == "subset" else TAG_PREFIX + balance.removeprefix(TAG_PREFIX)
    if column not in bench.columns:
        tags = [c.removeprefix(TAG_PREFIX) for c in bench.columns if c.startswith(TAG_PREFIX)]
        raise unknown("tag", balance, ["subset", *tags], where=bench.name)
    values = [str(v) for v in bench.column(column).to_pylist()]
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _rare_is_worth_more(category: np.ndarray) -> np.ndarray:
    """Whole weights, so that every category is worth about the same in all.

    >>> _rare_is_worth_more(np.array([0, 0, 0, 0, 1])).tolist()
    [1.0, 1.0, 1.0, 1.0, 4.0]
    """
    counts = np.bincount(category)
    return np.maximum(1.0, np.rint(counts.max(initial=0) / np.maximum(counts, 1)))[category]


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
        "bins": None if plan.method == "syntaxbias" else plan.fineness,
        "joint": plan.joint,
        "balance": plan.balance,
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
