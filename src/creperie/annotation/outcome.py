"""What people said about each question in the end, and what follows from it."""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Row, func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation.chain import decision_digest, questions_digest
from creperie.annotation.database import Database
from creperie.annotation.schema import ANSWER, ATTENTION, MAIN, Annotator, Answer, Decision, Question, StudyRow
from creperie.annotation.settings import changed, settings_of
from creperie.annotation.study import record, study_named
from creperie.annotation.tasks.task import Dimension, StudyTask, Value
from creperie.core import UsageError

ADJUDICATED, UNANIMOUS, MAJORITY, SPLIT = "adjudicated", "unanimous", "majority", "split"
TOO_FEW, OPEN = "too few answers", "unanswered"
#: Ratings on a scale disagree when they are farther apart than this.
FAR_APART = 3


@dataclass(frozen=True)
class Said:
    """What one annotator said in the end."""

    annotator: str
    value: Value
    comment: str
    seconds: float | None
    at: float


@dataclass(frozen=True)
class Judged:
    """A question, what was said about it, and what an owner decided."""

    question: Question
    said: list[Said] = field(default_factory=list)
    decision: Decision | None = None
    asked: int = 1  #: answers that it takes to decide

    @property
    def complete(self) -> bool:
        """Whether it can be decided: by an owner, or because all the answers asked for are there."""
        return self.decision is not None or len(self.said) >= self.asked

    @property
    def key(self) -> tuple[str, str, str]:
        return self.question.source, self.question.subset, self.question.item


@dataclass(frozen=True)
class Settled:
    """The value that counts for a question, None where there is none, and how it came about."""

    value: Value | None
    how: str


def last_words(session: Session, study: StudyRow) -> dict[tuple[int, int], Row[Any]]:
    """The answers that count, by question and annotator: those that were not taken back or erased."""
    counted: dict[tuple[int, int], Row[Any]] = {}
    known = (Answer.kind, Answer.value, Answer.comment, Answer.seconds, Answer.at)
    asked = select(Answer.question_id, Answer.annotator_id, *known).where(Answer.study_id == study.id)
    for row in session.execute(asked.order_by(Answer.annotator_id, Answer.turn)):
        if row.kind == ANSWER:
            counted[row.question_id, row.annotator_id] = row
        else:
            counted.pop((row.question_id, row.annotator_id), None)
    return counted


@dataclass(frozen=True)
class _Loaded:
    """Everything that was said in a study, as it was when the chains ended with `stamp`."""

    stamp: Any
    questions: list[Question]
    words: dict[tuple[int, int], Row[Any]]
    decisions: dict[int, Decision]
    judged: dict[tuple[str, frozenset[int]], list[Judged]] = field(default_factory=dict)


#: The last studies that were looked at, by connection pool; a study that has not changed is not read again.
_RECENT: WeakKeyDictionary[Any, OrderedDict[int, _Loaded]] = WeakKeyDictionary()
_KEPT = 4


def stamp_of(session: Session, study: StudyRow) -> Any:
    """Changes whenever something is said, decided or done in a study: the ends of its chains."""
    people = select(Annotator.id, Annotator.head, Annotator.excluded, Annotator.withdrawn)
    rows = session.execute(people.where(Annotator.study_id == study.id).order_by(Annotator.id)).all()
    head = session.scalar(select(StudyRow.head).where(StudyRow.id == study.id))
    last = session.scalar(select(func.max(Decision.id)).join(Question).where(Question.study_id == study.id))
    return head, last, tuple(map(tuple, rows))


def _load(session: Session, study: StudyRow) -> _Loaded:
    bind = session.get_bind()
    if bind.get_execution_options().get("creperie_writes"):
        return _read(session, study, None)  # what is not committed yet must not be kept
    kept = _RECENT.setdefault(bind.engine.pool, OrderedDict())
    stamp = stamp_of(session, study)
    found = kept.get(study.id)
    if found is None or found.stamp != stamp:
        found = kept[study.id] = _read(session, study, stamp)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return found


def _read(session: Session, study: StudyRow, stamp: Any) -> _Loaded:
    asked = select(Question).where(Question.study_id == study.id).order_by(Question.ordinal)
    decided = select(Decision).join(Question).where(Question.study_id == study.id).order_by(Decision.id)
    decisions = {decision.question_id: decision for decision in session.scalars(decided)}
    return _Loaded(stamp, list(session.scalars(asked)), last_words(session, study), decisions)


