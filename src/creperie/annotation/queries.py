"""The questions that work asks of the database, put together once: building them takes longer than answering them."""

from __future__ import annotations

from functools import cache

from sqlalchemy import BindParameter, Select, bindparam, exists, func, select
from sqlalchemy.orm import aliased

from creperie.annotation.schema import FREE, HELD, MAIN, SKIP, Annotator, Answer, Question, Slot, StudyRow


def _locked(statement: Select[Slot, Question], lock: bool, *, skip: bool = False) -> Select[Slot, Question]:
    """Slots are locked for the rest of the transaction; with `skip`, those that others hold are passed over."""
    return statement.with_for_update(of=Slot, skip_locked=skip) if lock else statement


@cache
def annotator_and_study(lock: bool) -> Select[Annotator, StudyRow]:
    """Parameters: me."""
    found = (
        select(Annotator, StudyRow)
        .join(StudyRow, StudyRow.id == Annotator.study_id)
        .where(Annotator.id == bindparam("me"))
    )
    return found.with_for_update(of=Annotator) if lock else found


@cache
def my_open_slot(lock: bool) -> Select[Slot, Question]:
    """The slot that I hold, or else one of my own that I put down. Parameters: me."""
    found = (
        select(Slot, Question)
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.annotator_id == bindparam("me"), Slot.state.in_((HELD, FREE)))
        .order_by(Slot.state.desc(), Slot.id)
        .limit(1)
    )
    return _locked(found, lock)


@cache
def my_slot_of_token(lock: bool) -> Select[Slot, Question]:
    """The slot of a token, while I hold it. Parameters: me, token."""
    found = (
        select(Slot, Question)
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.token == bindparam("token"), Slot.annotator_id == bindparam("me"), Slot.state == HELD)
    )
    return _locked(found, lock)


@cache
def my_rows() -> Select[int, str, int]:
    """My last rows, newest first: slot, kind, turn. Parameters: me, most."""
    mine = select(Answer.slot_id, Answer.kind, Answer.turn).where(Answer.annotator_id == bindparam("me"))
    return mine.order_by(Answer.turn.desc()).limit(bindparam("most"))


@cache
def my_counts() -> Select[str, str, int]:
    """My slots by kind and state. Parameters: me."""
    return (
        select(Slot.kind, Slot.state, func.count())
        .where(Slot.annotator_id == bindparam("me"))
        .group_by(Slot.kind, Slot.state)
    )


@cache
def next_slot(state: str, lock: bool) -> Select[Slot, Question]:
    """The next free slot, or the next abandoned one, of a question that I neither had nor skipped.

    Parameters: me, study, phase, now.
    """
    other = aliased(Slot)
    me: BindParameter[int] = bindparam("me")
    seen = exists().where(other.question_id == Slot.question_id, other.annotator_id == me)
    skipped = exists().where(Answer.question_id == Slot.question_id, Answer.annotator_id == me, Answer.kind == SKIP)
    found = (
        select(Slot, Question)
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.study_id == bindparam("study"), Slot.state == state, Slot.kind == MAIN)
        .where(Slot.phase <= bindparam("phase"), ~seen, ~skipped)
        .order_by(Slot.rank)
        .limit(1)
    )
    if state == HELD:
        found = found.where(Slot.lease_until < bindparam("now"))
    return _locked(found, lock, skip=True)


@cache
def my_answer_of_key() -> Select[Answer]:
    """What I did under a key. Parameters: me, key."""
    return select(Answer).where(Answer.annotator_id == bindparam("me"), Answer.key == bindparam("key"))


@cache
def question_counts() -> Select[str, int]:
    """The questions of a study by kind. Parameters: study."""
    of_study = select(Question.kind, func.count()).where(Question.study_id == bindparam("study"))
    return of_study.group_by(Question.kind)
