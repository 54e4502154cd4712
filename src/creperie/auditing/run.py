"""The audit of a benchmark from start to end: choose the attackers, run them, give a verdict, and illustrate it with
examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing.attackers import Attacker, TextAttacker, learns
from creperie.auditing.battery import CUES, ENSEMBLE, AttackerModels, extras_for, make_attackers, runnable_attackers
from creperie.auditing.cues import CueAttacker, blank, strongest_cue
from creperie.auditing.features import counted_once
from creperie.auditing.language import language_of_captions
from creperie.auditing.large import attacked_part, item_features, score_ahead
from creperie.auditing.likeness import likeness_of
from creperie.auditing.measure import (
    AttackerMargins,
    Measure,
    answers_of,
    effective_items,
    measure_attacker,
    smallest_detectable,
)
from creperie.auditing.null import BOUND
from creperie.auditing.options import AuditOptions
from creperie.auditing.pairs import ArrowTexts, Pairs, image_pairs_of, item_gaps, items_in, own_foils, pairs_of
from creperie.auditing.registry import entry_of, several_learned
from creperie.auditing.result import Audit, answers_on, cues_of, examples_of, shapes_of
from creperie.auditing.sampling import Sample, over_all_pairs, sample_for
from creperie.auditing.symmetry import symmetry_of
from creperie.auditing.verdict import (
    ALL,
    AuditRow,
    Measurements,
    balanced_share,
    by_strength,
    corrected,
    distinct_tests,
    fix_of,
    judge,
    judge_all,
)
from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark
from creperie.core import DataError, Progress, automatic, by_key, percent, silent, with_options
from creperie.engine import Engine
from creperie.lang import tidy_together

#: With this many pairs, every learned attacker has enough to learn from.
ENOUGH = 60
#: The view (`AuditRow.view`) of an attacker that sees only images.
IMAGES = "images"

#: The margins of every attacker, by its name.
Answers = dict[str, AttackerMargins]


@with_options(options=AuditOptions, models=AttackerModels)
def audit(
    bench: BenchmarkSpec,
    attackers: Sequence[str] | str = (),
    *,
    options: AuditOptions,
    models: AttackerModels,
    engine: Engine | None = None,
    progress: Progress | None = automatic,
    announce: Callable[[str], object] = str,
) -> Audit:
    """Attack a benchmark without its images, and return the verdict and the cues through which it leaks. `bench` is a
    benchmark, a spec or a path.

    If `attackers` is empty, the standard battery is run. Attackers that lack a package or a model are left out, and
    the verdict is then at best *incomplete*. With an engine, attackers that score one caption at a time run on it.

    Quick attackers run first; `announce` is then called with a summary of their results. Slow attackers of the standard
    battery run on a sample of the items that is as large as the verdict needs. With the option `full`, they run on all
    items.

    If a benchmark has more than `SAMPLE` items, a random sample is audited. Attackers that score captions one by one
    are then also run on all items; these results are in `Audit.counts`.
    """
    spec = str(bench) if isinstance(bench, (str, Path)) else ""
    everything = as_benchmark(bench)
    bench = attacked_part(everything, models.seed, full=options.full)
    if attackers:
        options = replace(options, attackers=(attackers,) if isinstance(attackers, str) else tuple(attackers))
    language = language_of_captions(bench)
    sent, not_sent, foreign = _attackers_to_run(options, models, language)
    pairs, seeing = pairs_of(bench), models.image_attacker(bench.images)
    if not len(pairs) and seeing is None:
        raise DataError(
            "no item has both a true and a false caption",
            where=bench.name,
            hint="if items have several images, pass `image_encoder=` for an attacker that sees only images",
        )
    if engine is not None:
        score_ahead(sent, models, pairs.texts, engine)
    attack = Attack(tuple(sent), models.seed, options.threshold, progress or silent)
    pairs = attack.counted(pairs)
    # attackers chosen by name are run on all items
    samples = not options.full and engine is None and all(name.startswith("+") for name in options.attackers)
    attack, rows, answers = attack.in_steps(pairs, announce if samples else None)
    rows += attack.on_views(bench, pairs) + (attack.on_images(bench, seeing) if seeing else [])
    judged = corrected(rows, options.threshold)
    ids = ArrowTexts(bench.column("id").combine_chunks())
    examples, shapes = examples_of(pairs, judged, answers, ids), shapes_of(pairs, answers)
    del answers  # frees as much memory as the pairs for the next attack need
    judged = attack.with_fixes(judged, bench)
    judgements = [judge(attack.measurements(name, judged, pairs, ids, not_sent, models)) for name in pairs.subsets]
    whole = judge_all(judge(attack.measurements(ALL, judged, pairs, ids, not_sent, models)), judgements)
    few = dict.fromkeys(whole.measured.abstained, f"needs about {ENOUGH} pairs with different captions")
    audited = Audit(
        name=bench.name,
        hash=everything.hash,
        items=len(everything),
        attackable=int((pairs.per_item > 0).sum()),
        seed=models.seed,
        threshold=options.threshold,
        attackers=(*sent, *([seeing] if seeing else [])),
        not_sent=not_sent | few | foreign,
        rows=tuple(r for r in judged if not r.view),
        views=tuple(r for r in judged if r.view),
        judgements=tuple(judgements),
        whole=whole,
        cues=cues_of(pairs, judged, ids, options.threshold),
        examples=examples,
        shapes=shapes,
        spec=spec or bench.name,
        language=language,
    )
    subsets = pairs.subsets
    del pairs, ids  # frees memory: what follows reads the captions again
    audited = _with_comparisons(audited, bench, subsets, options)
    if bench is everything:
        return audited
    quick = [a for a in attack.quick if isinstance(a, TextAttacker)]
    with item_features(everything, quick, models, engine, progress) as features:
        attackable, counts = int(features.column("asked").sum()), features.counts()
        lost = everything.keeping(features.column("unsolvable"), "filter").column("id").to_pylist()
    seen = replace(whole.measured, drawn=len(everything), unsolvable=tuple(lost))
    whole = replace(whole, measured=seen, verdict="unsolvable" if whole.verdict == "clean" and lost else whole.verdict)
    return replace(audited, attackable=attackable, counts=counts, whole=whole)


def _attackers_to_run(
    options: AuditOptions, models: AttackerModels, language: str
) -> tuple[list[Attacker], dict[str, str], dict[str, str]]:
    """Return three things: the attackers to run, the attackers that cannot be run, and the attackers that do not suit
    captions in this language. The last two are given with the reasons.
    """
    # The attackers include `cues` and, if attackers of several families learn, an ensemble.
    names, not_sent = runnable_attackers(options.attackers, models)
    foreign = {}
    if not language.startswith("en"):
        english = [name for name in (*names, *not_sent) if entry_of(name).english]
        foreign = dict.fromkeys(english, f"knows only English; most captions are in {language}")
        names = [name for name in names if name not in foreign]
        not_sent = {name: why for name, why in not_sent.items() if name not in foreign}
    if several_learned(names) and ENSEMBLE not in not_sent:
        names = [*names, ENSEMBLE]  # made only once if already named
    return make_attackers([*names, CUES], models), not_sent, foreign


def _with_comparisons(audited: Audit, bench: Benchmark, subsets: Sequence[str], options: AuditOptions) -> Audit:
    """Return the audit with two additions: what captions alone and images alone can reveal (see `symmetry_of`), and the
    similarity of the captions.
    """
    audited = replace(audited, symmetry=tuple(symmetry_of(bench, subset) for subset in (*subsets, "")))
    if find_spec("rapidfuzz") is None:  # `not_sent` says so: `similarity` needs it, too
        return audited
    parser = options.tree_parser()
    return replace(audited, likeness=tuple(likeness_of(bench, subset, parser=parser) for subset in subsets))


@dataclass(frozen=True)
class Attack:
    """The attackers of an audit, and the settings with which they are run and judged."""

    attackers: tuple[Attacker, ...]
    seed: int
    threshold: float
    progress: Progress
    sample: Sample | None = None  #: the items that slow attackers are run on; None: all

    @property
    def slow(self) -> list[Attacker]:
        """The attackers that may be run on only a sample of the items."""
        return [a for a in self.attackers if entry_of(a.name).sampled]

    @property
    def quick(self) -> list[Attacker]:
        return [a for a in self.attackers if not entry_of(a.name).sampled]

    def counted(self, pairs: Pairs) -> Pairs:
        """Return the pairs. If several attackers learn, their features are computed here and stored in the returned
        pairs, so that this is done only once.
        """
        return counted_once(pairs) if sum(map(learns, self.attackers)) > 1 else pairs

    def on(self, pairs: Pairs, view: str = "") -> tuple[list[AuditRow], Answers]:
        """Run every attacker on the pairs. If there is a sample (`self.sample`), slow attackers are run only on that.
        Return a row for each attacker and subset (including "all"), and the answers by attacker.
        """
        rows, answers = [], {}
        for attacker in self.attackers:
            drawn = self.sample if entry_of(attacker.name).sampled else None
            asked = drawn.part(pairs, attacker.name) if drawn else pairs
            tries = isinstance(attacker, CueAttacker)
            scaled = blank(asked) if tries else answers_of(attacker, asked, self.seed, self.progress)
            measured, scaled = self._measured(attacker, scaled, view, drawn)
            answers[attacker.name] = over_all_pairs(pairs, drawn.keep(attacker.name), scaled) if drawn else scaled
            rows += measured
        return rows, answers

    def in_steps(
        self, pairs: Pairs, announce: Callable[[str], object] | None
    ) -> tuple[Attack, list[AuditRow], Answers]:
        """Run the quick attackers, then the slow ones. Return a copy of this attack with the sample used for the slow
        attackers, the rows, and the answers by attacker.

        If `announce` is given, it is called with a summary of the quick attackers' results before the slow ones run,
        and these run on a sample that is as large as the verdict needs. Without `announce`, they run on all items.
        """
        rows, answers = replace(self, attackers=tuple(self.quick)).on(pairs)
        slow, sample = tuple(self.slow), None
        if announce and any(a.name != ENSEMBLE for a in slow):
            early = corrected(rows, self.threshold)
            announce(f"attackers that answer in seconds: {_summary_so_far(early)}")
            decided = {row.subset for row in early if row.leaks}
            tests = len(self.attackers) * (len(pairs.subsets) + (len(pairs.subsets) > 1))
            sample = sample_for(pairs, slow, decided, tests, self.threshold, self.seed, self.progress)
        more, slowly = replace(self, attackers=slow, sample=sample).on(pairs)
        names, subsets = [a.name for a in self.attackers], [*pairs.subsets, ALL]
        ordered = sorted([*rows, *more], key=lambda r: (names.index(r.attacker), subsets.index(r.subset)))
        return replace(self, sample=sample), ordered, answers | slowly

    def on_views(self, bench: Benchmark, pairs: Pairs) -> list[AuditRow]:
        """If items have several true captions, run the attackers on each of these separately, and return the rows. If
        not, return an empty list.

        The view P1-N compares the first true caption of each item with the false captions, P2-N the second, and so on.
        If every true caption has its own foil, it is compared only with that foil (P1-N1, P2-N2 …).
        """
        rows = []
        own = own_foils(bench)
        for k in range(pairs.most_positives):
            rows += self.on(self.counted(pairs_of(bench, positive=k)), f"P{k + 1}-N{k + 1 if own else ''}")[0]
        return rows

    def with_fixes(self, rows: Sequence[AuditRow], bench: Benchmark) -> list[AuditRow]:
        """Return the rows. If an attacker finds a leak, its row gets a proposed way to remove the leak, such as
        "repairable". To choose it, attackers are run again on repaired captions (see `repaired`).
        """
        # Slow attackers are run again only in subsets in which the repair stops all leaks of quick attackers. In other
        # subsets, the fix is to remove items, if enough of them would remain (see `balanced_share`). The ensemble is
        # not trained again: its leak counts as repairable if all other leaks of the subset are.
        leaking = [row for row in rows if row.leaks and row.view != IMAGES]
        styled = repaired(bench) if leaking else bench
        slow = {a.name for a in self.slow}
        fixed = self._rerun([row for row in leaking if row.attacker not in slow], styled)
        stay = _unrepaired(fixed.values())
        single = [row for row in leaking if row.attacker in slow - {ENSEMBLE}]
        fixed |= self._rerun([row for row in single if _view_and_subset(row) not in stay], styled)
        stopped = {_view_and_subset(row) for row in fixed.values()} - _unrepaired(fixed.values())
        rest = {
            _key(row): replace(row, fix="repairable")
            if _view_and_subset(row) in stopped
            else fix_of(row, None, self.threshold)
            for row in rows
            if row.leaks and _key(row) not in fixed
        }
        return [(fixed | rest).get(_key(row), row) for row in rows]

    def _rerun(self, rows: Sequence[AuditRow], styled: Benchmark) -> dict[_Key, AuditRow]:
        """Run the attackers that found the leaks in `rows` again, on repaired captions (`styled`). Return each row with
        the way to remove its leak (such as "repairable"), by view, subset and attacker.
        """
        after: dict[_Key, Measure] = {}
        for view in sorted({row.view for row in rows}):
            names = {row.attacker for row in rows if row.view == view}
            again = replace(self, attackers=tuple(a for a in self.attackers if a.name in names))
            pairs = pairs_of(styled, positive=int(view[1:].split("-")[0]) - 1 if view else None)
            after |= {_key(row): row.measure for row in again.on(again.counted(pairs), view)[0]}
        return {_key(row): fix_of(row, after.get(_key(row)), self.threshold) for row in rows}

    def on_images(self, bench: Benchmark, attacker: Attacker) -> list[AuditRow]:
        """Return the rows of an attacker that sees only images. It guesses which image of an item matches a caption."""
        pairs = image_pairs_of(bench)
        margins = attacker.margins(pairs, self.progress)
        log_odds = np.nan_to_num(margins.astype(np.float64))
        answers = AttackerMargins(pairs, margins, log_odds, attacker.directed, np.full(pairs.n_items, BOUND))
        return self._measured(attacker, answers, IMAGES, None)[0]

    def _measured(
        self, attacker: Attacker, answers: AttackerMargins, view: str, sample: Sample | None
    ) -> tuple[list[AuditRow], AttackerMargins]:
        """Return an attacker's rows, one per subset, and its answers. If the attacker tries several cues, these are the
        results of its strongest cue.

        A subset in which all margins are NaN gets no row.
        """
        rows, raw = [], answers.raw.copy()
        names = dict.fromkeys((*answers.pairs.subsets, ALL))
        for subset in names if len(names) > 2 else answers.pairs.subsets:
            best = strongest_cue(attacker, answers_on(answers, subset), self.threshold, self.seed, self.progress)
            of_subset = best.answers
            figures = measure_attacker(of_subset, sample.p_factors[subset] if sample else 1)
            figures = replace(figures, p=min(1.0, figures.p * best.tried), high=max(figures.high, best.high))
            if subset != ALL:
                raw[items_in(answers.pairs, subset)[answers.pairs.item]] = of_subset.raw
            if figures.n and figures.nans < figures.pairs:
                choice = attacker.prefers if figures.direction > 0 else attacker.otherwise
                if best.cue:
                    choice = f"the caption {'with' if figures.direction > 0 else 'without'} {best.cue}"
                kept = balanced_share(item_gaps(of_subset.pairs, of_subset.margins)[of_subset.pairs.per_item > 0])
                rows.append(
                    AuditRow(subset, view, attacker.name, choice, figures, kept=kept, cue=best.cue, cues=best.cues)
                )
        if len(names) == 2:
            rows += [replace(row, subset=ALL) for row in rows]
        return rows, replace(answers, raw=raw)

    def measurements(
        self,
        subset: str,
        rows: Sequence[AuditRow],
        pairs: Pairs,
        ids: Sequence[str],
        not_run: dict[str, str],
        models: AttackerModels,
    ) -> Measurements:
        """Return all measurements for the verdict on a subset, or on "all"."""
        of_subset = items_in(pairs, subset)
        attackable, seen = of_subset & (pairs.per_item > 0), [r for r in rows if r.subset == subset]
        count = int(attackable.sum())
        answers = effective_items((r.measure for r in seen), count)
        ran = {row.attacker for row in seen}
        return Measurements(
            subset,
            items=int(of_subset.sum()),
            rows=tuple(seen),
            unsolvable=tuple(ids[i] for i in np.flatnonzero(of_subset & pairs.unsolvable).tolist()),
            balanced=int((of_subset & pairs.balanced).sum()),
            detectable=smallest_detectable(answers, len(distinct_tests(rows)), self.threshold),
            threshold=self.threshold,
            missing=not_run,
            abstained=tuple(a.name for a in self.attackers if ran and a.name not in ran),
            enough=ENOUGH,
            sample=self._sampled(attackable),
            models=models.by_family,
            extras=extras_for(not_run),
            repeated=float(pairs.repeats[0][attackable].sum()) / max(1, count),
            reversed=float(pairs.repeats[1][attackable].sum()) / max(1, count),
        )

    def _sampled(self, attackable: np.ndarray) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Return, for each size of sample, the number of items and the names of the slow attackers that were run on it.
        Attackers that were run on all items are left out.
        """
        if not self.sample:
            return ()
        by_count = by_key((int(self.sample.keep(a.name)[attackable].sum()), a.name) for a in self.slow)
        by_count.pop(int(attackable.sum()), None)
        return tuple((n, tuple(names)) for n, names in by_count.items())


