"""An annotator at work: take a slot, answer, skip, undo.

Every function is one transaction. On PostgreSQL it starts by locking the annotator's row, so two tabs of one browser
come one after the other; slots are taken with SKIP LOCKED, so two annotators never wait for each other. SQLite has
one writer at a time anyway. The statements are in work.sql and go to the driver as they are: putting them together
with an object mapper takes several times as long as answering them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from string import Template
from types import SimpleNamespace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

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
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.study import StudyPlan
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import PageForm, read_form
from creperie.core import CreperieError, packaged


@cache
def _statements(locks: bool) -> dict[str, str]:
    """The statements of work.sql, as SQLite's or PostgreSQL's driver reads them."""
    text = packaged("creperie.annotation", "work.sql")
    parts = dict(part.split("\n", 1) for part in text.split("-- name: ")[1:])
    if locks:
        parts = {name: re.sub(r":(\w+)", r"%(\1)s", sql.replace("-- lock:", "")) for name, sql in parts.items()}
    for name, sql in parts.items():  # in the order of the file: what is made of others comes after them
        parts[name] = Template(sql).substitute(parts).strip()
    return parts


@lru_cache(256)
def _plan(text: str) -> StudyPlan:
    return StudyPlan(**json.loads(text))


@lru_cache(256)
def _settings(text: str) -> StudySettings:
    return settings_of(json.loads(text))


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text)


#: What work.sql reads of the tables, in its order.
_WORKER = "id quota expires revoked excluded withdrawn created consented consent_version outcome finished turns head"
_STUDY, _SLOT = "id task state phase secret", "id kind state annotator_id lease_until shown token order"
_QUESTION = "id kind source subset item payload expected"


def _named(names: str, values: Iterable[Any]) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names.split(), values, strict=True)))


class WorkError(CreperieError):
    """Something an annotator cannot do now. `code` says why, for the page."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        super().__init__(what)


