"""The final answers to each question, and the verdict that follows from them.

Everything here is computed from a study's record (see `creperie.annotation.export`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from creperie.annotation.schema import ANSWER, MAIN, UNVERIFIED
from creperie.annotation.tasks.task import StudyTask, Value
from creperie.core import Document, Json

ADJUDICATED, UNANIMOUS, MAJORITY, SPLIT, WEIGHTED = "adjudicated", "unanimous", "majority", "split", "weighted"
TOO_FEW, UNANSWERED = "too few answers", "unanswered"
#: Ratings on a scale disagree when they are farther apart than this.
FAR_APART = 3
#: The least posterior probability at which a weighted vote decides.
SURE = 0.75

StudyRecord = Document


@dataclass(frozen=True)
class LastAnswer:
    """The final answer of one annotator to one question."""

    annotator: str
    value: Value
    comment: str
    seconds: float | None
    at: float


@dataclass(frozen=True)
class Judged:
    """One question of a record, with all answers to it. If an owner or adjudicator decided the question, `decision`
    holds the decided `value` and the person's name (`by`).
    """

    ordinal: int
    kind: str
    source: str
    subset: str
    item: str
    payload: Json
    expected: Value | None
    answers: list[LastAnswer]
    decision: Document | None
    asked: int  #: number of answers needed to decide

    @property
    def complete(self) -> bool:
        """True if the question can be settled: it has been decided, or has all requested answers."""
        return self.decision is not None or len(self.answers) >= self.asked


@dataclass(frozen=True)
class Settled:
    """The final value of a question (None if there is none), and how it was reached."""

    value: Value | None
    how: str


def people_who_count(record: StudyRecord) -> set[str]:
    """Return the annotators whose answers count. They were invited or have an id that the owner signed or listed, were
    not excluded, and have not withdrawn.
    """
    return {p["annotator"] for p in record["people"] if not p["excluded"] and p["entry"] != UNVERIFIED}


def without_people(record: StudyRecord, names: Collection[str]) -> StudyRecord:
    """Return the record with the people in `names` excluded."""
    people = [{**p, "excluded": True} if p["annotator"] in names else p for p in record["people"]]
    return {**record, "people": people}


def judged(record: StudyRecord, kind: str = MAIN, *, everyone: bool = False) -> list[Judged]:
    """Return all questions of a kind with the answers to them, in the order of the benchmark.

    Answers of people who do not count (see `people_who_count`) are left out unless `everyone` is set. Answers that were
    erased or taken back are always left out.
    """
    names = {p["annotator"] for p in record["people"]} if everyone else people_who_count(record)
    decisions = {one["question"]: one for one in record["decisions"]}
    needed = record["plan"]["overlap"] if kind == MAIN else 1
    asked = [q for q in record["questions"] if q["kind"] == kind]
    questions = {
        q["ordinal"]: Judged(**q, answers=[], decision=decisions.get(q["ordinal"]), asked=needed) for q in asked
    }
    last: dict[tuple[int, str], Document] = {}
    for row in record["answers"]:
        key = (row["question"], row["annotator"])
        last.pop(key, None)
        if row["event"] == ANSWER and row["value"] is not None:
            last[key] = row
    for row in last.values():
        if row["question"] in questions and row["annotator"] in names:
            own = {name: row[name] for name in LastAnswer.__dataclass_fields__}
            questions[row["question"]].answers.append(LastAnswer(**own))
    return list(questions.values())


def settle(task: StudyTask, one: Judged, weighted: Mapping[float, float] | None = None) -> Settled:
    """Return the final value of a question: the decision on it if there is one, else the answer that more than half of
    the people gave. The value is None if neither exists, or while answers are missing.

    `weighted` maps the code of each possible answer to its posterior probability. If `weighted` is given, the most
    probable answer replaces the majority's, provided that it is probable enough (at least `SURE`).
    """
    if one.decision is not None:
        return Settled(one.decision["value"], ADJUDICATED)
    if not one.complete:
        return Settled(None, TOO_FEW if one.answers else UNANSWERED)
    dimension = task.dimensions[0]
    codes = [dimension.code(one.payload, s.value) for s in one.answers]
    votes = Counter(codes)
    if weighted is not None:
        winner = max(weighted, key=lambda code: weighted[code])
        decided, how = weighted[winner] >= SURE and winner in votes, WEIGHTED
    else:
        winner = votes.most_common(1)[0][0]
        decided = 2 * votes[winner] > len(codes)
        how = UNANIMOUS if votes[winner] == len(codes) and len(codes) > 1 else MAJORITY
    agreeing = [s.value for s, code in zip(one.answers, codes) if code == winner]
    value = _most_frequent(agreeing) if decided else None
    return Settled(value, how if value is not None else SPLIT)


def _most_frequent(values: Sequence[Value]) -> Value | None:
    """Return the most frequent of these values; None if no value is more frequent than all others. The values all have
    the same verdict but may hold different corrections.
    """
    texts = [json.dumps(value, sort_keys=True) for value in values]
    ranked = Counter(texts).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return None
    return values[texts.index(ranked[0][0])]


def _disagree(task: StudyTask, one: Judged) -> bool:
    """Return True if annotators disagree. They do if their answers differ, if their ratings are far apart, or if no
    correction is more frequent than all others.
    """
    for dimension in task.dimensions:
        codes = [dimension.code(one.payload, s.value) for s in one.answers]
        if codes and max(codes) - min(codes) > (FAR_APART if dimension.scale == "interval" else 0):
            return True
    undecided = replace(one, decision=None, asked=1)
    return len(one.answers) > 1 and task.makes == "check" and settle(task, undecided).how == SPLIT


def disagreements(task: StudyTask, questions: Sequence[Judged], *, undecided_only: bool = False) -> list[Judged]:
    """Return the questions on which annotators disagree. With `undecided_only`, leave out those that somebody has
    decided.
    """
    return [one for one in questions if _disagree(task, one) and not (undecided_only and one.decision)]
