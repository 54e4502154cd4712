"""Crowds: one link per study through which workers of a platform enter by themselves, and what they are paid."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.invitations import DAYS, hashed, new_annotator
from creperie.annotation.measures import annotators
from creperie.annotation.schema import COMPLETED, OPEN, SCREENED, TIMED_OUT, Annotator, StudyRow
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.study import change_settings, record, study_named
from creperie.core import CreperieError

#: Where a platform writes its worker's id.
WORKER_PARAMETER = {"prolific": "PROLIFIC_PID", "mturk": "workerId"}
#: What MTurk sends while somebody only looks at a task.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
PAYMENT_COLUMNS: tuple[str, ...] = ("annotator", "worker_id", "worker_hash", "outcome", "code", "answers")
PAYMENT_COLUMNS += ("active_minutes", "pay", "currency", "per_hour", "excluded", "withdrawn")


class EntryError(CreperieError):
    """Somebody cannot take part; the message says why."""


def open_link(db: Database, name: str, actor: str = "cli", **settings: Any) -> str:
    """Make the self-service link of a study; its token. A new one replaces the one before."""
    token = secrets.token_urlsafe(24)
    change_settings(db, name, actor, **{**settings, "open_link": hashed(token)})
    return token


def study_of_link(session: Session, token: str) -> StudyRow | None:
    """The study of a self-service link."""
    wanted = hashed(token)
    # Few studies have one, and settings are JSON: they are looked through here.
    found = [s for s in session.scalars(select(StudyRow)) if s.settings.get("open_link")]
    return next((s for s in found if hmac.compare_digest(s.settings["open_link"], wanted)), None)


def worker_hash(study: StudyRow, worker: str) -> str:
    """A worker's id as it is kept: it cannot be recovered without the study's secret."""
    return hmac.new(study.secret.encode(), worker.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Entrant:
    """Somebody who comes through the link: what the platform says, and the answers to the screening questions."""

    worker: str = ""
    screening: Sequence[int] = ()


def entrant_of(settings: StudySettings, query: Mapping[str, str], screening: Sequence[int] = ()) -> Entrant:
    """Who comes, from the parameters of the address."""
    parameter = WORKER_PARAMETER.get(settings.platform)
    if parameter is None:
        return Entrant("", screening)
    worker = query.get(parameter, "").strip()
    if query.get("assignmentId") == PREVIEW:
        raise EntryError("accept the task on the platform first; then it opens here")
    if not 1 <= len(worker) <= 128 or not worker.isascii() or not worker.isprintable():
        raise EntryError(f"the link lacks {parameter}: open it from the platform")
    return Entrant(worker, screening)


def enter(db: Database, study_id: int, who: Entrant) -> Annotator:
    """The annotator of an entrant: a new one, or the one that this worker already is. Consent was given before."""
    with db.write() as session:
        locked = select(StudyRow).where(StudyRow.id == study_id)
        study = session.scalars(locked.with_for_update(key_share=True) if db.locks_rows else locked).one()
        settings = settings_of(study.settings)
        worker = worker_hash(study, who.worker) if who.worker else None
        known = select(Annotator).where(Annotator.study_id == study.id, Annotator.worker == worker)
        if worker is not None and (found := session.scalar(known)) is not None:
            if found.excluded or found.withdrawn or found.revoked:
                raise EntryError("you have already taken part in this study")
            return found
        if study.state != OPEN:
            raise EntryError("this study is not open at the moment")
        if settings.cap is not None and _participants(session, study) >= settings.cap:
            raise EntryError("this study has all the participants it needs")
        made, _ = new_annotator(session, study, DAYS, note=settings.platform or "self-service")
        made.worker, made.consented = worker, time.time()
        made.consent_version = settings.consent_version or None
        if not passes(settings, who.screening):
            made.outcome, made.finished = SCREENED, time.time()
        record(session, "crowd", "enter", study, {"annotator": made.pseudonym, "outcome": made.outcome})
        return made


def passes(settings: StudySettings, given: Sequence[int]) -> bool:
    """Whether the screening questions were answered as the study wants.

    >>> one = {"ask": "Do you speak English?", "options": ["yes", "no"], "accept": [0]}
    >>> passes(StudySettings(screening=[one]), [0]), passes(StudySettings(screening=[one]), [])
    (True, False)
    """
    return len(given) == len(settings.screening) and all(
        choice in one["accept"] for choice, one in zip(given, settings.screening, strict=True)
    )


def _participants(session: Session, study: StudyRow) -> int:
    """Those who take part or have: not those who were screened out, ran out of time, were excluded or withdrew."""
    counted = (
        select(func.count())
        .select_from(Annotator)
        .where(
            Annotator.study_id == study.id,
            Annotator.outcome.not_in((SCREENED, TIMED_OUT)),
            Annotator.excluded.is_(None),
            Annotator.revoked.is_(None),
        )
    )
    return int(session.scalar(counted) or 0)


# -- payment ---------------------------------------------------------------------------------------------------------


def payments(db: Database, name: str, workers: Iterable[str] = ()) -> list[dict[str, Any]]:
    """What each annotator is owed. Worker ids are not stored; those given here are matched by their hashes."""
    with db.read() as session:
        study = study_named(session, name)
        rows = annotators(session, study)
        own = session.scalars(select(Annotator).where(Annotator.study_id == study.id))
        hashes = {a.pseudonym: a.worker for a in own}
    known = {worker_hash(study, worker.strip()): worker.strip() for worker in workers if worker.strip()}
    return [_payment(settings_of(study.settings), row, hashes[row["annotator"]], known) for row in rows]


def _payment(
    settings: StudySettings, row: Mapping[str, Any], worker: str | None, known: Mapping[str, str]
) -> dict[str, Any]:
    owed = row["outcome"] == COMPLETED and (row["withdrawn"] or not row["excluded"])
    pay, minutes = settings.pay if owed else 0.0, row["active_seconds"] / 60
    return {
        "annotator": row["annotator"],
        "worker_id": known.get(worker or "", ""),
        "worker_hash": worker or "",
        "outcome": row["outcome"],
        "code": settings.codes.get(row["outcome"], ""),
        "answers": row["answers"],
        "active_minutes": round(minutes, 2),
        "pay": pay,
        "currency": settings.currency,
        "per_hour": round(60 * pay / minutes, 2) if minutes else None,
        "excluded": row["excluded"],
        "withdrawn": row["withdrawn"],
    }
