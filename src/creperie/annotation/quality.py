"""The reliability of annotators: agreement, competence, signs of cheating, and the rules for excluding people."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.assignment import arrivals
from creperie.annotation.export import study_record
from creperie.annotation.outcome import (
    Judged,
    LastAnswer,
    StudyRecord,
    disagreements,
    judged,
    people_who_count,
    settle,
    without_people,
)
from creperie.annotation.schema import (
    ATTENTION,
    DONE,
    FREE,
    HELD,
    MAIN,
    SKIP,
    Annotator,
    Link,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.task import Dimension, StudyTask
from creperie.core import Document, Json
from creperie.metrics import (
    Agreement,
    Competence,
    MetricSettings,
    Votes,
    cohen_kappa,
    dawid_skene,
    fleiss_kappa,
    habit_odds,
    krippendorff_alpha,
    percent_agreement,
    too_alike,
)

#: Cohen's kappa is for two raters: every pair of annotators is listed if there are at most this many.
PAIRS_UP_TO = 6
#: Fewest attention checks to which an exclusion rule applies. Whoever fails all of `ALL_FAILED` or more is excluded
#: whatever the settings say.
FEWEST_CHECKS, ALL_FAILED = 2, 3
#: Accuracy is estimated from at least this many answers that can be compared with others' or with known ones.
FEWEST_COMPARED = 5
#: An annotator is excluded if the odds of answering by habit, not by the questions, exceed this.
ODDS = 5.0
#: Where opinions are asked for, that rule needs people who agree: for half of them the odds of honest work must exceed
#: `ODDS` to this power. Simulated ratings without any agreement exclude nobody; without it, 3 in 10.
OPINIONS = 3
#: Answers are too regular if their times vary by less than this share, over at least this many answers.
REGULAR, FEWEST_TIMES = 0.05, 10
#: Two accounts keep the same pace if this many common answers lie a nearly constant number of seconds apart.
COMMON, PACE_SECONDS = 6, 20.0


# -- agreement -------------------------------------------------------------------------------------------------------


def agreement(record: StudyRecord) -> list[Json]:
    """Return every coefficient of agreement, for each dimension of the task (each aspect of an answer). For the
    confidence intervals, questions about the same picture form a cluster; without pictures, questions about the same
    item do.
    """
    questions = judged(record)
    # Questions about one picture, or about one item, are not independent.
    keys = [tuple(one.payload["images"]) or (one.source, one.subset, one.item) for one in questions]
    numbers = {key: n for n, key in enumerate(keys)}
    return [
        {"dimension": dimension.name, "who": who, **asdict(one)}
        for dimension in task_named(record["task"]).dimensions
        for who, one in _coefficients(dimension, questions, np.array([numbers[key] for key in keys], np.int64))
    ]


def rating_matrix(dimension: Dimension, questions: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """Return a matrix of questions × annotators, and the names of the annotators. NaN marks a missing answer."""
    names = sorted({s.annotator for one in questions for s in one.answers})
    matrix = np.full((len(questions), len(names)), np.nan)
    for row, one in enumerate(questions):
        for given in one.answers:
            matrix[row, names.index(given.annotator)] = dimension.code(one.payload, given.value)
    return matrix, names


def agreement_of(task: StudyTask, questions: Sequence[Judged]) -> tuple[list[str], int, float | None]:
    """Return the annotators, the number of answers, and Krippendorff's alpha (None if undefined). If an answer has
    several aspects (`Dimension`), alpha is that of the first.
    """
    matrix, names = rating_matrix(task.dimensions[0], questions)
    alpha = krippendorff_alpha(matrix, task.dimensions[0].scale).value if len(names) > 1 else math.nan
    return names, int((~np.isnan(matrix)).sum()), None if math.isnan(alpha) else round(alpha, 4)


def _coefficients(
    dimension: Dimension, questions: Sequence[Judged], clusters: np.ndarray
) -> Iterator[tuple[str, Agreement]]:
    matrix, names = rating_matrix(dimension, questions)
    if len(names) < 2:
        return
    settings, nominal = MetricSettings(), dimension.scale == "nominal"
    raters = (~np.isnan(matrix)).sum(axis=1)
    yield "all", percent_agreement(matrix, clusters, settings)
    yield "all", krippendorff_alpha(matrix, dimension.scale, clusters, settings)
    if nominal and (raters >= 2).any():
        common = int(np.bincount(raters[raters >= 2]).argmax())
        same = raters == common
        yield f"{common} answers each", fleiss_kappa(matrix[same], clusters[same], settings)
    for a, b in itertools.combinations(range(len(names)), 2) if len(names) <= PAIRS_UP_TO else ():
        both = ~np.isnan(matrix[:, [a, b]]).any(axis=1)
        if both.any():
            one, two = matrix[both, a], matrix[both, b]
            kappa = cohen_kappa(one, two, "none" if nominal else "quadratic", clusters[both], settings)
            yield f"{names[a]}, {names[b]}", kappa


# -- evidence ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerEvidence:
    """The votes of everybody whose answers count, and estimates from these votes.

    `names` are the people and `codes` the possible answers as numbers. `estimate` holds each person's competence, and
    the probability that each answer to a question is right. Its questions are the main ones, followed by the attention
    checks.
    """

    names: list[str]
    codes: list[float]
    votes: Votes
    estimate: Competence


def evidence_of(record: StudyRecord) -> AnswerEvidence:
    """Return the answers as votes, with estimates of competence. In tasks that rate texts, the vote is the sign of the
    rating.
    """
    dimension = task_named(record["task"]).dimensions[0]
    asked = [*judged(record), *judged(record, ATTENTION)]

    def code(one: Judged, value: Any) -> float:
        number = dimension.code(one.payload, value)
        return float(np.sign(number)) if dimension.scale == "interval" else number

    given = [(n, s.annotator, code(one, s.value)) for n, one in enumerate(asked) for s in one.answers]
    known = {n: code(one, one.expected) for n, one in enumerate(asked) if one.expected is not None}
    names = sorted({name for _, name, _ in given})
    codes = sorted({number for *_, number in given} | set(known.values()))
    truth = np.array([codes.index(known[n]) if n in known else -1 for n in range(len(asked))])
    numbers = [(n, names.index(name), codes.index(number)) for n, name, number in given]
    question, person, label = np.array(numbers, np.int64).reshape(-1, 3).T
    votes = Votes(question, person, label, truth, len(names), max(2, len(codes)))
    return AnswerEvidence(names, codes, votes, dawid_skene(votes))


def weights_of(record: StudyRecord) -> dict[int, dict[float, float]]:
    """Return, by question number, a mapping from the code of each possible answer to the probability that this answer
    is right. Answers of more competent annotators have more weight.
    """
    evidence = evidence_of(record)
    rows = zip(judged(record), evidence.estimate.posterior.tolist())
    return {one.ordinal: dict(zip(evidence.codes, row)) for one, row in rows if one.answers}


# -- people ----------------------------------------------------------------------------------------------------------


def annotator_measures(record: StudyRecord, evidence: AnswerEvidence) -> Iterator[Json]:
    """Yield one row per annotator: answers, skips, speed, checks passed, competence, and the log-odds that the answers
    are a habit that ignores the questions.
    """
    task = task_named(record["task"])
    odds: list[float] = habit_odds(evidence.votes, evidence.estimate).tolist()
    if task.makes == "rate" and odds and statistics.median(odds) > -OPINIONS * math.log(ODDS):
        odds = [math.nan] * len(odds)  # opinions vary too much to tell
    estimates = dict(zip(evidence.names, zip(_accuracies(evidence), odds)))
    own, checks = (_by_annotator(judged(record, kind, everyone=True)) for kind in (MAIN, ATTENTION))
    kinds = {q["ordinal"]: q["kind"] for q in record["questions"]}
    last = {(row["annotator"], row["question"]): row["event"] for row in record["answers"]}  # perhaps taken back
    skips = Counter((who, kinds[question]) for (who, question), event in last.items() if event == SKIP)
    for person in record["people"]:
        name = person["annotator"]
        seconds = [s.seconds for _, s in own[name] if s.seconds is not None]
        competence, odds_of_habit = estimates.get(name, (math.nan, math.nan))
        yield {
            "annotator": name,
            "excluded": person["excluded"] is not None,
            "withdrawn": person["withdrawn"] is not None,
            "answers": len(own[name]),
            "skipped": skips[name, MAIN],
            "median_seconds": statistics.median(seconds) if seconds else math.nan,
            "active_seconds": sum(seconds),
            "attention_passed": sum(task.right(s.value, one.expected or {}) for one, s in checks[name]),
            "attention_asked": len(checks[name]) + skips[name, ATTENTION],  # a skipped check counts as not passed
            "competence": competence,
            "odds_of_habit": odds_of_habit,
            "last": max((s.at for _, s in own[name]), default=None),
        }


def _accuracies(evidence: AnswerEvidence) -> list[float]:
    """Return the estimated accuracy of each person. It is NaN for a person with fewer than `FEWEST_COMPARED` answers
    that can be compared with other people's answers or with a known right answer.
    """
    # With fewer answers, the estimate would be little more than the prior.
    votes = evidence.votes
    compared = (np.bincount(votes.question, minlength=len(votes.truth)) > 1) | (votes.truth >= 0)
    answers = np.bincount(votes.person[compared[votes.question]], minlength=votes.people)
    return np.where(answers < FEWEST_COMPARED, np.nan, evidence.estimate.accuracy).tolist()


def _by_annotator(questions: Sequence[Judged]) -> dict[str, list[tuple[Judged, LastAnswer]]]:
    """Return the (question, answer) pairs of each annotator."""
    given: dict[str, list[tuple[Judged, LastAnswer]]] = defaultdict(list)
    for one in questions:
        for own in one.answers:
            given[own.annotator].append((one, own))
    return given


def _flags(questions: Sequence[Judged], evidence: AnswerEvidence) -> dict[str, list[str]]:
    """Return warnings for each annotator. There are three kinds: the annotator agrees too often with another one,
    answers in the same order and at the same pace as another one, or has answer times as regular as a machine's.
    """
    flags: dict[str, list[str]] = defaultdict(list)
    common: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in questions:
        for x, y in itertools.combinations(sorted(one.answers, key=lambda s: s.annotator), 2):
            common[x.annotator, y.annotator].append((x.at, y.at))
    for name, own in _by_annotator(questions).items():
        times = [s.seconds or 0.0 for _, s in own]
        if len(times) >= FEWEST_TIMES and 0 < statistics.mean(times) * REGULAR > statistics.pstdev(times):
            flags[name].append("answer times are as regular as a machine's")
    pairs = [(*pair, "same questions in the same order and pace as") for pair, at in common.items() if _same_pace(at)]
    for a, b, p in too_alike(evidence.votes, evidence.estimate):
        why = f"agrees more than independent people would (p = {p:.1g}) with"
        pairs.append((evidence.names[a], evidence.names[b], why))
    for one_name, other, why in pairs:
        flags[one_name].append(f"{why} {other}")
        flags[other].append(f"{why} {one_name}")
    return flags


def _same_pace(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return True if two annotators answered their common questions in the same order and at the same pace, which
    suggests that they are one person. `pairs` holds their two answer times for each common question.
    """
    ordered = sorted(pairs)
    gaps = [y - x for x, y in ordered]
    in_order = all(p[1] < q[1] for p, q in itertools.pairwise(ordered))
    return len(pairs) >= COMMON and in_order and max(gaps) - min(gaps) < PACE_SECONDS


