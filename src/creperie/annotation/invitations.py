"""Invitations: a link for every annotator. The token in it is random; only its hash is kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.schema import START, Annotator, Event, Login, StudyRow
from creperie.annotation.study import StudyPlan, record, study_named
from creperie.core import UsageError, unknown

DAYS = 30.0
COLOURS = (
    "amber azure blue brown coral cream crimson ebony gold green grey hazel indigo ivory jade lilac lime mauve "
    "olive orange pink plum purple red rose ruby sand silver teal violet white yellow"
)
BIRDS = (
    "auk bunting coot crane crow curlew dove duck eagle egret falcon finch gannet grebe gull heron hoopoe jay "
    "kestrel kite lark magpie martin merlin nuthatch oriole osprey owl pipit plover quail raven robin rook "
    "shrike snipe starling stilt stork swallow swan swift tern thrush tit wren"
)


@dataclass(frozen=True)
class Invitation:
    """A pseudonym and the token of its link, which nobody can read again later."""

    pseudonym: str
    token: str

    def link(self, base: str) -> str:
        return f"{base.rstrip('/')}/join/{self.token}"


def hashed(token: str) -> str:
    """How a random token is stored. It has 192 bits, so a plain hash cannot be reversed by guessing."""
    return hashlib.sha256(token.encode()).hexdigest()


def invite(
    db: Database, name: str, count: int = 1, *, days: float = DAYS, note: str = "", actor: str = "cli"
) -> list[Invitation]:
    """New annotators of a study, each with a link of their own."""
    if not 1 <= count <= 1000:
        raise UsageError(f"cannot invite {count} annotators at once", hint="choose 1 to 1000")
    if not 0 < days <= 3650:
        raise UsageError(f"an invitation cannot hold for {days:g} days", hint="choose up to 3650")
    with db.write() as session:
        study = study_named(session, name)
        made = []
        for _ in range(count):
            annotator, token = new_annotator(session, study, days, note=note)
            made.append(Invitation(annotator.pseudonym, token))
        record(session, actor, "invite", study, {"annotators": [i.pseudonym for i in made], "days": days})
    return made


def new_annotator(session: Session, study: StudyRow, days: float, note: str = "") -> tuple[Annotator, str]:
    """An annotator with a pseudonym that nobody has, and the token of the link."""
    token, now = secrets.token_urlsafe(24), time.time()
    annotator = Annotator(
        study_id=study.id,
        pseudonym=_new_pseudonym(session, study),
        note=note,
        token_hash=hashed(token),
        quota=StudyPlan(**study.plan).per_annotator,
        expires=now + days * 86400,
        created=now,
        turns=0,
        head=START,
        outcome="",
        excluded_why="",
    )
    session.add(annotator)
    session.flush()
    return annotator, token


def reissue(db: Database, name: str, pseudonym: str, *, days: float = DAYS, actor: str = "cli") -> Invitation:
    """A new link for an annotator who lost theirs; the old one and its sessions end."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded or annotator.withdrawn:
            raise UsageError(f"{pseudonym} no longer takes part", where=name)
        token = secrets.token_urlsafe(24)
        annotator.token_hash, annotator.revoked = hashed(token), None
        annotator.expires = time.time() + days * 86400
        session.execute(delete(Login).where(Login.annotator_id == annotator.id))
        record(session, actor, "reissue link", study, {"annotator": pseudonym})
    return Invitation(pseudonym, token)


def remember_address(db: Database, url: str) -> None:
    """Note how the server is reached, so that `invite` can print links that work."""
    with db.write() as session:
        if served_at(session) != url:
            record(session, "server", "serve", None, {"url": url})


def served_at(session: Session) -> str:
    """How the server was last reached; where it listens by default, if it has never been started."""
    last = select(Event.detail).where(Event.what == "serve", Event.study_id.is_(None)).order_by(Event.id.desc())
    found = session.scalar(last.limit(1))
    return str(found["url"]) if found else "http://127.0.0.1:8765"


def _new_pseudonym(session: Session, study: StudyRow) -> str:
    taken = set(session.scalars(select(Annotator.pseudonym).where(Annotator.study_id == study.id)))
    for _ in range(64):
        name = f"{secrets.choice(COLOURS.split())}-{secrets.choice(BIRDS.split())}"
        if len(taken) > 300:  # names run out: the more there are, the longer they get
            name = f"{name}-{secrets.randbelow(10_000)}"
        if name not in taken:
            return name
    raise UsageError("no pseudonym is left", where=study.name)


def revoke(db: Database, name: str, pseudonym: str, actor: str = "cli") -> None:
    """End an invitation at once, with its sessions. Answers stay."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        annotator.revoked = time.time()
        for login in session.scalars(select(Login).where(Login.annotator_id == annotator.id)):
            session.delete(login)
        record(session, actor, "revoke", study, {"annotator": pseudonym})


def annotator_named(session: Session, study: StudyRow, pseudonym: str) -> Annotator:
    """An annotator of a study; an error that lists the names where there is none."""
    own = select(Annotator).where(Annotator.study_id == study.id)
    found = session.scalar(own.where(Annotator.pseudonym == pseudonym))
    if found is None:
        raise unknown("annotator", pseudonym, [a.pseudonym for a in session.scalars(own)], where=study.name)
    return found


def find_invitation(session: Session, token: str) -> Annotator | None:
    """Whose link this is, whether or not it still holds."""
    return session.scalar(select(Annotator).where(Annotator.token_hash == hashed(token)))
