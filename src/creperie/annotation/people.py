"""Exclude and include annotators, and erase the answers of those who withdraw."""

from __future__ import annotations

import time

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.export import study_record
from creperie.annotation.links import annotator_named, end_links
from creperie.annotation.quality import rule_breakers
from creperie.annotation.schema import (
    DONE,
    FREE,
    HELD,
    MAIN,
    VOID,
    WITHDREW,
    Annotator,
    Answer,
    Slot,
    StudyRow,
)
from creperie.annotation.state import PERMITTED, log, study_named
from creperie.core import Json, UsageError


def exclude(db: Database, name: str, pseudonym: str, why: str = "", actor: str = "cli") -> int:
    """Exclude an annotator's answers from all results; return how many questions are given to others instead.

    The answers stay on record, and `include` reverses the exclusion.
    """
    with db.write() as session:
        return _exclude(session, study_named(session, name), pseudonym, why, actor)


def _exclude(session: Session, study: StudyRow, pseudonym: str, why: str, actor: str) -> int:
    annotator = annotator_named(session, study, pseudonym)
    if annotator.excluded is not None:
        raise UsageError(
            f"{pseudonym} is already excluded",
            where=study.name,
            hint="to count their answers again, use `annotate include`",
        )
    annotator.excluded, annotator.excluded_why = time.time(), why
    given = _release(session, study, annotator)
    log(session, actor, "exclude", study, annotator=pseudonym, why=why, given_out_again=given)
    return given


def include(db: Database, name: str, pseudonym: str, actor: str = "cli") -> None:
    """Count an excluded annotator's answers again. Slots that replaced these answers are removed if nobody has begun
    them.
    """
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded is None or annotator.withdrawn is not None:
            raise UsageError(
                f"{pseudonym} is not excluded", where=name, hint="`annotate show` lists the excluded annotators"
            )
        annotator.excluded, annotator.excluded_why = None, ""
        for slot in session.scalars(select(Slot).where(Slot.annotator_id == annotator.id, Slot.state == VOID)):
            slot.state = DONE
            session.flush()
            _drop_surplus(session, study, slot.question_id)
        log(session, actor, "include", study, annotator=pseudonym)


def exclude_by_rules(db: Database, name: str, actor: str = "cli", *, dry_run: bool = False) -> list[Json]:
    """Exclude everybody who breaks a rule of the study. Return who was excluded, and why. With `dry_run`, exclude
    nobody and return who would be excluded.

    Leaving people out can change whether others break a rule. The others are therefore judged again, until nobody
    breaks a rule. If an error occurs, nobody is excluded.
    """
    with db.read() if dry_run else db.write() as session:
        study = study_named(session, name)
        breakers = rule_breakers(study_record(session, study))
        for one in () if dry_run else breakers:
            one["given_out_again"] = _exclude(session, study, one["annotator"], one["why"], actor)
    return breakers


def _release(session: Session, study: StudyRow, annotator: Annotator) -> int:
    """End an annotator's links and release their slots. Where they had already answered a slot, create a new free slot
    in its place. Return the number of new slots.
    """
    end_links(session, annotator)
    made = 0
    own = select(Slot).where(Slot.annotator_id == annotator.id, Slot.kind == MAIN)
    for slot in session.scalars(own).all():
        if slot.state == DONE:
            slot.state = VOID
            session.flush()
            made += _replace(session, study, slot)
        elif slot.state == HELD:
            slot.state, slot.annotator_id, slot.order, slot.token, slot.lease_until = FREE, None, None, None, None
    session.flush()
    return made


def _replace(session: Session, study: StudyRow, slot: Slot) -> bool:
    """Create a free slot in place of one whose answer no longer counts, and return True. If the question has enough
    slots or the study is closed, create nothing and return False.
    """
    slots = session.scalars(select(Slot).where(Slot.question_id == slot.question_id)).all()
    enough = sum(one.state != VOID for one in slots) >= study.plan["overlap"]
    if enough or "exclude" not in PERMITTED[study.state]:
        return False
    copy = max(one.copy for one in slots) + 1
    session.add(Slot(**slot.part("study_id", "question_id", "kind", "rank"), copy=copy, state=FREE))
    session.flush()
    return True


def _drop_surplus(session: Session, study: StudyRow, question: int) -> None:
    """Remove free slots of a question that has more slots than requested answers. Slots that were used before stay."""
    slots = session.scalars(select(Slot).where(Slot.question_id == question, Slot.state != VOID)).all()
    surplus = len(slots) - study.plan["overlap"]
    for slot in [s for s in slots if s.state == FREE and s.annotator_id is None][: max(0, surplus)]:
        if session.scalar(select(Answer.id).where(Answer.slot_id == slot.id).limit(1)) is None:
            session.delete(slot)
    session.flush()


# -- withdrawal --------------------------------------------------------------------------------------------------------


def withdraw(db: Database, name: str, pseudonym: str, actor: str = "cli") -> int:
    """Erase a person's answers and give their questions to other annotators. Return how many rows were erased.

    The rows stay in the database without their content, and every export says how many there are. If the study is
    closed, no question is given to others.
    """
    with db.write() as session:
        study, now = study_named(session, name), time.time()
        annotator = annotator_named(session, study, pseudonym)
        if not annotator.excluded:  # who was excluded before stays so, and is not paid
            annotator.excluded, annotator.excluded_why = now, WITHDREW
        annotator.withdrawn, annotator.note = annotator.withdrawn or now, ""
        _release(session, study, annotator)
        own = select(Answer).where(Answer.annotator_id == annotator.id, Answer.erased.is_(None))
        rows = session.scalars(own).all()
        for row in rows:
            row.given = row.value = row.shown_order = row.seconds = None
            row.comment, row.erased = "", now
        log(session, actor, "withdraw", study, annotator=pseudonym, answers=len(rows))
    return len(rows)
