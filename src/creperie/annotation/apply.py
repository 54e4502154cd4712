"""From answers to a new version of the benchmark, to human runs, and to tables of ratings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from creperie.annotation.database import Database
from creperie.annotation.export import exported, study_record
from creperie.annotation.humanruns import human_runs
from creperie.annotation.outcome import MAJORITY, UNANSWERED, WEIGHTED, Judged, Settled, StudyRecord, judged, settle
from creperie.annotation.quality import agreement_of, weights_of
from creperie.annotation.state import record, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.checks import FOIL
from creperie.annotation.tasks.preference import BIAS, FOILS, TIE
from creperie.bench import Benchmark, Item, items_of, load, save, table_of
from creperie.core import UsageError, unknown, write_json
from creperie.scoring import Run

KEEP, DROP = "keep", "drop"
#: The study's record beside the benchmark that was made of it.
RECORD = "study.json"
#: Verdicts that speak against an item.
AGAINST = {"foil-check": "true", "positive-check": "reject", "triplet-check": "invalid"}


@dataclass(frozen=True)
class ApplyPlan:
    """What becomes of undecided items, how verdicts come about, and where the result is written."""

    undecided: str = KEEP
    verdict: str = MAJORITY  #: of the majority, or weighted by competence
    out: Path | None = None  #: the folder of the new version
    runs: Path = Path("runs")
    force: bool = False  #: replace the folder if it is there

    def __post_init__(self) -> None:
        for name, choices in (("undecided", (KEEP, DROP)), ("verdict", (MAJORITY, WEIGHTED))):
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)


DEFAULT_PLAN = ApplyPlan()


@dataclass(frozen=True)
class Applied:
    """What became of a study: a benchmark where the task changes or tags one, runs where people competed."""

    document: dict[str, Any]
    record: StudyRecord  #: the exported record that it was computed from
    bench: Benchmark | None = None
    runs: tuple[Run, ...] = ()


def apply_study(db: Database, name: str, bench: Benchmark, plan: ApplyPlan = DEFAULT_PLAN) -> Applied:
    """Turn the answers of a study into what its task is for. Writes nothing."""
    with db.read() as session:
        return apply_record(exported(study_record(session, study_named(session, name))), bench, plan)


def apply_record(document: StudyRecord, bench: Benchmark, plan: ApplyPlan = DEFAULT_PLAN) -> Applied:
    """Return what `apply_study` returns, computed from an exported record alone."""
    name, expected, questions = document["study"], document["bench"]["hash"], judged(document)
    if expected != bench.hash:
        raise UsageError(
            f"study {name!r} was made from different content (hash {expected[:12]}, not {bench.hash[:12]})",
            where=bench.name,
            hint="give the benchmark that the study was made from",
        )
    if not any(one.answers or one.decision for one in questions):
        hint = "run `creperie annotate serve` and send the links of `annotate invite`"
        raise UsageError(f"study {name!r} has no answers yet", hint=hint)
    task = task_named(document["task"])
    names, answers, alpha = agreement_of(task, questions)
    about = {
        **{key: document[key] for key in ("study", "task", "erased")},
        "export": document["digest"],
        "annotators": names,
        "answers": answers,
        "alpha": alpha,
        "questions": len(questions),
        "too_few_answers": sum(not one.complete for one in questions),
    }
    if task.makes == "run":
        runs = human_runs(bench, document, questions)
        results = [{"run": run.name, "model": run.model, **result} for run in runs for result in run.results]
        return Applied(about | {"runs": [r.name for r in runs], "results": results}, document, runs=tuple(runs))
    if task.makes == "rate":
        return _apply_ratings(bench, document, questions, about)
    return _apply_checks(bench, document, questions, about, plan)


def _new_version(bench: Benchmark, items: Sequence[Item], about: Mapping[str, Any]) -> Benchmark:
    today = datetime.now(UTC).date().isoformat()
    return bench.with_table(table_of(items), "annotate", **about, when=today)


# -- checks ----------------------------------------------------------------------------------------------------------


def _apply_checks(
    bench: Benchmark,
    document: StudyRecord,
    questions: Sequence[Judged],
    about: dict[str, Any],
    plan: ApplyPlan,
) -> Applied:
    task = task_named(document["task"])
    weights = weights_of(document) if plan.verdict == WEIGHTED else {}
    verdicts: dict[tuple[str, str], list[tuple[Judged, Settled]]] = {}
    for one in questions:
        settled = settle(task, one, weights.get(one.question.ordinal))
        verdicts.setdefault((one.question.subset, one.question.item), []).append((one, settled))
    remaining, fates = [], []
    for item in items_of(bench.table):
        changed, fate = _judge(task.name, item, verdicts.get((item.subset, item.id), []), plan.undecided)
        fates.append(fate)
        if changed is not None:
            remaining.append(changed)
    if not remaining:
        raise UsageError("no item would be left", where=bench.name, hint="adjudicate the disagreements first")
    settled_by = Counter(settled.how for own in verdicts.values() for _, settled in own)
    about |= {"fates": dict(Counter(fates)), "settled": dict(settled_by)}
    about |= {"undecided": plan.undecided, "verdict": plan.verdict}
    made = _new_version(bench, remaining, about)
    return Applied(about | {"kept": len(remaining), "removed": len(bench) - len(remaining)}, document, made)


def _judge(task: str, item: Item, asked: Sequence[tuple[Judged, Settled]], undecided: str) -> tuple[Item | None, str]:
    """An item after its verdicts, None where it goes, and what happened to it."""
    if all(s.how == UNANSWERED for _, s in asked):
        return item, "not judged"
    open_ = [s for _, s in asked if s.value is None or s.value["verdict"] == "unsure"]
    if open_ and undecided == DROP:
        return None, "removed (undecided)"
    against = [one for one, s in asked if s.value is not None and s.value["verdict"] == AGAINST[task]]
    tags = {**item.tags, f"people.{task}": "undecided" if open_ else "confirmed"}
    if against:
        rest = _without_columns(item, {one.question.payload["column"] for one in against}) if task == FOIL else None
        if rest is None:
            return None, "removed"
        return replace(rest, tags={**tags, f"people.{task}": "foil removed"}), "foil removed"
    if (corrected := _corrected(item, asked)) is not None:
        fate = "corrected" if set(corrected.captions) - set(item.captions) else "foil chosen"
        return replace(corrected, tags={**tags, f"people.{task}": fate}), fate
    return replace(item, tags=tags), "undecided" if open_ else "confirmed"


def _without_columns(item: Item, columns: set[int]) -> Item | None:
    """An item without the foils that turned out true; None where none is left, or images share its captions."""
    if len(item.images) > 1:
        return None
    left = [j for j in range(len(item.captions)) if j not in columns]
    row = tuple(item.match[0][j] for j in left)
    if all(row):
        return None
    return replace(item, captions=tuple(item.captions[j] for j in left), match=(row,))


def _corrected(item: Item, asked: Sequence[tuple[Judged, Settled]]) -> Item | None:
    """An item with captions as they were corrected and the one foil that was chosen; None where that is the item."""
    captions, dropped = list(item.captions), set[int]()
    for one, settled in asked:
        value, payload = settled.value or {}, one.question.payload
        if value.get("verdict") == "edit":
            captions[payload["column"]] = value["text"]
        if "foil" in value:
            dropped |= {j for j, fits in enumerate(payload["match"]) if not fits and str(j) != value["foil"]}
    if tuple(captions) == item.captions and not dropped:
        return None
    return _without_columns(replace(item, captions=tuple(captions)), dropped)


# -- ratings ---------------------------------------------------------------------------------------------------------


def _apply_ratings(
    bench: Benchmark, document: StudyRecord, questions: Sequence[Judged], about: dict[str, Any]
) -> Applied:
    """The table of a comparison, and the items with what was said about them as tags."""
    tags: dict[tuple[str, str], dict[str, str | float]] = {}
    if document["task"] == FOILS:
        preferences = _preferences(questions)
        table = preference_table(preferences)
        for one, name, winner in preferences:
            tags.setdefault((one.question.subset, one.question.item), {})[f"people.better-{name}"] = winner
    else:
        ratings = [(one, rating) for one in questions if (rating := _rating(one)) is not None]
        table = rating_table(ratings)
        for one, rating in ratings:
            if one.question.source == bench.name:
                tags[one.question.subset, one.question.item] = {f"people.{BIAS}": rating}
    items = [replace(i, tags={**i.tags, **tags.get((i.subset, i.id), {})}) for i in items_of(bench.table)]
    return Applied(about | {"table": table, "tagged": len(tags)}, document, _new_version(bench, items, about))


def _values(one: Judged, name: str) -> list[Any]:
    """Return what people answered to a question, or what was decided; an empty list while answers are missing."""
    if one.decision is not None:
        return [one.decision["value"][name]]
    return [s.value[name] for s in one.answers] if one.complete else []


def _preferences(questions: Sequence[Judged]) -> list[tuple[Judged, str, str]]:
    """Return whose foil more annotators preferred, for sense and for grammar; equal numbers are a tie."""
    preferences = []
    for one in questions:
        for name in ("sense", "grammar"):
            ranked = Counter(_values(one, name)).most_common(2)
            if ranked:
                tie = ranked[0][0] == TIE or (len(ranked) == 2 and ranked[0][1] == ranked[1][1])
                preferences.append((one, name, TIE if tie else one.question.payload["sources"][int(ranked[0][0])]))
    return preferences


def preference_table(preferences: Sequence[tuple[Judged, str, str]]) -> list[dict[str, Any]]:
    """Count by subset in how many questions each source's foil was the better one."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one, name, winner in preferences:
        for subset in (one.question.subset, "all"):
            empty = {"subset": subset, "evaluation": name, "n": 0}
            row = rows.setdefault((subset, name), empty | dict.fromkeys((*one.question.payload["sources"], TIE), 0))
            row["n"] += 1
            row[winner] += 1
    return [rows[key] for key in sorted(rows, key=lambda k: (k[0] == "all", k))]


