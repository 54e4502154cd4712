"""One annotator's side of a study: which question is given out next, and how far they are.

A desk is one transaction. On PostgreSQL it starts by locking the annotator's row, so two tabs of one browser
come one after the other; slots are taken with SKIP LOCKED, so two annotators never wait for each other. SQLite has
one writer at a time anyway. The statements are in desk.sql and go to the driver as they are: putting them together
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
    TIMED_OUT,
    Annotator,
    Answer,
    Question,
    Slot,
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.study import StudyPlan
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import PageForm
from creperie.core import CreperieError, packaged


@cache
def _statements(locks: bool) -> dict[str, str]:
    """The statements of desk.sql, as SQLite's or PostgreSQL's driver reads them."""
    text = packaged("creperie.annotation", "desk.sql")
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


#: What desk.sql reads of the tables, in its order.
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
    """A slot that an annotator holds, with its question."""

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
        row = about and self.ask("me_with_slot", **given, token=about[0], key=about[1]).fetchone()
        row = row or self.ask("me_by_session" if isinstance(annotator, str) else "me", **given).fetchone()
        if row is None:
            raise WorkError("nobody", "open your invitation link first")
        self.me, self.study = _named(_WORKER, row[:13]), _named(_STUDY, row[13:18])
        self.plan, self.settings = _plan(row[18]), _settings(row[19])
        self.hand = self._ticket(row[20:]) if row[20:] else None
        self.asked = self._question_counts(db)
        self._counts: dict[tuple[str, str], int] | None = None
        if not is_welcome(self.me, self.now):
            raise WorkError("revoked", "your invitation has ended")
        if self.settings.consent_version not in ("", self.me.consent_version):
            raise WorkError("consent", "please read and accept the consent text first")

    def ask(self, name: str, **given: Any) -> Any:
        self._cursor.execute(self._sql[name], given)
        return self._cursor

    def found(self, name: str, **given: Any) -> Ticket | None:
        row = self.ask(name, me=self.me.id, **given).fetchone()
        return None if row is None else self._ticket(row)

    def _ticket(self, row: Sequence[Any]) -> Ticket:
        slot = _named(_SLOT, (*row[:7], _read(row[7])))
        return Ticket(slot, _named(_QUESTION, (*row[8:13], _read(row[13]), _read(row[14]))), self.study)

    def save(self, slot: SimpleNamespace, **changes: Any) -> None:
        """Change a slot here and in the database."""
        self.ask("save_slot", **self._changed(slot, changes))

    def write(self, row: SimpleNamespace, slot: SimpleNamespace, **changes: Any) -> None:
        """Add a row of my chain and change its slot."""
        said = {**vars(row), "value": None if row.value is None else json.dumps(row.value)}
        if self._locks and changes:  # all of it in one statement
            before, self._counts = SimpleNamespace(**vars(slot)), None
            given = said | self._row_of_me() | self._changed(slot, changes)
            self._counts = {(own, state): n for own, state, n in self.ask("finish", **given).fetchone()[0]}
            self._count(before, -1)
            self._count(slot, 1)
            return
        self.ask("add_answer", **said)
        self._save_me()
        if changes:
            self.save(slot, **changes)

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
        self.ask("save_me", **self._row_of_me())

    def _row_of_me(self) -> dict[str, Any]:
        me = self.me
        return {"me": me.id, "turns": me.turns, "head": me.head, "outcome": me.outcome, "finished": me.finished}

    def _question_counts(self, db: Database) -> dict[str, int]:
        """How many questions of each kind the study has; gold questions are the only ones that are added later."""
        known = (self.study.secret, self.settings.gold)
        if known not in db.question_counts:
            rows = self.ask("question_counts", study=self.study.id)
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
        return self.found("my_open_slot")

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
        self.ask("add_slot", study=self.study.id, question=question.id, kind=kind, me=self.me.id)
        found = self.found("my_slot_of_question", question=question.id)
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
        if self.now >= bound and (found := self.found("next_abandoned", **given)):
            return found
        if self.now >= bound:
            # Until then there is nothing to look for: whatever is given out from now on ends later.
            first = self.ask("first_lease", study=self.study.id).fetchone()[0]
            later = self.now + self.plan.lease
            self.leases[self.study.secret] = later if first is None else min(first, later)
        return self.found("next_free", **given) or self.found("next_abandoned", **given)

    def _done(self, kind: str) -> int:
        return self._own_counts().get((kind, DONE), 0)

    def _have(self, kind: str) -> int:
        return sum(n for (own, _), n in self._own_counts().items() if own == kind)

    def _own_counts(self) -> dict[tuple[str, str], int]:
        """My slots by kind and state; read once, then kept up as slots change."""
        if self._counts is None:
            self._counts = {(kind, state): n for kind, state, n in self.ask("my_counts", me=self.me.id)}
        return self._counts

    def _count(self, slot: SimpleNamespace, by: int) -> None:
        if self._counts is not None and slot.annotator_id == self.me.id:
            self._counts[slot.kind, slot.state] = self._counts.get((slot.kind, slot.state), 0) + by

    def slot_of(self, number: int) -> Ticket:
        found = self.found("slot_of_id", id=number)
        assert found is not None  # slots of rows stay
        return found

    def current(self) -> SimpleNamespace | None:
        """The slot that I hold."""
        found = self.found("my_open_slot")
        return found.slot if found and found.slot.state == HELD else None

    def put_down(self, slot: SimpleNamespace) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        self.shown.pop(slot.id, None)
        given_back = {"annotator_id": None, "order": None} if slot.kind == MAIN else {}
        self.save(slot, state=FREE, lease_until=None, token=None, **given_back)

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is not None and self.plan.attention:
            total += min(self.plan.attention, total // self.plan.attention_every)
        done = self._done(MAIN) + self._done(ATTENTION)
        return AnnotatorProgress(done, total, self._practice_left(), self.study.state != OPEN)


def is_welcome(annotator: Annotator | SimpleNamespace, now: float) -> bool:
    """Whether an invitation is still valid."""
    gone = annotator.revoked or annotator.excluded or annotator.withdrawn
    return gone is None and (annotator.expires is None or annotator.expires > now)
