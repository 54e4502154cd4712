"""Who may enter: owners with a password, annotators with an invitation; sessions, and a limit on guessing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sqlalchemy import Select, bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.desk import is_welcome
from creperie.annotation.invitations import hashed
from creperie.annotation.schema import (
    MEMBER,
    OWNER,
    REVIEWER,
    VIEWER,
    Annotator,
    Attempt,
    Event,
    Login,
    Owner,
    StudyRole,
    StudyRow,
)
from creperie.annotation.study import NAME, record, study_named
from creperie.annotation.totp import is_code
from creperie.core import CreperieError, UsageError, unknown

ROLES = (OWNER, REVIEWER, VIEWER, MEMBER)
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 128
#: An owner's session ends after half an hour without a request, and after twelve hours in any case.
OWNER_IDLE, OWNER_SESSION, ANNOTATOR_SESSION = 1800.0, 12 * 3600.0, 14 * 86400.0
#: Failed attempts that are allowed within the window: for one name from one address, from one address in all, and
#: for one name from everywhere, so that many addresses cannot guess together.
WINDOW, TRIES_PER_NAME, TRIES_PER_ADDRESS, TRIES_PER_ACCOUNT = 900.0, 8, 40, 24
_COST = {"n": 2**16, "r": 8, "p": 1, "dklen": 32, "maxmem": 2**27}
_ONE_AT_A_TIME = threading.Lock()  # a password takes 64 MB to check


class DeniedError(CreperieError):
    """Not let in."""


class TooManyError(DeniedError):
    """Not let in, because of too many attempts."""


@dataclass(frozen=True)
class Visitor:
    """Whose session it is: exactly one of the two is there."""

    owner: Owner | None = None
    annotator: Annotator | None = None
    study: StudyRow | None = None
    login: Login | None = None


# -- passwords -------------------------------------------------------------------------------------------------------


def hash_password(password: str) -> str:
    salt = secrets.token_bytes(16)
    key = _scrypt(password, salt, _COST["n"])
    return f"scrypt${_COST['n']}${base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"


def _scrypt(password: str, salt: bytes, cost: int) -> bytes:
    with _ONE_AT_A_TIME:
        return hashlib.scrypt(password.encode(), salt=salt, **{**_COST, "n": cost})


def is_password(password: str, stored: str) -> bool:
    """Whether a password is the stored one.

    >>> is_password("correct horse", hash_password("correct horse")), is_password("wrong", hash_password("right"))
    (True, False)
    """
    *cost, salt, key = stored.removeprefix("scrypt$").split("$")
    given = _scrypt(password, base64.b64decode(salt), int(cost[0]) if cost else 2**14)  # before it was written down
    return hmac.compare_digest(given, base64.b64decode(key))


def is_common(password: str) -> bool:
    """Whether a password is a common one (passwords.txt), also with digits or signs added.

    >>> [is_common(p) for p in ("P@ssw0rd2024!", "123456789012", "letmein-letmein", "aaaaaaaaab", "bold otter walks")]
    [True, True, True, True, False]
    """
    text = (resources.files("creperie.annotation") / "passwords.txt").read_text(encoding="utf-8")
    known, given = set(text.split()), password.casefold()
    plain = re.sub("^[^a-z@$]+|[^a-z]+$", "", given).translate(str.maketrans("013457@$", "oleastas"))
    bare = re.sub("[^a-z]", "", plain)
    halves = [bare[:n] for n in range(4, len(bare) + 1) if bare[:n] * (len(bare) // n) == bare]
    return len(set(given)) < 5 or not known.isdisjoint((given, *halves))


#: Compared with where the name is unknown, so that the time taken does not tell.
_NOBODY = f"scrypt${_COST['n']}${base64.b64encode(b'0' * 16).decode()}${base64.b64encode(b'0' * 32).decode()}"


def set_owner(db: Database, name: str, password: str, role: str = OWNER, actor: str = "cli") -> None:
    """Add an owner or reviewer, or give one a new password; open sessions of theirs end."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!r} is not a valid name", hint="use up to 48 lowercase letters, digits, dots, dashes"
        )
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise UsageError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    if is_common(password) or is_common(password.casefold().replace(name, "")):
        raise UsageError("this password is easily guessed", hint="take several words that do not belong together")
    if role not in ROLES:
        raise unknown("role", role, ROLES)
    stored = hash_password(password)
    with db.write() as session:
        owner = session.scalar(select(Owner).where(Owner.name == name))
        if owner is None:
            session.add(Owner(name=name, password=stored, role=role, created=time.time()))
        else:
            owner.password, owner.role = stored, role
            session.execute(delete(Login).where(Login.owner_id == owner.id))
        record(session, actor, "set owner", None, {"owner": name, "role": role})


