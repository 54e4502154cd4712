"""The audit of a benchmark: run the attackers, measure them, judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from creperie.auditing.attack import Attack, is_slow, score_ahead
from creperie.auditing.attackers import Attacker, TextAttacker
from creperie.auditing.battery import CUES, ENSEMBLE, AttackerModels, extras_for, make_attackers, sendable
from creperie.auditing.language import language_of_captions
from creperie.auditing.large import attacked_part, item_features
from creperie.auditing.likeness import likeness_of
from creperie.auditing.measure import smallest_seen, worth
from creperie.auditing.options import AuditOptions
from creperie.auditing.pairs import ArrowTexts, Pairs, pairs_of
from creperie.auditing.registry import entry_of, several_learned
from creperie.auditing.result import Audit, cues_of, examples_of, shapes_of
from creperie.auditing.symmetry import symmetry_of
from creperie.auditing.verdict import ALL, AuditRow, Measurements, corrected, distinct_tests, judge, judge_all
from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark
from creperie.core import DataError, Progress, automatic, silent, with_options
from creperie.engine import Engine

#: With this many pairs, every learned attacker has enough to learn from.
ENOUGH = 60


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
    """Attack a benchmark, a spec or a path without its images; return the verdict and the cues through which it leaks.

    Without names the standard battery is run; attackers that lack a package or a model are left out, and the verdict is
    then at best *incomplete*. With an engine, attackers that score one caption at a time run there. Slow attackers of
    the standard battery are run on a sample of the items, as large as the verdict needs, unless `full` is set; before
    that, `announce` is called with a summary of the quick attackers' results. Of a benchmark with more than `SAMPLE`
    items a random sample is audited, and attackers that score captions one by one are counted on all (`counts`).
    """
    spec = str(bench) if isinstance(bench, (str, Path)) else ""
    everything = as_benchmark(bench)
    bench = attacked_part(everything, models.seed, full=options.full)
    if attackers:
        options = replace(options, attackers=(attackers,) if isinstance(attackers, str) else tuple(attackers))
    language = language_of_captions(bench)
    sent, not_sent, foreign = _sent(options, models, language)
    pairs, seeing = pairs_of(bench), models.image_attacker(bench.images)
    if not len(pairs) and seeing is None:
        hint = "if items have several images, pass `image_encoder=` for an attacker that sees only images"
        raise DataError("no item has both a true and a false caption", where=bench.name, hint=hint)
    if engine is not None:
        score_ahead(sent, models, pairs.texts, engine)
    attack = Attack(tuple(sent), models.seed, options.threshold, progress or silent)
    pairs = attack.counted(pairs)
    # attackers chosen by name are run on all items
    samples = not options.full and engine is None and all(name.startswith("+") for name in options.attackers)
    attack, rows, answers = attack.in_steps(pairs, announce if samples else None)
    views = attack.on_views(bench, pairs) + (attack.on_images(bench, seeing) if seeing else [])
    judged = corrected([*rows, *views], options.threshold)
    ids = ArrowTexts(bench.column("id").combine_chunks())
    examples, shapes = examples_of(pairs, judged, answers, ids), shapes_of(pairs, answers)
    del answers  # frees as much memory as the pairs for the next attack need
    judged = attack.with_fixes(judged, bench)
    facts = _Facts(judged, pairs, ids, attack, not_sent, models.by_family)
    judgements = [judge(facts.measurements(name)) for name in pairs.subsets]
    whole = judge_all(judge(facts.measurements(ALL)), judgements)
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
    del pairs, facts, ids  # frees memory: what follows reads the captions again
    audited = _compared(audited, bench, subsets, options)
    if bench is everything:
        return audited
    quick = [a for a in sent if isinstance(a, TextAttacker) and not is_slow(a)]
    with item_features(everything, quick, models, engine, progress) as features:
        attackable, counts = int(features.column("asked").sum()), features.counts()
        lost = everything.keeping(features.column("unsolvable"), "filter").column("id").to_pylist()
    seen = replace(whole.measured, drawn=len(everything), unsolvable=tuple(lost))
    whole = replace(whole, measured=seen, verdict="unsolvable" if whole.verdict == "clean" and lost else whole.verdict)
    return replace(audited, attackable=attackable, counts=counts, whole=whole)


def _sent(
    options: AuditOptions, models: AttackerModels, language: str
) -> tuple[list[Attacker], dict[str, str], dict[str, str]]:
    """Return the attackers to run, always with `cues`, and with an ensemble if several families learn; those that
    cannot be run, with reasons; and those that have nothing to say about captions in this language.
    """
    names, not_sent = sendable(options.attackers, models)
    foreign = {}
    if not language.startswith("en"):
        english = [name for name in (*names, *not_sent) if entry_of(name).english]
        foreign = dict.fromkeys(english, f"knows English alone; most captions are in {language}")
        names = [name for name in names if name not in foreign]
        not_sent = {name: why for name, why in not_sent.items() if name not in foreign}
    if several_learned(names) and ENSEMBLE not in not_sent:
        names = [*names, ENSEMBLE]  # made only once if already named
    return make_attackers([*names, CUES], models), not_sent, foreign


def _compared(audited: Audit, bench: Benchmark, subsets: Sequence[str], options: AuditOptions) -> Audit:
    """Return the audit with the symmetry of every subset and of all items, and the caption similarities by subset."""
    audited = replace(audited, symmetry=tuple(symmetry_of(bench, subset) for subset in (*subsets, "")))
    if find_spec("rapidfuzz") is None:  # `not_sent` says so: `similarity` needs it, too
        return audited
    parser = options.tree_parser()
    return replace(audited, likeness=tuple(likeness_of(bench, subset, parser=parser) for subset in subsets))


@dataclass(frozen=True)
class _Facts:
    """What the measurements of every subset are taken from."""

    rows: Sequence[AuditRow]
    pairs: Pairs
    ids: Sequence[str]
    attack: Attack
    not_run: dict[str, str]
    models: Mapping[str, str]

    def measurements(self, subset: str) -> Measurements:
        pairs, sent = self.pairs, [a.name for a in self.attack.attackers]
        of_subset = np.ones(pairs.n_items, dtype=bool) if subset == ALL else pairs.subset == pairs.subsets.index(subset)
        attackable = of_subset & (pairs.per_item > 0)
        count, rows = max(1, int(attackable.sum())), [r for r in self.rows if r.subset == subset]
        answers = worth((r.measure for r in rows), int(attackable.sum()))
        return Measurements(
            subset,
            items=int(of_subset.sum()),
            rows=tuple(rows),
            unsolvable=tuple(self.ids[i] for i in np.flatnonzero(of_subset & pairs.unsolvable).tolist()),
            balanced=int((of_subset & pairs.balanced).sum()),
            detectable=smallest_seen(answers, len(distinct_tests(self.rows)), self.attack.threshold),
            threshold=self.attack.threshold,
            missing=self.not_run,
            abstained=tuple(name for name in sent if rows and name not in {r.attacker for r in rows}),
            enough=ENOUGH,
            sample=self._sample(of_subset),
            models=self.models,
            extras=extras_for(self.not_run),
            repeated=float(pairs.repeats[0][attackable].sum()) / count,
            reversed=float(pairs.repeats[1][attackable].sum()) / count,
        )

    def _sample(self, of_subset: np.ndarray) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Return the numbers of these items that slow attackers were run on, each with their names; () if it was all
        of them.
        """
        drawn, attackable = self.attack.sample, of_subset & (self.pairs.per_item > 0)
        by_count: dict[int, tuple[str, ...]] = {}
        for name in (a.name for a in self.attack.attackers if drawn and is_slow(a)):
            keep = drawn.keep(name)[attackable] if drawn else attackable
            if not keep.all():
                by_count[int(keep.sum())] = (*by_count.get(int(keep.sum()), ()), name)
        return tuple(by_count.items())
