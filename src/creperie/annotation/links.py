"""Personal links, the only credentials: every owner, adjudicator and annotator has one.

A link holds 256 random bits, of which only a hash is stored. It expires and can be revoked or replaced. A browser that
opens it gets a session cookie.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass

from itsdangerous import Signer
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.schema import (
    ADJUDICATOR,
    ANNOTATOR,
    INVITED,
    OWNER,
    Annotator,
    Event,
    Link,
    StudyRow,
    Visit,
)
from creperie.annotation.settings import settings_of
from creperie.annotation.state import log, study_named
from creperie.core import UsageError, unknown

DAYS = 30.0
#: Longest session, even if its link is valid for longer: owners half a day, annotators two weeks.
LASTS = {OWNER: 12 * 3600.0, ADJUDICATOR: 12 * 3600.0, ANNOTATOR: 14 * 86400.0}
#: The owner whose link `annotate serve` prints.
LOCAL_OWNER = "owner"
#: Rate limits per network address: attempts with unknown links, and entries through a shared address.
WRONG_LINKS: RateLimitItem = RateLimitItemPerMinute(30, 15)
ENTRIES: RateLimitItem = RateLimitItemPerHour(60)
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
class Visitor:
    """The person behind a request, and the link that this person used."""

    link: Link

    @property
    def actor(self) -> str:
        """The name under which the audit trail records this person."""
        return f"{self.link.kind}:{self.link.name}"

    def may(self, kind: str, study: int | None = None) -> bool:
        """Return True if the person may do what somebody of this `kind` may do. Owners may do everything; adjudicators
        may only act as adjudicators of the given study.
        """
        own = kind == ADJUDICATOR == self.link.kind and self.link.study_id == study
        return own or self.link.kind == OWNER


@dataclass(frozen=True)
class Participant(Visitor):
    """The annotator behind a request, and the study in which this annotator takes part."""

    annotator: Annotator
    study: StudyRow

    @property
    def consent_due(self) -> str:
        """The version of the consent text that the annotator has yet to accept; empty if there is none."""
        version = settings_of(self.study.settings).consent_version
        return version if version != self.annotator.consent_version else ""


@dataclass(frozen=True)
class Invitation:
    """A pseudonym, and the token of the link made for it. The token cannot be read again later."""

    pseudonym: str
    token: str

    def link(self, base: str) -> str:
        return f"{base.rstrip('/')}/join/{self.token}"


def hashed(token: str) -> str:
    """Return the hash that is stored in place of a token. It needs no salt: a token has 256 random bits, which nobody
    can guess.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def csrf_token(secret: str) -> str:
    """Return the CSRF token for the forms of a browser whose cookie holds the secret."""
    return Signer(secret, salt="creperie.form").get_signature("form").decode()


# -- making and ending links -------------------------------------------------------------------------------------------


def make_link(
    session: Session,
    kind: str,
    name: str,
    *,
    study: StudyRow | None = None,
    annotator: Annotator | None = None,
    days: float = DAYS,
) -> str:
    """Create a new link for somebody and return its token. End this person's earlier link and all sessions opened with
    it.
    """
    if not 0 < days <= 3650:
        raise UsageError(f"a link cannot be valid for {days:g} days", hint="choose more than 0 and at most 3650 days")
    if not 0 < len(name) <= 128 or not name.isprintable():
        raise UsageError("the name for a link is not 1 to 128 printable characters", hint="pass the name of a person")
    token, now, study_id = secrets.token_urlsafe(32), time.time(), study.id if study else None
    for old in session.scalars(_links_of(kind, name, study_id).where(Link.revoked.is_(None))):
        _end(session, old)
    session.add(
        Link(
            kind=kind,
            name=name,
            study_id=study_id,
            annotator_id=annotator.id if annotator else None,
            token_hash=hashed(token),
            created=now,
            expires=now + days * 86400,
        )
    )
    session.flush()
    return token


_OWNERS = select(Link).where(Link.kind != ANNOTATOR)


def _links_of(kind: str, name: str, study: int | None) -> Select[Link]:
    return select(Link).where(Link.kind == kind, Link.name == name, Link.study_id == study)


def _end(session: Session, link: Link) -> None:
    link.revoked = link.revoked or time.time()
    session.execute(delete(Visit).where(Visit.link_id == link.id))


