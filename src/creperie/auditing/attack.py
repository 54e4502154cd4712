"""Run attackers on all pairs, slow ones on a sample, and measure them on every subset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing.attackers import Attacker, TextAttacker, learns
from creperie.auditing.battery import ENSEMBLE, AttackerModels, make_attackers
from creperie.auditing.cues import CueAttacker, blank, strongest_cue
from creperie.auditing.features import counted_once
from creperie.auditing.measure import AttackerMargins, Measure, answers_of, measure_attacker
from creperie.auditing.null import BOUND
from creperie.auditing.pairs import Pairs, image_pairs_of, item_gaps, pairs_of
from creperie.auditing.registry import entry_of
from creperie.auditing.result import answers_on
from creperie.auditing.sampling import Sample, sample_for, spread_over
from creperie.auditing.verdict import ALL, FIXES, AuditRow, balanced_share, by_strength, corrected, fix_of
from creperie.bench import Benchmark
from creperie.core import Progress, percent
from creperie.engine import Engine, Held, Work, gather
from creperie.lang import tidy_together

#: Captions per task of a worker: slow attackers, such as language models, take a minute for them.
PIECE = 1024
#: The view (`AuditRow.view`) of an attacker that sees only images.
IMAGES = "images"

Answers = dict[str, AttackerMargins]


@dataclass(frozen=True)
class AttackStage:
    """An engine stage that takes captions and returns one column of scores per attacker. Models are loaded once per
    worker.
    """

    names: tuple[str, ...]
    models: AttackerModels

    def open(self) -> Work:
        attackers = [a for a in make_attackers(self.names, self.models) if isinstance(a, TextAttacker)]

        def work(batch: pa.Table) -> pa.Table:
            texts = batch.column("text").to_pylist()
            return pa.table({a.name: pa.array(a.scores(texts), pa.float32()) for a in attackers})

        return work


def score_ahead(attackers: Sequence[Attacker], models: AttackerModels, texts: Sequence[str], engine: Engine) -> None:
    """Score all captions on the engine's workers and store the scores in the attackers, which then need not compute
    them.
    """
    single = [a for a in attackers if isinstance(a, TextAttacker) and a.remembers]  # others take microseconds
    distinct = sorted(set(texts)) if single else []
    if not distinct:
        return
    stage = AttackStage(tuple(a.name for a in single), replace(models))  # a copy, without the models already loaded
    scores = gather(stage, Held(pa.table({"text": distinct}), PIECE), engine=engine)
    for attacker in single:
        attacker.tell(dict(zip(distinct, scores.column(attacker.name).to_pylist(), strict=True)))


@dataclass(frozen=True)
class Attack:
    """The attackers of an audit, and the settings by which they are judged."""

    attackers: tuple[Attacker, ...]
    seed: int
    threshold: float
    progress: Progress
    sample: Sample | None = None  #: the items that slow attackers are run on; None: all

    def counted(self, pairs: Pairs) -> Pairs:
        """Return the pairs, with their features computed once if several attackers learn from them."""
        return counted_once(pairs) if sum(map(learns, self.attackers)) > 1 else pairs

    def on(self, pairs: Pairs, view: str = "") -> tuple[list[AuditRow], Answers]:
        """Run every attacker, slow ones on the sample; return its rows for every subset and for "all", and the margins
        by attacker.
        """
        rows, answers = [], {}
        for attacker in self.attackers:
            drawn = self.sample if is_slow(attacker) else None
            asked = drawn.part(pairs, attacker.name) if drawn else pairs
            tries = isinstance(attacker, CueAttacker)
            scaled = blank(asked) if tries else answers_of(attacker, asked, self.seed, self.progress)
            measured, scaled = self._measured(attacker, scaled, view, drawn)
            answers[attacker.name] = spread_over(pairs, drawn.keep(attacker.name), scaled) if drawn else scaled
            rows += measured
        return rows, answers

    def in_steps(
        self, pairs: Pairs, announce: Callable[[str], object] | None
    ) -> tuple[Attack, list[AuditRow], Answers]:
        """Run the quick attackers, then the slow ones; return this attack with the sample that was used, the rows, and
        the margins by attacker.

        With `announce`, that function is called with a summary of the quick results, and slow attackers are run on a
        sample as large as the verdict needs; without it, on all items.
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
            sample = sample_for(pairs, slow, decided, tests, self.threshold, self.seed, self.progress)
        more, slowly = replace(self, attackers=slow, sample=sample).on(pairs)
        names, subsets = [a.name for a in self.attackers], [*pairs.subsets, ALL]
        ordered = sorted([*rows, *more], key=lambda r: (names.index(r.attacker), subsets.index(r.subset)))
        return replace(self, sample=sample), ordered, answers | slowly

    def on_views(self, bench: Benchmark, pairs: Pairs) -> list[AuditRow]:
        """Return the rows for each true caption alone against the false ones (P1-N, P2-N …), if items have several."""
        rows: list[AuditRow] = []
        for k in range(_most_positives(pairs)):
            rows += self.on(self.counted(pairs_of(bench, positive=k)), f"P{k + 1}-N")[0]
        return rows

    def with_fixes(self, rows: Sequence[AuditRow], bench: Benchmark) -> list[AuditRow]:
        """Return the rows, those that leak with their fix. Attackers that leak attack the repaired captions again.

        Slow attackers do so only in subsets where repair stops all quick ones; elsewhere they get the worst fix of the
        quick ones. The ensemble is not trained again: its leak is repairable if all other leaks of the subset are.
        """
        leaking = [row for row in rows if row.leaks and row.view != IMAGES]
        styled = repaired(bench) if leaking else bench
        slow = {a.name for a in self.attackers if is_slow(a)}
        fixed = self._rerun([row for row in leaking if row.attacker not in slow], styled)
        stay = _worst_fixes(fixed.values())
        single = [row for row in leaking if row.attacker in slow - {ENSEMBLE}]
        fixed |= self._rerun([row for row in single if _place(row) not in stay], styled)
        fixed |= {_key(row): replace(row, fix=stay[_place(row)]) for row in single if _place(row) in stay}
        stopped = {_place(row) for row in fixed.values()} - _worst_fixes(fixed.values()).keys()
        rest = {
            _key(row): replace(row, fix="repairable") if _place(row) in stopped else fix_of(row, None, self.threshold)
            for row in rows
            if row.leaks and _key(row) not in fixed
        }
        return [(fixed | rest).get(_key(row), row) for row in rows]

    def _rerun(self, rows: Sequence[AuditRow], styled: Benchmark) -> dict[_Key, AuditRow]:
        """Run the attackers of leaking rows on the repaired captions; return each row with its fix."""
        after: dict[_Key, Measure] = {}
        for view in sorted({row.view for row in rows}):
            names = {row.attacker for row in rows if row.view == view}
            again = replace(self, attackers=tuple(a for a in self.attackers if a.name in names))
            pairs = pairs_of(styled, positive=int(view[1:].split("-")[0]) - 1 if view else None)
            after |= {_key(row): row.measure for row in again.on(again.counted(pairs), view)[0]}
        return {_key(row): fix_of(row, after.get(_key(row)), self.threshold) for row in rows}

    def on_images(self, bench: Benchmark, attacker: Attacker) -> list[AuditRow]:
        """Return the rows of an attacker that sees only images and chooses which of an item's images a caption
        describes.
        """
        pairs = image_pairs_of(bench)
        margins = attacker.margins(pairs, self.progress)
        log_odds = np.nan_to_num(margins.astype(np.float64))
        answers = AttackerMargins(pairs, margins, log_odds, attacker.directed, np.full(pairs.n_items, BOUND))
        return self._measured(attacker, answers, IMAGES, None)[0]

    def _measured(
        self, attacker: Attacker, answers: AttackerMargins, view: str, sample: Sample | None
    ) -> tuple[list[AuditRow], AttackerMargins]:
        """Return an attacker's rows, one per subset, and its answers: those of its strongest cue if it tries several.

        A subset in which all its margins are NaN gets no row.
        """
        rows, raw = [], answers.raw.copy()
        names = dict.fromkeys((*answers.pairs.subsets, ALL))
        for subset in names if len(names) > 2 else answers.pairs.subsets:
            best = strongest_cue(attacker, answers_on(answers, subset), self.threshold, self.seed, self.progress)
            of_subset = best.answers
            figures = measure_attacker(of_subset, sample.looks[subset] if sample else 1)
            figures = replace(figures, p=min(1.0, figures.p * best.tried), high=max(figures.high, best.high))
            if subset != ALL:
                raw[(answers.pairs.subset == answers.pairs.subsets.index(subset))[answers.pairs.item]] = of_subset.raw
            if figures.n and figures.nans < figures.pairs:
                choice = attacker.prefers if figures.direction > 0 else attacker.otherwise
                if best.cue:
                    choice = f"the caption {'with' if figures.direction > 0 else 'without'} {best.cue}"
                kept = balanced_share(item_gaps(of_subset.pairs, of_subset.margins)[of_subset.pairs.per_item > 0])
                rows.append(
                    AuditRow(subset, view, attacker.name, choice, figures, kept=kept, cue=best.cue, told=best.told)
                )
        if len(names) == 2:
            rows += [replace(row, subset=ALL) for row in rows]
        return rows, replace(answers, raw=raw)


