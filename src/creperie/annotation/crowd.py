"""Crowds: all workers of a study share one address. It admits only workers whose id the owner signed or listed, and
gives each of them a personal link.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence

from itsdangerous import Signer
from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.links import annotators_link, hashed, new_annotator
from creperie.annotation.schema import (
    COMPLETED,
    LISTED,
    OPEN,
    SIGNED,
    UNVERIFIED,
    WITHDREW,
    Annotator,
    Listed,
    StudyRow,
)
from creperie.annotation.settings import WORKER_PARAMETER, settings_of
from creperie.annotation.state import change_settings, log, study_named
from creperie.core import CreperieError, Document, Json, UsageError

SIGNATURE = "sig"
#: The value that MTurk sends while a worker only previews a task.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
PAYMENT_COLUMNS = (
    "annotator",
    "worker_id",
    "worker_hash",
    "entry",
    "outcome",
    "answers",
    "active_minutes",
    "pay",
    "currency",
    "per_hour",
    "excluded",
    "withdrawn",
)
MOST_IDS = 100_000


class EntryError(CreperieError):
    """Raised when somebody cannot take part in a study; the message says why."""


def crowd_address(db: Database, name: str, actor: str = "cli") -> str:
    """Create the address that all workers of a study share, and return its token. Any earlier address stops working."""
    token = secrets.token_urlsafe(32)
    with db.write() as session:
        change_settings(session, study_named(session, name), actor, {"crowd_address": hashed(token)})
    return token


def list_workers(db: Database, name: str, ids: Iterable[str], actor: str = "cli") -> int:
    """Let workers with these ids enter a study, once each; return how many are new. Only keyed hashes are stored."""
    worker_ids = [one for one in map(str.strip, ids) if one]
    if len(worker_ids) > MOST_IDS or any(not is_worker(one) for one in worker_ids):
        what = f"the list has more than {MOST_IDS:,} ids, or an id that is not 1 to 128 printable ASCII characters"
        raise UsageError(what, hint="write one id per line; split longer lists")
    with db.write() as session:
        study = study_named(session, name)
        known = set(session.scalars(select(Listed.worker).where(Listed.study_id == study.id)))
        new = {worker_hash(study, one) for one in worker_ids} - known
        session.add_all(Listed(study_id=study.id, worker=one) for one in sorted(new))
        log(session, actor, "list workers", study, new=len(new))
    return len(new)


def signature(study: StudyRow, worker: str) -> str:
    """Return the signature for a worker's id in a link; only the study's owner can make it."""
    return Signer(study.secret, salt="creperie.worker").get_signature(worker).decode()


def is_worker(worker: str) -> bool:
    return 1 <= len(worker) <= 128 and worker.isascii() and worker.isprintable()


def study_of_address(session: Session, token: str) -> StudyRow | None:
    """Return the study with this shared address; None if no study has it."""
    # Few studies have one, and settings are JSON: a linear search is enough.
    token_hash, studies = hashed(token), session.scalars(select(StudyRow))
    return next((s for s in studies if s.settings.get("crowd_address") == token_hash), None)


def worker_hash(study: StudyRow, worker: str) -> str:
    """Return the keyed hash of a worker's id. Only the hash is stored; without the study's secret, the id cannot be
    recovered from it.
    """
    return hmac.new(study.secret.encode(), worker.encode(), hashlib.sha256).hexdigest()


def entrant_of(session: Session, study: StudyRow, query: Mapping[str, str]) -> tuple[str, str]:
    """Return the hash of the worker's id in a URL's query, and how the id is known: `SIGNED` or `LISTED` by the study's
    owner. Raise an EntryError if the owner neither signed nor listed it.
    """
    parameter = WORKER_PARAMETER[settings_of(study.settings).platform]
    worker = query.get(parameter, "").strip()
    if query.get("assignmentId") == PREVIEW:
        raise EntryError("accept the task on the platform first; then it opens here")
    if not is_worker(worker):
        raise EntryError(f"the link lacks {parameter}: open it from the platform")
    digest = worker_hash(study, worker)
    if SIGNATURE in query:
        if not hmac.compare_digest(signature(study, worker).encode(), query[SIGNATURE].encode()):
            raise EntryError("the signature of this link is not valid: open it from the platform again")
        return digest, SIGNED
    if session.scalar(select(Listed.id).where(Listed.study_id == study.id, Listed.worker == digest)) is None:
        raise EntryError("your id is not on the list of this study: ask the people who run it")
    return digest, LISTED


def admitted(session: Session, study: StudyRow, query: Mapping[str, str]) -> tuple[str, str, Annotator | None]:
    """Return the hash of the worker's id in a URL's query, how the id is known, and the annotator who already entered
    with it (None if nobody did). Raise an EntryError if the worker cannot enter.

    A person with a signed id may come again. An id from the owner's list works only once, because other people could
    guess it.
    """
    worker, entry = entrant_of(session, study, query)
    own = select(Annotator).where(Annotator.study_id == study.id)
    known = session.scalar(own.where(Annotator.worker == worker))
    if known is not None:
        if known.excluded:  # or withdrawn, which excludes
            raise EntryError("you have already taken part in this study")
        if entry != SIGNED or known.entry == UNVERIFIED:
            raise EntryError("you have already taken part in this study; use your personal link to go on")
        return worker, entry, known
    if study.state != OPEN:
        raise EntryError("this study is not open at the moment")
    cap = settings_of(study.settings).cap
    if cap is not None and len(session.scalars(own.where(Annotator.excluded.is_(None))).all()) >= cap:
        raise EntryError("this study has all the participants it needs")
    return worker, entry, None


def enter(db: Database, name: str, query: Mapping[str, str]) -> tuple[Annotator, str]:
    """Return the annotator whose worker id is in `query`, and the token of a new personal link. At the first visit, the
    annotator is created. Call this only after the person has consented.
    """
    with db.write() as session:
        study = study_named(session, name)
        worker, entry, known = admitted(session, study, query)
        if known is not None:
            return known, annotators_link(session, study, known)
        settings = settings_of(study.settings)
        made, token = new_annotator(session, study, note=settings.platform, entry=entry)
        made.worker, made.consented = worker, time.time()
        made.consent_version = settings.consent_version or None
        log(session, "crowd", "enter", study, annotator=made.pseudonym, entry=entry)
        return made, token


def payments(study: StudyRow, rows: Sequence[Document], workers: Iterable[str] = ()) -> list[Json]:
    """Return what each annotator is owed. `rows` are the annotators' rows from `overview`. The result names the workers
    whose ids are in `workers`.

    Nothing is owed to a person who did not complete the study, was excluded, or has a worker id that was never
    verified. If a person withdraws after completing the study, the payment stays the same.
    """
    # Only hashes of ids are stored, so `workers` are hashed and compared with these.
    known = {worker_hash(study, worker): worker for worker in map(str.strip, workers) if worker}
    settings = settings_of(study.settings)
    listed = []
    for row in rows:
        included = not row["excluded"] or row["excluded_why"] == WITHDREW
        owed = row["outcome"] == COMPLETED and row["entry"] != UNVERIFIED and included
        pay, minutes, worker = settings.pay if owed else 0.0, row["active_seconds"] / 60, row["worker"] or ""
        listed.append(
            {
                **row,
                "worker_id": known.get(worker, ""),
                "worker_hash": worker,
                "active_minutes": round(minutes, 2),
                "pay": pay,
                "currency": settings.currency,
                "per_hour": round(60 * pay / minutes, 2) if minutes else None,
            }
        )
    return listed
