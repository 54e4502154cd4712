"""How far people can be trusted: agreement, competence, signs of cheating, and the rules that exclude."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.assignment import arrivals
from creperie.annotation.competence import Competence, Votes, dawid_skene, habit_odds, too_alike
from creperie.annotation.export import study_record
from creperie.annotation.outcome import Judged, StudyRecord, disagreements, judged, settle
from creperie.annotation.schema import (
    ATTENTION,
    DONE,
    HELD,
    MAIN,
    SKIP,
    UNVERIFIED,
    VOID,
    Annotator,
    Link,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.task import Dimension, StudyTask
from creperie.metrics import Agreement, MetricSettings, cohen_kappa, fleiss_kappa, krippendorff_alpha, percent_agreement

#: Cohen's kappa is for two raters; for more, every pair is listed up to this many annotators.
PAIRS_UP_TO = 6
#: A setting for checks says nothing about somebody who had fewer.
FEWEST_CHECKS = 2
#: An annotator is ruled out when a habit explains their answers so many times better than honest work.
ODDS = 5.0
#: Answers are too regular when their times vary by less than this share, over so many answers.
REGULAR, FEWEST_TIMES = 0.05, 10
#: Two accounts keep the same pace when their answers to so many common questions lie the same seconds apart, nearly.
COMMON, PACE_SECONDS = 6, 20.0


# -- agreement -------------------------------------------------------------------------------------------------------


def agreement(record: StudyRecord) -> list[dict[str, Any]]:
    """Every coefficient for every dimension of the task, with intervals over items."""
    questions = judged(record)
    # Questions about one picture, or about one item, are not independent.
    keys: dict[Any, int] = {}
    same = [keys.setdefault(tuple(one.question.payload["images"]) or one.key, len(keys)) for one in questions]
    return [
        {"dimension": dimension.name, "who": who, **asdict(one)}
        for dimension in task_named(record["task"]).dimensions
        for who, one in _coefficients(dimension, questions, np.array(same, np.int64))
    ]


def rating_matrix(dimension: Dimension, questions: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """Questions × annotators, NaN for no answer."""
    names = sorted({s.annotator for one in questions for s in one.answers})
    column = {name: n for n, name in enumerate(names)}
    matrix = np.full((len(questions), len(names)), np.nan)
    for row, one in enumerate(questions):
        for given in one.answers:
            matrix[row, column[given.annotator]] = dimension.code(one.question.payload, given.value)
    return matrix, names


def agreement_of(task: StudyTask, questions: Sequence[Judged]) -> tuple[list[str], int, float | None]:
    """Return who answered, how many answers there are, and Krippendorff's alpha of the first dimension."""
    matrix, names = rating_matrix(task.dimensions[0], questions)
    alpha = krippendorff_alpha(matrix, task.dimensions[0].scale).value if len(names) > 1 else math.nan
    return names, int((~np.isnan(matrix)).sum()), None if math.isnan(alpha) else round(alpha, 4)


def _coefficients(
    dimension: Dimension, questions: Sequence[Judged], clusters: np.ndarray
) -> list[tuple[str, Agreement]]:
    matrix, names = rating_matrix(dimension, questions)
    if len(names) < 2:
        return []
    settings, nominal = MetricSettings(), dimension.scale == "nominal"
    raters = (~np.isnan(matrix)).sum(axis=1)
    rows = [("all", percent_agreement(matrix, clusters, settings))]
    rows.append(("all", krippendorff_alpha(matrix, dimension.scale, clusters, settings)))
    if nominal and (raters >= 2).any():
        common = int(np.bincount(raters[raters >= 2]).argmax())
        same = raters == common
        rows.append((f"{common} answers each", fleiss_kappa(matrix[same], clusters[same], settings)))
    for a, b in itertools.combinations(range(len(names)), 2) if len(names) <= PAIRS_UP_TO else ():
        both = ~np.isnan(matrix[:, [a, b]]).any(axis=1)
        if both.any():
            one, two = matrix[both, a], matrix[both, b]
            kappa = cohen_kappa(one, two, "none" if nominal else "quadratic", clusters[both], settings)
            rows.append((f"{names[a]}, {names[b]}", kappa))
    return rows


# -- evidence ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerEvidence:
    """The answers of everybody who counts as votes, and what they say about competence.

    `names` are the people and `codes` the labels; the first rows of the posterior are those of `questions`.
    """

    questions: list[Judged]
    names: list[str]
    codes: list[float]
    votes: Votes
    estimate: Competence


