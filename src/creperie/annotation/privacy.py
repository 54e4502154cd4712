"""What a person may ask for: withdrawal, a copy of their data; and how long personal data are kept."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.exclusion import release
from creperie.annotation.invitations import annotator_named
from creperie.annotation.schema import Annotator, Answer, Login, Question, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.study import record, study_named

DAY = 86400.0


def withdraw(db: Database, name: str, pseudonym: str, actor: str = "cli") -> int:
    """Erase what a person said and give their questions to others; how many answers were erased.

    The rows stay, empty, and the chain still verifies: it holds salted hashes of what was said, and the salts are
    erased with it.
    """
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        erased = erase(session, study, annotator)
        record(session, actor, "withdraw", study, {"annotator": pseudonym, "answers": erased})
    return erased


def erase(session: Session, study: StudyRow, annotator: Annotator) -> int:
    """The part of a withdrawal that touches the person's rows."""
    now = time.time()
    annotator.withdrawn = annotator.withdrawn or now
    annotator.excluded = annotator.excluded or now
    annotator.excluded_why = "withdrew"
    annotator.note, annotator.token_hash = "", None
    release(session, study, annotator)
    rows = select(Answer.id).where(
        Answer.annotator_id == annotator.id, Answer.content.is_not(None), Answer.erased.is_(None)
    )
    erased = session.scalars(rows).all()
    blank = {"value": None, "comment": "", "salt": None, "seconds": None, "erased": now}
    session.execute(update(Answer), [{"id": number, **blank} for number in erased]) if erased else None
    return len(erased)


def person_data(db: Database, name: str, pseudonym: str) -> dict[str, Any]:
    """Everything that is stored about one annotator."""
    with db.read() as session:
        study = study_named(session, name)
        return person_document(session, study, annotator_named(session, study, pseudonym))


def person_document(session: Session, study: StudyRow, annotator: Annotator) -> dict[str, Any]:
    answers = session.execute(
        select(Answer, Question.ordinal, Question.payload)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.annotator_id == annotator.id)
        .order_by(Answer.turn)
    )
    kept = "pseudonym note created consented consent_version expires revoked excluded excluded_why withdrawn finished"
    return {
        "study": study.name,
        **{field: getattr(annotator, field) for field in kept.split()},
        "outcome": annotator.outcome,
        "worker_hash": annotator.worker,
        "answers": [
            {
                "question": ordinal,
                "captions": payload.get("captions") or payload.get("foils") or [payload.get("caption")],
                "event": row.kind,
                "value": row.value,
                "comment": row.comment,
                "seconds": row.seconds,
                "at": row.at,
                "erased": row.erased,
            }
            for row, ordinal, payload in answers
        ],
    }


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
            over = (one.finished or one.expires or one.created) + days * DAY < now
            if over and (one.note or one.worker or one.token_hash):
                one.note, one.worker, one.token_hash = "", None, None
                session.execute(delete(Login).where(Login.annotator_id == one.id))
                gone.append(one.pseudonym)
        if gone:
            record(session, actor, "retention", study, {"annotators": gone, "days": days})
    return gone
