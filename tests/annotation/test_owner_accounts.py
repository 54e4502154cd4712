"""An owner's account: another password, a second factor, sessions, notices."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from tests.annotation.conftest import PASSWORD

from creperie.annotation.access import hash_password, is_password
from creperie.annotation.schema import Event, Owner
from creperie.annotation.totp import code_at
from creperie.annotation.web.site import Site


def test_a_password_is_changed_by_its_owner(browser: Callable[..., Any], site: Site) -> None:
    who = browser().log_in()
    who.get("/owner/account")
    assert who.post("/owner/account/password", {"old": "wrong wrong", "new": "another one, long"}).status_code == 400
    assert who.post("/owner/account/password", {"old": PASSWORD, "new": "short"}).status_code == 400
    assert who.post("/owner/account/password", {"old": PASSWORD, "new": "another one, long"}).status_code == 303
    assert who.get("/owner", accept="application/json").status_code == 401
    assert browser().log_in(password="another one, long").get("/owner").status_code == 200


def test_a_second_factor_is_asked_for_once_it_is_set(browser: Callable[..., Any], site: Site) -> None:
    who = browser().log_in()
    found = re.search(r'name="secret" value="([A-Z2-7]{32})"', who.get("/owner/account").text)
    assert found is not None
    form = {"secret": found[1], "password": PASSWORD}
    assert who.post("/owner/account/second-factor", {**form, "code": "000000x"}).status_code == 400
    good = code_at(found[1], time.time())
    assert who.post("/owner/account/second-factor", {**form, "code": good}).status_code == 303
    other = browser()
    other.get("/owner/login")
    login = {"name": "ana", "password": PASSWORD}
    assert other.post("/owner/login", login).status_code == 403
    assert other.post("/owner/login", {**login, "code": code_at(found[1], time.time() - 3600)}).status_code == 403
    good = code_at(found[1], time.time())
    assert other.post("/owner/login", {**login, "code": good}).status_code == 303
    another = browser()
    another.get("/owner/login")
    assert another.post("/owner/login", {**login, "code": good}).status_code == 403  # read over somebody's shoulder
    assert another.post("/owner/login", {**login, "code": code_at(found[1], time.time() + 30)}).status_code == 303
    with site.db.read() as session:
        told = session.scalars(select(Event.detail).where(Event.what == "log in refused")).all()
    assert len(told) == 3
    assert good not in str(told)
    assert PASSWORD not in str(told)


@pytest.mark.parametrize(
    "password", ["elevenchars", "Password2024!", "P@$$w0rd-2024", "qwertyuiop[]", "123456789012", "ana-ana-ana-ana"]
)
def test_passwords_that_are_tried_first_are_refused(browser: Callable[..., Any], site: Site, password: str) -> None:
    who = browser().log_in()
    reply = who.post("/owner/account/password", {"old": PASSWORD, "new": password})
    assert reply.status_code == 400
    assert "easily guessed" in reply.text or "12 to 128" in reply.text


def test_passwords_cost_what_level_two_asks_for_and_older_hashes_still_open() -> None:
    stored = hash_password("bold otter walks")
    assert stored.startswith("scrypt$65536$")
    assert is_password("bold otter walks", stored)
    old = (
        "scrypt$MDAwMDAwMDAwMDAwMDAwMA==$"
        + base64.b64encode(hashlib.scrypt(b"bold otter walks", salt=b"0" * 16, n=2**14, r=8, p=1, dklen=32)).decode()
    )
    assert is_password("bold otter walks", old)
    assert not is_password("bold otter runs", old)


def test_an_account_is_told_of_changes_at_the_next_login_and_can_end_all_its_sessions(
    browser: Callable[..., Any], site: Site
) -> None:
    def enter(password: str) -> tuple[Any, str]:
        who = browser()
        who.get("/owner/login")
        place = who.post("/owner/login", {"name": "ana", "password": password}).headers["location"]
        who.get("/owner")  # for the token of its forms
        return who, place

    assert enter(PASSWORD)[1] == "/owner"  # the first time there is nothing to tell
    who, place = enter(PASSWORD)
    assert place == "/owner"
    who.post("/owner/account/password", {"old": PASSWORD, "new": "another one, long"})
    who, place = enter("another one, long")
    assert place == "/owner/account"
    other, place = enter("another one, long")
    assert place == "/owner"  # told once
    page = other.get(place + "/account").text
    assert "password or role was set" in page
    assert page.count("logged in") == 4
    assert page.count("<li>") == 2 + 6  # two sessions; four logins and two passwords
    assert other.post("/owner/account/sessions", {"password": "not the one it is"}).status_code == 400
    assert other.post("/owner/account/sessions", {"password": "another one, long"}).status_code == 303
    assert [w.get("/owner", accept="application/json").status_code for w in (who, other)] == [401, 401]


def test_a_password_that_has_become_known_is_noticed_when_it_is_used(browser: Callable[..., Any], site: Site) -> None:
    browser().log_in()
    with site.db.write() as session:
        session.scalars(select(Owner).where(Owner.name == "ana")).one().password = hash_password("sonyericsson")
    who = browser()
    who.get("/owner/login")
    reply = who.post("/owner/login", {"name": "ana", "password": "sonyericsson"})
    assert reply.headers["location"] == "/owner/account"
    assert "this password is easily guessed: change it" in who.get("/owner/account").text
