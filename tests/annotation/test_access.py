"""Sessions end, guessing is limited, and comments are part of the chain."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from creperie.annotation import access
from creperie.annotation.access import (
    OWNER_IDLE,
    OWNER_SESSION,
    TRIES_PER_ADDRESS,
    DeniedError,
    TooManyError,
    count_attempt,
    enter_as_owner,
    set_owner,
    visitor,
)
from creperie.annotation.chain import _content, read_checkpoint, seal, sign
from creperie.annotation.database import Database, open_database
from creperie.annotation.schema import Answer, Event, Login, Owner
from creperie.annotation.study import StudyPlan, store_study, study_named
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark
from creperie.core import DataError, UnknownNameError

PASSWORD = "a long enough password"


@pytest.fixture
def accounts(tmp_path: Path) -> Database:
    db = open_database(tmp_path / "people.db")
    set_owner(db, "ada", PASSWORD)
    return db


def test_a_session_ends_at_its_hour(accounts: Database) -> None:
    cookie = enter_as_owner(accounts, "ada", PASSWORD, "10.0.0.1")
    with accounts.read() as session:
        known = visitor(session, cookie)
        assert known is not None
        assert known.owner is not None
    with accounts.write() as session:
        session.execute(update(Login).values(expires=time.time() - 1))
    with accounts.read() as session:
        assert visitor(session, cookie) is None


def test_a_session_ends_when_nobody_is_at_work(site: Site, browser: Callable[..., Any]) -> None:
    who = browser().log_in()

    def left() -> float:
        with site.db.read() as session:
            return (session.scalar(select(Login.expires)) or 0.0) - time.time()

    def wait(seconds: float) -> None:
        with site.db.write() as session:
            passed = {"created": Login.created - seconds, "expires": Login.expires - seconds}
            session.execute(update(Login).values(**passed))

    assert OWNER_IDLE - 10 < left() <= OWNER_IDLE
    wait(OWNER_IDLE - 300)
    who.get("/owner/studies/s/progress.json", accept="application/json")  # what an open page does by itself
    assert left() < 310
    wait(310)
    assert who.get("/owner", accept="application/json").status_code == 401
    who.log_in()
    for _ in range(int(OWNER_SESSION / 900) - 1):  # somebody at work, a quarter of an hour between two pages
        wait(900)
        assert who.get("/owner", accept="application/json").status_code == 200
    wait(901)
    assert who.get("/owner", accept="application/json").status_code == 401  # twelve hours, in any case


def test_checkpoints_of_the_key_before_still_verify(accounts: Database, tmp_path: Path) -> None:
    document = {"annotators": {}, "events": {}, "questions": ""}
    old, file = sign(document, accounts), tmp_path / "people.db.key"
    file.write_text("ab" * 32 + "\n" + file.read_text())
    new = sign(document, accounts)
    assert new != old
    for signed in (old, new):
        (tmp_path / "checkpoint.json").write_text(json.dumps(signed))
        assert read_checkpoint(tmp_path / "checkpoint.json", accounts) == document
    file.write_text("ab" * 32)
    (tmp_path / "checkpoint.json").write_text(json.dumps(old))
    with pytest.raises(DataError, match="signature"):
        read_checkpoint(tmp_path / "checkpoint.json", accounts)


def test_an_address_that_tries_many_names_is_stopped(accounts: Database) -> None:
    """Few tries per name, each under its limit, but too many from one address."""
    for n in range(TRIES_PER_ADDRESS):
        with pytest.raises(DeniedError, match="wrong"):
            enter_as_owner(accounts, f"name{n // 4}", "wrong password", "10.0.0.1")
    with pytest.raises(TooManyError):
        enter_as_owner(accounts, "ada", PASSWORD, "10.0.0.1")
    assert enter_as_owner(accounts, "ada", PASSWORD, "10.0.0.2")


@pytest.mark.parametrize(
    ("limit", "who"),
    [
        (8, lambda n: ("ada", "10.0.0.1")),  # one name from one address
        (40, lambda n: (f"name{n}", "10.0.0.1")),  # one address, whatever the name
        (24, lambda n: ("ada", f"10.0.0.{n}")),  # one name, whatever the address
    ],
)
def test_guessing_ends_at_the_published_limits(
    accounts: Database, limit: int, who: Callable[[int], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(limit):
        assert count_attempt(accounts, "owner", *who(n))
    with pytest.raises(TooManyError):
        count_attempt(accounts, "owner", *who(limit))
    later = time.time() + 899  # still within a quarter of an hour
    monkeypatch.setattr(access.time, "time", lambda: later)
    with pytest.raises(TooManyError):
        count_attempt(accounts, "owner", *who(limit))
    monkeypatch.setattr(access.time, "time", lambda: later + 2)
    assert count_attempt(accounts, "owner", *who(limit))


def test_a_role_is_given_and_taken_for_one_account_in_one_study(accounts: Database, bench: Benchmark) -> None:
    plan = StudyPlan("foil-check", subsets=("pair",), practice=0)
    for name in ("first", "second"):
        store_study(accounts, name, bench, plan)
    for name in ("bob", "eve"):
        set_owner(accounts, name, PASSWORD, "member")
        for study in ("first", "second"):
            access.give_role(accounts, study, name, "reviewer")
    access.give_role(accounts, "first", "eve", "viewer")
    access.give_role(accounts, "second", "bob", "")

    def roles(name: str) -> list[str]:
        with accounts.read() as session:
            who = access.Visitor(owner=session.scalar(select(Owner).where(Owner.name == name)))
            return [access.role_in(session, who, study_named(session, study).id) for study in ("first", "second")]

    assert {name: roles(name) for name in ("ada", "bob", "eve")} == {
        "ada": ["owner", "owner"],
        "bob": ["reviewer", ""],
        "eve": ["viewer", "reviewer"],
    }
    with pytest.raises(UnknownNameError, match="account"):
        access.give_role(accounts, "first", "mallory", "owner")
    with pytest.raises(UnknownNameError, match="role"):
        access.give_role(accounts, "first", "eve", "king")


def test_the_idle_time_is_written_once_per_minute(accounts: Database) -> None:
    cookie = enter_as_owner(accounts, "ada", PASSWORD, "10.0.0.1")

    def expires() -> float:
        with accounts.read() as session:
            return session.scalar(select(Login.expires)) or 0.0

    def visit() -> None:
        with accounts.read() as session:
            known = visitor(session, cookie)
        access.stay(accounts, known.login if known else None)

    for passed, extended in ((50, False), (20, True)):
        with accounts.write() as session:
            session.execute(update(Login).values(created=Login.created - passed, expires=Login.expires - passed))
        before = expires()
        visit()
        assert (expires() > before) is extended
    access.stay(accounts, None)  # nobody's session: nothing to extend


def test_news_are_what_lies_between_the_last_two_log_ins() -> None:
    def news(*what: str) -> bool:
        return access.has_news([Event(what=one) for one in what])

    assert news("log in", "log in refused", "log in")
    assert not news("log in", "log in", "second factor on")
    assert not news("second factor on", "log in", "log in")
    assert not news("log in", "log in refused")


def test_sizes_that_the_documentation_promises() -> None:
    """docs/security.md names them; a slip of a digit must not go unnoticed."""
    assert (access.SHORTEST_PASSWORD, access.LONGEST_PASSWORD) == (12, 128)
    assert access.is_common("user-user-user1")  # four letters, again and again
    assert (OWNER_IDLE, OWNER_SESSION, access.ANNOTATOR_SESSION) == (30 * 60, 12 * 60 * 60, 14 * 24 * 60 * 60)
    name, cost, salt, key = access.hash_password(PASSWORD).split("$")
    raw = hashlib.scrypt(PASSWORD.encode(), salt=base64.b64decode(salt), n=65536, r=8, p=1, dklen=32, maxmem=2**27)
    assert (name, cost, len(base64.b64decode(salt)), base64.b64decode(key)) == ("scrypt", "65536", 16, raw)


def test_a_hash_without_its_cost_is_read_with_the_cost_of_then() -> None:
    raw = hashlib.scrypt(b"of old", salt=b"s" * 16, n=16384, r=8, p=1, dklen=32, maxmem=2**27)
    stored = f"scrypt${base64.b64encode(b's' * 16).decode()}${base64.b64encode(raw).decode()}"
    assert access.is_password("of old", stored)
    assert not access.is_password("of new", stored)


@pytest.mark.parametrize(
    ("field", "value"), [("comment", "changed"), ("seconds", 99.0), ("value", {"verdict": "false"})]
)
def test_everything_an_answer_says_is_sealed(field: str, value: object) -> None:
    def answer() -> Answer:
        row = Answer(study_id=1, question_id=2, slot_id=3, annotator_id=4, turn=1, kind="answer", key="k", at=5.0)
        row.value, row.comment, row.seconds, row.salt = {"verdict": "true"}, "as given", 1.5, "salt"
        row.content = _content(row)
        return row

    before, after = answer(), answer()
    setattr(after, field, value)
    after.content = _content(after)
    assert seal("start", before) != seal("start", after)
