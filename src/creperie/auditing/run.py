"""The audit of a benchmark: run the attackers, measure them, judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing import cues
from creperie.auditing.attackers import Attacker, TextAttacker, learns
from creperie.auditing.battery import ENSEMBLE, AttackerModels, extras_for, make_attackers, sendable
from creperie.auditing.cues import Cue, telling_cues
from creperie.auditing.features import counted_once
from creperie.auditing.likeness import Likeness, TreeParser, likeness_of
from creperie.auditing.measure import (
    AttackerMargins,
    GapShape,
    Measure,
    calibrated,
    gap_shape,
    measure_attacker,
    smallest_seen,
    worth,
)
from creperie.auditing.pairs import ArrowTexts, Pairs, item_gaps, pairs_of
from creperie.auditing.registry import entry_of, several_learned
from creperie.auditing.sampling import Sample, sample_for, spread_over
from creperie.auditing.symmetry import Symmetry, symmetry_of
from creperie.auditing.verdict import ALL, AuditRow, Judgement, corrected, fix_of, judge, judge_all, share_kept
from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark
from creperie.core import DataError, Progress, UsageError, automatic, counted, html_table, percent, silent
from creperie.engine import Engine, Held, Work, gather
from creperie.lang import tidy_together

#: Captions of a piece: slow attackers, such as language models, take a minute for so many.
PIECE = 1024


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
    found = gather(stage, Held(pa.table({"text": distinct}), PIECE), engine=engine)
    for attacker in single:
        attacker.tell(dict(zip(distinct, found.column(attacker.name).to_pylist(), strict=True)))


THRESHOLD = 0.55
#: Pairs from which on every attacker that learns has enough to learn from.
ENOUGH = 60


@dataclass(frozen=True)
class ExamplePair:
    """A pair of captions that an attacker tells apart."""

    id: str
    positive: str
    negative: str
    margin: float


@dataclass(frozen=True)
class Audit:
    """Everything that an audit found."""

    name: str
    hash: str
    items: int
    attackable: int  #: items with a true and a false caption
    seed: int
    threshold: float
    attackers: tuple[Attacker, ...]
    not_sent: dict[str, str]  #: attackers that could not be run, or had too few pairs to learn from, with the reason
    rows: tuple[AuditRow, ...]  #: every attacker on every subset, and on all
    views: tuple[AuditRow, ...]  #: the same against one true caption of several at a time
    judgements: tuple[Judgement, ...]
    whole: Judgement
    cues: dict[str, list[tuple[Cue, ExamplePair]]]
    examples: dict[str, list[ExamplePair]]
    shapes: dict[str, dict[str, GapShape]]
    likeness: tuple[Likeness, ...] = ()
    symmetry: tuple[Symmetry, ...] = ()  #: of every subset, and of all items last

    @property
    def verdict(self) -> str:
        return self.whole.verdict

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        return self.whole.text

    @property
    def next(self) -> str:
        """The command to type next."""
        return self.whole.next

    @property
    def code(self) -> int:
        """The exit code of the verdict."""
        return self.whole.code

    def __repr__(self) -> str:
        size = f"{counted(self.items, 'item')}, {counted(len(self.attackers), 'attacker')}"
        return f"Audit({self.name!r}, {size}: {self.whole.text})"

    def _repr_html_(self) -> str:
        rows = [
            (r.subset, r.attacker, r.measure.n, *map(percent, (r.measure.accuracy, r.measure.low, r.measure.high)))
            for r in self.rows
        ]
        return html_table(repr(self), ("subset", "attacker", "n", "right, %", "low", "high"), rows)

    def to_pandas(self) -> Any:
        """One row per subset, view and attacker, as a pandas data frame."""
        rows = [asdict(row) for row in (*self.rows, *self.views)]
        return pa.Table.from_pylist([{**row.pop("measure"), **row} for row in rows]).to_pandas()


def audit(
    bench: BenchmarkSpec,
    attackers: Sequence[str] | str = (),
    models: AttackerModels | None = None,
    *,
    threshold: float = THRESHOLD,
    full: bool = False,
    parser: TreeParser | None = None,
    engine: Engine | None = None,
    progress: Progress | None = automatic,
    announce: Callable[[str], object] = str,
    seed: int = 0,
    lm: str = "",
    encoder: str = "",
    cache: bool = True,
) -> Audit:
    """Attack a benchmark (or the one that a spec or path names) without its images, and say through what it leaks.

    Without names the standard battery is run; what lacks a package or a model is left out, and the verdict is then at
    best *incomplete*. `lm` and `encoder` are model URIs ("none" for none); `models` names all models of the attackers
    and the seed at once, in place of `seed`, `lm`, `encoder` and `cache` (False: nothing is stored or taken from the
    store). With an engine, attackers that look at one caption at a time work there. Slow attackers of the standard
    battery are asked about a sample of the items, as large as the verdict needs, unless `full`; `announce` is told what
    the others found before that.
    """
    models, progress = AttackerModels.of(models, seed, lm, encoder, cache), progress or silent
    if not 0.5 <= threshold < 1:
        raise UsageError(f"`threshold={threshold}` is out of range", hint="chance is 0.5: choose 0.5 to below 1")
    named, bench = bench, as_benchmark(bench)
    asked_for = [attackers] if isinstance(attackers, str) else attackers
    names_given = not all(name.startswith("+") for name in asked_for)  # what is chosen by name is asked about all
    names, not_sent = sendable(asked_for, models)
    if several_learned(names) and ENSEMBLE not in not_sent:
        names = [*names, ENSEMBLE]  # made once, where it was named already
    sent = make_attackers(names, models)
    pairs = pairs_of(bench)
    if not len(pairs):
        raise DataError("no item has both a true and a false caption", where=bench.name)
    if engine is not None:
        score_ahead(sent, models, pairs.texts, engine)
    ids = ArrowTexts(bench.column("id").combine_chunks())
    sampling = not (full or names_given or engine) and any(entry_of(a.name).sampled for a in sent)
    pairs = _shared(pairs, sent)
    quick = [a for a in sent if not entry_of(a.name).sampled and a.name != ENSEMBLE]
    rows, answers = _attack(pairs, quick, models.seed, "", progress)
    slow = [a for a in sent if a not in quick]
    sample = None
    if sampling and slow:
        early = corrected(rows, threshold)
        announce(f"attackers that answer in seconds: {_so_far(early)}")
        decided = {row.subset for row in early if row.leaks}
        asked = [a for a in slow if a.name != ENSEMBLE]
        tests = len(sent) * (len(pairs.subsets) + (len(pairs.subsets) > 1))
        sample = sample_for(pairs, asked, decided, tests, threshold, models.seed, progress)
    more, slowly = _attack(pairs, slow, models.seed, "", progress, sample)
    rows, answers = _in_order([*rows, *more], sent, pairs), answers | slowly
    views = _attack_views(bench, _most_positives(pairs), sent, models.seed, progress, sample)
    judged = corrected([*rows, *views], threshold)
    examples, shapes = _examples(pairs, rows, answers, ids), _shapes(pairs, answers)
    del answers  # as much as the pairs that are attacked again
    judged = _with_fixes(judged, bench, sent, models.seed, threshold, progress, sample)
    rows, views = [r for r in judged if not r.view], [r for r in judged if r.view]
    spec = str(named) if isinstance(named, (str, Path)) else bench.name
    facts = _Facts(judged, pairs, ids, threshold, not_sent, models.by_family, spec, tuple(a.name for a in sent), sample)
    judgements, subsets = [facts.judgement(name) for name in pairs.subsets], pairs.subsets
    whole = judge_all(facts.judgement(ALL), judgements)
    few = {name: f"needs about {ENOUGH} pairs, there are {len(pairs)}" for name in whole.abstained}
    found = Audit(
        name=bench.name,
        hash=bench.hash,
        items=len(bench),
        attackable=int((pairs.per_item > 0).sum()),
        seed=models.seed,
        threshold=threshold,
        attackers=tuple(sent),
        not_sent=not_sent | few,
        rows=tuple(rows),
        views=tuple(views),
        judgements=tuple(judgements),
        whole=whole,
        cues=_cues(pairs, ids),
        examples=examples,
        shapes=shapes,
    )
    del pairs, facts, ids  # what follows reads the captions again
    return _compared(found, bench, subsets, parser)


def _compared(found: Audit, bench: Benchmark, subsets: Sequence[str], parser: TreeParser | None) -> Audit:
    """An audit with the likeness of captions and the symmetry of every subset, and of all items last."""
    found = replace(found, symmetry=tuple(symmetry_of(bench, subset) for subset in (*subsets, "")))
    if find_spec("rapidfuzz") is None:  # `not_sent` says so: `similarity` needs it, too
        return found
    return replace(found, likeness=tuple(likeness_of(bench, subset, parser=parser) for subset in subsets))


def _attack_views(
    bench: Benchmark, positives: int, sent: Sequence[Attacker], seed: int, progress: Progress, sample: Sample | None
) -> list[AuditRow]:
    """Each true caption on its own against the false ones: P1-N, P2-N …"""
    views: list[AuditRow] = []
    for k in range(positives):
        seen = _shared(pairs_of(bench, positive=k), sent)
        views += _attack(seen, sent, seed, f"P{k + 1}-N", progress, sample)[0]
    return views


def _in_order(rows: Sequence[AuditRow], sent: Sequence[Attacker], pairs: Pairs) -> list[AuditRow]:
    """Rows by attacker as they are sent, then by subset."""
    names, subsets = [a.name for a in sent], [*pairs.subsets, ALL]
    return sorted(rows, key=lambda r: (names.index(r.attacker), subsets.index(r.subset)))


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


def _attack(
    pairs: Pairs,
    attackers: Sequence[Attacker],
    seed: int,
    view: str,
    progress: Progress,
    sample: Sample | None = None,
) -> tuple[list[AuditRow], dict[str, AttackerMargins]]:
    """Run every attacker once, slow ones on the sample; measure it on every subset and on all."""
    rows, answers = [], {}
    some = sample.of(pairs) if sample else pairs
    for attacker in attackers:
        drawn = sample if entry_of(attacker.name).sampled or attacker.name == ENSEMBLE else None
        own = some if drawn else pairs
        margins = attacker.margins(own, progress)
        found = calibrated(own, margins, directed=attacker.directed, seed=seed, learned=learns(attacker))
        answers[attacker.name] = spread_over(pairs, drawn, found) if drawn else found
        for subset in dict.fromkeys((*pairs.subsets, ALL)):
            mine = _on(found, subset)
            figures = measure_attacker(mine, drawn.looks[subset] if drawn else 1)
            if figures.n and figures.nans < figures.pairs:  # one that learned nothing abstains: it was not run
                choice = attacker.prefers if figures.direction > 0 else attacker.otherwise
                rows.append(AuditRow(subset, view, attacker.name, choice, figures, kept=share_kept(mine)))
    return rows, answers


def _shared(pairs: Pairs, attackers: Sequence[Attacker]) -> Pairs:
    """The pairs with their features counted once, where several attackers learn from them."""
    return counted_once(pairs) if sum(map(learns, attackers)) > 1 else pairs


def _on(answers: AttackerMargins, subset: str) -> AttackerMargins:
    pairs = answers.pairs
    return answers if subset == ALL else answers.of_items(pairs.subset == pairs.subsets.index(subset))


def _with_fixes(
    rows: Sequence[AuditRow],
    bench: Benchmark,
    attackers: Sequence[Attacker],
    seed: int,
    threshold: float,
    progress: Progress,
    sample: Sample | None,
) -> list[AuditRow]:
    """Attack the repaired captions with whatever leaked, to see which leaks repair would stop.

    The ensemble is not trained again: repair stops it where it stops all other leaks.
    """
    leaking = {(row.view, row.attacker) for row in rows if row.leaks and row.attacker != ENSEMBLE}
    after: dict[tuple[str, str, str], Measure] = {}
    styled = repaired(bench) if leaking else bench
    for view in sorted({view for view, _ in leaking}):
        again = [a for a in attackers if (view, a.name) in leaking]
        pairs = pairs_of(styled, positive=int(view[1:].split("-")[0]) - 1 if view else None)
        found, _ = _attack(_shared(pairs, again), again, seed, view, progress, sample)
        after |= {(view, row.attacker, row.subset): row.measure for row in found}
    fixed = [
        fix_of(row, after.get((row.view, row.attacker, row.subset)), threshold) if row.leaks else row for row in rows
    ]
    stay = {(row.view, row.subset) for row in fixed if row.fix not in ("", "repairable") and row.attacker != ENSEMBLE}
    stopped = {(row.view, row.subset) for row in fixed if row.fix == "repairable"} - stay
    ended = [row.attacker == ENSEMBLE and row.leaks and (row.view, row.subset) in stopped for row in fixed]
    return [replace(row, fix="repairable") if stops else row for row, stops in zip(fixed, ended)]


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


@dataclass(frozen=True)
class _Facts:
    """What judgements are made from."""

    rows: Sequence[AuditRow]
    pairs: Pairs
    ids: Sequence[str]
    threshold: float
    not_run: dict[str, str]
    models: Mapping[str, str]
    spec: str
    sent: tuple[str, ...]
    drawn: Sample | None = None

    def judgement(self, subset: str) -> Judgement:
        pairs = self.pairs
        mine = np.ones(pairs.n_items, dtype=bool) if subset == ALL else pairs.subset == pairs.subsets.index(subset)
        attackable = mine & (pairs.per_item > 0)
        count, rows = max(1, int(attackable.sum())), [r for r in self.rows if r.subset == subset]
        facts = Judgement(
            subset,
            items=int(mine.sum()),
            verdict="",
            fix="",
            through=(),
            strongest=None,
            unsolvable=tuple(self.ids[i] for i in np.flatnonzero(mine & pairs.unsolvable).tolist()),
            balanced=int((mine & pairs.balanced).sum()),
            detectable=smallest_seen(
                worth((r.measure for r in rows), int(attackable.sum())), len(self.rows), self.threshold
            ),
            threshold=self.threshold,
            missing=tuple(self.not_run),
            missing_why=tuple(dict.fromkeys(self.not_run.values())),
            abstained=tuple(name for name in self.sent if rows and name not in {r.attacker for r in rows}),
            enough=ENOUGH,
            spec=self.spec,
            sample=self._sample(mine),
            models=self.models,
            extras=extras_for(self.not_run),
            repeated=float(pairs.repeats[0][attackable].sum()) / count,
            reversed=float(pairs.repeats[1][attackable].sum()) / count,
        )
        return judge(facts, rows)

    def _sample(self, mine: np.ndarray) -> tuple[int, tuple[str, ...]]:
        """How many of these items slow attackers were asked about, and their names; nothing where it was all."""
        if self.drawn is None or self.drawn.keep[mine & (self.pairs.per_item > 0)].all():
            return 0, ()
        slow = [name for name in self.sent if entry_of(name).sampled or name == ENSEMBLE]
        return int(self.drawn.keep[mine].sum()), tuple(slow)


def _cues(pairs: Pairs, ids: Sequence[str]) -> dict[str, list[tuple[Cue, ExamplePair]]]:
    found = {}
    for subset in pairs.subsets:
        items = np.flatnonzero(pairs.subset == pairs.subsets.index(subset))
        mine = pairs.of_subset(subset)
        found[subset] = [(cue, _example(mine, cue.example, items, ids)) for cue in telling_cues(mine)]
    return found


def _examples(
    pairs: Pairs, rows: Sequence[AuditRow], answers: dict[str, AttackerMargins], ids: Sequence[str], count: int = 3
) -> dict[str, list[ExamplePair]]:
    """The pairs that each subset's strongest attacker is surest of."""
    found = {}
    for subset in pairs.subsets:
        ranked = sorted((r for r in rows if r.subset == subset), key=lambda r: -r.measure.accuracy)
        if not ranked:
            continue
        mine = _on(answers[ranked[0].attacker], subset)
        items = np.flatnonzero(pairs.subset == pairs.subsets.index(subset))
        found[subset] = [
            replace(_example(mine.pairs, pair, items, ids), margin=float(mine.margins[pair]))
            for pair in cues.surest(mine.pairs, np.nan_to_num(mine.margins), count)
        ]
    return found


def _example(pairs: Pairs, pair: int, items: np.ndarray, ids: Sequence[str]) -> ExamplePair:
    positive, negative = pairs.texts[pairs.left[pair]], pairs.texts[pairs.right[pair]]
    return ExamplePair(ids[items[pairs.item[pair]]], positive, negative, 0.0)


def _shapes(pairs: Pairs, answers: dict[str, AttackerMargins]) -> dict[str, dict[str, GapShape]]:
    gaps = {name: item_gaps(pairs, found.raw) for name, found in answers.items()}
    whole: dict[str, np.ndarray] = {s: pairs.subset == k for k, s in enumerate(pairs.subsets)}
    whole[ALL] = np.ones(pairs.n_items, dtype=bool)
    return {s: {name: gap_shape(gap[mine]) for name, gap in gaps.items()} for s, mine in whole.items()}
