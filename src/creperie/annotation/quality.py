"""How far people can be trusted: agreement, competence, and signs of cheating.

Competence is estimated by MACE (Hovy et al. 2013): an annotator either knows the answer or says something from a habit
of their own that does not depend on the question. Questions with a known answer are part of it, with their answer
fixed. crowd-kit has the same model, but depends on transformers and nltk, which a server for annotators does not need.
"""

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
from creperie.annotation.export import study_record
from creperie.annotation.outcome import (
    Judged,
    Said,
    StudyRecord,
    counting,
    disagreements,
    judged,
    settle,
)
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
#: A rule says nothing about somebody with less evidence than this.
FEWEST_CHECKS, FEWEST_ANSWERS, FEWEST_COMPARED = 2, 5, 10
#: An annotator is ruled out when answers that ignore the question explain theirs so many times better than answers of
#: somebody with `NEARLY` the usual competence would.
ODDS, NEARLY = 50.0, 0.8
#: Two people are flagged when so much agreement has less than this probability, over all pairs.
CHANCE = 0.01
#: Answers are too regular when their times vary by less than this share, over so many answers.
REGULAR, FEWEST_TIMES = 0.05, 10


# -- competence ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Votes:
    """Answers as numbers: one row each of question, person and label; `truth` is the known label, or -1."""

    question: np.ndarray
    person: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    people: int
    labels: int


@dataclass(frozen=True)
class Competence:
    """What MACE says: P(label of a question), P(a person knows), P(label | a person does not know), and odds.

    `odds` is the log of how much better a habit explains a person's answers than nearly the usual competence.
    """

    posterior: np.ndarray
    knows: np.ndarray
    habit: np.ndarray
    odds: np.ndarray


def mace(votes: Votes, rounds: int = 60) -> Competence:
    """Estimate competence and answers by expectation and maximisation.

    >>> question, person = np.divmod(np.arange(30), 3)
    >>> label = np.where(person < 2, question % 2, 0)
    >>> found = mace(Votes(question, person, label, np.full(10, -1), 3, 2))
    >>> found.posterior.argmax(axis=1).tolist(), (found.knows > 0.6).tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [True, True, False])
    """
    q, w, a = votes.question, votes.person, votes.label
    posterior = np.full((len(votes.truth), votes.labels), 0.5 / votes.labels)
    np.add.at(posterior, (q, a), 1.0)
    posterior = _with_known(posterior, votes)
    knows, habit = np.full(votes.people, 0.5), np.full((votes.people, votes.labels), 1.0 / votes.labels)
    said = np.bincount(w, minlength=votes.people)
    for _ in range(rounds):
        guessed = (1 - knows[w]) * habit[w, a]
        known = posterior[q, a] * knows[w] / np.maximum(knows[w] + guessed, 1e-12)
        knows = (np.bincount(w, known, votes.people) + 0.5) / (said + 1.0)
        counts = np.full_like(habit, 1.0 / votes.labels)
        np.add.at(counts, (w, a), 1 - known)
        habit = counts / counts.sum(axis=1, keepdims=True)
        posterior = _posterior(votes, knows, habit)
    return Competence(posterior, knows, habit, _odds(votes, posterior, knows, habit))


def _likelihood(votes: Votes, knows: np.ndarray, habit: np.ndarray) -> np.ndarray:
    """Log-probability of every answer under every label that its question may have."""
    guessed = (1 - knows[votes.person]) * habit[votes.person, votes.label]
    chances = np.repeat(guessed[:, None], votes.labels, axis=1)
    chances[np.arange(len(guessed)), votes.label] += knows[votes.person]
    logs: np.ndarray = np.log(np.maximum(chances, 1e-12))
    return logs


def _posterior(votes: Votes, knows: np.ndarray, habit: np.ndarray) -> np.ndarray:
    logs = np.zeros((len(votes.truth), votes.labels))
    np.add.at(logs, votes.question, _likelihood(votes, knows, habit))
    return _with_known(np.exp(logs - logs.max(axis=1, keepdims=True)), votes)


def _with_known(weights: np.ndarray, votes: Votes) -> np.ndarray:
    found: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    known = np.flatnonzero(votes.truth >= 0)
    found[known] = 0.0
    found[known, votes.truth[known]] = 1.0
    return found


