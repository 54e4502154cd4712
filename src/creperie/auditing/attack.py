"""Attackers at work: they answer the pairs, slow ones those of a sample, and are measured on every subset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing.attackers import Attacker, TextAttacker, learns
from creperie.auditing.battery import ENSEMBLE, AttackerModels, make_attackers
from creperie.auditing.features import counted_once
from creperie.auditing.measure import AttackerMargins, Measure, calibrated, measure_attacker
from creperie.auditing.null import BOUND
from creperie.auditing.pairs import Pairs, image_pairs_of, pairs_of
from creperie.auditing.registry import entry_of
from creperie.auditing.result import answers_on
from creperie.auditing.sampling import Sample, sample_for, spread_over
from creperie.auditing.verdict import ALL, AuditRow, corrected, fix_of, share_kept
from creperie.bench import Benchmark
from creperie.core import Progress, percent
from creperie.engine import Engine, Held, Work, gather
from creperie.lang import tidy_together

#: Captions of a piece: slow attackers, such as language models, take a minute for so many.
PIECE = 1024
#: The view of rows that images alone give.
IMAGES = "images"

Answers = dict[str, AttackerMargins]


@dataclass(frozen=True)
class AttackStage:
    """Captions in, a column of scores for every attacker out. Models are loaded once per worker."""

    names: tuple[str, ...]
    models: AttackerModels
    name: str = "attack"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"attackers": self.names, **asdict(self.models)}

    def open(self) -> Work:
        attackers = [a for a in make_attackers(self.names, self.models) if isinstance(a, TextAttacker)]

        def work(batch: pa.Table) -> pa.Table:
            texts = batch.column("text").to_pylist()
            return pa.table({a.name: pa.array(a.scores(texts), pa.float32()) for a in attackers})

        return work

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self.open()(batch)


def score_ahead(attackers: Sequence[Attacker], models: AttackerModels, texts: Sequence[str], engine: Engine) -> None:
    """Let the engine's workers score all captions, and tell the attackers, which then have nothing left to do."""
    single = [a for a in attackers if isinstance(a, TextAttacker)]
    distinct = sorted(set(texts))
    if not single or not distinct:
        return
    stage = AttackStage(tuple(a.name for a in single), replace(models))  # a copy, without the models already loaded
    scores = gather(stage, Held(pa.table({"text": distinct}), PIECE), engine=engine)
    for attacker in single:
        attacker.tell(dict(zip(distinct, scores.column(attacker.name).to_pylist(), strict=True)))


@dataclass(frozen=True)
class Attack:
    """The attackers of an audit, and how they are judged."""

    attackers: tuple[Attacker, ...]
    seed: int
    threshold: float
    progress: Progress
    sample: Sample | None = None  #: the items that slow attackers are asked about; None: all

    def counted(self, pairs: Pairs) -> Pairs:
        """The pairs with their features counted once, where several attackers learn from them."""
        return counted_once(pairs) if sum(map(learns, self.attackers)) > 1 else pairs

    def on(self, pairs: Pairs, view: str = "") -> tuple[list[AuditRow], Answers]:
        """Ask every attacker once, slow ones about the sample; measure it on every subset and on all."""
        rows, answers = [], {}
        some = self.sample.of(pairs) if self.sample else pairs
        for attacker in self.attackers:
            drawn = self.sample if is_slow(attacker) else None
            asked = some if drawn else pairs
            margins = attacker.margins(asked, self.progress)
            own = calibrated(asked, margins, directed=attacker.directed, seed=self.seed, learned=learns(attacker))
            answers[attacker.name] = spread_over(pairs, drawn, own) if drawn else own
            rows += _measured(attacker, own, view, drawn)
        return rows, answers

    def in_steps(
        self, pairs: Pairs, announce: Callable[[str], object] | None
    ) -> tuple[Attack, list[AuditRow], Answers]:
        """Ask the quick attackers, then the slow ones; return this attack with the sample that these were asked about.

        With `announce`, that is told what the quick ones found, and the sample is as large as the verdict needs.
        """
        quick = replace(self, attackers=tuple(a for a in self.attackers if not is_slow(a)))
        rows, answers = quick.on(pairs)
        slow = tuple(a for a in self.attackers if is_slow(a))
        sample = None
        if announce and any(a.name != ENSEMBLE for a in slow):
            early = corrected(rows, self.threshold)
            announce(f"attackers that answer in seconds: {_so_far(early)}")
            decided = {row.subset for row in early if row.leaks}
            tests = len(self.attackers) * (len(pairs.subsets) + (len(pairs.subsets) > 1))
            single = [a for a in slow if a.name != ENSEMBLE]
            sample = sample_for(pairs, single, decided, tests, self.threshold, self.seed, self.progress)
        more, slowly = replace(self, attackers=slow, sample=sample).on(pairs)
        names, subsets = [a.name for a in self.attackers], [*pairs.subsets, ALL]
        ordered = sorted([*rows, *more], key=lambda r: (names.index(r.attacker), subsets.index(r.subset)))
        return replace(self, sample=sample), ordered, answers | slowly

    def on_views(self, bench: Benchmark, pairs: Pairs) -> list[AuditRow]:
        """Each true caption on its own against the false ones, where items have several: P1-N, P2-N …"""
        rows: list[AuditRow] = []
        for k in range(_most_positives(pairs)):
            rows += self.on(self.counted(pairs_of(bench, positive=k)), f"P{k + 1}-N")[0]
        return rows

    def with_fixes(self, rows: Sequence[AuditRow], bench: Benchmark) -> list[AuditRow]:
        """Attack the repaired captions with whatever leaked, to see which leaks repair would stop.

        The ensemble is not trained again: repair stops it where it stops all other leaks.
        """
        leaking = {(r.view, r.attacker) for r in rows if r.leaks and r.attacker != ENSEMBLE and r.view != IMAGES}
        after: dict[tuple[str, str, str], Measure] = {}
        styled = repaired(bench) if leaking else bench
        for view in sorted({view for view, _ in leaking}):
            again = replace(self, attackers=tuple(a for a in self.attackers if (view, a.name) in leaking))
            pairs = pairs_of(styled, positive=int(view[1:].split("-")[0]) - 1 if view else None)
            after |= {(view, r.attacker, r.subset): r.measure for r in again.on(again.counted(pairs), view)[0]}
        fixed = [
            fix_of(row, after.get((row.view, row.attacker, row.subset)), self.threshold) if row.leaks else row
            for row in rows
        ]
        single = [row for row in fixed if row.attacker != ENSEMBLE]
        stay = {(row.view, row.subset) for row in single if row.fix not in ("", "repairable")}
        stopped = {(row.view, row.subset) for row in fixed if row.fix == "repairable"} - stay
        ended = [row.attacker == ENSEMBLE and row.leaks and (row.view, row.subset) in stopped for row in fixed]
        return [replace(row, fix="repairable") if stops else row for row, stops in zip(fixed, ended)]

    def on_images(self, bench: Benchmark, attacker: Attacker) -> list[AuditRow]:
        """What an attacker that sees the images alone reaches: which of an item's images does a caption mean?"""
        pairs = image_pairs_of(bench)
        margins = attacker.margins(pairs, self.progress)
        log_odds = np.nan_to_num(margins.astype(np.float64))
        answers = AttackerMargins(pairs, margins, log_odds, attacker.directed, np.full(pairs.n_items, BOUND))
        return _measured(attacker, answers, IMAGES, None)


