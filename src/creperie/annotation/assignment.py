"""Choose the next question of an annotator.

Every question gets a first answer before any gets a second one. How many answers a question may have (`depth`) grows
with the number of people who have begun, so that the first annotators cannot use up all answers to a question.

Pairs of annotators should share as few questions as possible. Among the open questions with the fewest answers,
an annotator therefore gets one that was answered by people with whom they share few other questions (see `preferred`).
No two people may share many more questions than an even spread would give (`pair_cap`).
"""

from __future__ import annotations

import itertools
import json
import math
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    ScalarSelect,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from creperie.annotation.links import Participant
from creperie.annotation.plans import StudyPlan
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
from creperie.annotation.tasks import task_named

#: Number of open questions among which the next one is chosen.
CANDIDATES = 48


def depth(overlap: int, arrived: int, expected: int) -> int:
    """Return the highest number of answers that a question may have at this moment. It rises to `overlap` as more of
    the `expected` people begin, so that the first annotators do not use up all answers. `arrived` is the number of
    people who have begun.

    >>> [depth(3, arrived, 25) for arrived in (1, 3, 9, 17, 25)], depth(2, 1, 2), depth(2, 2, 2)
    ([1, 1, 2, 3, 3], 1, 2)
    """
    return min(overlap, math.ceil(overlap * arrived / max(expected, arrived)))


def pair_cap(questions: int, overlap: int, people: int) -> int:
    """Return how many questions any two annotators may share. This is two more than twice the number that they would
    share if all answers were spread evenly over the annotators. `overlap` is the number of answers per question.

    >>> pair_cap(200, 3, 25), pair_cap(100, 2, 2)
    (6, 202)
    """
    pairs = max(1, people * (people - 1))
    return 2 * math.ceil(questions * overlap * (overlap - 1) / pairs) + 2


def preferred(
    candidates: Iterable[tuple[int, int]],
    common: Mapping[int, tuple[int, int]],
    cap: int,
) -> list[int]:
    """Return the questions in the order in which an annotator should get them. Questions with few answers come first.
    Among questions with equally many answers, those answered by people who share few other questions with the annotator
    come first.

    `candidates` are (copy, question) pairs in random order. Copy 0 is the slot for a question's first answer, copy 1
    the slot for its second, and so on. Each person who already has a question shares some number of questions with the
    annotator; `common` maps the question to the maximum and the sum of these numbers. Questions whose maximum is `cap`
    or more are left out.
    """
    ranked = sorted((copy, *common.get(q, (0, 0)), place, q) for place, (copy, q) in enumerate(candidates))
    return [question for _, most, _, _, question in ranked if most < cap]


@dataclass(frozen=True)
class AnnotatorProgress:
    """The progress of an annotator: the number of questions done, their total number, and the highest number that the
    total can reach. The total is None if it depends on how many others answer. Attention checks count as questions.
    """

    done: int
    total: int | None
    most: int
    stopped: bool = False
    waiting: bool = False  #: True if more questions will open when more people have begun


