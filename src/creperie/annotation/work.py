"""An annotator at work: take a slot, answer, skip, undo.

Every function is one transaction. On PostgreSQL it starts by locking the annotator's row, so two tabs of one browser
come one after the other; slots are taken with SKIP LOCKED, so two annotators never wait for each other. SQLite has
one writer at a time anyway.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Result, select
from sqlalchemy.orm import Session

from creperie.annotation import queries
from creperie.annotation.chain import START, seal
from creperie.annotation.database import Database
from creperie.annotation.schema import (
    ANSWER,
    ATTENTION,
    DONE,
    FREE,
    HELD,
    MAIN,
    OPEN,
    PRACTICE,
    SKIP,
    UNDO,
    Annotator,
    Answer,
    Question,
    Slot,
    Study,
)
from creperie.annotation.study import StudyPlan
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import PageForm, read_form
from creperie.core import CreperieError

Found = tuple[Slot, Question]


class WorkError(CreperieError):
    """Something an annotator cannot do now. `code` says why, for the page."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        super().__init__(what)


@dataclass(frozen=True)
class Ticket:
    """A slot in somebody's hands."""

    slot: Slot
    question: Question
    study: Study

    @property
    def order(self) -> list[int]:
        return self.slot.order or []

    @property
    def form(self) -> PageForm:
        return task_named(self.study.task).show(self.question.payload, self.order)


@dataclass(frozen=True)
class AnnotatorProgress:
    """How far an annotator is. Attention checks count like other questions."""

    done: int
    total: int | None
    practice_left: int


@dataclass(frozen=True)
class Receipt:
    """What an annotator is told after an answer; the feedback is for practice questions only."""

    key: str
    right: bool | None = None
    feedback: str | None = None