def link_for(db: Database, name: str, kind: str = OWNER, study: str = "", days: float = DAYS) -> str:
    """Create a new link for an owner, or for the adjudicator of a study, and return its token."""
    if kind not in (OWNER, ADJUDICATOR):
        raise unknown("kind of link", kind, (OWNER, ADJUDICATOR))
    if (kind == ADJUDICATOR) != bool(study):
        what = "an adjudicator's link needs `study=`, an owner's link takes none"
        raise UsageError(what, hint="pass `study=` for adjudicators only")
    with db.write() as session:
        row = study_named(session, study) if study else None
        token = make_link(session, kind, name, study=row, days=days)
        log(session, "cli", f"link for {kind}", row, name=name, days=days)
    return token


def local_owner_link(db: Database) -> str:
    """Return the token of a new link for the owner, which `annotate serve` prints. Open sessions continue."""
    with db.write() as session:
        link = session.scalar(_links_of(OWNER, LOCAL_OWNER, None).where(Link.revoked.is_(None)))
        if link is None:
            return make_link(session, OWNER, LOCAL_OWNER)
        token = secrets.token_urlsafe(32)
        link.token_hash, link.expires = hashed(token), time.time() + DAYS * 86400
    return token


def revoke(db: Database, name: str, study: str = "", actor: str = "cli") -> int:
    """Revoke all links of a person, and return how many were revoked. With `study`, `name` is an annotator of that
    study; otherwise it is an owner or adjudicator.

    Sessions that were opened with these links end at once. Answers are kept.
    """
    with db.write() as session:
        row = study_named(session, study) if study else None
        own = select(Link).where(Link.kind == ANNOTATOR, Link.study_id == row.id) if row else _OWNERS
        if name not in (known := {link.name for link in session.scalars(own)}):
            raise unknown("link", name, sorted(known), where=study)
        ended = [link for link in session.scalars(own) if link.name == name and link.revoked is None]
        for link in ended:
            _end(session, link)
        log(session, actor, "revoke", row, name=name)
    return len(ended)


# -- annotators --------------------------------------------------------------------------------------------------------


def invite(
    db: Database, name: str, count: int = 1, *, days: float = DAYS, note: str = "", form: str = "", actor: str = "cli"
) -> list[Invitation]:
    """Create `count` new annotators of a study, each with a personal link.

    `form` is the one-time code of a web form: if it was used before, nobody is invited and the list is empty.
    """
    if not 1 <= count <= 1000:
        raise UsageError(f"cannot invite {count} annotators at once", hint="choose 1 to 1000")
    with db.write() as session:
        study = study_named(session, name)  # locked: a second request with the same form waits here
        sent = select(Event.id).where(Event.study_id == study.id, Event.detail["form"].as_string() == form)
        if form and session.scalar(sent) is not None:
            return []
        people = [new_annotator(session, study, days, note=note) for _ in range(count)]
        made = [Invitation(one.pseudonym, token) for one, token in people]
        log(session, actor, "invite", study, annotators=[one.pseudonym for one in made], days=days, form=form)
    return made


def new_annotator(
    session: Session, study: StudyRow, days: float = DAYS, *, note: str = "", entry: str = INVITED
) -> tuple[Annotator, str]:
    """Create an annotator with a unique pseudonym. Return the annotator and the token of their link."""
    annotator = Annotator(
        study_id=study.id,
        pseudonym=_new_pseudonym(session, study),
        note=note,
        entry=entry,
        quota=study.plan.get("per_annotator"),
        created=time.time(),
    )
    session.add(annotator)
    session.flush()
    return annotator, annotators_link(session, study, annotator, days)


def annotators_link(session: Session, study: StudyRow, annotator: Annotator, days: float = DAYS) -> str:
    """Create a new link for an annotator and return its token."""
    return make_link(session, ANNOTATOR, annotator.pseudonym, study=study, annotator=annotator, days=days)