_Key = tuple[str, str, str]


def _place(row: AuditRow) -> tuple[str, str]:
    return row.view, row.subset


def _key(row: AuditRow) -> _Key:
    return row.view, row.subset, row.attacker


def _worst_fixes(rows: Iterable[AuditRow]) -> dict[tuple[str, str], str]:
    """Return, by view and subset, the worst fix among the leaks that repair does not stop."""
    staying = sorted((row for row in rows if row.fix != "repairable"), key=lambda row: -FIXES.index(row.fix))
    return {_place(row): row.fix for row in staying}


def is_slow(attacker: Attacker) -> bool:
    """Return True if an attacker may be run on a sample of the items only."""
    return entry_of(attacker.name).sampled > 0


def _so_far(rows: Sequence[AuditRow]) -> str:
    """Return a short summary of the results before slow attackers are run."""
    best = next(iter(by_strength(rows)), None)
    leaking = len({row.subset for row in rows if row.leaks and row.subset != ALL})
    if best is None:
        return "none was run"
    where = f"{leaking} subsets leak" if leaking > 1 else "it leaks" if leaking else "no leak so far"
    return f"{where}; the strongest is {best.attacker} on {best.subset}, {percent(best.measure.accuracy)} %"


def _most_positives(pairs: Pairs) -> int:
    """Return the largest number of true captions per item; 0 if no item has several. Items with several images do not
    count.
    """
    one_row = ~np.isin(pairs.item, pairs.item[pairs.row > 0])
    keys = np.unique(np.stack([pairs.item[one_row], pairs.left[one_row]], axis=1), axis=0)
    most = int(np.bincount(keys[:, 0]).max()) if len(keys) else 0
    return most if most > 1 else 0


def repaired(bench: Benchmark) -> Benchmark:
    """Return the benchmark with the captions of every item in one style (case, spaces, marks). Words and items stay."""
    offsets, captions = bench.ragged("captions")
    tidied: list[str] = []
    for captions_of_item in (row for piece in bench.pieces(["captions"], PIECE) for row in piece.column(0).to_pylist()):
        tidied += tidy_together(captions_of_item)
    texts = pa.array(tidied, pa.string())
    changed = len(texts) - (pc.sum(pc.equal(texts, captions)).as_py() or 0)
    columns = {name: bench.column(name) for name in bench.columns}
    columns["captions"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts)
    table = pa.table(columns, schema=bench.schema)
    # The captions differ from the published ones, so the published files cannot be written from them.
    return bench.with_table(table, "repair", captions_changed=changed)
