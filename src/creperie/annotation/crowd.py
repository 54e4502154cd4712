"""Crowds: one address that all workers of a study share. Who comes with an id that the owner signed or listed gets a
personal link in exchange; nobody else is let in.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itsdangerous import Signer
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.links import DAYS, hashed, make_link, new_annotator
from creperie.annotation.schema import (
    ANNOTATOR,
    COMPLETED,
    LISTED,
    OPEN,
    SIGNED,
    UNVERIFIED,
    Annotator,
    Listed,
    StudyRow,
)
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.state import change_settings, record, study_named
from creperie.core import CreperieError, UsageError

#: Where a platform writes its worker's id. Without a platform it is `id`.
WORKER_PARAMETER = {"prolific": "PROLIFIC_PID", "mturk": "workerId", "": "id"}
SIGNATURE = "sig"
#: What MTurk sends while somebody only looks at a task.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
PAYMENT_COLUMNS: tuple[str, ...] = ("annotator", "worker_id", "worker_hash", "entry", "outcome", "answers")
PAYMENT_COLUMNS += ("active_minutes", "pay", "currency", "per_hour", "excluded", "withdrawn")
MOST_IDS = 100_000


class EntryError(CreperieError):
    """Somebody cannot take part; the message says why."""


def crowd_address(db: Database, name: str, actor: str = "cli") -> str:
    """Make the address that all workers of a study share; its token. A new one replaces the one before."""
    token = secrets.token_urlsafe(32)
    with db.write() as session:
        change_settings(session, study_named(session, name), actor, {"crowd_address": hashed(token)})
    return token


def list_workers(db: Database, name: str, ids: Iterable[str], actor: str = "cli") -> int:
    """Let these ids enter a study, once each; how many of them are new. Only keyed hashes of them are stored."""
    wanted = [one.strip() for one in ids if one.strip()]
    if len(wanted) > MOST_IDS or any(not is_worker(one) for one in wanted):
        raise UsageError(f"a list holds up to {MOST_IDS:,} ids of at most 128 printable characters, one per line")
    with db.write() as session:
        study = study_named(session, name)
        known = set(session.scalars(select(Listed.worker).where(Listed.study_id == study.id)))
        new = {worker_hash(study, one) for one in wanted} - known
        if new:
            session.execute(insert(Listed), [{"study_id": study.id, "worker": one} for one in sorted(new)])
        record(session, actor, "list workers", study, {"new": len(new)})
    return len(new)


def signature(study: StudyRow, worker: str) -> str:
    """Return the signature that a worker's address carries beside the id; only the study's owner can make it."""
    return Signer(study.secret, salt="creperie.worker").get_signature(worker).decode()


def is_worker(worker: str) -> bool:
    return 1 <= len(worker) <= 128 and worker.isascii() and worker.isprintable()


def study_of_address(session: Session, token: str) -> StudyRow | None:
    """The study of a shared address."""
    wanted = hashed(token)
    # Few studies have one, and settings are JSON: they are looked through here.
    studies = [s for s in session.scalars(select(StudyRow)) if s.settings.get("crowd_address")]
    return next((s for s in studies if hmac.compare_digest(s.settings["crowd_address"], wanted)), None)


def worker_hash(study: StudyRow, worker: str) -> str:
    """A worker's id as it is kept: it cannot be recovered without the study's secret."""
    return hmac.new(study.secret.encode(), worker.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Entrant:
    """Somebody who comes through the shared address, and how the id was vouched for."""

    worker: str
    entry: str


def entrant_of(session: Session, study: StudyRow, query: Mapping[str, str]) -> Entrant:
    """Return who enters, from the parameters of the address; raise an error for ids that nobody vouches for."""
    parameter = WORKER_PARAMETER[settings_of(study.settings).platform]
    worker = query.get(parameter, "").strip()
    if query.get("assignmentId") == PREVIEW:
        raise EntryError("accept the task on the platform first; then it opens here")
    if not is_worker(worker):
        raise EntryError(f"the link lacks {parameter}: open it from the platform")
    if SIGNATURE in query:
        if not hmac.compare_digest(signature(study, worker).encode(), query[SIGNATURE].encode()):
            raise EntryError("the signature of this link is not valid: open it from the platform again")
        return Entrant(worker, SIGNED)
    own = select(Listed.id).where(Listed.study_id == study.id, Listed.worker == worker_hash(study, worker))
    if session.scalar(own) is None:
        raise EntryError("this id is not on the list of the study")
    return Entrant(worker, LISTED)


def enter(db: Database, study_id: int, query: Mapping[str, str]) -> tuple[Annotator, str]:
    """The annotator of an entrant, and the token of the personal link. Consent was given before.

    A signed id can come back and gets a new link; a listed one can be exchanged only once, since it is no secret.
    """
    with db.write() as session:
        locked = select(StudyRow).where(StudyRow.id == study_id).with_for_update(key_share=True)
        study = session.scalars(locked).one()
        settings, who = settings_of(study.settings), entrant_of(session, study, query)
        worker = worker_hash(study, who.worker)
        known = session.scalar(select(Annotator).where(Annotator.study_id == study.id, Annotator.worker == worker))
        if known is not None:
            if known.excluded or known.withdrawn or who.entry != SIGNED or known.entry == UNVERIFIED:
                raise EntryError("you have already taken part in this study; use your personal link to go on")
            return known, make_link(session, ANNOTATOR, known.pseudonym, study=study, annotator=known)
        if study.state != OPEN:
            raise EntryError("this study is not open at the moment")
        if settings.cap is not None and _participants(session, study) >= settings.cap:
            raise EntryError("this study has all the participants it needs")
        made, pseudonym, token = new_annotator(session, study, DAYS, note=settings.platform, entry=who.entry)
        made.worker, made.consented = worker, time.time()
        made.consent_version = settings.consent_version or None
        record(session, "crowd", "enter", study, {"annotator": pseudonym, "entry": who.entry})
        return made, token


def _participants(session: Session, study: StudyRow) -> int:
    counted = select(func.count()).where(Annotator.study_id == study.id, Annotator.excluded.is_(None))
    return int(session.scalar(counted) or 0)


def payments(study: StudyRow, rows: Sequence[Mapping[str, Any]], workers: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return what each annotator is owed, from the rows of `overview`; `workers` are matched with the stored hashes."""
    known = {worker_hash(study, worker.strip()): worker.strip() for worker in workers if worker.strip()}
    return [_payment(settings_of(study.settings), row, known) for row in rows]


def _payment(settings: StudySettings, row: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """One person's line. Who was excluded before completing, or came with an id that nobody vouched for, gets none."""
    owed = row["outcome"] == COMPLETED and row["entry"] != UNVERIFIED and (row["withdrawn"] or not row["excluded"])
    pay, minutes = settings.pay if owed else 0.0, row["active_seconds"] / 60
    return {
        "annotator": row["annotator"],
        "worker_id": known.get(row["worker"] or "", ""),
        "worker_hash": row["worker"] or "",
        "entry": row["entry"],
        "outcome": row["outcome"],
        "answers": row["answers"],
        "active_minutes": round(minutes, 2),
        "pay": pay,
        "currency": settings.currency,
        "per_hour": round(60 * pay / minutes, 2) if minutes else None,
        "excluded": row["excluded"],
        "withdrawn": row["withdrawn"],
    }