class Desk:
    """The work of one annotator on a study. It gives out slots (places for one answer), releases them, and counts the
    answers.

    A desk is used within one database transaction, in which the annotator's row is locked. The values it has read
    therefore stay valid.
    """

    def __init__(self, session: Session, who: Participant, now: float | None = None) -> None:
        self.now = time.time() if now is None else now
        self.session, self.me, self.study = session, who.annotator, who.study
        self.plan, self.settings = StudyPlan(**who.study.plan), settings_of(who.study.settings)
        self.task = task_named(who.study.task)
        self.waiting = False
        self._counts: Row[Any] | None = None

    def save(self) -> None:
        """Flush all changes to the database."""
        self.session.flush()
        self._counts = None

    # -- taking a slot ---------------------------------------------------------------------------------------------

    def take(self) -> Slot | None:
        """Return the slot that the annotator holds, or else give them the next one. Return None if the study is not
        open or there is nothing to do now.
        """
        if self.study.state != OPEN:
            return None
        if not self.counts.slots or self.counts.checks < self.plan.attention:
            self._begin()
        slot = self.own_slot() or self._next() or self._last_check()
        if slot is None:
            if not self.waiting and not self.me.outcome:
                self.me.outcome, self.me.finished = COMPLETED, self.now
            return None
        self.me.outcome, self.me.finished = "", None  # an answer may have been taken back after the work was finished
        self.hold(slot)
        return slot

    def own_slot(self) -> Slot | None:
        """Return the slot that the annotator holds. Otherwise, return the slot of a practice question or attention
        check that is due now; None if nothing is due.
        """
        return self.locked(Slot.id == self.counts.next) if self.counts.next else None

    def _last_check(self) -> Slot | None:
        """Once no main questions are left for the annotator, return an attention check that they have not answered yet.
        Return None if all checks are answered, or if more main questions may still become available.
        """
        if self.waiting or self.counts.checked >= self.counts.checks:
            return None
        return self.locked(Slot.annotator_id == self.me.id, Slot.kind == ATTENTION, Slot.state == FREE)

    def _block(self) -> int:
        """Return the block length: every block of this many questions contains one attention check. This number is
        normally `attention_every`. It is smaller for an annotator who will answer only a few questions, so that all
        checks are still asked.
        """
        share = min(1.0, self.plan.overlap / self._people()[1])  # of the questions, if everybody answers equally many
        total = self.me.quota or int(share * self.counts.questions)
        return max(1, min(self.plan.attention_every, total // max(1, self.plan.attention)))

    def _begin(self) -> None:
        """Create the annotator's slots for practice questions and for attention checks. Practice questions come first;
        each block of questions gets one check, at a random position.
        """
        # The rank of a slot is the number of answers after which it is asked. Among the checks, each possible right
        # answer occurs equally often, in a random order that is stored only in the database. Annotators who began under
        # an earlier version of creperie have no such slots; the checks created for them begin with the block that they
        # have reached.
        asked = select(Question).where(Question.study_id == self.study.id, Question.kind != MAIN)
        asked = asked.where(Question.id.not_in(select(_MINE.question_id).where(_MINE.annotator_id == self.me.id)))
        questions = self.session.scalars(asked.order_by(Question.ordinal)).all()
        dice, every = secrets.SystemRandom(), self._block()
        by_answer: dict[str, list[Question]] = defaultdict(list)
        for question in dice.sample(questions, len(questions)):
            if question.kind == ATTENTION:
                by_answer[json.dumps(question.expected)].append(question)
        turns = [[q for q in turn if q] for turn in itertools.zip_longest(*by_answer.values())]
        checks = [q for turn in turns for q in dice.sample(turn, len(turn))]
        checks = checks[: self.plan.attention - self.counts.checks]
        ranked = [(q, 0) for q in questions if q.kind == PRACTICE]
        block = self.counts.answered // every
        ranked += [(q, n * every + 1 + dice.randrange(every)) for n, q in enumerate(checks, block)]
        own = {"study_id": self.study.id, "annotator_id": self.me.id, "copy": self.me.id, "state": FREE}
        self.session.add_all(Slot(question_id=q.id, kind=q.kind, rank=rank, **own) for q, rank in ranked)
        self.save()

    def hold(self, slot: Slot) -> None:
        """Give a slot to the annotator for a limited time, or extend that time. Whenever a main question is given out
        anew, its captions get a new random order.
        """
        again = slot.annotator_id == self.me.id and slot.state != FREE
        if not again:
            slot.shown, slot.token = self.now, secrets.token_urlsafe(16)
        if slot.order is None or (not again and slot.kind == MAIN):
            order = list(range(self.task.shuffled(slot.question.payload)))
            secrets.SystemRandom().shuffle(order)  # a predictable order would reveal what is true
            slot.order = order
        slot.state, slot.annotator_id, slot.lease_until = HELD, self.me.id, self.now + self.plan.lease
        self.session.flush()  # the numbers of done slots stay valid

    def release(self, slot: Slot) -> None:
        """Release a slot that was not answered. If it belongs to a main question, any annotator can then get it. A slot
        for a practice question or an attention check stays reserved for this annotator.
        """
        slot.state, slot.lease_until, slot.token = FREE, None, None
        if slot.kind == MAIN:
            slot.annotator_id, slot.order = None, None
        self.save()

    def locked(self, *where: ColumnElement[bool], skip_locked: bool = False) -> Slot | None:
        """Lock the first slot that meets the conditions, and return its present state in the database. Return None if
        there is no such slot. With `skip_locked`, slots that are already locked are skipped.
        """
        own = select(Slot).where(*where).execution_options(populate_existing=True)
        return self.session.scalar(own.with_for_update(of=Slot, skip_locked=skip_locked))

    def holds(self, token: str) -> Slot | None:
        """Return the slot with this token if the annotator holds it; else None."""
        return self.locked(Slot.token == token, Slot.annotator_id == self.me.id, Slot.state == HELD)

    # -- the next question -------------------------------------------------------------------------------------------

    def _next(self) -> Slot | None:
        if self.me.quota is not None and self.counts.answered >= self.me.quota:
            return None
        arrived, people = self._people()
        rows = self._open_slots(depth(self.plan.overlap, arrived, people))
        first = {row.question_id: row for row in reversed(rows)}
        ranked = preferred(
            [(row.copy, row.question_id) for row in rows if first[row.question_id] is row],
            {question: (row.most or 0, row.total or 0) for question, row in first.items()},
            pair_cap(self.counts.questions, self.plan.overlap, people),
        )
        # A slot that was taken meanwhile is not locked: its holder may wait for it, and others for its holder.
        takeable = or_(Slot.state == FREE, and_(Slot.state == HELD, Slot.lease_until < self.now))
        for skips in (True, False):  # wait for a slot that somebody else is about to take only if there is no other
            for question in ranked:
                if slot := self.locked(Slot.id == first[question].id, takeable, skip_locked=skips):
                    return slot
        # People who were invited can come back when more is open; for a crowd this is the end.
        self.waiting = self.me.entry == INVITED and bool(self._open_slots(self.plan.overlap))
        return None

    def _open_slots(self, bound: int) -> Sequence[Any]:
        """Return the slots that the annotator may get now: free slots, and slots that another annotator has held for
        too long. There are at most `CANDIDATES` of each sort.
        """
        # A slot counts only if its copy number is below `bound` (see `depth`) or if it replaces an excluded answer.
        # Questions that the annotator has already had or skipped are left out.
        own = {"study": self.study.id, "me": self.me.id, "bound": bound, "overlap": self.plan.overlap, "now": self.now}
        return self.session.execute(_OPEN, own).all()

    # -- progress ------------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Row[Any]:
        """The counts that decide what the annotator is asked next, such as the number of people who have begun."""
        if self._counts is None:
            own = {"study": self.study.id, "me": self.me.id, "now": self.now}
            self._counts = self.session.execute(_COUNTS, own).one()
        return self._counts

    def _people(self) -> tuple[int, int]:
        return _expected(self.counts, self.study, self.settings)

    def answered(self) -> int:
        """Return how many questions the annotator has answered, including attention checks but not practice."""
        return int(self.counts.answered + self.counts.checked)

    def progress(self) -> AnnotatorProgress:
        total = self.me.quota
        if total is None and self._people()[1] <= self.plan.overlap:
            total = self.counts.questions  # everybody answers everything
        if total is not None:
            total += self.plan.attention
        most = self.counts.questions + self.plan.attention if total is None else total
        return AnnotatorProgress(self.answered(), total, most, self.study.state != OPEN, self.waiting)


# -- statements --------------------------------------------------------------------------------------------------------

_ME: BindParameter[int] = bindparam("me")
_NOW: BindParameter[float] = bindparam("now")
_STUDY: BindParameter[int] = bindparam("study")
_MINE, _OTHER = aliased(Slot), aliased(Slot)

_FITTING = (
    select(Slot.id, Slot.copy, Slot.question_id, Slot.state, Slot.rank)
    .where(Slot.study_id == _STUDY, Slot.kind == MAIN)
    .where(or_(Slot.copy < bindparam("bound"), Slot.copy >= bindparam("overlap")))
    .where(Slot.question_id.not_in(select(_MINE.question_id).where(_MINE.annotator_id == _ME)))
    .where(Slot.question_id.not_in(select(Answer.question_id).where(Answer.annotator_id == _ME, Answer.kind == SKIP)))
    .order_by(Slot.rank)
    .limit(CANDIDATES)
)
_CANDIDATES = union_all(
    select(_FITTING.where(Slot.state == HELD, Slot.lease_until < _NOW).subquery()),
    select(_FITTING.where(Slot.state == FREE).subquery()),
).cte()
#: The number of questions in common with each other annotator, without excluded people.
_MET = (
    select(_OTHER.annotator_id, func.count().label("questions"))
    .join(_MINE, _MINE.question_id == _OTHER.question_id)
    .where(_MINE.annotator_id == _ME, _MINE.kind == MAIN, _OTHER.annotator_id != _ME, _OTHER.state != VOID)
    .group_by(_OTHER.annotator_id)
    .subquery()
)
#: For each candidate, the largest number in common with one of its question's annotators, and the sum over all.
_COMMON = (
    select(Slot.question_id, func.max(_MET.c.questions).label("most"), func.sum(_MET.c.questions).label("total"))
    .join(_MET, _MET.c.annotator_id == Slot.annotator_id)
    .where(Slot.question_id.in_(select(_CANDIDATES.c.question_id)), Slot.state != VOID)
    .group_by(Slot.question_id)
    .subquery()
)
_OPEN = (
    select(_CANDIDATES, _COMMON.c.most, _COMMON.c.total)
    .outerjoin(_COMMON, _COMMON.c.question_id == _CANDIDATES.c.question_id)
    .order_by(_CANDIDATES.c.state.desc(), _CANDIDATES.c.rank, _CANDIDATES.c.id)
)


def _number(*where: ColumnElement[bool]) -> ScalarSelect[int]:
    return select(func.count()).where(*where).scalar_subquery()


_OWN = _MINE.annotator_id == _ME
_ANSWERED = _number(_OWN, _MINE.kind == MAIN, _MINE.state == DONE)
_DUE = or_(Slot.state == HELD, and_(Slot.state == FREE, Slot.rank <= _ANSWERED))
_NEXT = select(Slot.id).where(Slot.annotator_id == _ME, _DUE).order_by(Slot.state.desc(), Slot.rank, Slot.id).limit(1)
_BEGUN = or_(Annotator.id == _ME, exists().where(Slot.annotator_id == Annotator.id))
_LINKED = exists().where(Link.annotator_id == Annotator.id, Link.revoked.is_(None), Link.expires > _NOW)
#: How many people have begun, how many have begun or have a link, how many ids are listed, how many questions there
#: are; the annotator's answers, answered checks, checks and slots, and the slot that they hold or that is due.
_COUNTS = select(
    func.count().filter(_BEGUN).label("arrived"),
    func.count().filter(or_(_BEGUN, _LINKED)).label("invited"),
    _number(Listed.study_id == _STUDY).label("listed"),
    _number(Question.study_id == _STUDY, Question.kind == MAIN).label("questions"),
    _ANSWERED.label("answered"),
    _number(_OWN, _MINE.kind == ATTENTION, _MINE.state == DONE).label("checked"),
    _number(_OWN, _MINE.kind == ATTENTION).label("checks"),
    _number(_OWN).label("slots"),
    _NEXT.scalar_subquery().label("next"),
).where(Annotator.study_id == _STUDY, Annotator.excluded.is_(None), Annotator.withdrawn.is_(None))


def arrivals(session: Session, study: StudyRow, settings: StudySettings) -> tuple[int, int]:
    """Return how many people have begun a study, and how many are expected in total."""
    own = {"study": study.id, "me": 0, "now": time.time()}
    return _expected(session.execute(_COUNTS, own).one(), study, settings)


def _expected(counts: Row[Any], study: StudyRow, settings: StudySettings) -> tuple[int, int]:
    """Return how many people have begun a study, and how many are expected in total."""
    # The expected number is the one that the owner set. If the owner set none, it is the largest of three numbers:
    # people who have begun or have a link, listed worker ids, and the cap on participants. If a crowd study has neither
    # a list nor a cap, it is computed from the number of questions per person (the quota).
    if settings.expected is not None:
        return counts.arrived, max(counts.arrived, settings.expected)
    crowd, quota = max(settings.cap or 0, counts.listed), study.plan.get("per_annotator")
    if not crowd and settings.crowd_address and quota:
        crowd = math.ceil(study.plan["overlap"] * counts.questions / quota)
    return counts.arrived, max(counts.arrived, counts.invited, crowd)