class Desk:
    """One annotator's side of one transaction."""

    def __init__(self, db: Database, session: Session, annotator_id: int, now: float | None = None) -> None:
        self.now = time.time() if now is None else now
        self.session = session
        self.lock = db.locks_rows
        self.me, self.study = session.execute(queries.annotator_and_study(self.lock), {"me": annotator_id}).one()
        self.plan = StudyPlan(**self.study.plan)
        self.asked = _question_counts(db, session, self.study.id)
        self._counts: dict[tuple[str, str], int] | None = None
        if not is_welcome(self.me, self.now):
            raise WorkError("revoked", "your invitation has ended")
        if self.study.state != OPEN:
            raise WorkError("stopped", "the study is not open now")

    # -- taking a slot ---------------------------------------------------------------------------------------------

    def take(self) -> Ticket | None:
        """The slot that is held already, or the next one; None when there is nothing left to do."""
        self._counts = None
        found = self._mine() or self._own_slot(PRACTICE) or self._attention() or self._next()
        if found is None:
            return None
        slot, question = found
        if slot.state != HELD or slot.annotator_id != self.me.id:
            self._hold(slot, question)
        slot.lease_until = self.now + self.plan.lease
        self.session.flush()
        return Ticket(slot, question, self.study)

    def _mine(self) -> Found | None:
        """A slot of my own: held, or put down by an undo."""
        return _first(self.session.execute(queries.my_open_slot(self.lock), {"me": self.me.id}))

    def _hold(self, slot: Slot, question: Question) -> None:
        slot.state = HELD
        slot.annotator_id = self.me.id
        slot.shown = self.now
        slot.token = secrets.token_urlsafe(16)
        if slot.order is None or slot.kind == MAIN:
            order = list(range(task_named(self.study.task).shuffled(question.payload)))
            random.Random(f"{self.plan.seed}/{slot.id}/{self.me.id}").shuffle(order)
            slot.order = order

    def _own_slot(self, kind: str) -> Found | None:
        """A slot that only I can have; practice and attention questions are asked of everybody."""
        if self._have(kind) >= self.asked.get(kind, 0):
            return None
        own = select(Slot.question_id).where(Slot.annotator_id == self.me.id, Slot.kind == kind)
        question = self.session.scalars(
            select(Question)
            .where(Question.study_id == self.study.id, Question.kind == kind, Question.id.not_in(own))
            .order_by(Question.ordinal)
            .limit(1)
        ).one()
        slot = Slot(
            study_id=self.study.id,
            question_id=question.id,
            kind=kind,
            copy=self.me.id,
            rank=0,
            phase=0,
            state=FREE,
            annotator_id=self.me.id,
        )
        self.session.add(slot)
        self.session.flush()
        return slot, question

    def _attention(self) -> Found | None:
        due = self._done(MAIN) // self.plan.attention_every > self._done(ATTENTION)
        return self._own_slot(ATTENTION) if due else None

    def _next(self) -> Found | None:
        if self.me.quota is not None and self._done(MAIN) >= self.me.quota:
            return None
        given = {"me": self.me.id, "study": self.study.id, "phase": self.study.phase}
        abandoned = self.session.execute(queries.next_slot(HELD, self.lock), {**given, "now": self.now})
        return _first(abandoned) or _first(self.session.execute(queries.next_slot(FREE, self.lock), given))

    def _done(self, kind: str) -> int:
        return self._own_counts().get((kind, DONE), 0)

    def _have(self, kind: str) -> int:
        return sum(n for (own, _), n in self._own_counts().items() if own == kind)

    def _own_counts(self) -> dict[tuple[str, str], int]:
        """My slots by kind and state, as they were when a slot was last taken."""
        if self._counts is None:
            rows = self.session.execute(queries.my_counts(), {"me": self.me.id})
            self._counts = {(kind, state): n for kind, state, n in rows}
        return self._counts

    # -- doing something with it -----------------------------------------------------------------------------------

    def repeated(self, key: str, kind: str) -> Answer | None:
        """What was done under this key before: a request that is sent again does nothing again."""
        row = self.session.scalars(queries.my_answer_of_key(), {"me": self.me.id, "key": key}).first()
        if row is not None and row.kind != kind:
            raise WorkError("key", "this key was used for something else")
        return row

    def held(self, token: str) -> Ticket:
        """My slot of this token; an error where it is not in my hands any more."""
        given = {"me": self.me.id, "token": token}
        found = _first(self.session.execute(queries.my_slot_of_token(self.lock), given))
        if found is None:
            raise WorkError("slot", "this question is not in your hands (any more)")
        return Ticket(*found, self.study)

    def current(self) -> Slot | None:
        """The slot that I hold."""
        found = self._mine()
        return found[0] if found and found[0].state == HELD else None

    def write(self, slot: Slot, kind: str, key: str, value: dict[str, Any] | None, comment: str) -> Answer:
        """Add a row to my chain."""
        last = self.session.execute(queries.my_last_answer(), {"me": self.me.id}).first()
        row = Answer(
            study_id=self.study.id,
            question_id=slot.question_id,
            slot_id=slot.id,
            annotator_id=self.me.id,
            turn=last.turn + 1 if last else 1,
            kind=kind,
            key=key,
            value=value,
            comment=comment,
            seconds=None if slot.shown is None else self.now - slot.shown,
            at=self.now,
        )
        row.digest = seal(last.digest if last else START, row)
        self.session.add(row)
        self.session.flush()
        return row

    def put_down(self, slot: Slot) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        slot.state, slot.lease_until, slot.token = FREE, None, None
        if slot.kind == MAIN:
            slot.annotator_id, slot.order = None, None

    def last_done(self) -> Slot | None:
        """The slot that I answered last, and that I can still change."""
        return self.session.scalars(queries.my_last_done(), {"me": self.me.id}).first()

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is not None and self.plan.attention:
            total += min(self.plan.attention, total // self.plan.attention_every)
        done = self._done(MAIN) + self._done(ATTENTION)
        return AnnotatorProgress(done, total, self.asked.get(PRACTICE, 0) - self._done(PRACTICE))


def _first(rows: Result[Slot, Question]) -> Found | None:
    row = rows.first()
    return (row[0], row[1]) if row is not None else None


def _question_counts(db: Database, session: Session, study_id: int) -> dict[str, int]:
    """How many questions of each kind a study has; that never changes, so it is asked once."""
    if study_id not in db.question_counts:
        rows = session.execute(queries.question_counts(), {"study": study_id})
        db.question_counts[study_id] = {kind: int(n) for kind, n in rows}
    return db.question_counts[study_id]


def is_welcome(annotator: Annotator, now: float) -> bool:
    """Whether an invitation still holds."""
    return annotator.revoked is None and (annotator.expires is None or annotator.expires > now)


def answer(desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str) -> Receipt:
    """Store an answer to the slot of this token."""
    before = desk.repeated(key, ANSWER)
    if before is not None:
        return _receipt(desk, before)
    ticket = desk.held(token)
    task = task_named(desk.study.task)
    value = task.mean(ticket.question.payload, ticket.order, read_form(ticket.form, given))
    row = desk.write(ticket.slot, ANSWER, key, value, comment)
    ticket.slot.state, ticket.slot.lease_until = DONE, None
    return _receipt(desk, row)


def _receipt(desk: Desk, row: Answer) -> Receipt:
    """Only practice questions say what would have been right."""
    question = desk.session.get_one(Question, row.question_id)
    if question.kind != PRACTICE or question.expected is None or row.value is None:
        return Receipt(row.key)
    task = task_named(desk.study.task)
    return Receipt(row.key, task.right(row.value, question.expected), task.say(question.payload, question.expected))


def skip(desk: Desk, token: str, key: str, comment: str) -> None:
    """Leave a question to others; it is not asked of this annotator again."""
    if desk.repeated(key, SKIP) is not None:
        return
    ticket = desk.held(token)
    desk.write(ticket.slot, SKIP, key, None, comment)
    if ticket.slot.kind == MAIN:
        desk.put_down(ticket.slot)
    else:
        ticket.slot.state, ticket.slot.lease_until = DONE, None


def undo(desk: Desk, key: str) -> None:
    """Take the last answer back and hold its slot again. The answer stays on record."""
    if desk.repeated(key, UNDO) is not None:
        return
    slot = desk.last_done()
    if slot is None:
        raise WorkError("nothing", "there is no answer to take back")
    current = desk.current()
    if current is not None:
        desk.put_down(current)
    desk.write(slot, UNDO, key, None, "")
    slot.state, slot.lease_until, slot.shown = HELD, desk.now + desk.plan.lease, desk.now