def rule_breakers(record: StudyRecord) -> list[Json]:
    """Return the people whose answers count although they break a rule of the study. Each row has the reason and a
    round number.

    In each round, the people found in earlier rounds are left out and all others are judged again, until nobody breaks
    a rule.
    """
    settings = settings_of(record["revisions"][-1]["settings"])
    breakers: list[Json] = []
    while True:
        left = without_people(record, {one["annotator"] for one in breakers})
        names, rows = people_who_count(left), annotator_measures(left, evidence_of(left))
        reasons = {row["annotator"]: "; ".join(_reasons(settings, row)) for row in rows if row["annotator"] in names}
        broken = {name: why for name, why in reasons.items() if why}
        if not broken:
            return breakers
        turn = breakers[-1]["round"] + 1 if breakers else 1
        breakers += [{"annotator": name, "why": why, "round": turn} for name, why in broken.items()]


def answers_missing(record: StudyRecord, breakers: Sequence[Document] = ()) -> int:
    """Return how many answers the questions still need if the answers of `breakers` are not counted."""
    questions = judged(without_people(record, {one["annotator"] for one in breakers}))
    return sum(max(0, one.asked - len(one.answers)) for one in questions if one.decision is None)


def _reasons(settings: StudySettings, row: Document) -> Iterator[str]:
    if row["odds_of_habit"] > math.log(ODDS):
        odds = math.exp(min(20, row["odds_of_habit"]))
        yield f"answers do not depend on the questions (odds {odds:,.0f} to 1)"
    asked, failed = row["attention_asked"], row["attention_asked"] - row["attention_passed"]
    most = settings.max_attention_failures
    too_many = most is not None and asked >= FEWEST_CHECKS and failed / asked > most
    if too_many or failed == asked >= ALL_FAILED:
        yield f"failed {failed} of {asked} checks"
    median, least = row["median_seconds"], settings.min_median_seconds
    if least is not None and row["answers"] and median < least:
        yield f"median time {median:.1f} s, below {least:g} s"