def is_slow(attacker: Attacker) -> bool:
    """Whether an attacker may be asked about a sample only."""
    return entry_of(attacker.name).sampled or attacker.name == ENSEMBLE


def _measured(attacker: Attacker, answers: AttackerMargins, view: str, sample: Sample | None) -> list[AuditRow]:
    """An attacker's rows; one that learned nothing about a subset abstains there: it was not run."""
    rows = []
    for subset in dict.fromkeys((*answers.pairs.subsets, ALL)):
        mine = answers_on(answers, subset)
        figures = measure_attacker(mine, sample.looks[subset] if sample else 1)
        if figures.n and figures.nans < figures.pairs:
            choice = attacker.prefers if figures.direction > 0 else attacker.otherwise
            rows.append(AuditRow(subset, view, attacker.name, choice, figures, kept=share_kept(mine)))
    return rows


def _so_far(rows: Sequence[AuditRow]) -> str:
    """What is known before slow attackers are asked, in a few words."""
    best = max(rows, key=lambda r: r.measure.accuracy, default=None)
    leaking = len({row.subset for row in rows if row.leaks and row.subset != ALL})
    if best is None:
        return "none was sent"
    where = f"{leaking} subsets leak" if leaking > 1 else "it leaks" if leaking else "no leak so far"
    return f"{where}; the strongest is {best.attacker} on {best.subset}, {percent(best.measure.accuracy)} %"


def _most_positives(pairs: Pairs) -> int:
    """How many true captions items with several have; 0 where none has several, or where there are several images."""
    one_row = ~np.isin(pairs.item, pairs.item[pairs.row > 0])
    keys = np.unique(np.stack([pairs.item[one_row], pairs.left[one_row]], axis=1), axis=0)
    most = int(np.bincount(keys[:, 0]).max()) if len(keys) else 0
    return most if most > 1 else 0


def repaired(bench: Benchmark) -> Benchmark:
    """The benchmark with the captions of every item in one style. Words stay; no item leaves."""
    offsets, captions = bench.ragged("captions")
    tidied: list[str] = []
    for own in (row for piece in bench.pieces(["captions"], PIECE) for row in piece.column(0).to_pylist()):
        tidied += tidy_together(own)
    texts = pa.array(tidied, pa.string())
    changed = len(texts) - (pc.sum(pc.equal(texts, captions)).as_py() or 0)
    columns = {name: bench.column(name) for name in bench.columns}
    columns["captions"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts)
    table = pa.table(columns, schema=bench.schema)
    # The published files cannot be written back from captions that are no longer theirs.
    return bench.with_table(table, "repair", captions_changed=changed)
