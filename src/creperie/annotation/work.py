"""An annotator at work: take a slot, answer, skip, undo.

Every function is one transaction. On PostgreSQL it starts by locking the annotator's row, so two tabs of one browser
come one after the other; slots are taken with SKIP LOCKED, so two annotators never wait for each other. SQLite has
one writer at a time anyway.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Result, select
from sqlalchemy.orm import Session

from creperie.annotation import queries
from creperie.annotation.chain import append_answer
from creperie.annotation.database import Database
from creperie.annotation.schema import (
    ANSWER,
    ATTENTION,
    COMPLETED,
    DONE,
    FREE,
    HELD,
    MAIN,
    OPEN,
    PRACTICE,
    SCREENED,
    SKIP,
    TIMED_OUT,
    UNDO,
    Annotator,
    Answer,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import StudySettings, settings_of
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
    study: StudyRow

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
    stopped: bool = False


@dataclass(frozen=True)
class Ending:
    """How an annotator's work ended, and what a crowd platform wants to hear."""

    outcome: str
    code: str
    url: str


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
        self.shown = db.shown
        self.me, self.study = session.execute(queries.annotator_and_study(self.lock), {"me": annotator_id}).one()
        self.plan = StudyPlan(**self.study.plan)
        self.settings: StudySettings = settings_of(self.study.settings)
        self.asked = _question_counts(db, session, self.study)
        self._counts: dict[tuple[str, str], int] | None = None
        if not is_welcome(self.me, self.now):
            raise WorkError("revoked", "your invitation has ended")
        if self.settings.consent_version not in ("", self.me.consent_version):
            raise WorkError("consent", "please read and accept the consent text first")

    # -- taking a slot ---------------------------------------------------------------------------------------------

    def take(self) -> Ticket | None:
        """The slot that is held already, or the next one; None when there is nothing left to do."""
        self._counts = None
        if self.study.state != OPEN or self.me.outcome in (SCREENED, TIMED_OUT) or self._ends_early():
            return None
        found = self._mine() or self._own_slot(PRACTICE) or self._attention() or self._next()
        if found is None:
            self._end(COMPLETED)
            return None
        if self.me.outcome:  # an answer was taken back after the last one
            self.me.outcome, self.me.finished = "", None
        slot, question = found
        if slot.state != HELD or slot.annotator_id != self.me.id:
            self._hold(slot, question)
        slot.lease_until = self.now + self.plan.lease
        self.session.flush()
        return Ticket(slot, question, self.study)

    def _ends_early(self) -> bool:
        """Time is over, or the practice was not passed."""
        begun = self.me.consented or self.me.created
        if self.settings.minutes is not None and self.now > begun + 60 * self.settings.minutes:
            self._end(TIMED_OUT)
        elif self._practice_left() == 0 and not self._done(MAIN) and not self._passed_practice():
            self._end(SCREENED)
        return self.me.outcome in (SCREENED, TIMED_OUT)

    def _end(self, outcome: str) -> None:
        if self.me.outcome != outcome:
            self.me.outcome, self.me.finished = outcome, self.now
            if (current := self.current()) is not None:
                self.put_down(current)

    def _passed_practice(self) -> bool:
        if self.settings.pass_practice is None:
            return True
        rows = self.session.execute(
            select(Answer.value, Question.expected)
            .join(Question, Question.id == Answer.question_id)
            .where(Answer.annotator_id == self.me.id, Answer.kind == ANSWER, Question.kind == PRACTICE)
        )
        task = task_named(self.study.task)
        right = sum(value is not None and (known is None or task.right(value, known)) for value, known in rows)
        return right >= min(self.settings.pass_practice, self.asked.get(PRACTICE, 0))

    def _practice_left(self) -> int:
        return self.asked.get(PRACTICE, 0) - self._done(PRACTICE)

    def ending(self) -> Ending | None:
        """What to tell an annotator who is done."""
        if not self.me.outcome:
            return None
        code = self.settings.codes.get(self.me.outcome, "")
        return Ending(self.me.outcome, code, self.settings.completion_url.replace("{code}", code) if code else "")

    def _mine(self) -> Found | None:
        """A slot of my own: held, or put down by an undo."""
        return _first(self.session.execute(queries.my_open_slot(self.lock), {"me": self.me.id}))

    def _hold(self, slot: Slot, question: Question) -> None:
        slot.state = HELD
        slot.annotator_id = self.me.id
        slot.shown = self.now
        self.shown[slot.id] = time.monotonic()
        slot.token = secrets.token_urlsafe(16)
        if slot.order is None or slot.kind == MAIN:
            order = list(range(task_named(self.study.task).shuffled(question.payload)))
            secrets.SystemRandom().shuffle(order)  # an order that could be computed would tell what is true
            slot.order = order

    def hold_again(self, slot: Slot) -> None:
        """Take a slot that I skipped and that nobody has taken since."""
        self._hold(slot, self.session.get_one(Question, slot.question_id))

    def answered(self) -> int:
        """How many questions I have answered, practice aside."""
        return self._done(MAIN) + self._done(ATTENTION)

    def _own_slot(self, kind: str) -> Found | None:
        """A slot that only I can have; practice and attention questions are asked of everybody."""
        if self._have(kind) >= self.asked.get(kind, 0):
            return None
        own = select(Slot.question_id).where(Slot.annotator_id == self.me.id, Slot.kind == kind)
        left = self.session.scalars(
            select(Question)
            .where(Question.study_id == self.study.id, Question.kind == kind, Question.id.not_in(own))
            .order_by(Question.ordinal)
        ).all()
        # Practice comes in order; checks come in an order of their own for everybody.
        if kind == ATTENTION and any("gold" in q.payload for q in left):
            mine = set(self.session.scalars(select(Slot.question_id).where(Slot.annotator_id == self.me.id)))
            left = [q for q in left if q.payload.get("gold") not in mine]  # nobody is checked with their own answer
        if not left:
            return None
        question = left[0] if kind == PRACTICE else min(left, key=lambda q: self._secret_number(f"check {q.id}"))
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
        """Somewhere in each block of questions comes a check; where, only the study's secret says."""
        had, every = self._have(ATTENTION), self.plan.attention_every
        if self.me.quota is not None and had >= self.me.quota // every:
            return None
        due = had * every + 1 + self._secret_number(f"position {had}") % every
        return self._own_slot(ATTENTION) if self._done(MAIN) >= due else None

    def _secret_number(self, what: str) -> int:
        digest = hmac.digest(self.study.secret.encode(), f"{self.me.id}/{what}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big")

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
            raise WorkError("slot", "this question is no longer yours: it waited too long, or it was answered already")
        return Ticket(*found, self.study)

    def current(self) -> Slot | None:
        """The slot that I hold."""
        found = self._mine()
        return found[0] if found and found[0].state == HELD else None

    def write(
        self, slot: Slot, kind: str, key: str, value: dict[str, Any] | None, comment: str, visible: float | None = None
    ) -> Answer:
        """Add a row to my chain. `visible` is how long the page says that the question was in view."""
        row = Answer(
            study_id=self.study.id,
            question_id=slot.question_id,
            slot_id=slot.id,
            annotator_id=self.me.id,
            kind=kind,
            key=key,
            value=value,
            comment=comment,
            seconds=self._seconds(slot, visible),
            at=self.now,
        )
        append_answer(self.me, row)
        self.session.add(row)
        self.session.flush()
        return row

    def _seconds(self, slot: Slot, visible: float | None) -> float | None:
        """Time in view, but never more than has passed here: clocks jump, pages can lie."""
        begun = self.shown.pop(slot.id, None)
        if begun is not None:
            passed = time.monotonic() - begun
        elif slot.shown is not None and 0 <= self.now - slot.shown <= 86400:  # the server was started again since
            passed = self.now - slot.shown
        else:
            return visible
        return passed if visible is None else min(visible, passed)

    def put_down(self, slot: Slot) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        slot.state, slot.lease_until, slot.token = FREE, None, None
        if slot.kind == MAIN:
            slot.annotator_id, slot.order = None, None

    def skipped(self) -> int:
        """How many questions I skipped and did not take back."""
        rows = self._recent(limit=100_000)
        return sum(row.kind == SKIP for row in rows) - sum(row.kind == UNDO for row in rows if _undoes_skip(row, rows))

    def last_step(self) -> tuple[Slot, str] | None:
        """The slot of my last answer or skip that was not taken back, and which of the two it was."""
        taken_back = 0
        for row in self._recent(limit=200):
            if row.kind == UNDO:
                taken_back += 1
            elif taken_back:
                taken_back -= 1
            else:
                slot = self.session.get_one(Slot, row.slot_id)
                return None if slot.kind == PRACTICE else (slot, row.kind)
        return None

    def _recent(self, limit: int) -> Sequence[Any]:
        given = {"me": self.me.id, "most": limit}
        return self.session.execute(queries.my_rows(), given).all()

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is not None and self.plan.attention:
            total += min(self.plan.attention, total // self.plan.attention_every)
        done = self._done(MAIN) + self._done(ATTENTION)
        return AnnotatorProgress(done, total, self._practice_left(), self.study.state != OPEN)


def _undoes_skip(undo: Any, rows: Sequence[Any]) -> bool:
    """Whether an undo took back a skip: of the rows of its slot before it, the last that stood was one."""
    before = [row.kind for row in rows if row.slot_id == undo.slot_id and row.turn < undo.turn]
    return bool(before) and before[0] == SKIP


def _first(rows: Result[Slot, Question]) -> Found | None:
    row = rows.first()
    return (row[0], row[1]) if row is not None else None


def _question_counts(db: Database, session: Session, study: StudyRow) -> dict[str, int]:
    """How many questions of each kind a study has; gold questions are the only ones that are added later."""
    known = (study.id, study.settings.get("gold", 0))
    if known not in db.question_counts:
        rows = session.execute(queries.question_counts(), {"study": study.id})
        db.question_counts[known] = {kind: int(n) for kind, n in rows}
    return db.question_counts[known]


def is_welcome(annotator: Annotator, now: float) -> bool:
    """Whether an invitation is still valid."""
    gone = annotator.revoked or annotator.excluded or annotator.withdrawn
    return gone is None and (annotator.expires is None or annotator.expires > now)


def answer(
    desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str, visible: float | None = None
) -> Receipt:
    """Store an answer to the slot of this token. A study that was stopped still takes the answer in hand."""
    before = desk.repeated(key, ANSWER)
    if before is not None:
        return _receipt(desk, before)
    ticket = desk.held(token)
    task = task_named(desk.study.task)
    value = task.mean(ticket.question.payload, ticket.order, read_form(ticket.form, given))
    row = desk.write(ticket.slot, ANSWER, key, value, comment, visible)
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
    """Leave a question to others; it is not asked of this annotator again. A skipped check counts as failed."""
    if desk.repeated(key, SKIP) is not None:
        return
    ticket = desk.held(token)
    if desk.skipped() >= desk.plan.skips_allowed(desk.answered()):
        raise WorkError("skips", "you have skipped too many questions: please answer this one")
    desk.write(ticket.slot, SKIP, key, None, comment)
    if ticket.slot.kind == MAIN:
        desk.put_down(ticket.slot)
    else:
        ticket.slot.state, ticket.slot.lease_until = DONE, None


def undo(desk: Desk, key: str) -> None:
    """Take back the last answer or skip and hold its slot again. What was taken back stays on record."""
    if desk.repeated(key, UNDO) is not None:
        return
    step = desk.last_step()
    if step is None:
        raise WorkError("nothing", "there is no answer to take back")
    slot, _ = step
    mine, free = slot.annotator_id == desk.me.id, slot.annotator_id is None and slot.state == FREE
    if not mine and not free:
        raise WorkError("gone", "the skipped question has been given to someone else")
    current = desk.current()
    if current is not None:
        desk.put_down(current)
    desk.write(slot, UNDO, key, None, "")
    if free:
        desk.hold_again(slot)
    slot.state, slot.lease_until, slot.shown = HELD, desk.now + desk.plan.lease, desk.now
    desk.shown[slot.id] = time.monotonic()
