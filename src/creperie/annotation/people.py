"""Whose answers count and what is kept of them: exclude, include, withdraw, retain; and the end of whole studies."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.links import annotator_named, end_links
from creperie.annotation.quality import overview, ruled_out
from creperie.annotation.schema import (
    ARCHIVED,
    DONE,
    FREE,
    HELD,
    MAIN,
    VOID,
    Annotator,
    Answer,
    Link,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import settings_of
from creperie.annotation.state import PERMITTED, record, study_named
from creperie.annotation.study import delete_empty
from creperie.annotation.view import own_data
from creperie.core import UsageError
from creperie.metrics import MetricSettings

DAY = 86400.0


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
        seen = overview(session, study, MetricSettings())
    found = ruled_out(settings_of(study.settings), seen["annotators"])
    for one in () if dry_run else found:
        exclude(db, name, one["annotator"], one["why"], actor)
    return found


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
    own = {"study_id": study.id, "question_id": slot.question_id, "kind": MAIN, "rank": slot.rank, "phase": slot.phase}
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


def person_data(db: Database, name: str, pseudonym: str) -> dict[str, Any]:
    """Everything that is stored about one annotator, as they may see it themselves."""
    with db.read() as session:
        study = study_named(session, name)
        return data_of(session, study, annotator_named(session, study, pseudonym))


def data_of(session: Session, study: StudyRow, annotator: Annotator) -> dict[str, Any]:
    rows = session.execute(
        select(Answer, Question, Slot)
        .join(Question, Question.id == Answer.question_id)
        .join(Slot, Slot.id == Answer.slot_id)
        .where(Answer.annotator_id == annotator.id)
        .order_by(Answer.turn)
    ).all()
    return dict(own_data(study, annotator, [(row[0], row[1], row[2]) for row in rows]))


def retain(db: Database, name: str, actor: str = "cli", now: float | None = None) -> list[str]:
    """Erase notes, links and worker hashes of people whose time of retention is over; their pseudonyms."""
    now = time.time() if now is None else now
    with db.write() as session:
        study = study_named(session, name)
        days = settings_of(study.settings).retention_days
        if days is None:
            return []
        gone = []
        for one in session.scalars(select(Annotator).where(Annotator.study_id == study.id)):
            links = session.scalars(select(Link).where(Link.annotator_id == one.id)).all()
            ends = one.finished or max((link.expires for link in links), default=one.created)
            if ends + days * DAY < now and (one.note or one.worker or any(link.token_hash for link in links)):
                end_links(session, one)
                one.note, one.worker = "", None
                for link in links:
                    link.token_hash = None
                gone.append(one.pseudonym)
        if gone:
            record(session, actor, "retention", study, {"annotators": gone, "days": days})
    return gone


def delete_study(db: Database, name: str, actor: str = "cli", *, erase_answers: bool = False) -> None:
    """Delete a study. What people said is erased, too, but only where that is asked for; its name becomes free."""
    with db.write() as session:
        study = study_named(session, name)
        answered = session.scalar(select(Answer.id).where(Answer.study_id == study.id).limit(1)) is not None
        if answered and not erase_answers:
            raise UsageError(f"study {name!r} has answers", hint="archive it, or pass `erase_answers=True`")
        for annotator in session.scalars(select(Annotator).where(Annotator.study_id == study.id)).all():
            _erase(session, study, annotator)
            annotator.worker = None
        if not answered:
            delete_empty(session, study)
        record(session, actor, "delete study", study, {"name": name})
        study.name, study.state, study.instructions, study.settings = f"~deleted-{study.id}", ARCHIVED, "", {}
