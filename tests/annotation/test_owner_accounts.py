"""An owner's account: another password, a second factor."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from tests.annotation.conftest import PASSWORD

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
    assert other.post("/owner/login", {**login, "code": code_at(found[1], time.time())}).status_code == 303