# -- overview --------------------------------------------------------------------------------------------------------


def progress(session: Session, study: StudyRow) -> list[Json]:
    """Return one row for each subset: how many answers are requested, how many of these were given, and how many
    questions annotators are working on at the moment.
    """
    asked = select(Question.subset, Slot.state).join(Question, Question.id == Slot.question_id)
    counts = Counter(map(tuple, session.execute(asked.where(Slot.study_id == study.id, Slot.kind == MAIN))))
    return [
        {
            "subset": subset,
            "slots": sum(counts[subset, state] for state in (FREE, HELD, DONE)),
            "done": counts[subset, DONE],
            "held": counts[subset, HELD],
        }
        for subset in sorted({subset for subset, _ in counts})
    ]


def overview(session: Session, study: StudyRow) -> Json:
    """Return everything that the owner's dashboard shows of a study."""
    record = study_record(session, study)
    task, subsets, questions = task_named(study.task), progress(session, study), judged(record)
    arrived, expected = arrivals(session, study, settings_of(study.settings))
    differ, breakers = disagreements(task, questions), rule_breakers(record)
    people = annotator_rows(session, study, record, breakers)
    slots, each = sum(row["slots"] for row in subsets), study.plan.get("per_annotator")
    most = each and max(expected, arrived) * each
    return {
        "study": study.name,
        **study.part("task", "state", "bench", "plan", "revision"),
        "arrived": arrived,
        "begun": sum(bool(one["answers"]) for one in people),
        "reachable": min(slots, most) if most else slots,
        "expected": expected,
        **{name: sum(row[name] for row in subsets) for name in ("slots", "done", "held")},
        "subsets": subsets,
        "questions": len(questions),
        "settled": dict(Counter(settle(task, one).how for one in questions)),
        "disagreements": len(differ),
        "to_adjudicate": sum(one.decision is None for one in differ),
        "agreement": agreement(record),
        "rule_breakers": breakers,
        "missing_without_them": answers_missing(record, breakers),
        "annotators": people,
        "without_accuracy": [
            p["annotator"] for p in people if p["answers"] and not (p["excluded"] or p["competence"] > 0)
        ],
    }


def annotator_rows(session: Session, study: StudyRow, record: StudyRecord, breakers: Sequence[Document]) -> list[Json]:
    """Return the rows of `annotator_measures` with each annotator's quota, note, way of entry and links."""
    last = select(Link.annotator_id, func.max(Link.expires)).where(Link.revoked.is_(None)).group_by(Link.annotator_id)
    open_links: dict[int | None, float] = dict(session.execute(last).all())
    everybody = session.scalars(select(Annotator).where(Annotator.study_id == study.id))
    stored = {
        one.pseudonym: one.part("quota", "note", "entry", "worker", "excluded_why", "outcome")
        | {"expires": open_links.get(one.id)}  # None if all links were revoked
        for one in everybody
    }
    evidence = evidence_of(record)
    flags = _flags(judged(record, everyone=True), evidence)
    for one in breakers:
        flags[one["annotator"]].insert(0, f"breaks a rule: {one['why']}")
    rows = annotator_measures(record, evidence)
    return [{**row, **stored[row["annotator"]], "flags": flags[row["annotator"]]} for row in rows]