def _odds(votes: Votes, posterior: np.ndarray, knows: np.ndarray, habit: np.ndarray) -> np.ndarray:
    """How much better each person's own habit explains their answers than competence near that of the others.

    A person's own answer does not count for the truth that it is compared with.
    """
    said = np.bincount(votes.person, minlength=votes.people)
    usual = NEARLY * float(np.median(knows[said > 0])) if (said > 0).any() else 0.0
    logs = np.log(np.maximum(posterior[votes.question], 1e-12)) - _likelihood(votes, knows, habit)
    others = np.exp(logs - logs.max(axis=1, keepdims=True))
    others /= others.sum(axis=1, keepdims=True)
    fixed = votes.truth[votes.question] >= 0
    others[fixed] = posterior[votes.question[fixed]]
    own = np.full((votes.people, votes.labels), 0.5)
    np.add.at(own, (votes.person, votes.label), 1.0)
    own /= own.sum(axis=1, keepdims=True)
    by_habit = own[votes.person, votes.label]
    by_knowing = usual * others[np.arange(len(by_habit)), votes.label] + (1 - usual) * by_habit
    found: np.ndarray = np.bincount(votes.person, np.log(by_habit / by_knowing), votes.people)
    return found


def votes_of(
    task: StudyTask, questions: Sequence[Judged], checks: Sequence[Judged]
) -> tuple[Votes, list[str], list[float]]:
    """Answers to questions and checks as numbers, with the names of the people and the codes of the labels."""
    dimension = task.dimensions[0]
    rows = [
        (n, s.annotator, dimension.code(one.question.payload, s.value))
        for n, one in enumerate((*questions, *checks))
        for s in one.said
    ]
    known = {n: _known_code(task, one) for n, one in enumerate(checks, len(questions))}
    codes = sorted({code for _, _, code in rows} | {code for code in known.values() if code is not None})
    names = sorted({name for _, name, _ in rows})
    label, person = {code: n for n, code in enumerate(codes)}, {name: n for n, name in enumerate(names)}
    truth = np.full(len(questions) + len(checks), -1)
    for n, code in known.items():
        truth[n] = -1 if code is None else label[code]
    columns = np.array([(n, person[name], label[code]) for n, name, code in rows], np.int64).reshape(-1, 3)
    question, by, said = columns.T
    return Votes(question, by, said, truth, len(names), max(1, len(codes))), names, codes


def _known_code(task: StudyTask, one: Judged) -> float | None:
    """The code of a check's answer: what passes it is this code, and nothing else, for all but some corrections."""
    known = one.question.expected
    return None if known is None else task.dimensions[0].code(one.question.payload, known)


# -- agreement -------------------------------------------------------------------------------------------------------


def agreement(task: StudyTask, found: Sequence[Judged], settings: MetricSettings) -> list[dict[str, Any]]:
    """Every coefficient for every dimension of the task, with intervals over items."""
    clusters = _clusters(found)
    rows = []
    for dimension in task.dimensions:
        matrix, names = rating_matrix(dimension, found)
        for one in _coefficients(dimension, matrix, names, clusters, settings):
            rows.append({"dimension": dimension.name, **one})
    return rows


