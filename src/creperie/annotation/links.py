"""Links: the only credentials. Every owner, adjudicator and annotator has one of their own.

A link holds 256 random bits, of which only a hash is stored. It ends by itself, can be revoked or replaced, and is
exchanged for a cookie when it is opened.
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
from creperie.annotation.state import GuardedSession, record, study_named
from creperie.core import CreperieError, UsageError, unknown

DAYS = 30.0
#: How long a browser stays in, whatever its link still has: owners half a day, annotators two weeks.
LASTS = {OWNER: 12 * 3600.0, ADJUDICATOR: 12 * 3600.0, ANNOTATOR: 14 * 86400.0}
#: The owner whose link `annotate serve` prints.
LOCAL_OWNER = "owner"
#: Links that do not exist, and entries through a shared address, that one address of the network may try.
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


class DeniedError(CreperieError):
    """Not let in."""


class TooManyError(DeniedError):
    """Not let in, because of too many attempts."""


@dataclass(frozen=True)
class Visitor:
    """Who is calling, by which link."""

    link: Link

    @property
    def actor(self) -> str:
        """The name under which the audit trail lists what they do."""
        return f"{self.link.kind}:{self.link.name}"

    def may(self, kind: str, study: int | None = None) -> bool:
        """Return True if the link allows what owners, or the adjudicators of a study, may do."""
        if self.link.kind == OWNER:
            return True
        return kind == ADJUDICATOR == self.link.kind and study is not None and self.link.study_id == study


@dataclass(frozen=True)
class Participant(Visitor):
    """An annotator who is calling, with their study."""

    annotator: Annotator
    study: StudyRow


@dataclass(frozen=True)
class Invitation:
    """A name and the token of its link, which nobody can read again later."""

    pseudonym: str
    token: str

    def link(self, base: str) -> str:
        return f"{base.rstrip('/')}/join/{self.token}"


def hashed(token: str) -> str:
    """Return the hash under which a token is stored. With 256 bits, a plain hash cannot be reversed by guessing."""
    return hashlib.sha256(token.encode()).hexdigest()


def csrf_token(secret: str) -> str:
    """The CSRF token of a browser's forms, signed with the secret in its cookie."""
    return Signer(secret, salt="creperie.form").get_signature("form").decode()


