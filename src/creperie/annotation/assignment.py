"""Which question an annotator gets next.

Questions are answered once all round before any is answered twice, as far as people have arrived: `depth` answers per
question are open, so that nobody who comes early can fill a question with friends. Among the questions that are open,
an annotator gets one whose other annotators they have met least; nobody meets the same person much more often than an
even spread would have it (`pair_cap`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import BindParameter, Select, and_, bindparam, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from creperie.annotation.database import Database
from creperie.annotation.links import Participant
from creperie.annotation.schema import (
    ATTENTION,
    COMPLETED,
    DONE,
    FREE,
    HELD,
    INVITED,
    MAIN,
    OPEN,
    PRACTICE,
    SKIP,
    VOID,
    Annotator,
    Answer,
    Link,
    Listed,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.study import StudyPlan, count_questions
from creperie.annotation.tasks import task_named

#: Open questions that are compared for the next one.
CANDIDATES = 48


def depth(overlap: int, arrived: int, expected: int) -> int:
    """Return how many answers per question are open when so many of the expected people have arrived.

    >>> [depth(3, arrived, 25) for arrived in (1, 3, 9, 17, 25)], depth(2, 1, 2), depth(2, 2, 2)
    ([1, 1, 2, 3, 3], 1, 2)
    """
    return min(overlap, math.ceil(overlap * arrived / max(expected, arrived)))


def pair_cap(questions: int, overlap: int, people: int) -> int:
    """Return how many questions two annotators may have in common: twice what an even spread gives, and two.

    >>> pair_cap(200, 3, 25), pair_cap(100, 2, 2)
    (6, 202)
    """
    pairs = max(1, people * (people - 1))
    return 2 * math.ceil(questions * overlap * (overlap - 1) / pairs) + 2


def preferred(
    candidates: Iterable[tuple[int, int]],
    holders: Mapping[int, Sequence[int]],
    met: Mapping[int, int],
    cap: int,
) -> list[int]:
    """Questions in the order in which an annotator should get them.

    `candidates` are copies and questions in their random order, `holders` the people who have a question already, and
    `met` says with how many questions I have in common with each of them.
    """
    ranked = []
    for place, (copy, question) in enumerate(candidates):
        meetings = [met.get(person, 0) for person in holders.get(question, ())]
        if max(meetings, default=0) < cap:
            ranked.append((copy, max(meetings, default=0), sum(meetings), place, question))
    return [question for *_, question in sorted(ranked)]


@dataclass(frozen=True)
class Ticket:
    """A slot that an annotator holds, with its question."""

    slot: Slot
    question: Question


@dataclass(frozen=True)
class AnnotatorProgress:
    """How far an annotator is. Attention checks count like other questions."""

    done: int
    total: int | None
    stopped: bool = False
    waiting: bool = False  #: more questions open when more people have begun


class Desk:
    """One annotator's side of one transaction. What is read stays valid in it: the annotator's row is locked."""

    def __init__(self, db: Database, session: Session, who: Participant, now: float | None = None) -> None:
        self.now = time.time() if now is None else now
        self.session, self.me, self.study = session, who.annotator, who.study
        self.plan, self.settings = StudyPlan(**who.study.plan), settings_of(who.study.settings)
        self.task = task_named(who.study.task)
        if self.study.id not in db.questions:  # they are never added or removed
            db.questions[self.study.id] = count_questions(session, self.study)
        self.questions: Mapping[str, int] = db.questions[self.study.id]
        self.waiting = False
        self._counts: Counter[tuple[str, str]] | None = None

    def save(self) -> None:
        """Write what has changed."""
        self.session.flush()
        self._counts = None

    # -- taking a slot ---------------------------------------------------------------------------------------------

    def take(self) -> Ticket | None:
        """The slot that is held already, or the next one; None when there is nothing left to do."""
        if self.study.state != OPEN:
            return None
        ticket = self.mine() or self._own_slot(PRACTICE) or self._attention() or self._next()
        if ticket is None:
            if not self.waiting and not self.me.outcome:
                self.me.outcome, self.me.finished = COMPLETED, self.now
            return None
        self.me.outcome, self.me.finished = "", None  # an answer may have been taken back after the last one
        self.hold(ticket)
        return ticket

    def mine(self) -> Ticket | None:
        """A slot of my own: held, or put down by an undo."""
        own = _SLOTS.where(Slot.annotator_id == self.me.id, Slot.state.in_((HELD, FREE)))
        return self._ticket(own.order_by(Slot.state.desc(), Slot.id).limit(1))

    def hold(self, ticket: Ticket) -> None:
        """Take a slot, or hold it for longer. A question that is given out anew is shuffled anew."""
        slot = ticket.slot
        again = slot.annotator_id == self.me.id and slot.state != FREE
        if not again:
            slot.shown, slot.token = self.now, secrets.token_urlsafe(16)
        if slot.order is None or (not again and slot.kind == MAIN):
            order = list(range(self.task.shuffled(ticket.question.payload)))
            secrets.SystemRandom().shuffle(order)  # an order that could be computed would tell what is true
            slot.order = order
        slot.state, slot.annotator_id, slot.lease_until = HELD, self.me.id, self.now + self.plan.lease
        self.session.flush()  # as many slots are done as before

    def put_down(self, slot: Slot) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        slot.state, slot.lease_until, slot.token = FREE, None, None
        if slot.kind == MAIN:
            slot.annotator_id, slot.order = None, None
        self.save()

    def _ticket(self, wanted: Select[Slot, Question]) -> Ticket | None:
        row = self.session.execute(wanted.execution_options(populate_existing=True)).first()
        return None if row is None else Ticket(*row)

    def ticket_of(self, number: int) -> Ticket:
        """The slot with an id, locked."""
        ticket = self._ticket(_SLOTS.where(Slot.id == number))
        assert ticket is not None  # slots of rows stay
        return ticket

    def ticket_named(self, token: str) -> Ticket | None:
        """The slot of a token, if I hold it."""
        return self._ticket(_SLOTS.where(Slot.token == token, Slot.annotator_id == self.me.id, Slot.state == HELD))

    # -- practice and checks -----------------------------------------------------------------------------------------

    def _own_slot(self, kind: str) -> Ticket | None:
        """A slot that only I can have; practice and attention questions are asked of everybody."""
        if self._had(kind) >= self.questions[kind]:
            return None
        asked = select(Question).where(Question.study_id == self.study.id, Question.kind == kind)
        questions = self.session.scalars(asked.order_by(Question.ordinal)).all()
        had = set(self.session.scalars(select(Slot.question_id).where(Slot.annotator_id == self.me.id)))
        left = [q for q in questions if q.id not in had]
        question = left[0]
        if kind == ATTENTION:  # every known answer as often as the others, otherwise in an order of my own
            seen = Counter(json.dumps(q.expected) for q in questions if q.id in had)
            question = min(left, key=lambda q: (seen[json.dumps(q.expected)], self._secret(f"check {q.id}")))
        own = {"study_id": self.study.id, "question_id": question.id, "kind": kind, "annotator_id": self.me.id}
        slot = Slot(**own, copy=self.me.id, rank=0, state=FREE)
        self.session.add(slot)
        self.save()
        return Ticket(slot, question)

    def _attention(self) -> Ticket | None:
        """Somewhere in each block of questions comes a check; where, only the study's secret says."""
        had, every = self._had(ATTENTION), self.plan.attention_every
        if not self.plan.attention or (self.me.quota is not None and had >= self.me.quota // every):
            return None
        due = had * every + 1 + self._secret(f"position {had}") % every
        return self._own_slot(ATTENTION) if self.counts()[MAIN, DONE] >= due else None

    def _secret(self, what: str) -> int:
        digest = hmac.digest(self.study.secret.encode(), f"{self.me.id}/{what}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big")

    # -- the next question -------------------------------------------------------------------------------------------

    def _next(self) -> Ticket | None:
        if self.me.quota is not None and self.counts()[MAIN, DONE] >= self.me.quota:
            return None
        arrived, people = self._people
        rows = self._open_slots(depth(self.plan.overlap, arrived, people))
        first = {row.question_id: row.id for row in reversed(rows)}
        ranked = preferred(
            [(row.copy, row.question_id) for row in rows if first[row.question_id] == row.id],
            self._holders(first),
            {person: n for person, n in self.session.execute(_MET, {"me": self.me.id}) if person},
            pair_cap(self.questions[MAIN], self.plan.overlap, people),
        )
        for question in ranked:
            ticket = self.ticket_of(first[question])
            slot = ticket.slot
            if slot.state == FREE or (slot.state == HELD and (slot.lease_until or 0) < self.now):  # nobody was quicker
                return ticket
        # People who were invited can come back when more is open; for a crowd this is the end.
        self.waiting = self.me.entry == INVITED and bool(self._open_slots(self.plan.overlap))
        return None

    def _open_slots(self, bound: int) -> Sequence[Any]:
        """Slots that are free or abandoned, about questions that I have neither had nor skipped."""
        own = {"study": self.study.id, "me": self.me.id, "bound": bound, "overlap": self.plan.overlap, "now": self.now}
        return [row for wanted in (_LAPSED, _FREE) for row in self.session.execute(wanted, own)]

    def _holders(self, questions: Iterable[int]) -> dict[int, list[int]]:
        """Return who has or had each question, without people who are excluded."""
        taken = select(Slot.question_id, Slot.annotator_id).where(Slot.annotator_id.is_not(None), Slot.state != VOID)
        holders: dict[int, list[int]] = defaultdict(list)
        for question, person in self.session.execute(taken.where(Slot.question_id.in_(questions))):
            holders[question].append(person or 0)
        return holders

    # -- how far I am --------------------------------------------------------------------------------------------------

    @cached_property
    def _people(self) -> tuple[int, int]:
        return arrivals(self.session, self.study, self.settings, self.me.id)

    def counts(self) -> Counter[tuple[str, str]]:
        """My slots by kind and state."""
        if self._counts is None:
            own = select(Slot.kind, Slot.state, func.count()).where(Slot.annotator_id == self.me.id)
            rows = self.session.execute(own.group_by(Slot.kind, Slot.state))
            self._counts = Counter({(kind, state): n for kind, state, n in rows})
        return self._counts

    def _had(self, kind: str) -> int:
        return sum(n for (own, _), n in self.counts().items() if own == kind)

    def answered(self) -> int:
        """Return how many questions I have answered, without practice."""
        return self.counts()[MAIN, DONE] + self.counts()[ATTENTION, DONE]

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is None and self._people[1] <= self.plan.overlap:
            total = self.questions[MAIN]  # everybody answers everything
        if total is not None:
            total += min(self.plan.attention, total // self.plan.attention_every)
        return AnnotatorProgress(self.answered(), total, self.study.state != OPEN, self.waiting)

    def ending(self) -> str | None:
        """Return where an annotator who is done goes on; None for one who is not done."""
        return self.settings.completion_url if self.me.outcome else None


# -- statements --------------------------------------------------------------------------------------------------------

_SLOTS = select(Slot, Question).join(Question, Question.id == Slot.question_id).with_for_update(of=Slot)
_ME: BindParameter[int] = bindparam("me")
_NOW: BindParameter[float] = bindparam("now")
_MINE, _OTHER = aliased(Slot), aliased(Slot)
_OPEN = (
    select(Slot.id, Slot.copy, Slot.question_id)
    .where(Slot.study_id == bindparam("study"), Slot.kind == MAIN)
    .where(or_(Slot.copy < bindparam("bound"), Slot.copy >= bindparam("overlap")))
    .where(Slot.question_id.not_in(select(_MINE.question_id).where(_MINE.annotator_id == _ME)))
    .where(Slot.question_id.not_in(select(Answer.question_id).where(Answer.annotator_id == _ME, Answer.kind == SKIP)))
    .order_by(Slot.rank)
    .limit(CANDIDATES)
)
_LAPSED, _FREE = _OPEN.where(Slot.state == HELD, Slot.lease_until < _NOW), _OPEN.where(Slot.state == FREE)
#: How many questions I have in common with each of the others, people who are excluded aside.
_MET = (
    select(_OTHER.annotator_id, func.count())
    .join(_MINE, _MINE.question_id == _OTHER.question_id)
    .where(_MINE.annotator_id == _ME, _MINE.kind == MAIN, _OTHER.annotator_id != _ME, _OTHER.state != VOID)
    .group_by(_OTHER.annotator_id)
)
_TAKING_PART = and_(
    Annotator.study_id == bindparam("study"), Annotator.excluded.is_(None), Annotator.withdrawn.is_(None)
)
_BEGUN = or_(Annotator.id == _ME, exists().where(Slot.annotator_id == Annotator.id))
_LINKED = exists().where(Link.annotator_id == Annotator.id, Link.revoked.is_(None), Link.expires > _NOW)
#: How many people have begun, how many have begun or have a link, and how many ids are listed.
_ARRIVED = select(
    select(func.count()).where(_TAKING_PART, _BEGUN).scalar_subquery(),
    select(func.count()).where(_TAKING_PART, or_(_BEGUN, _LINKED)).scalar_subquery(),
    select(func.count()).where(Listed.study_id == bindparam("study")).scalar_subquery(),
)


def arrivals(session: Session, study: StudyRow, settings: StudySettings, me: int = 0) -> tuple[int, int]:
    """Return how many people have begun a study (`me` included), and how many are expected to in all.

    Expected are as many as the owner says, else all who have a link or an id on the list, or the cap. Where nothing
    says it, a crowd is as large as the quota makes it.
    """
    own = {"study": study.id, "me": me, "now": time.time()}
    arrived, invited, listed = session.execute(_ARRIVED, own).one()
    if settings.expected is not None:
        return arrived, max(arrived, settings.expected)
    crowd, quota = max(settings.cap or 0, listed), study.plan.get("per_annotator")
    if not crowd and settings.crowd_address and quota:
        crowd = math.ceil(study.plan["overlap"] * count_questions(session, study)[MAIN] / quota)
    return arrived, max(arrived, invited, crowd)
