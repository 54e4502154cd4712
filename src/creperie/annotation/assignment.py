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
from typing import Any

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from creperie.annotation.database import Database
from creperie.annotation.links import Visitor
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
    """How many answers per question are open when so many of the expected people have arrived.

    >>> [depth(3, arrived, 25) for arrived in (1, 3, 9, 17, 25)], depth(2, 1, 2), depth(2, 2, 2)
    ([1, 1, 2, 3, 3], 1, 2)
    """
    return min(overlap, math.ceil(overlap * arrived / max(expected, arrived)))


def pair_cap(questions: int, overlap: int, people: int) -> int:
    """How many questions two annotators may have in common: twice what an even spread gives, and two.

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
    practice_left: int
    stopped: bool = False
    waiting: bool = False  #: more questions open when more people have begun


class Desk:
    """One annotator's side of one transaction."""

    def __init__(self, db: Database, session: Session, who: Visitor, now: float | None = None) -> None:
        assert who.annotator is not None
        assert who.study is not None
        self.now = time.time() if now is None else now
        self.session, self.shown = session, db.shown
        self.me, self.study = who.annotator, who.study
        self.plan, self.settings = StudyPlan(**who.study.plan), settings_of(who.study.settings)
        self.task = task_named(who.study.task)
        self.waiting = False

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
        own = self._slots().where(Slot.annotator_id == self.me.id, Slot.state.in_((HELD, FREE)))
        return self._ticket(own.order_by(Slot.state.desc(), Slot.id).limit(1))

    def hold(self, ticket: Ticket) -> None:
        """Take a slot, or keep it for longer. A question that is given out anew is shuffled anew."""
        slot = ticket.slot
        again = slot.annotator_id == self.me.id and slot.state != FREE
        if not again:
            self.shown[slot.id] = time.monotonic()
            slot.shown, slot.token = self.now, secrets.token_urlsafe(16)
        if slot.order is None or (not again and slot.kind == MAIN):
            order = list(range(self.task.shuffled(ticket.question.payload)))
            secrets.SystemRandom().shuffle(order)  # an order that could be computed would tell what is true
            slot.order = order
        slot.state, slot.annotator_id, slot.lease_until = HELD, self.me.id, self.now + self.plan.lease
        self.session.flush()

    def put_down(self, slot: Slot) -> None:
        """Let go of a slot without an answer: main slots go back to everybody, the others stay mine."""
        self.shown.pop(slot.id, None)
        slot.state, slot.lease_until, slot.token = FREE, None, None
        if slot.kind == MAIN:
            slot.annotator_id, slot.order = None, None
        self.session.flush()

    def _slots(self) -> Any:
        joined = select(Slot, Question).join(Question, Question.id == Slot.question_id)
        return joined.with_for_update(of=Slot)

    def _ticket(self, wanted: Any) -> Ticket | None:
        row = self.session.execute(wanted.execution_options(populate_existing=True)).first()
        return None if row is None else Ticket(*row)

    def ticket_of(self, number: int) -> Ticket:
        """The slot with an id, locked."""
        ticket = self._ticket(self._slots().where(Slot.id == number))
        assert ticket is not None  # slots of rows stay
        return ticket

    def ticket_named(self, token: str) -> Ticket | None:
        """The slot of a token, if I hold it."""
        own = self._slots().where(Slot.token == token, Slot.annotator_id == self.me.id, Slot.state == HELD)
        return self._ticket(own)

    # -- practice and checks -----------------------------------------------------------------------------------------

    def _own_slot(self, kind: str) -> Ticket | None:
        """A slot that only I can have; practice and attention questions are asked of everybody."""
        mine = select(Slot.question_id).where(Slot.annotator_id == self.me.id)
        asked = select(Question).where(Question.study_id == self.study.id, Question.kind == kind)
        questions = self.session.scalars(asked.order_by(Question.ordinal)).all()
        had = set(self.session.scalars(mine)) if questions else set()
        left = [q for q in questions if q.id not in had]
        if not left:
            return None
        question = left[0]
        if kind == ATTENTION:  # every known answer as often as the others, otherwise in an order of my own
            seen = Counter(json.dumps(q.expected, sort_keys=True) for q in questions if q.id in had)
            question = min(
                left, key=lambda q: (seen[json.dumps(q.expected, sort_keys=True)], self._secret(f"check {q.id}"))
            )
        own = {"study_id": self.study.id, "question_id": question.id, "kind": kind, "annotator_id": self.me.id}
        slot = Slot(**own, copy=self.me.id, rank=0, state=FREE)
        self.session.add(slot)
        self.session.flush()
        return Ticket(slot, question)

    def _attention(self) -> Ticket | None:
        """Somewhere in each block of questions comes a check; where, only the study's secret says."""
        counts, every = self._counts(), self.plan.attention_every
        had = sum(n for (kind, _), n in counts.items() if kind == ATTENTION)
        if not self.plan.attention or (self.me.quota is not None and had >= self.me.quota // every):
            return None
        due = had * every + 1 + self._secret(f"position {had}") % every
        return self._own_slot(ATTENTION) if counts[MAIN, DONE] >= due else None

    def _secret(self, what: str) -> int:
        digest = hmac.digest(self.study.secret.encode(), f"{self.me.id}/{what}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big")

    # -- the next question -------------------------------------------------------------------------------------------

    def _next(self) -> Ticket | None:
        if self.me.quota is not None and self._counts()[MAIN, DONE] >= self.me.quota:
            return None
        arrived, people = arrivals(self.session, self.study, self.settings, self.me)
        bound = depth(self.plan.overlap, arrived, people)
        rows = self._open_slots(bound)
        questions = {row.question_id for row in rows}
        first = {row.question_id: row.id for row in reversed(rows)}
        total = self._questions(MAIN)
        ranked = preferred(
            [(row.copy, row.question_id) for row in rows if first[row.question_id] == row.id],
            self._holders(questions),
            self._met(),
            pair_cap(total, self.plan.overlap, people),
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
        mine = select(Slot.question_id).where(Slot.annotator_id == self.me.id)
        skipped = select(Answer.question_id).where(Answer.annotator_id == self.me.id, Answer.kind == SKIP)
        wanted = (
            select(Slot.id, Slot.copy, Slot.question_id)
            .where(Slot.study_id == self.study.id, Slot.kind == MAIN)
            .where(or_(Slot.copy < bound, Slot.copy >= self.plan.overlap))
            .where(Slot.question_id.not_in(mine), Slot.question_id.not_in(skipped))
            .order_by(Slot.rank)
            .limit(CANDIDATES)
        )
        lapsed = self.session.execute(wanted.where(Slot.state == HELD, Slot.lease_until < self.now)).all()
        return [*lapsed, *self.session.execute(wanted.where(Slot.state == FREE)).all()]

    def _holders(self, questions: set[int]) -> dict[int, list[int]]:
        taken = select(Slot.question_id, Slot.annotator_id).where(
            Slot.question_id.in_(questions), Slot.annotator_id.is_not(None), Slot.state != VOID
        )
        holders: dict[int, list[int]] = defaultdict(list)
        for question, person in self.session.execute(taken):
            holders[question].append(int(person or 0))
        return holders

    def _met(self) -> dict[int, int]:
        """With how many questions I have in common with each of the others."""
        mine, other = aliased(Slot), aliased(Slot)
        together = (
            select(other.annotator_id, func.count())
            .join(mine, mine.question_id == other.question_id)
            .where(mine.annotator_id == self.me.id, mine.kind == MAIN, other.annotator_id != self.me.id)
            .where(other.state != VOID)  # who is excluded does not count
            .group_by(other.annotator_id)
        )
        return {person: n for person, n in self.session.execute(together) if person is not None}

    def _questions(self, kind: str) -> int:
        return count_questions(self.session, self.study, kind)

    # -- how far I am --------------------------------------------------------------------------------------------------

    def _counts(self) -> Counter[tuple[str, str]]:
        """My slots by kind and state."""
        own = select(Slot.kind, Slot.state, func.count()).where(Slot.annotator_id == self.me.id)
        rows = self.session.execute(own.group_by(Slot.kind, Slot.state))
        return Counter({(kind, state): n for kind, state, n in rows})

    def answered(self) -> int:
        """How many questions I have answered, practice aside."""
        counts = self._counts()
        return counts[MAIN, DONE] + counts[ATTENTION, DONE]

    def standing(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is None and arrivals(self.session, self.study, self.settings, self.me)[1] <= self.plan.overlap:
            total = self._questions(MAIN)  # everybody answers everything
        if total is not None:
            total += min(self.plan.attention, total // self.plan.attention_every)
        left = self._questions(PRACTICE) - self._counts()[PRACTICE, DONE]
        return AnnotatorProgress(self.answered(), total, left, self.study.state != OPEN, self.waiting)

    def ending(self) -> str | None:
        """Where an annotator who is done goes on; None for one who is not done."""
        return self.settings.completion_url if self.me.outcome else None


def arrivals(
    session: Session, study: StudyRow, settings: StudySettings, me: Annotator | None = None
) -> tuple[int, int]:
    """How many people have begun a study, and how many are expected to in all.

    Expected are as many as the owner says, else all who have a link or an id on the list, or the cap. Where nothing
    says it, a crowd is as large as the quota makes it.
    """
    taking_part = (Annotator.study_id == study.id, Annotator.excluded.is_(None), Annotator.withdrawn.is_(None))
    count = select(func.count()).select_from(Annotator).where(*taking_part)
    begun = exists().where(Slot.annotator_id == Annotator.id)
    arrived = int(session.scalar(count.where(begun if me is None else or_(begun, Annotator.id == me.id))) or 0)
    if settings.expected is not None:
        return arrived, max(arrived, settings.expected)
    linked = exists().where(Link.annotator_id == Annotator.id, Link.revoked.is_(None), Link.expires > time.time())
    invited = int(session.scalar(count.where(or_(begun, linked))) or 0)
    listed = session.scalar(select(func.count()).select_from(Listed).where(Listed.study_id == study.id)) or 0
    crowd = max(settings.cap or 0, int(listed))
    quota = study.plan.get("per_annotator")
    if not crowd and settings.crowd_address and quota:
        crowd = math.ceil(study.plan["overlap"] * count_questions(session, study) / quota)
    return arrived, max(arrived, invited, crowd)