def evidence_of(record: StudyRecord) -> AnswerEvidence | None:
    """Return the answers as votes with estimates of competence; None without answers. Ratings count by their sign."""
    dimension = task_named(record["task"]).dimensions[0]
    questions = judged(record)
    asked = [*questions, *judged(record, ATTENTION)]

    def code(one: Judged, value: Any) -> float:
        number = dimension.code(one.question.payload, value)
        return float(np.sign(number)) if dimension.scale == "interval" else number

    given = [(n, s.annotator, code(one, s.value)) for n, one in enumerate(asked) for s in one.answers]
    known = {n: code(one, one.question.expected) for n, one in enumerate(asked) if one.question.expected is not None}
    if not given:
        return None
    codes = sorted({row[2] for row in given} | set(known.values()))
    names = sorted({row[1] for row in given})
    truth = np.array([codes.index(known[n]) if n in known else -1 for n in range(len(asked))])
    numbers = [(n, names.index(name), codes.index(c)) for n, name, c in given]
    question, person, label = np.array(numbers, np.int64).T
    votes = Votes(question, person, label, truth, len(names), max(2, len(codes)))
    return AnswerEvidence(questions, names, codes, votes, dawid_skene(votes))


def weights_of(record: StudyRecord) -> dict[int, dict[float, float]]:
    """Probabilities of the codes of every question, by its number, when people are weighted by their competence."""
    evidence = evidence_of(record)
    if evidence is None:
        return {}
    rows = zip(evidence.questions, evidence.estimate.posterior.tolist())
    return {one.question.ordinal: dict(zip(evidence.codes, row)) for one, row in rows if one.answers}


# -- people ----------------------------------------------------------------------------------------------------------


def measured(record: StudyRecord) -> list[dict[str, Any]]:
    """Per annotator: answers, skips, speed, checks passed, competence, the log-odds of a habit, and flags."""
    task, evidence = task_named(record["task"]), evidence_of(record)
    estimates: dict[str, tuple[float, float]] = {}
    if evidence:
        odds = habit_odds(evidence.votes, evidence.estimate).tolist()
        estimates = dict(zip(evidence.names, zip(evidence.estimate.accuracy.tolist(), odds)))
    own, checks = defaultdict(list), defaultdict(list)
    for one in judged(record, everyone=True):
        for given in one.answers:
            own[given.annotator].append(given)
    for one in judged(record, ATTENTION, everyone=True):
        for given in one.answers:
            checks[given.annotator].append(task.right(given.value, one.question.expected or {}))
    skips, flags = _skips(record), flagged(record, evidence)
    rows = []
    for person in record["people"]:
        name = person["annotator"]
        seconds = [s.seconds for s in own[name] if s.seconds is not None]
        competence, odds_of_habit = estimates.get(name, (math.nan, math.nan))
        rows.append(
            {
                "annotator": name,
                "excluded": person["excluded"] is not None,
                "withdrawn": person["withdrawn"] is not None,
                "answers": len(own[name]),
                "skipped": skips[name, MAIN],
                "comments": sum(bool(s.comment) for s in own[name]),
                "median_seconds": statistics.median(seconds) if seconds else math.nan,
                "active_seconds": sum(seconds),
                "attention_passed": sum(checks[name]),
                "attention_asked": len(checks[name]) + skips[name, ATTENTION],  # who skips a check does not pass it
                "competence": competence,
                "odds_of_habit": odds_of_habit,
                "flags": flags.get(name, []),
                "last": max((s.at for s in own[name]), default=None),
            }
        )
    return rows


def _skips(record: StudyRecord) -> Counter[tuple[str, str]]:
    """Skipped questions by annotator and kind, less those that were taken back."""
    kinds = {q["ordinal"]: q["kind"] for q in record["questions"]}
    last = {(row["annotator"], row["question"]): row["event"] for row in record["answers"]}
    return Counter((who, kinds[question]) for (who, question), event in last.items() if event == SKIP)