def rating_matrix(dimension: Dimension, found: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """Questions × annotators, NaN for no answer."""
    names = sorted({s.annotator for one in found for s in one.said})
    column = {name: n for n, name in enumerate(names)}
    matrix = np.full((len(found), len(names)), np.nan)
    for row, one in enumerate(found):
        for said in one.said:
            matrix[row, column[said.annotator]] = dimension.code(one.question.payload, said.value)
    return matrix, names


def _clusters(found: Sequence[Judged]) -> np.ndarray:
    """Questions about one picture, or about one item, are not independent."""
    keys: dict[Any, int] = {}
    return np.array(
        [keys.setdefault(tuple(one.question.payload["images"]) or one.key, len(keys)) for one in found], np.int64
    )


def _coefficients(
    dimension: Dimension, matrix: np.ndarray, names: list[str], clusters: np.ndarray, settings: MetricSettings
) -> list[dict[str, Any]]:
    if len(names) < 2:
        return []
    raters = (~np.isnan(matrix)).sum(axis=1)
    rows = [_shown(percent_agreement(matrix, clusters, settings), "all")]
    rows.append(_shown(krippendorff_alpha(matrix, dimension.scale, clusters, settings), "all"))
    common = np.bincount(raters[raters >= 2]) if (raters >= 2).any() else np.zeros(0)
    if len(common) and dimension.scale == "nominal":
        same = raters == int(common.argmax())
        rows.append(
            _shown(fleiss_kappa(matrix[same], clusters[same], settings), f"{int(common.argmax())} answers each")
        )
    if len(names) <= PAIRS_UP_TO:
        weights = "none" if dimension.scale == "nominal" else "quadratic"
        for a, b in itertools.combinations(range(len(names)), 2):
            both = ~np.isnan(matrix[:, [a, b]]).any(axis=1)
            if both.any():
                kappa = cohen_kappa(matrix[both, a], matrix[both, b], weights, clusters[both], settings)  # type: ignore[arg-type]
                rows.append(_shown(kappa, f"{names[a]}, {names[b]}"))
    return rows


def _shown(one: Agreement, who: str) -> dict[str, Any]:
    return {"kind": one.kind, "who": who, **{k: v for k, v in asdict(one).items() if k != "kind"}}


# -- people ----------------------------------------------------------------------------------------------------------


def measured(record: StudyRecord) -> dict[str, dict[str, Any]]:
    """Per annotator: answers, skips, speed, checks passed, agreement with the others, competence, flags."""
    task = task_named(record["task"])
    everything, checks = judged(record, everyone=True), judged(record, ATTENTION, everyone=True)
    admitted = counting(record)
    said, tested, skips = _by_annotator(everything), _tests(checks), _skips(record)
    compared = _with_others(task, everything, admitted)
    competence = competences(task, everything, checks, admitted)
    flags = flagged(task, everything, checks, admitted)
    rows = {}
    for person in record["people"]:
        name = person["annotator"]
        own, answers = said.get(name, []), tested.get(name, [])
        seconds = [s.seconds for s in own if s.seconds is not None]
        agreed, pairs = compared.get(name, (0, 0))
        knows, odds = competence.get(name, (math.nan, math.nan))
        rows[name] = {
            "answers": len(own),
            "skipped": skips[name, MAIN],
            "comments": sum(bool(s.comment) for s in own),
            "median_seconds": statistics.median(seconds) if seconds else math.nan,
            "active_seconds": sum(seconds),
            "attention_passed": sum(known is not None and task.right(value, known) for value, known in answers),
            # whoever skips a check does not pass it
            "attention_asked": len(answers) + skips[name, ATTENTION],
            "agreement": agreed / pairs if pairs else math.nan,
            "compared": pairs,
            "competence": knows,
            "odds_of_habit": odds,
            "flags": flags.get(name, []),
            "last": max((s.at for s in own), default=None),
        }
    return rows


def _by_annotator(found: Sequence[Judged]) -> dict[str, list[Said]]:
    said: dict[str, list[Said]] = {}
    for one in found:
        for own in one.said:
            said.setdefault(own.annotator, []).append(own)
    return said


def _tests(checks: Sequence[Judged]) -> dict[str, list[tuple[Any, Any]]]:
    """What each annotator said to the checks, with the known answers."""
    answers: dict[str, list[tuple[Any, Any]]] = {}
    for one in checks:
        for said in one.said:
            answers.setdefault(said.annotator, []).append((said.value, one.question.expected))
    return answers


def _skips(record: StudyRecord) -> Counter[tuple[str, str]]:
    """Skipped questions by annotator and kind, less those that were taken back."""
    kinds = {q["ordinal"]: q["kind"] for q in record["questions"]}
    last = {(row["annotator"], row["question"]): row["event"] for row in record["answers"]}
    return Counter((who, kinds[question]) for (who, question), event in last.items() if event == SKIP)


def _with_others(task: StudyTask, found: Sequence[Judged], admitted: set[str]) -> dict[str, tuple[int, int]]:
    """For each annotator: how many answers of admitted others to the same questions are the same, of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for one in found:
        codes = [[d.code(one.question.payload, s.value) for d in task.dimensions] for s in one.said]
        for a, b in itertools.combinations(range(len(codes)), 2):
            same = all(
                abs(x - y) <= (1 if d.scale == "interval" else 0)
                for d, x, y in zip(task.dimensions, codes[a], codes[b])
            )
            for me, other in ((one.said[a], one.said[b]), (one.said[b], one.said[a])):
                if other.annotator in admitted:
                    agreed, pairs = counts.get(me.annotator, (0, 0))
                    counts[me.annotator] = (agreed + same, pairs + 1)
    return counts


def competences(
    task: StudyTask, questions: Sequence[Judged], checks: Sequence[Judged], admitted: set[str]
) -> dict[str, tuple[float, float]]:
    """Competence of each person, and the log-odds that their answers are a habit; where answers have names."""
    if task.dimensions[0].scale != "nominal":
        return {}
    some = [_only(one, admitted) for one in questions], [_only(one, admitted) for one in checks]
    votes, names, _ = votes_of(task, *some)
    if not len(votes.question):
        return {}
    found = mace(votes)
    return {name: (float(found.knows[n]), float(found.odds[n])) for n, name in enumerate(names)}


def _only(one: Judged, admitted: set[str]) -> Judged:
    return Judged(one.question, [s for s in one.said if s.annotator in admitted], one.decision, one.asked)


def weights_of(record: StudyRecord) -> dict[int, dict[float, float]]:
    """Probabilities of the codes of every question, by its number, when people are weighted by their competence."""
    task = task_named(record["task"])
    if task.dimensions[0].scale != "nominal":
        return {}
    questions = judged(record)
    votes, _, codes = votes_of(task, questions, judged(record, ATTENTION))
    if not len(votes.question):
        return {}
    posterior = mace(votes).posterior
    return {
        one.question.ordinal: dict(zip(codes, map(float, posterior[n]), strict=True))
        for n, one in enumerate(questions)
        if one.said
    }


# -- signs of cheating -------------------------------------------------------------------------------------------------


def flagged(
    task: StudyTask, questions: Sequence[Judged], checks: Sequence[Judged], admitted: set[str]
) -> dict[str, list[str]]:
    """What is odd about people: answers that agree too well, the same order and pace, times like a machine's."""
    flags: dict[str, list[str]] = defaultdict(list)
    for name, said in _by_annotator(questions).items():
        seconds = [s.seconds for s in said if s.seconds]
        if len(seconds) >= FEWEST_TIMES and statistics.pstdev(seconds) < REGULAR * statistics.mean(seconds):
            flags[name].append("answer times are as regular as a machine's")
    shared = _shared(questions)
    for (a, b), pairs in shared.items():
        if _same_pace(pairs):
            for me, other in ((a, b), (b, a)):
                flags[me].append(f"same questions in the same order and pace as {other}")
    for a, b, p in too_alike(task, questions, checks, admitted):
        for me, other in ((a, b), (b, a)):
            flags[me].append(f"agrees with {other} more than two people would (p = {p:.1g})")
    return dict(flags)


def _shared(questions: Sequence[Judged]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """When two people answered the questions that they have in common."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in questions:
        for x, y in itertools.combinations(sorted(one.said, key=lambda s: s.annotator), 2):
            times[x.annotator, y.annotator].append((x.at, y.at))
    return times


def _same_pace(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether all common questions came in one order, a nearly constant time apart: one person at two accounts."""
    if len(pairs) < 6:
        return False
    ordered = sorted(pairs)
    gaps = [y - x for x, y in ordered]
    return all(p[1] < q[1] for p, q in itertools.pairwise(ordered)) and max(gaps) - min(gaps) < 20


def too_alike(
    task: StudyTask, questions: Sequence[Judged], checks: Sequence[Judged], admitted: set[str]
) -> list[tuple[str, str, float]]:
    """Pairs who agree more often than two people of their competence and habits would by themselves."""
    some = [_only(one, admitted) for one in questions]
    if task.dimensions[0].scale != "nominal" or not any(one.said for one in some):
        return []
    votes, names, _ = votes_of(task, some, [_only(one, admitted) for one in checks])
    found = mace(votes)
    rows = zip(votes.question.tolist(), votes.person.tolist(), votes.label.tolist(), strict=True)
    by_question: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for question, person, label in rows:
        by_question[question].append((person, label))
    together: dict[tuple[int, int], list[tuple[float, bool]]] = defaultdict(list)
    for question, own in by_question.items():
        chances = found.knows[:, None] * found.posterior[question] + (1 - found.knows[:, None]) * found.habit
        for (a, x), (b, y) in itertools.combinations(sorted(own), 2):
            together[a, b].append((float(chances[a] @ chances[b]), x == y))
    bound = CHANCE / max(1, len(together))
    tails = ((a, b, _tail([p for p, _ in same], sum(s for _, s in same))) for (a, b), same in together.items())
    return [(names[a], names[b], p) for a, b, p in tails if p < bound]


def _tail(chances: Sequence[float], agreed: int) -> float:
    """The probability of at least so many agreements, each with a chance of its own.

    >>> round(_tail([0.5, 0.5], 2), 4)
    0.25
    """
    counts = np.ones(1)
    for p in chances:
        counts = np.convolve(counts, (1 - p, p))
    return float(counts[agreed:].sum())


def ruled_out(settings: StudySettings, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Whom the rules exclude, and why. Those who are excluded or withdrew already are left out."""
    found = []
    for row in rows:
        why = "; ".join(_reasons(settings, row))
        if why and not row["excluded"] and not row["withdrawn"]:
            found.append({"annotator": row["annotator"], "why": why})
    return found


def _reasons(settings: StudySettings, row: Mapping[str, Any]) -> list[str]:
    reasons = []
    if row["odds_of_habit"] > math.log(ODDS):
        reasons.append(
            f"answers do not depend on the questions (odds {math.exp(min(20, row['odds_of_habit'])):.0f} to 1)"
        )
    asked, failed = row["attention_asked"], row["attention_asked"] - row["attention_passed"]
    most = settings.max_attention_failures
    if most is not None and asked >= FEWEST_CHECKS and failed / asked > most:
        reasons.append(f"failed {failed} of {asked} checks")
    median, least = row["median_seconds"], settings.min_median_seconds
    if least is not None and row["answers"] >= FEWEST_ANSWERS and not math.isnan(median) and median < least:
        reasons.append(f"median time {median:.1f} s, below {least:g} s")
    wanted = settings.min_agreement
    if wanted is not None and row["compared"] >= FEWEST_COMPARED and row["agreement"] < wanted:
        reasons.append(f"agrees with others in {row['agreement']:.0%}, below {wanted:.0%}")
    return reasons


# -- all of it -------------------------------------------------------------------------------------------------------


def progress(session: Session, study: StudyRow) -> list[dict[str, Any]]:
    """Slots by subset: how many there are, how many are done, how many are in somebody's hands."""
    rows = session.execute(
        select(Question.subset, Slot.state, func.count())
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.study_id == study.id, Slot.kind == MAIN)
        .group_by(Question.subset, Slot.state)
    ).all()
    found: dict[str, dict[str, Any]] = {}
    for subset, state, n in rows:
        row = found.setdefault(subset, {"subset": subset, "slots": 0, "done": 0, "held": 0})
        row["slots"] += n if state != VOID else 0
        if state in (DONE, HELD):
            row[state] += n
    return [found[name] for name in sorted(found)]


def overview(session: Session, study: StudyRow, settings: MetricSettings) -> dict[str, Any]:
    """A study as its owner sees it."""
    record = study_record(session, study)
    task = task_named(study.task)
    subsets, found = progress(session, study), judged(record)
    arrived, expected = arrivals(session, study, settings_of(study.settings))
    differ = disagreements(task, found)
    return {
        "study": study.name,
        "task": study.task,
        "state": study.state,
        "pilot": study.phase == 0,
        "bench": study.bench,
        "plan": study.plan,
        "revision": study.revision,
        "arrived": arrived,
        "expected": expected,
        "slots": sum(s["slots"] for s in subsets),
        "done": sum(s["done"] for s in subsets),
        "held": sum(s["held"] for s in subsets),
        "subsets": subsets,
        "questions": len(found),
        "settled": dict(Counter(settle(task, one).how for one in found)),
        "disagreements": len(differ),
        "to_adjudicate": sum(one.decision is None for one in differ),
        "agreement": agreement(task, found, settings),
        "annotators": annotator_rows(session, study, measured(record)),
    }


def annotator_rows(session: Session, study: StudyRow, known: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was measured about each annotator, with what the tables say about them."""
    last = select(Link.annotator_id, func.max(Link.expires)).where(Link.revoked.is_(None)).group_by(Link.annotator_id)
    open_links: dict[int | None, float] = dict(session.execute(last).all())
    everybody = select(Annotator).where(Annotator.study_id == study.id).order_by(Annotator.id)
    return [
        {
            "annotator": one.pseudonym,
            "quota": one.quota,
            **known[one.pseudonym],
            "note": one.note,
            "entry": one.entry,
            "counts": one.excluded is None and one.entry != UNVERIFIED,
            "worker": one.worker,
            "revoked": one.id not in open_links,
            "excluded": one.excluded is not None,
            "excluded_why": one.excluded_why,
            "withdrawn": one.withdrawn is not None,
            "outcome": one.outcome,
            "expires": open_links.get(one.id),
        }
        for one in session.scalars(everybody)
    ]


def forecast(study: StudyRow, seen: Sequence[Mapping[str, Any]], open_slots: int) -> dict[str, Any]:
    """How long the remaining answers will take people, and what they will cost, going by those that are there."""
    medians = [a["median_seconds"] for a in seen if a["answers"] and a["median_seconds"] == a["median_seconds"]]
    settings, quota = settings_of(study.settings), study.plan["per_annotator"]
    hours = open_slots * statistics.median(medians) / 3600 if medians else None
    people = -(-open_slots // quota) if quota else None
    cost = people * settings.pay if people is not None and settings.pay else None
    return {"open": open_slots, "hours": hours, "people": people, "cost": cost, "currency": settings.currency}