def role_in(session: Session, who: Visitor, study_id: int) -> str:
    """What an account may do in a study: its role there, or else that of the account; empty for nothing."""
    if who.owner is None:
        return ""
    own = select(StudyRole.role).where(StudyRole.owner_id == who.owner.id, StudyRole.study_id == study_id)
    return session.scalar(own) or ("" if who.owner.role == MEMBER else who.owner.role)


def give_role(db: Database, study: str, name: str, role: str, actor: str = "cli") -> None:
    """Let an account do something in one study: owner, reviewer, viewer; an empty role takes it away."""
    if role not in (OWNER, REVIEWER, VIEWER, ""):
        raise unknown("role", role, (OWNER, REVIEWER, VIEWER))
    with db.write() as session:
        stored = study_named(session, study)
        owner = session.scalar(select(Owner).where(Owner.name == name))
        if owner is None:
            raise unknown("account", name, session.scalars(select(Owner.name)).all())
        session.execute(delete(StudyRole).where(StudyRole.owner_id == owner.id, StudyRole.study_id == stored.id))
        if role:
            session.add(StudyRole(owner_id=owner.id, study_id=stored.id, role=role))
        record(session, actor, "give role", stored, {"account": name, "role": role})


# -- entering --------------------------------------------------------------------------------------------------------


def enter_as_owner(db: Database, name: str, password: str, address: str, code: str = "") -> str:
    """The cookie of a new session; DeniedError where name, password or code is wrong, or the code was used before."""
    owner, mine = _known(db, name, password, address)
    if owner.totp is not None and not (is_code(owner.totp, code) and _first_use(db, owner, code.strip())):
        raise _refused(db, name, address, "the code of your authenticator app is missing, wrong or was used before")
    with db.write() as session:
        session.execute(delete(Attempt).where(Attempt.who.in_(mine)))
        if is_common(password):  # chosen before it became one
            record(session, f"owner:{owner.name}", "easily guessed", None, {})
        record(session, f"owner:{owner.name}", "log in", None, {})
        return open_session(session, OWNER_IDLE, owner_id=owner.id)


def _first_use(db: Database, owner: Owner, code: str) -> bool:
    """Whether a one-time code comes for the first time; from now on it was used."""
    used = f"code:{hashed(f'{owner.name}/{code}')[:24]}"
    with db.write() as session:
        session.get_one(Owner, owner.id, with_for_update=True)  # two at once come one after the other
        before = session.scalar(select(Attempt.id).where(Attempt.who == used))
        session.add(Attempt(who=used, at=time.time()))
    return before is None


def _known(db: Database, name: str, password: str, address: str) -> tuple[Owner, list[str]]:
    """The account of a name and password, and the attempts that were counted."""
    mine = count_attempt(db, "owner", name, address)
    with db.read() as session:
        owner = session.scalar(select(Owner).where(Owner.name == name)) if NAME.fullmatch(name) else None
    short = len(password) <= LONGEST_PASSWORD
    if not is_password(password if short else "", owner.password if owner else _NOBODY) or owner is None or not short:
        raise _refused(db, name, address, "name or password is wrong")
    return owner, mine


def _refused(db: Database, name: str, address: str, why: str) -> DeniedError:
    """Put down that somebody was not let in; how often that can happen is limited."""
    with db.write() as session:
        about = {"account": name[:64], "from": hashed(address)[:12], "why": why}
        record(session, "nobody", "log in refused", None, about)
    return DeniedError(why)


def recent(db: Database, name: str, most: int = 20) -> list[Event]:
    """What happened to an account lately, the last first: who was let in or refused, what was changed."""
    with db.read() as session:
        last = session.scalars(select(Event).where(Event.study_id.is_(None)).order_by(Event.id.desc()).limit(500)).all()
    return [e for e in last if name in (e.actor[6:], e.detail.get("account"), e.detail.get("owner"))][:most]