def judged(session: Session, study: StudyRow, kind: str = MAIN, *, everyone: bool = False) -> list[Judged]:
    """All questions of a kind with their answers, in the order of the benchmark.

    Answers of excluded annotators do not count; with `everyone` they are there, too. Those of people who withdrew
    never are.
    """
    admitted = select(Annotator.id, Annotator.pseudonym).where(
        Annotator.study_id == study.id, Annotator.withdrawn.is_(None)
    )
    named = session.execute(admitted if everyone else admitted.where(Annotator.excluded.is_(None)))
    names = {row.id: row.pseudonym for row in named}
    loaded = _load(session, study)
    asked_of = (kind, frozenset(names))  # everyone, where nobody is excluded, are the same
    if asked_of in loaded.judged:
        return list(loaded.judged[asked_of])
    overlap = study.plan["overlap"] if kind == MAIN else 1
    asked = [q for q in loaded.questions if q.kind == kind]
    found = {q.id: Judged(q, [], loaded.decisions.get(q.id), overlap) for q in asked}
    for (question, annotator), row in loaded.words.items():
        if question in found and annotator in names and row.value is not None:
            found[question].said.append(Said(names[annotator], row.value, row.comment, row.seconds, row.at))
    loaded.judged[asked_of] = list(found.values())
    return list(found.values())


def adjudicate(session: Session, study: StudyRow, question: Question, value: Value, comment: str, actor: str) -> None:
    """Decide a question. Earlier decisions stay on record."""
    made = Decision(
        question_id=question.id, by=actor.removeprefix("owner:")[:64], value=value, comment=comment, at=time.time()
    )
    session.add(made)
    detail = {"question": question.ordinal, "value": value, "decision": decision_digest(made)}
    record(session, actor, "adjudicate", study, detail)


def settle(task: StudyTask, one: Judged) -> Settled:
    """The value that counts: the owner's decision, else that of more than half of the annotators.

    As long as fewer have answered than were asked for, nothing is decided.
    """
    if one.decision is not None:
        return Settled(one.decision.value, ADJUDICATED)
    if not one.complete:
        return Settled(None, TOO_FEW if one.said else OPEN)
    dimension = task.dimensions[0]
    codes = [dimension.code(one.question.payload, s.value) for s in one.said]
    winner, votes = Counter(codes).most_common(1)[0]
    if 2 * votes <= len(codes):
        return Settled(None, SPLIT)
    value = _most_frequent([s.value for s, code in zip(one.said, codes) if code == winner])
    if value is None:
        return Settled(None, SPLIT)
    return Settled(value, UNANIMOUS if votes == len(codes) and len(codes) > 1 else MAJORITY)


def _most_frequent(values: Sequence[Value]) -> Value | None:
    """The most frequent of values that agree in their verdict; None where two corrections are equally frequent."""
    if all(v == values[0] for v in values):
        return values[0]
    counted = Counter(tuple(sorted(v.items(), key=str)) if _is_flat(v) else repr(v) for v in values)
    ranked = counted.most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return None
    return next(v for v in values if (tuple(sorted(v.items(), key=str)) if _is_flat(v) else repr(v)) == ranked[0][0])


def _is_flat(value: Value) -> bool:
    return not any(isinstance(v, (list, dict)) for v in value.values())


def disagrees(task: StudyTask, one: Judged) -> bool:
    """Whether annotators said different things."""
    return any(_differ(dimension, one) for dimension in task.dimensions) or (
        len(one.said) > 1 and task.makes == "check" and settle(task, Judged(one.question, one.said)).how == SPLIT
    )


def _differ(dimension: Dimension, one: Judged) -> bool:
    codes = [dimension.code(one.question.payload, s.value) for s in one.said]
    if len(codes) < 2:
        return False
    if dimension.scale == "interval":
        return max(codes) - min(codes) > FAR_APART
    return len(set(codes)) > 1


def disagreements(task: StudyTask, found: Sequence[Judged], *, undecided_only: bool = False) -> list[Judged]:
    """The questions about which annotators differ."""
    return [one for one in found if disagrees(task, one) and not (undecided_only and one.decision)]


def add_gold(db: Database, name: str, count: int, actor: str = "cli") -> int:
    """Add gold questions: checks of later annotators, drawn from what was adjudicated; how many there are now."""
    with db.write() as session:
        study = study_named(session, name)
        used = {
            payload.get("gold")
            for payload in session.scalars(
                select(Question.payload).where(Question.study_id == study.id, Question.kind == ATTENTION)
            )
        }
        decided = [one for one in judged(session, study) if one.decision and one.question.id not in used]
        if len(decided) < count:
            raise UsageError(f"{count} gold questions asked for, {len(decided)} adjudicated questions left", where=name)
        last = session.scalar(select(func.max(Question.ordinal)).where(Question.study_id == study.id)) or 0
        rows = [
            {
                "study_id": study.id,
                "ordinal": last + n,
                "kind": ATTENTION,
                "source": one.question.source,
                "subset": one.question.subset,
                "item": one.question.item,
                "payload": {**one.question.payload, "gold": one.question.id},
                "expected": one.decision.value if one.decision else None,
            }
            for n, one in enumerate(secrets.SystemRandom().sample(decided, count), 1)
        ]
        session.execute(insert(Question), rows)
        total = settings_of(study.settings).gold + count
        study.settings = changed(study.settings, {"gold": total})
        record(
            session, actor, "add gold", study, {"count": count, "questions_digest": questions_digest(session, study)}
        )
    return total