def flagged(record: StudyRecord, evidence: AnswerEvidence | None) -> dict[str, list[str]]:
    """Return what is odd about people: answers that agree too well, the same order and pace, times like a machine's."""
    flags: dict[str, list[str]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    common: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in judged(record, everyone=True):
        for given in one.answers:
            seconds[given.annotator].append(given.seconds or 0.0)
        for x, y in itertools.combinations(sorted(one.answers, key=lambda s: s.annotator), 2):
            common[x.annotator, y.annotator].append((x.at, y.at))
    for name, times in seconds.items():
        if len(times) >= FEWEST_TIMES and 0 < statistics.mean(times) * REGULAR > statistics.pstdev(times):
            flags[name].append("answer times are as regular as a machine's")
    pairs = [(*pair, "same questions in the same order and pace as") for pair, at in common.items() if _same_pace(at)]
    for a, b, p in too_alike(evidence.votes, evidence.estimate) if evidence else ():
        assert evidence is not None
        why = f"agrees more than two people would (p = {p:.1g}) with"
        pairs.append((evidence.names[a], evidence.names[b], why))
    for one_name, other, why in pairs:
        flags[one_name].append(f"{why} {other}")
        flags[other].append(f"{why} {one_name}")
    return dict(flags)


def _same_pace(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return True if all common questions came in one order, a nearly constant time apart: one person, two accounts."""
    ordered = sorted(pairs)
    gaps = [y - x for x, y in ordered]
    in_order = all(p[1] < q[1] for p, q in itertools.pairwise(ordered))
    return len(pairs) >= COMMON and in_order and max(gaps) - min(gaps) < PACE_SECONDS


def ruled_out(settings: StudySettings, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return whom the rules exclude, and why, without those who are excluded or withdrew already."""
    reasons = {row["annotator"]: "; ".join(_reasons(settings, row)) for row in rows if not row["excluded"]}
    return [{"annotator": name, "why": why} for name, why in reasons.items() if why]


def _reasons(settings: StudySettings, row: Mapping[str, Any]) -> list[str]:
    reasons = []
    if row["odds_of_habit"] > math.log(ODDS):
        odds = math.exp(min(20, row["odds_of_habit"]))
        reasons.append(f"answers do not depend on the questions (odds {odds:.0f} to 1)")
    asked, failed = row["attention_asked"], row["attention_asked"] - row["attention_passed"]
    most = settings.max_attention_failures
    if most is not None and asked >= FEWEST_CHECKS and failed / asked > most:
        reasons.append(f"failed {failed} of {asked} checks")
    median, least = row["median_seconds"], settings.min_median_seconds
    if least is not None and row["answers"] and median < least:
        reasons.append(f"median time {median:.1f} s, below {least:g} s")
    return reasons


# -- all of it -------------------------------------------------------------------------------------------------------


def progress(session: Session, study: StudyRow) -> list[dict[str, Any]]:
    """Slots by subset: how many there are, how many are done, how many are in somebody's hands."""
    rows = session.execute(
        select(Question.subset, Slot.state, func.count())
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.study_id == study.id, Slot.kind == MAIN)
        .group_by(Question.subset, Slot.state)
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for subset, state, n in rows:
        counts[subset][state] = n
    return [
        {"subset": subset, "slots": sum(own.values()) - own[VOID], "done": own[DONE], "held": own[HELD]}
        for subset, own in sorted(counts.items())
    ]


def overview(session: Session, study: StudyRow) -> dict[str, Any]:
    """A study as its owner sees it."""
    record = study_record(session, study)
    task, subsets, questions = task_named(study.task), progress(session, study), judged(record)
    arrived, expected = arrivals(session, study, settings_of(study.settings))
    differ = disagreements(task, questions)
    return {
        "study": study.name,
        "task": study.task,
        "state": study.state,
        "bench": study.bench,
        "plan": study.plan,
        "revision": study.revision,
        "arrived": arrived,
        "expected": expected,
        **{part: sum(row[part] for row in subsets) for part in ("slots", "done", "held")},
        "subsets": subsets,
        "questions": len(questions),
        "settled": dict(Counter(settle(task, one).how for one in questions)),
        "disagreements": len(differ),
        "to_adjudicate": sum(one.decision is None for one in differ),
        "agreement": agreement(record),
        "annotators": annotator_rows(session, study, record),
    }


def annotator_rows(session: Session, study: StudyRow, record: StudyRecord) -> list[dict[str, Any]]:
    """Return what was measured about each annotator, with quota, note, entry and links from the tables."""
    last = select(Link.annotator_id, func.max(Link.expires)).where(Link.revoked.is_(None)).group_by(Link.annotator_id)
    open_links: dict[int | None, float] = dict(session.execute(last).all())
    everybody = session.scalars(select(Annotator).where(Annotator.study_id == study.id))
    people = {one.pseudonym: one for one in everybody}
    stored = ("quota", "note", "entry", "worker", "excluded_why", "outcome")
    return [
        {
            **row,
            **{name: getattr(people[row["annotator"]], name) for name in stored},
            "counts": not row["excluded"] and people[row["annotator"]].entry != UNVERIFIED,
            "expires": open_links.get(people[row["annotator"]].id),  # None where all links were revoked
        }
        for row in measured(record)
    ]
