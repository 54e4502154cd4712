"""Exclude and include annotators, and erase the answers of those who withdraw."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.export import study_record
from creperie.annotation.links import annotator_named, end_links
from creperie.annotation.quality import measured, ruled_out
from creperie.annotation.schema import (
    DONE,
    FREE,
    HELD,
    MAIN,
    VOID,
    Annotator,
    Answer,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import settings_of
from creperie.annotation.state import PERMITTED, record, study_named
from creperie.annotation.view import own_data
from creperie.core import UsageError


def exclude(db: Database, name: str, pseudonym: str, why: str = "", actor: str = "cli") -> int:
    """Leave an annotator's answers out of all results and give their questions to others; how many are given out.

    The answers stay on record, and `include` takes it back.
    """
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded is not None:
            raise UsageError(f"{pseudonym} is already excluded", where=name)
        annotator.excluded, annotator.excluded_why = time.time(), why
        given = _release(session, study, annotator)
        record(session, actor, "exclude", study, {"annotator": pseudonym, "why": why, "given_out_again": given})
    return given


def include(db: Database, name: str, pseudonym: str, actor: str = "cli") -> None:
    """Let an excluded annotator's answers count again; replacement questions that nobody has begun are withdrawn."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded is None or annotator.withdrawn is not None:
            raise UsageError(f"{pseudonym} is not excluded", where=name)
        annotator.excluded, annotator.excluded_why = None, ""
        for slot in session.scalars(select(Slot).where(Slot.annotator_id == annotator.id, Slot.state == VOID)):
            slot.state = DONE
            session.flush()
            _drop_surplus(session, study, slot.question_id)
        record(session, actor, "include", study, {"annotator": pseudonym})


def exclude_by_rules(db: Database, name: str, actor: str = "cli", *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Exclude everybody whose answers carry no information or who breaks a rule of the settings; who, and why."""
    with db.read() as session:
        study = study_named(session, name)
        out = ruled_out(settings_of(study.settings), measured(study_record(session, study)))
    for one in () if dry_run else out:
        exclude(db, name, one["annotator"], one["why"], actor)
    return out


def _release(session: Session, study: StudyRow, annotator: Annotator) -> int:
    """End an annotator's work: answered slots become void, with a free one in their place; how many were made."""
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
    """A new slot in the place of a void one, unless the question has enough without it or the study is over."""
    states = session.execute(select(Slot.state, Slot.copy).where(Slot.question_id == slot.question_id)).all()
    if sum(state != VOID for state, _ in states) >= study.plan["overlap"] or "exclude" not in PERMITTED[study.state]:
        return False
    own = {"study_id": study.id, "question_id": slot.question_id, "kind": MAIN, "rank": slot.rank}
    session.add(Slot(**own, copy=max(copy for _, copy in states) + 1, state=FREE))
    session.flush()
    return True


def _drop_surplus(session: Session, study: StudyRow, question: int) -> None:
    """Remove free slots beyond what was asked for, where nobody has done anything with them."""
    slots = session.scalars(select(Slot).where(Slot.question_id == question, Slot.state != VOID)).all()
    surplus = len(slots) - study.plan["overlap"]
    for slot in [s for s in slots if s.state == FREE and s.annotator_id is None][: max(0, surplus)]:
        if session.scalar(select(Answer.id).where(Answer.slot_id == slot.id).limit(1)) is None:
            session.delete(slot)
    session.flush()


# -- what a person may ask for -----------------------------------------------------------------------------------------


def withdraw(db: Database, name: str, pseudonym: str, actor: str = "cli") -> int:
    """Erase what a person said and give their questions to others; how many rows were erased.

    The rows stay, empty, and are counted in every export. In a study that is closed nothing is given out again.
    """
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        erased = _erase(session, study, annotator)
        record(session, actor, "withdraw", study, {"annotator": pseudonym, "answers": erased})
    return erased


def _erase(session: Session, study: StudyRow, annotator: Annotator) -> int:
    now = time.time()
    annotator.withdrawn = annotator.withdrawn or now
    annotator.excluded = annotator.excluded or now
    annotator.excluded_why, annotator.note = "withdrew", ""
    _release(session, study, annotator)
    own = select(Answer).where(Answer.annotator_id == annotator.id, Answer.erased.is_(None))
    rows = session.scalars(own).all()
    for row in rows:
        row.given, row.value, row.shown_order, row.comment, row.seconds, row.erased = None, None, None, "", None, now
    session.flush()
    return len(rows)


def data_of(session: Session, study: StudyRow, annotator: Annotator) -> dict[str, Any]:
    """Everything that is stored about an annotator, as they may see it."""
    asked = select(Answer, Question).join(Question, Question.id == Answer.question_id)
    rows = session.execute(asked.where(Answer.annotator_id == annotator.id).order_by(Answer.turn)).all()
    return own_data(study, annotator, [(row[0], row[1]) for row in rows])