_Key = tuple[str, str, str]


def _view_and_subset(row: AuditRow) -> tuple[str, str]:
    return row.view, row.subset


def _key(row: AuditRow) -> _Key:
    return row.view, row.subset, row.attacker


def _unrepaired(rows: Iterable[AuditRow]) -> set[tuple[str, str]]:
    """Return the (view, subset) pairs of the rows that still leak after the captions were repaired (see `repaired`)."""
    return {_view_and_subset(row) for row in rows if row.fix != "repairable"}


def _summary_so_far(rows: Sequence[AuditRow]) -> str:
    """Return a short summary of the results, for display before slow attackers are run."""
    best = next(iter(by_strength(rows)), None)
    leaking = len({row.subset for row in rows if row.leaks and row.subset != ALL})
    if best is None:
        return "none was run"
    where = f"{leaking} subsets leak" if leaking > 1 else "it leaks" if leaking else "no leak so far"
    return f"{where}; the strongest is {best.attacker} on {best.subset}, {percent(best.measure.accuracy)} %"


def repaired(bench: Benchmark) -> Benchmark:
    """Return the benchmark with all captions of an item in the same style (case, spaces, punctuation). The words stay
    the same.
    """
    offsets, captions = bench.ragged("captions")
    tidied = []
    for captions_of_item in (row for piece in bench.pieces(["captions"], 1024) for row in piece.column(0).to_pylist()):
        tidied += tidy_together(captions_of_item)
    texts = pa.array(tidied, pa.string())
    changed = len(texts) - (pc.sum(pc.equal(texts, captions)).as_py() or 0)
    columns = {name: bench.column(name) for name in bench.columns}
    columns["captions"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts)
    table = pa.table(columns, schema=bench.schema)
    # The captions differ from the published ones, so the published files cannot be written from them.
    return bench.with_table(table, "repair", captions_changed=changed)