@dataclass(frozen=True)
class Ticket:
    """A slot in somebody's hands."""

    slot: SimpleNamespace
    question: SimpleNamespace
    study: SimpleNamespace

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

    def __init__(
        self,
        db: Database,
        session: Session,
        annotator: int | str,
        now: float | None = None,
        about: tuple[str, str] | None = None,
    ) -> None:
        """`annotator` is a number, or the hash of a session's cookie; `about` the slot and the key of a request."""
        self.now = time.time() if now is None else now
        self.session = session
        self.shown, self.leases = db.shown, db.leases
        session.info["clean"] = True
        self._sql = _statements(db.locks_rows)
        self._cursor = session.connection().connection.cursor()
        self._locks, given = db.locks_rows, {"me": annotator, "now": self.now}
        row = about and self._ask("me_with_slot", **given, token=about[0], key=about[1]).fetchone()
        row = row or self._ask("me_by_session" if isinstance(annotator, str) else "me", **given).fetchone()
        if row is None:
            raise WorkError("nobody", "open your invitation link first")
        self.me, self.study = _named(_WORKER, row[:13]), _named(_STUDY, row[13:18])
        self.plan, self.settings = _plan(row[18]), _settings(row[19])
        self._hand = self._ticket(row[20:]) if row[20:] else None
        self.asked = self._question_counts(db)
        self._counts: dict[tuple[str, str], int] | None = None
        if not is_welcome(self.me, self.now):
            raise WorkError("revoked", "your invitation has ended")
        if self.settings.consent_version not in ("", self.me.consent_version):
            raise WorkError("consent", "please read and accept the consent text first")

    def _ask(self, name: str, **given: Any) -> Any:
        self._cursor.execute(self._sql[name], given)
        return self._cursor

    def _found(self, name: str, **given: Any) -> Ticket | None:
        row = self._ask(name, me=self.me.id, **given).fetchone()
        return None if row is None else self._ticket(row)

    def _ticket(self, row: Sequence[Any]) -> Ticket:
        slot = _named(_SLOT, (*row[:7], _read(row[7])))
        return Ticket(slot, _named(_QUESTION, (*row[8:13], _read(row[13]), _read(row[14]))), self.study)

    def save(self, slot: SimpleNamespace, **changes: Any) -> None:
        """Change a slot here and in the database."""
        self._ask("save_slot", **self._changed(slot, changes))

    def _changed(self, slot: SimpleNamespace, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change a slot here; its row."""
        self.session.info["clean"] = False
        self._count(slot, -1)
        vars(slot).update(changes)
        self._count(slot, 1)
        own = {name: getattr(slot, name) for name in ("id", "state", "annotator_id", "lease_until", "shown", "token")}
        return {**own, "shuffle": None if slot.order is None else json.dumps(slot.order)}

    def _save_me(self) -> None:
        self.session.info["clean"] = False
        self._ask("save_me", **self._row_of_me())

    def _row_of_me(self) -> dict[str, Any]:
        me = self.me
        return {"me": me.id, "turns": me.turns, "head": me.head, "outcome": me.outcome, "finished": me.finished}

    def _question_counts(self, db: Database) -> dict[str, int]:
        """How many questions of each kind the study has; gold questions are the only ones that are added later."""
        known = (self.study.secret, self.settings.gold)
        if known not in db.question_counts:
            rows = self._ask("question_counts", study=self.study.id)
            db.question_counts[known] = {kind: int(n) for kind, n in rows}
        return db.question_counts[known]

    # -- taking a slot ---------------------------------------------------------------------------------------------

    def take(self) -> Ticket | None:
        """The slot that is held already, or the next one; None when there is nothing left to do."""
        if self.study.state != OPEN or self.me.outcome in (SCREENED, TIMED_OUT) or self._ends_early():
            return None
        ticket = self._mine() or self._own_slot(PRACTICE) or self._attention() or self._next()
        if ticket is None:
            self._end(COMPLETED)
            return None
        if self.me.outcome:  # an answer was taken back after the last one
            self.me.outcome, self.me.finished = "", None
            self._save_me()
        if ticket.slot.state != HELD or ticket.slot.annotator_id != self.me.id:
            self._hold(ticket)
        else:
            self.save(ticket.slot, lease_until=self.now + self.plan.lease)
        return ticket

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
            self._save_me()
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

    def _mine(self) -> Ticket | None:
        """A slot of my own: held, or put down by an undo."""
        if not any(n and state in (HELD, FREE) for (_, state), n in self._own_counts().items()):
            return None
        return self._found("my_open_slot")

    def _hold(self, ticket: Ticket) -> None:
        """Take a slot: a new one, or one that I skipped and that nobody has taken since."""
        slot, order = ticket.slot, ticket.slot.order
        self.shown[slot.id] = time.monotonic()
        if order is None or slot.kind == MAIN:
            order = list(range(task_named(self.study.task).shuffled(ticket.question.payload)))
            secrets.SystemRandom().shuffle(order)  # an order that could be computed would tell what is true
        held = {"state": HELD, "annotator_id": self.me.id, "lease_until": self.now + self.plan.lease}
        self.save(slot, **held, shown=self.now, token=secrets.token_urlsafe(16), order=order)

    def hold_again(self, ticket: Ticket) -> None:
        """Take back a slot that I answered, as it was, or one that I skipped and that nobody has taken since."""
        if ticket.slot.state == FREE:
            self._hold(ticket)
            return
        self.shown[ticket.slot.id] = time.monotonic()
        self.save(ticket.slot, state=HELD, lease_until=self.now + self.plan.lease, shown=self.now)

    def answered(self) -> int:
        """How many questions I have answered, practice aside."""
        return self._done(MAIN) + self._done(ATTENTION)

    def _own_slot(self, kind: str) -> Ticket | None:
        """A slot that only I can have; practice and attention questions are asked of everybody."""
        if self._have(kind) >= self.asked.get(kind, 0):
            return None
        own = select(Slot.question_id).where(Slot.annotator_id == self.me.id, Slot.kind == kind)
        left = self.session.execute(
            select(Question.id, Question.payload)
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
        self.session.info["clean"] = False
        self._ask("add_slot", study=self.study.id, question=question.id, kind=kind, me=self.me.id)
        found = self._found("my_slot_of_question", question=question.id)
        assert found is not None  # just added
        self._count(found.slot, 1)
        return found

    def _attention(self) -> Ticket | None:
        """Somewhere in each block of questions comes a check; where, only the study's secret says."""
        had, every = self._have(ATTENTION), self.plan.attention_every
        if self.me.quota is not None and had >= self.me.quota // every:
            return None
        due = had * every + 1 + self._secret_number(f"position {had}") % every
        return self._own_slot(ATTENTION) if self._done(MAIN) >= due else None

    def _secret_number(self, what: str) -> int:
        digest = hmac.digest(self.study.secret.encode(), f"{self.me.id}/{what}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big")

    def _next(self) -> Ticket | None:
        if self.me.quota is not None and self._done(MAIN) >= self.me.quota:
            return None
        given = {"study": self.study.id, "phase": self.study.phase, "now": self.now}
        bound = self.leases.get(self.study.secret, 0.0)
        if self.now >= bound and (found := self._found("next_abandoned", **given)):
            return found
        if self.now >= bound:
            # Until then there is nothing to look for: whatever is given out from now on ends later.
            first = self._ask("first_lease", study=self.study.id).fetchone()[0]
            later = self.now + self.plan.lease
            self.leases[self.study.secret] = later if first is None else min(first, later)
        return self._found("next_free", **given) or self._found("next_abandoned", **given)

    def _done(self, kind: str) -> int:
        return self._own_counts().get((kind, DONE), 0)

    def _have(self, kind: str) -> int:
        return sum(n for (own, _), n in self._own_counts().items() if own == kind)

    def _own_counts(self) -> dict[tuple[str, str], int]:
        """My slots by kind and state; read once, then kept up as slots change."""
        if self._counts is None:
            self._counts = {(kind, state): n for kind, state, n in self._ask("my_counts", me=self.me.id)}
        return self._counts

    def _count(self, slot: SimpleNamespace, by: int) -> None:
        if self._counts is not None and slot.annotator_id == self.me.id:
            self._counts[slot.kind, slot.state] = self._counts.get((slot.kind, slot.state), 0) + by

    # -- doing something with it -----------------------------------------------------------------------------------

    def repeated(self, key: str, kind: str) -> Receipt | None:
        """What was done under this key before: a request that is sent again does nothing again."""
        row = self._ask("my_row_of_key", me=self.me.id, key=key).fetchone()
        if row is None:
            return None
        if row[0] != kind:
            raise WorkError("key", "this key was used for something else")
        return self.receipt(key, self._slot_of(row[2]).question, _read(row[1]))

    def receipt(self, key: str, question: SimpleNamespace, value: dict[str, Any] | None) -> Receipt:
        """Only practice questions say what would have been right."""
        known = question.expected
        if question.kind != PRACTICE or known is None or value is None:
            return Receipt(key)
        task = task_named(self.study.task)
        return Receipt(key, task.right(value, known), task.say(question.payload, known))

    def held(self, token: str, key: str, kind: str) -> Ticket | Receipt:
        """My slot of this token, or what was done under the key before; an error where it is not in my hands."""
        found = self._hand or self._found("my_slot_of_token", token=token, key=key) or self.repeated(key, kind)
        if found is None:
            raise WorkError("slot", "this question is no longer yours: it waited too long, or it was answered already")
        return found

    def _slot_of(self, number: int) -> Ticket:
        found = self._found("slot_of_id", id=number)
        assert found is not None  # slots of rows stay
        return found

    def current(self) -> SimpleNamespace | None:
        """The slot that I hold."""
        found = self._found("my_open_slot")
        return found.slot if found and found.slot.state == HELD else None

    def write(
        self,
        ticket: Ticket,
        kind: str,
        key: str,
        value: Any,
        comment: str,
        visible: float | None = None,
        **changes: Any,
    ) -> None:
        """Add a row to my chain and change its slot. `visible` is how long the page says the question was in view."""
        row = SimpleNamespace(
            study_id=self.study.id,
            question_id=ticket.question.id,
            slot_id=ticket.slot.id,
            annotator_id=self.me.id,
            kind=kind,
            key=key,
            value=value,
            comment=comment,
            seconds=self._seconds(ticket.slot, visible),
            at=self.now,
        )
        append_answer(self.me, row)
        said = {**vars(row), "value": None if value is None else json.dumps(value)}
        if self._locks and changes:  # all of it in one statement
            before, self._counts = SimpleNamespace(**vars(ticket.slot)), None
            given = said | self._row_of_me() | self._changed(ticket.slot, changes)
            self._counts = {(own, state): n for own, state, n in self._ask("finish", **given).fetchone()[0]}
            self._count(before, -1)
            self._count(ticket.slot, 1)
            return
        self._ask("add_answer", **said)
        self._save_me()
        if changes:
            self.save(ticket.slot, **changes)

    def _seconds(self, slot: SimpleNamespace, visible: float | None) -> float | None:
        """Time in view, but never more than has passed here: clocks jump, pages can lie."""
        begun = self.shown.pop(slot.id, None)
        if begun is not None:
            passed = time.monotonic() - begun
        elif slot.shown is not None and 0 <= self.now - slot.shown <= 86400:  # the server was started again since
            passed = self.now - slot.shown
        else:
            return visible
        return passed if visible is None else min(visible, passed)

    def put_down(self, slot: SimpleNamespace) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        self.shown.pop(slot.id, None)
        given_back = {"annotator_id": None, "order": None} if slot.kind == MAIN else {}
        self.save(slot, state=FREE, lease_until=None, token=None, **given_back)

    def skipped(self) -> int:
        """How many questions I skipped and did not take back."""
        rows = self._recent(limit=100_000)
        return sum(row.kind == SKIP for row in rows) - sum(row.kind == UNDO for row in rows if _undoes_skip(row, rows))

    def last_step(self) -> Ticket | None:
        """The slot of my last answer or skip that was not taken back."""
        taken_back = 0
        for row in self._recent(limit=200):
            if row.kind == UNDO:
                taken_back += 1
            elif taken_back:
                taken_back -= 1
            else:
                found = self._slot_of(row.slot_id)
                return None if found.slot.kind == PRACTICE else found
        return None

    def _recent(self, limit: int) -> list[SimpleNamespace]:
        rows = self._ask("my_rows", me=self.me.id, most=limit).fetchall()
        return [SimpleNamespace(slot_id=slot, kind=kind, turn=turn) for slot, kind, turn in rows]

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is not None and self.plan.attention:
            total += min(self.plan.attention, total // self.plan.attention_every)
        done = self._done(MAIN) + self._done(ATTENTION)
        return AnnotatorProgress(done, total, self._practice_left(), self.study.state != OPEN)


def _undoes_skip(undo: Any, rows: list[SimpleNamespace]) -> bool:
    """Whether an undo took back a skip: of the rows of its slot before it, the last that stood was one."""
    before = [row.kind for row in rows if row.slot_id == undo.slot_id and row.turn < undo.turn]
    return bool(before) and before[0] == SKIP


def is_welcome(annotator: Annotator | SimpleNamespace, now: float) -> bool:
    """Whether an invitation is still valid."""
    gone = annotator.revoked or annotator.excluded or annotator.withdrawn
    return gone is None and (annotator.expires is None or annotator.expires > now)


def answer(
    desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str, visible: float | None = None
) -> Receipt:
    """Store an answer to the slot of this token. A study that was stopped still takes the answer in hand."""
    if isinstance(ticket := desk.held(token, key, ANSWER), Receipt):
        return ticket
    task = task_named(desk.study.task)
    value = task.mean(ticket.question.payload, ticket.order, read_form(ticket.form, given))
    desk.write(ticket, ANSWER, key, value, comment, visible, state=DONE, lease_until=None)
    return desk.receipt(key, ticket.question, value)


def skip(desk: Desk, token: str, key: str, comment: str) -> None:
    """Leave a question to others; it is not asked of this annotator again. A skipped check counts as failed."""
    if isinstance(ticket := desk.held(token, key, SKIP), Receipt):
        return
    if desk.skipped() >= desk.plan.skips_allowed(desk.answered()):
        raise WorkError("skips", "you have skipped too many questions: please answer this one")
    desk.write(ticket, SKIP, key, None, comment)
    if ticket.slot.kind == MAIN:
        desk.put_down(ticket.slot)
    else:
        desk.save(ticket.slot, state=DONE, lease_until=None)


def undo(desk: Desk, key: str) -> None:
    """Take back the last answer or skip and hold its slot again. What was taken back stays on record."""
    if desk.repeated(key, UNDO) is not None:
        return
    ticket = desk.last_step()
    if ticket is None:
        raise WorkError("nothing", "there is no answer to take back")
    slot = ticket.slot
    mine, free = slot.annotator_id == desk.me.id, slot.annotator_id is None and slot.state == FREE
    if not mine and not free:
        raise WorkError("gone", "the skipped question has been given to someone else")
    current = desk.current()
    if current is not None:
        desk.put_down(current)
    desk.write(ticket, UNDO, key, None, "")
    desk.hold_again(ticket)
