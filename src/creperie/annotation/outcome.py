"""The answers to each question that count in the end, and the verdict that follows from them.

Everything here is computed from a study's record, which is what `annotate export` writes: see
`creperie.annotation.export`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from creperie.annotation.schema import ANSWER, MAIN, UNVERIFIED
from creperie.annotation.tasks.task import Dimension, StudyTask, Value

ADJUDICATED, UNANIMOUS, MAJORITY, SPLIT, WEIGHTED = "adjudicated", "unanimous", "majority", "split", "weighted"
TOO_FEW, UNANSWERED = "too few answers", "unanswered"
#: Ratings on a scale disagree when they are farther apart than this.
FAR_APART = 3
#: The least posterior probability at which a weighted vote decides.
SURE = 0.75

StudyRecord = Mapping[str, Any]


@dataclass(frozen=True)
class AskedQuestion:
    """A question of a record."""

    ordinal: int
    kind: str
    source: str
    subset: str
    item: str
    payload: dict[str, Any]
    expected: Value | None


@dataclass(frozen=True)
class LastAnswer:
    """The answer of one annotator that counts in the end."""

    annotator: str
    value: Value
    comment: str
    seconds: float | None
    at: float


@dataclass(frozen=True)
class Judged:
    """A question, what was said about it, and what an owner or adjudicator decided (`value`, `by`)."""

    question: AskedQuestion
    answers: list[LastAnswer] = field(default_factory=list)
    decision: Mapping[str, Any] | None = None
    asked: int = 1  #: answers that it takes to decide

    @property
    def complete(self) -> bool:
        """True if it can be decided: by an owner, or because all the answers asked for are there."""
        return self.decision is not None or len(self.answers) >= self.asked

    @property
    def key(self) -> tuple[str, str, str]:
        return self.question.source, self.question.subset, self.question.item


@dataclass(frozen=True)
class Settled:
    """The value that counts for a question, None where there is none, and how it came about."""

    value: Value | None
    how: str


def counting(record: StudyRecord) -> set[str]:
    """The annotators whose answers count: invited or vouched for, neither excluded nor withdrawn."""
    return {p["annotator"] for p in record["people"] if not p["excluded"] and p["entry"] != UNVERIFIED}


def judged(record: StudyRecord, kind: str = MAIN, *, everyone: bool = False) -> list[Judged]:
    """All questions of a kind with their answers, in the order of the benchmark.

    Only answers of people who count are there; with `everyone`, those of excluded people, too. What was erased or taken
    back never is.
    """
    names = {p["annotator"] for p in record["people"]} if everyone else counting(record)
    decisions = {one["question"]: one for one in record["decisions"]}
    needed = record["plan"]["overlap"] if kind == MAIN else 1
    asked = [AskedQuestion(**{k: q[k] for k in AskedQuestion.__dataclass_fields__}) for q in record["questions"]]
    questions = {q.ordinal: Judged(q, [], decisions.get(q.ordinal), needed) for q in asked if q.kind == kind}
    for row in last_words(record):
        if row["question"] in questions and row["annotator"] in names:
            questions[row["question"]].answers.append(
                LastAnswer(**{k: row[k] for k in LastAnswer.__dataclass_fields__})
            )
    return list(questions.values())


def last_words(record: StudyRecord) -> list[Mapping[str, Any]]:
    """The answers that stand: those that were not taken back or erased."""
    standing: dict[tuple[int, str], Mapping[str, Any]] = {}
    for row in record["answers"]:
        key = (row["question"], row["annotator"])
        if row["event"] == ANSWER and row["value"] is not None:
            standing[key] = row
        else:
            standing.pop(key, None)
    return list(standing.values())


def settle(task: StudyTask, one: Judged, weighted: Mapping[float, float] | None = None) -> Settled:
    """The value that counts: the decision, else that of more than half of the annotators.

    With `weighted`, posterior probabilities of the codes, the most probable one counts instead of the majority. As long
    as fewer have answered than were asked for, nothing is decided.
    """
    if one.decision is not None:
        return Settled(one.decision["value"], ADJUDICATED)
    if not one.complete:
        return Settled(None, TOO_FEW if one.answers else UNANSWERED)
    dimension = task.dimensions[0]
    codes = [dimension.code(one.question.payload, s.value) for s in one.answers]
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
    """The most frequent of values that agree in their verdict; None where two corrections are equally frequent."""
    texts = [json.dumps(value, sort_keys=True) for value in values]
    ranked = Counter(texts).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return None
    return values[texts.index(ranked[0][0])]


def disagrees(task: StudyTask, one: Judged) -> bool:
    """Return True if annotators gave different answers."""
    return any(_differ(dimension, one) for dimension in task.dimensions) or (
        len(one.answers) > 1 and task.makes == "check" and settle(task, Judged(one.question, one.answers)).how == SPLIT
    )


def _differ(dimension: Dimension, one: Judged) -> bool:
    codes = [dimension.code(one.question.payload, s.value) for s in one.answers]
    if len(codes) < 2:
        return False
    if dimension.scale == "interval":
        return max(codes) - min(codes) > FAR_APART
    return len(set(codes)) > 1


def disagreements(task: StudyTask, questions: Sequence[Judged], *, undecided_only: bool = False) -> list[Judged]:
    """The questions about which annotators differ."""
    return [one for one in questions if disagrees(task, one) and not (undecided_only and one.decision)]
