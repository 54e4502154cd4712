"""Sessions end, guessing is limited, and comments are part of the chain."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import update

from creperie.annotation.access import (
    TRIES_PER_ADDRESS,
    DeniedError,
    TooManyError,
    enter_as_owner,
    set_owner,
    visitor,
)
from creperie.annotation.chain import _content, seal
from creperie.annotation.database import Database, open_database
from creperie.annotation.schema import Answer, Login

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