def has_news(events: Sequence[Event]) -> bool:
    """Whether something else lies between the last two times somebody was let in."""
    times = [n for n, event in enumerate(events) if event.what == "log in"]
    return len(times) > 1 and times[1] - times[0] > 1


def change_password(db: Database, name: str, old: str, new: str, address: str) -> None:
    """Give an account a new password; open sessions of it end."""
    owner, _ = _known(db, name, old, address)
    set_owner(db, name, new, owner.role, f"owner:{name}")


def set_second_factor(db: Database, name: str, password: str, secret: str | None, address: str) -> None:
    """Ask an account for one-time codes from now on, or no longer."""
    owner, mine = _known(db, name, password, address)
    with db.write() as session:
        session.get_one(Owner, owner.id).totp = secret
        session.execute(delete(Attempt).where(Attempt.who.in_(mine)))
        record(session, f"owner:{name}", "second factor on" if secret else "second factor off", None, {})


def end_sessions(db: Database, name: str, password: str, address: str) -> None:
    """Log an account out everywhere."""
    owner, _ = _known(db, name, password, address)
    with db.write() as session:
        session.execute(delete(Login).where(Login.owner_id == owner.id))


def count_attempt(db: Database, door: str, name: str, address: str) -> list[str]:
    """Count an attempt before it is judged, so that many at once count too; TooManyError past the limit."""
    now = time.time()
    by_address = f"{door}:{hashed(address)[:24]}"
    by_name = f"{door}:{hashed(f'{address}/{name}')[:24]}"
    by_account = f"{door}:{hashed(f'account/{name}')[:24]}"
    limits = {by_name: TRIES_PER_NAME, by_address: TRIES_PER_ADDRESS}
    limits |= {by_account: TRIES_PER_ACCOUNT} if name else {}
    with db.write() as session:
        session.execute(delete(Attempt).where(Attempt.at < now - WINDOW))
        for who, limit in limits.items():
            tried = session.scalar(select(func.count()).select_from(Attempt).where(Attempt.who == who))
            if int(tried or 0) >= limit:
                raise TooManyError("too many attempts; wait a quarter of an hour")
        session.add_all([Attempt(who=who, at=now) for who in limits])
    return list(limits)


def open_session(session: Session, lasts: float, owner_id: int | None = None, annotator_id: int | None = None) -> str:
    token, now = secrets.token_urlsafe(32), time.time()
    session.execute(delete(Login).where(Login.expires < now))
    session.add(
        Login(token_hash=hashed(token), owner_id=owner_id, annotator_id=annotator_id, created=now, expires=now + lasts)
    )
    return token


@cache
def _whose() -> Select[Login, Owner, Annotator, StudyRow]:
    """Parameters: token_hash, now."""
    return (
        select(Login, Owner, Annotator, StudyRow)
        .outerjoin(Owner, Owner.id == Login.owner_id)
        .outerjoin(Annotator, Annotator.id == Login.annotator_id)
        .outerjoin(StudyRow, StudyRow.id == Annotator.study_id)
        .where(Login.token_hash == bindparam("token_hash"), Login.expires > bindparam("now"))
    )


def visitor(session: Session, token: str) -> Visitor | None:
    """Whose session a cookie is; None where it is nobody's, or the invitation behind it has ended."""
    now = time.time()
    row = session.execute(_whose(), {"token_hash": hashed(token), "now": now}).first()
    if row is None:
        return None
    owner: Owner | None = row[1]
    annotator: Annotator | None = row[2]
    study: StudyRow | None = row[3]
    if annotator is not None and not is_welcome(annotator, now):
        return None
    return Visitor(owner, annotator, study, row[0])


def stay(db: Database, login: Login | None) -> None:
    """Restart the idle time of a session that is in use; written at most once per minute."""
    until = min(time.time() + OWNER_IDLE, login.created + OWNER_SESSION) if login else 0.0
    if login and until > login.expires + 60:
        with db.write() as session:
            session.execute(update(Login).where(Login.id == login.id).values(expires=until))


def leave(db: Database, token: str) -> None:
    """End a session."""
    with db.write() as session:
        session.execute(delete(Login).where(Login.token_hash == hashed(token)))


def csrf_token(secret: str) -> str:
    """What a form must carry, besides the cookie that other sites cannot read."""
    return hmac.new(secret.encode(), b"creperie form", hashlib.sha256).hexdigest()
