"""Apply the answers of a study: they become a new version of the benchmark, runs of human performance, or tables of
ratings.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from creperie.annotation.database import Database
from creperie.annotation.export import exported, study_record
from creperie.annotation.humanruns import human_runs
from creperie.annotation.outcome import UNANSWERED, WEIGHTED, Judged, Settled, StudyRecord, judged, settle
from creperie.annotation.plans import ApplyPlan
from creperie.annotation.quality import agreement_of, answers_missing, rule_breakers, weights_of
from creperie.annotation.schema import CLOSED
from creperie.annotation.state import log, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.checks import FOIL
from creperie.annotation.tasks.preference import BIAS, FOILS, TIE
from creperie.bench import Benchmark, Item, items_of, load, save, table_of
from creperie.core import CreperieError, Document, Json, UsageError, write_json
from creperie.scoring import Run

ALL = "all"  #: the name of the rows over all subsets
#: File name of the study's record beside the benchmark that results from it.
RECORD = "study.json"
#: The verdict that rejects an item, by task.
AGAINST = {"foil-check": "true", "positive-check": "reject", "triplet-check": "invalid"}


DEFAULT_PLAN = ApplyPlan()


class BrokenRulesError(CreperieError):
    """Raised when annotators broke the study's rules and their answers still count. `document` lists them with the
    reasons, and says how many answers the study would still need if theirs did not count.
    """

    def __init__(self, record: StudyRecord, breakers: Sequence[Json]) -> None:
        study, missing = record["study"], answers_missing(record, breakers)
        self.document = {"study": study, "rule_breakers": breakers, "missing_without_them": missing}
        self.next_step = f"creperie annotate exclude {study} --rules"
        if record["state"] == CLOSED:
            self.next_step = f"creperie annotate stop {study}, then {self.next_step}"
        people = ", ".join(f"{one['annotator']} ({one['why']})" for one in breakers)
        super().__init__(
            f"not applied: annotators broke the study's rules: {people}; without them {missing} answers are missing",
            where=study,
            hint=f"exclude them ({self.next_step}) and let others answer, or pass `as_is=True`",
        )


@dataclass(frozen=True)
class Applied:
    """The result of a study. Tasks that change or tag items produce a benchmark; tasks that measure people's accuracy
    produce runs.
    """

    document: Json
    record: StudyRecord  #: the exported record from which it was computed
    bench: Benchmark | None = None
    runs: tuple[Run, ...] = ()


def apply_study(db: Database, name: str, bench: Benchmark, plan: ApplyPlan = DEFAULT_PLAN) -> Applied:
    """Return the result of a study, as its task defines it. Nothing is written.

    Raise a BrokenRulesError if annotators break the study's rules, unless `plan.as_is` is set.
    """
    with db.read() as session:
        return apply_record(exported(study_record(session, study_named(session, name))), bench, plan)


def apply_record(document: StudyRecord, bench: Benchmark, plan: ApplyPlan = DEFAULT_PLAN) -> Applied:
    """Return what `apply_study` returns, but read the answers from an exported record instead of a database."""
    name, expected, questions = document["study"], document["bench"]["hash"], judged(document)
    if expected != bench.hash:
        raise UsageError(
            f"study {name!r} was made from a different version of this benchmark "
            f"(hash in the study: {expected[:12]}; hash of this benchmark: {bench.hash[:12]})",
            where=bench.name,
            hint="pass the benchmark that the study was made from",
        )
    if not any(one.answers or one.decision for one in questions):
        hint = "run `creperie annotate serve` and send the links of `annotate invite`"
        raise UsageError(f"study {name!r} has no answers yet", hint=hint)
    breakers = rule_breakers(document)
    if breakers and not plan.as_is:
        raise BrokenRulesError(document, breakers)
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
    if breakers:
        about["rule_breakers"] = {one["annotator"]: one["why"] for one in breakers}
    if task.makes == "run":
        runs = human_runs(bench, document, questions, len(breakers))
        results = [{"run": run.name, "model": run.model, **result} for run in runs for result in run.results]
        return Applied(about | {"runs": [r.name for r in runs], "results": results}, document, runs=tuple(runs))
    if task.makes == "rate":
        return _apply_ratings(bench, document, questions, about)
    return _apply_checks(bench, document, questions, about, plan)


def _new_version(bench: Benchmark, items: Sequence[Item], about: Document) -> Benchmark:
    today = datetime.now(UTC).date().isoformat()
    return bench.with_table(table_of(items), "annotate", **about, when=today)


# -- checks ----------------------------------------------------------------------------------------------------------


def _apply_checks(
    bench: Benchmark,
    document: StudyRecord,
    questions: Sequence[Judged],
    about: Json,
    plan: ApplyPlan,
) -> Applied:
    task = task_named(document["task"])
    weights = weights_of(document) if plan.verdict == WEIGHTED else {}
    verdicts: dict[tuple[str, str], list[tuple[Judged, Settled]]] = defaultdict(list)
    settled_by: Counter[str] = Counter()
    for one in questions:
        settled = settle(task, one, weights.get(one.ordinal))
        verdicts[one.subset, one.item].append((one, settled))
        settled_by[settled.how] += 1
    judged_items = [_judge(task.name, i, verdicts[i.subset, i.id], plan.undecided) for i in items_of(bench.table)]
    remaining = [item for item, _ in judged_items if item is not None]
    if not remaining:
        raise UsageError(
            "the new version would contain no items: all are removed or undecided",
            where=bench.name,
            hint="first decide the disputed questions on the owner's pages",
        )
    about |= {"fates": dict(Counter(fate for _, fate in judged_items)), "settled": dict(settled_by)}
    about |= {"undecided": plan.undecided, "verdict": plan.verdict}
    made = _new_version(bench, remaining, about)
    return Applied(about | {"kept": len(remaining), "removed": len(bench) - len(remaining)}, document, made)


#: Tags that a maker gives for the captions that it proposes, and that other captions do not have.
OF_ALL_CAPTIONS = ("decidable", "undecided_because")


def _judge(task: str, item: Item, asked: Sequence[tuple[Judged, Settled]], undecided: str) -> tuple[Item | None, str]:
    """Return an item after applying people's verdicts, followed by what happened to it. The item is None if it is
    removed. `undecided` says what becomes of undecided items: `drop` or `keep`.
    """
    if all(s.how == UNANSWERED for _, s in asked):
        return item, "not judged"
    open_ = [s for _, s in asked if s.value is None or s.value["verdict"] == "unsure"]
    if open_ and undecided == "drop":
        return None, "removed (undecided)"
    against = [one for one, s in asked if s.value is not None and s.value["verdict"] == AGAINST[task]]
    tags = {**item.tags, f"people.{task}": "undecided" if open_ else "confirmed"}
    others = {name: tag for name, tag in tags.items() if name not in OF_ALL_CAPTIONS}
    if against:
        rest = _without_columns(item, {one.payload["column"] for one in against}) if task == FOIL else None
        if rest is None:
            return None, "removed"
        return replace(rest, tags={**others, f"people.{task}": "foil removed"}), "foil removed"
    if (corrected := _corrected(item, asked)) is not None:
        fate = "corrected" if set(corrected.captions) - set(item.captions) else "foil chosen"
        return replace(corrected, tags={**others, f"people.{task}": fate}), fate
    return replace(item, tags=tags), "undecided" if open_ else "confirmed"


def _without_columns(item: Item, columns: set[int]) -> Item | None:
    """Return a copy of an item without the foils in `columns`, which people found to be true. Return None if no foil is
    left, or if several images share the item's captions.
    """
    if len(item.images) > 1:
        return None
    left = [j for j in range(len(item.captions)) if j not in columns]
    row = tuple(item.match[0][j] for j in left)
    if all(row):
        return None
    return replace(item, captions=tuple(item.captions[j] for j in left), match=(row,))


def _corrected(item: Item, asked: Sequence[tuple[Judged, Settled]]) -> Item | None:
    """Return a copy of an item with people's corrections to its captions. If people chose one of its foils, only that
    foil is kept. Return None if nothing changes.
    """
    captions, dropped = list(item.captions), set[int]()
    for one, settled in asked:
        value = settled.value or {}
        if value.get("verdict") == "edit":
            captions[one.payload["column"]] = value["text"]
        if "foil" in value:
            dropped |= {j for j, fits in enumerate(item.match[0]) if not fits and str(j) != value["foil"]}
    if tuple(captions) == item.captions and not dropped:
        return None
    return _without_columns(replace(item, captions=tuple(captions)), dropped)


# -- ratings ---------------------------------------------------------------------------------------------------------


def _apply_ratings(bench: Benchmark, document: StudyRecord, questions: Sequence[Judged], about: Json) -> Applied:
    """Return the result of a study that compares or rates texts: a table, and a benchmark with the answers as tags."""
    tags: dict[tuple[str, str], dict[str, str | float]] = defaultdict(dict)
    if document["task"] == FOILS:
        table = _preference_table(questions, tags)
    else:
        ratings = [(one, float(np.mean(values))) for one in questions if (values := _values(one, "rating"))]
        table = rating_table(ratings)
        for one, rating in ratings:
            if one.source == bench.name:
                tags[one.subset, one.item][f"people.{BIAS}"] = rating
    items = [replace(i, tags={**i.tags, **tags.get((i.subset, i.id), {})}) for i in items_of(bench.table)]
    return Applied(about | {"table": table, "tagged": len(tags)}, document, _new_version(bench, items, about))


def _values(one: Judged, name: str) -> list[Any]:
    """Return the values that people gave to the field `name` of a question. If an owner or adjudicator decided the
    question, return only their decision. Return an empty list while answers are missing.
    """
    if one.decision is not None:
        return [one.decision["value"][name]]
    return [s.value[name] for s in one.answers] if one.complete else []


def _preference_table(questions: Sequence[Judged], tags: Mapping[tuple[str, str], Json]) -> list[Json]:
    """Return how often the foils of each source were preferred, by subset and criterion ("sense" and "grammar"), with
    the number of ties. For each item, the source whose foil most people chose, or TIE, is added to `tags`.
    """
    rows: dict[tuple[bool, str, str], Json] = {}
    for one, name in itertools.product(questions, ("sense", "grammar")):
        if not (ranked := Counter(_values(one, name)).most_common(2)):
            continue
        sources = one.payload["sources"]
        tie = ranked[0][0] == TIE or (len(ranked) == 2 and ranked[0][1] == ranked[1][1])
        winner = TIE if tie else sources[int(ranked[0][0])]
        tags[one.subset, one.item][f"people.better-{name}"] = winner
        for subset in (one.subset, ALL):
            empty = {"subset": subset, "evaluation": name, "n": 0} | dict.fromkeys((*sources, TIE), 0)
            row = rows.setdefault((subset == ALL, subset, name), empty)
            row["n"] += 1
            row[winner] += 1
    return [rows[key] for key in sorted(rows)]


def rating_table(ratings: Sequence[tuple[Judged, float]]) -> list[Json]:
    """Return the mean rating of the items of each source, by subset, with a 95 % interval. Items have equal weights."""
    groups: dict[tuple[str, bool, str], list[float]] = defaultdict(list)
    for one, rating in ratings:
        for subset in (one.subset, ALL):
            groups[one.source, subset == ALL, subset].append(rating)
    rows = []
    for (source, _, subset), values in sorted(groups.items()):
        mean, n = statistics.fmean(values), len(values)
        half = 1.96 * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan
        rows.append({"source": source, "subset": subset, "n": n, "mean": mean, "low": mean - half, "high": mean + half})
    return rows


# -- reading and writing -----------------------------------------------------------------------------------------------


def bench_of(db: Database, name: str, spec: str | None = None, images: str | None = None) -> Benchmark:
    """Load the benchmark of a study. `spec` names it; by default, the spec stored with the study is used. `images` says
    where its images are, if not in their usual place.
    """
    with db.read() as session:
        study = study_named(session, name)
    where = spec or study.bench.get("spec")
    if not where:
        raise UsageError(f"study {name!r} does not say where its benchmark is", hint="pass `bench=`")
    return load(where, images=images)


def write_applied(db: Database | None, done: Applied, plan: ApplyPlan) -> Json:
    """Write the result of a study to files: either the benchmark and the study's record, or the runs. Return the result
    as a JSON document that includes the paths of the files.

    If `db` is given, an event is added to its audit trail. `db` is None if the answers come from an exported file.
    """
    folder = plan.out if done.bench is not None else None
    if done.bench is not None:
        if folder is None:
            raise UsageError("no folder given for the new version", hint="pass `out='DIR'`")
        save(done.bench, folder, force=plan.force, copy_images=False)
        write_json(folder / RECORD, done.record, plain=True)  # an export, which holds its own digest
    runs = [str(run.save(plan.runs).path) for run in done.runs]
    written = {"folder": str(folder) if folder else None, "written_runs": runs}
    if db is not None:
        with db.write() as session:
            study, made = study_named(session, done.record["study"]), done.bench.hash if done.bench else None
            log(session, "cli", "apply", study, hash=made, export=done.record["digest"], **written)
    return done.document | written