def _rating(one: Judged) -> float | None:
    values = _values(one, "rating")
    return float(np.mean(values)) if values else None


def rating_table(ratings: Sequence[tuple[Judged, float]]) -> list[dict[str, Any]]:
    """Mean ratings by source and subset, each item worth the same, with a 95 % interval of the mean."""
    groups: dict[tuple[str, str], list[float]] = {}
    for one, rating in ratings:
        for subset in (one.question.subset, "all"):
            groups.setdefault((one.question.source, subset), []).append(rating)
    rows = []
    for source, subset in sorted(groups, key=lambda k: (k[0], k[1] == "all", k[1])):
        values = np.array(groups[source, subset])
        mean, n = float(values.mean()), len(values)
        half = 1.96 * values.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
        rows.append({"source": source, "subset": subset, "n": n, "mean": mean, "low": mean - half, "high": mean + half})
    return rows


# -- reading and writing -----------------------------------------------------------------------------------------------


def bench_of(db: Database, name: str, spec: str | None = None, images: str | None = None) -> Benchmark:
    """The benchmark that a study was made of."""
    with db.read() as session:
        study = study_named(session, name)
    where = spec or study.bench.get("spec")
    if not where:
        raise UsageError(f"study {name!r} does not say where its benchmark is", hint="pass `bench=`")
    return load(where, images=images)


def write_applied(db: Database | None, done: Applied, plan: ApplyPlan, actor: str = "cli") -> dict[str, Any]:
    """Write what was made: the benchmark with the study's record beside it, the runs into their folder.

    Without a database, from an exported file, no event is recorded.
    """
    folder = plan.out if done.bench is not None else None
    if done.bench is not None:
        if folder is None:
            raise UsageError("no folder given for the new version", hint="pass `out='DIR'`")
        save(done.bench, folder, force=plan.force, copy_images=False)
        write_json(folder / RECORD, done.record)
    runs = [str(run.save(plan.runs).path) for run in done.runs]
    written = {"folder": str(folder) if folder else None, "written_runs": runs}
    if db is not None:
        with db.write() as session:
            detail = {"hash": done.bench.hash if done.bench else None, "export": done.record["digest"], **written}
            record(session, actor, "apply", study_named(session, done.record["study"]), detail)
    return done.document | written
