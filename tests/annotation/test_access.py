"""Sessions end, guessing is limited, and comments are part of the chain."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from creperie.annotation.access import (
    OWNER_IDLE,
    OWNER_SESSION,
    TRIES_PER_ADDRESS,
    DeniedError,
    TooManyError,
    enter_as_owner,
    set_owner,
    visitor,
)
from creperie.annotation.chain import _content, seal
from creperie.annotation.checkpoint import read_checkpoint, sign
from creperie.annotation.database import Database, open_database
from creperie.annotation.schema import Answer, Login
from creperie.annotation.web.site import Site
from creperie.core import DataError

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