def reissue(db: Database, name: str, pseudonym: str, actor: str = "cli") -> Invitation:
    """Create a new link for an annotator who lost the old one. The old link and its sessions end."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded or annotator.withdrawn:
            raise UsageError(f"{pseudonym} no longer takes part", where=name, hint="invite a new annotator")
        token = annotators_link(session, study, annotator)
        log(session, actor, "reissue link", study, annotator=pseudonym)
    return Invitation(pseudonym, token)


def end_links(session: Session, annotator: Annotator) -> None:
    """End all links of an annotator."""
    for link in session.scalars(select(Link).where(Link.annotator_id == annotator.id)):
        _end(session, link)


def annotator_named(session: Session, study: StudyRow, pseudonym: str) -> Annotator:
    """Return the annotator of a study with this pseudonym; if there is none, raise an error that lists the names."""
    own = select(Annotator).where(Annotator.study_id == study.id)
    annotator = session.scalar(own.where(Annotator.pseudonym == pseudonym))
    if annotator is None:
        raise unknown("annotator", pseudonym, [a.pseudonym for a in session.scalars(own)], where=study.name)
    return annotator


def _new_pseudonym(session: Session, study: StudyRow) -> str:
    taken = set(session.scalars(select(Annotator.pseudonym).where(Annotator.study_id == study.id)))
    for _ in range(64):
        name = f"{secrets.choice(COLOURS.split())}-{secrets.choice(BIRDS.split())}"
        if len(taken) > 300:  # few combinations are left: add a number
            name = f"{name}-{secrets.randbelow(10_000)}"
        if name not in taken:
            return name
    raise UsageError("no unused pseudonym was found", where=study.name, hint="try again")


# -- the caller --------------------------------------------------------------------------------------------------------


def link_of(session: Session, token: str) -> Visitor | None:
    """Return the visitor to whom a link's token belongs; None if there is no such link or it has ended."""
    return _visitor(session, select(Link).where(Link.token_hash == hashed(token)))


def visitor(session: Session, cookie: str, *, lock: bool = False) -> Visitor | None:
    """Return the visitor to whom a session cookie belongs; None if the session has expired or its link has ended.

    With `lock`, the study keeps its state until the end of the transaction, and other requests of the same annotator
    wait. This has no effect for owners and adjudicators.
    """
    here = select(Link).join(Visit, Visit.link_id == Link.id)
    return _visitor(session, here.where(Visit.token_hash == hashed(cookie), Visit.expires > time.time()), lock)


def visitor_named(session: Session, name: str) -> Visitor | None:
    """Return the owner or adjudicator with this name, as sent by an identity proxy; None if there is none."""
    return _visitor(session, _OWNERS.where(Link.name == name))


def _visitor(session: Session, query: Select[Link], lock: bool = False) -> Visitor | None:
    lasting = query.where(Link.revoked.is_(None), Link.expires > time.time())
    here = lasting.add_columns(StudyRow).join(StudyRow, StudyRow.id == Link.study_id, isouter=not lock)
    here = here.order_by(Link.kind.desc(), Link.id.desc())
    first = session.execute(here.with_for_update(read=True, of=StudyRow) if lock else here).first()
    if first is None or first.Link.annotator_id is None:
        return Visitor(first.Link) if first else None
    annotator = session.get_one(Annotator, first.Link.annotator_id, with_for_update=lock)
    gone = annotator.excluded or annotator.withdrawn
    return None if gone else Participant(first.Link, annotator, first.StudyRow)


def open_visit(session: Session, link: Link) -> str:
    """Start a session for a browser and return the cookie's token. Expired sessions are removed."""
    token, now = secrets.token_urlsafe(32), time.time()
    session.execute(delete(Visit).where(Visit.expires < now))
    session.add(Visit(token_hash=hashed(token), link_id=link.id, expires=min(link.expires, now + LASTS[link.kind])))
    session.flush()
    return token


def end_visit(db: Database, cookie: str) -> None:
    """End the session of a browser."""
    with db.write() as session:
        session.execute(delete(Visit).where(Visit.token_hash == hashed(cookie)))


# -- where the server is -----------------------------------------------------------------------------------------------


def remember_address(db: Database, url: str) -> None:
    """Store the address at which people reach the server, so that links made on the command line use it."""
    with db.write() as session:
        if served_at(session) != url:
            log(session, "server", "serve", None, url=url)


def served_at(session: Session) -> str:
    """Return the address at which the server was last started, or else the default address."""
    last = select(Event.detail).where(Event.what == "serve", Event.study_id.is_(None)).order_by(Event.id.desc())
    detail = session.scalar(last.limit(1))
    return str(detail["url"]) if detail else "http://127.0.0.1:8765"