def is_csrf_token(secret: str, given: str) -> bool:
    return bool(secret) and Signer(secret, salt="creperie.form").verify_signature(b"form", given.encode())


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
    """Give somebody a new link and return its token. The link they had before and its visits end."""
    if not 0 < days <= 3650:
        raise UsageError(f"a link cannot hold for {days:g} days", hint="choose up to 3650")
    if not 0 < len(name) <= 128 or not name.isprintable():
        raise UsageError("a link needs the name of its person, of at most 128 characters")
    token, now = secrets.token_urlsafe(32), time.time()
    own = _links_of(kind, name, study.id if study else None)
    for old in session.scalars(own.where(Link.revoked.is_(None))):
        _end(session, old)
    session.add(
        Link(
            kind=kind,
            name=name,
            study_id=study.id if study else None,
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


def link_for(
    db: Database, name: str, kind: str = OWNER, study: str = "", days: float = DAYS, actor: str = "cli"
) -> str:
    """A new link for an owner, or for the adjudicator of a study; its token."""
    if kind not in (OWNER, ADJUDICATOR):
        raise unknown("kind of link", kind, (OWNER, ADJUDICATOR))
    if (kind == ADJUDICATOR) != bool(study):
        raise UsageError("an adjudicator's link is for one study, an owner's for all", hint="see `study=`")
    with db.write() as session:
        row = study_named(session, study) if study else None
        token = make_link(session, kind, name, study=row, days=days)
        record(session, actor, f"link for {kind}", row, {"name": name, "days": days})
    return token


def local_owner_link(db: Database) -> str:
    """The link that `annotate serve` prints: a new token each time, while browsers that are in stay in."""
    with db.write() as session:
        link = session.scalar(_links_of(OWNER, LOCAL_OWNER, None).where(Link.revoked.is_(None)))
        if link is None:
            return make_link(session, OWNER, LOCAL_OWNER)
        token = secrets.token_urlsafe(32)
        link.token_hash, link.expires = hashed(token), time.time() + DAYS * 86400
    return token


def revoke(db: Database, name: str, study: str = "", actor: str = "cli") -> int:
    """End all links of an owner or adjudicator, or, with `study`, of its annotator of this name; how many there were.

    Their browsers are out at once. Answers stay.
    """
    with db.write() as session:
        row = study_named(session, study) if study else None
        own = select(Link).where(Link.kind == ANNOTATOR, Link.study_id == row.id) if row else _OWNERS
        if name not in (known := {link.name for link in session.scalars(own)}):
            raise unknown("link", name, sorted(known), where=study)
        ended = [link for link in session.scalars(own) if link.name == name and link.revoked is None]
        for link in ended:
            _end(session, link)
        record(session, actor, "revoke", row, {"name": name})
    return len(ended)


# -- annotators --------------------------------------------------------------------------------------------------------


def invite(
    db: Database, name: str, count: int = 1, *, days: float = DAYS, note: str = "", actor: str = "cli"
) -> list[Invitation]:
    """New annotators of a study, each with a link of their own."""
    if not 1 <= count <= 1000:
        raise UsageError(f"cannot invite {count} annotators at once", hint="choose 1 to 1000")
    with db.write() as session:
        study = study_named(session, name)
        made = [Invitation(*new_annotator(session, study, days, note=note)[1:]) for _ in range(count)]
        record(session, actor, "invite", study, {"annotators": [i.pseudonym for i in made], "days": days})
    return made


def new_annotator(
    session: Session, study: StudyRow, days: float = DAYS, *, note: str = "", entry: str = INVITED
) -> tuple[Annotator, str, str]:
    """An annotator, the pseudonym that nobody else has, and the token of the link."""
    pseudonym = _new_pseudonym(session, study)
    quota = study.plan.get("per_annotator")
    annotator = Annotator(
        study_id=study.id, pseudonym=pseudonym, note=note, entry=entry, quota=quota, created=time.time()
    )
    session.add(annotator)
    session.flush()
    return annotator, pseudonym, make_link(session, ANNOTATOR, pseudonym, study=study, annotator=annotator, days=days)


def reissue(db: Database, name: str, pseudonym: str, *, days: float = DAYS, actor: str = "cli") -> Invitation:
    """A new link for an annotator who lost theirs; the old one and its visits end."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded or annotator.withdrawn:
            raise UsageError(f"{pseudonym} no longer takes part", where=name)
        token = make_link(session, ANNOTATOR, pseudonym, study=study, annotator=annotator, days=days)
        record(session, actor, "reissue link", study, {"annotator": pseudonym})
    return Invitation(pseudonym, token)


def end_links(session: Session, annotator: Annotator) -> None:
    """End every link of an annotator."""
    for link in session.scalars(select(Link).where(Link.annotator_id == annotator.id)):
        _end(session, link)


def annotator_named(session: Session, study: StudyRow, pseudonym: str) -> Annotator:
    """An annotator of a study; an error that lists the names where there is none."""
    own = select(Annotator).where(Annotator.study_id == study.id)
    annotator = session.scalar(own.where(Annotator.pseudonym == pseudonym))
    if annotator is None:
        raise unknown("annotator", pseudonym, [a.pseudonym for a in session.scalars(own)], where=study.name)
    return annotator


def _new_pseudonym(session: Session, study: StudyRow) -> str:
    taken = set(session.scalars(select(Annotator.pseudonym).where(Annotator.study_id == study.id)))
    for _ in range(64):
        name = f"{secrets.choice(COLOURS.split())}-{secrets.choice(BIRDS.split())}"
        if len(taken) > 300:  # names run out: the more there are, the longer they get
            name = f"{name}-{secrets.randbelow(10_000)}"
        if name not in taken:
            return name
    raise UsageError("no pseudonym is left", where=study.name)


# -- who is calling ----------------------------------------------------------------------------------------------------


def link_of(session: Session, token: str) -> Visitor | None:
    """Return whose link this is; None if it has ended."""
    return _visitor(session, select(Link).where(Link.token_hash == hashed(token)))


def visitor(session: Session, cookie: str) -> Visitor | None:
    """Return whose browser this is; None if its time is over or its link has ended."""
    here = select(Link).join(Visit, Visit.link_id == Link.id)
    return _visitor(session, here.where(Visit.token_hash == hashed(cookie), Visit.expires > time.time()))


def visitor_named(session: Session, name: str) -> Visitor | None:
    """The owner or adjudicator whom an identity proxy names."""
    return _visitor(session, _OWNERS.where(Link.name == name))


def _visitor(session: Session, wanted: Select[Link]) -> Visitor | None:
    lasting = wanted.where(Link.revoked.is_(None), Link.expires > time.time())
    link = session.scalars(lasting.order_by(Link.kind.desc(), Link.id.desc())).first()
    if link is None:
        return None
    if link.annotator_id is None:
        return Visitor(link)
    mine, shared = select(Annotator).where(Annotator.id == link.annotator_id), select(StudyRow)
    if isinstance(session, GuardedSession):
        # Two tabs of one annotator come one after the other; the study stays in its state until the end.
        mine, shared = mine.with_for_update(), shared.with_for_update(read=True)
    annotator = session.scalars(mine).one()
    if annotator.excluded or annotator.withdrawn:
        return None
    return Participant(link, annotator, session.scalars(shared.where(StudyRow.id == annotator.study_id)).one())


def open_visit(session: Session, link: Link) -> str:
    """Let a browser in; the token of its cookie. Visits that are over are removed on the way."""
    token, now = secrets.token_urlsafe(32), time.time()
    session.execute(delete(Visit).where(Visit.expires < now))
    session.add(Visit(token_hash=hashed(token), link_id=link.id, expires=min(link.expires, now + LASTS[link.kind])))
    session.flush()
    return token


def end_visit(db: Database, cookie: str) -> None:
    """End the visit of a browser."""
    with db.write() as session:
        session.execute(delete(Visit).where(Visit.token_hash == hashed(cookie)))


# -- where the server is -----------------------------------------------------------------------------------------------


def remember_address(db: Database, url: str) -> None:
    """Keep the address under which the server is reached, for links that are made on the command line."""
    with db.write() as session:
        if served_at(session) != url:
            record(session, "server", "serve", None, {"url": url})


def served_at(session: Session) -> str:
    """Return the address under which the server was last started."""
    last = select(Event.detail).where(Event.what == "serve", Event.study_id.is_(None)).order_by(Event.id.desc())
    detail = session.scalar(last.limit(1))
    return str(detail["url"]) if detail else "http://127.0.0.1:8765"
