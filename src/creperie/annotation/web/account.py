"""An account's own page: change the password, use a second factor."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from creperie.annotation.access import LONGEST_PASSWORD, change_password, set_second_factor
from creperie.annotation.totp import address_of, is_code, new_secret
from creperie.annotation.web.site import ReaderHere, SiteHere, Text, check_csrf, client_address, page, to
from creperie.core import CreperieError

router = APIRouter(default_response_class=HTMLResponse)

Csrf = Annotated[str, Form(max_length=200)]
Password = Annotated[Text, Form(max_length=LONGEST_PASSWORD)]
_FORM: dict[int | str, dict[str, Any]] = {303: {}, 400: {}, 401: {}, 403: {}, 408: {}, 413: {}, 429: {}, 503: {}}


@router.get("/account", responses={400: {}, 401: {}, 503: {}})
def account_page(request: Request, who: ReaderHere) -> Response:
    return _account_page(request, who)


def _account_page(request: Request, who: ReaderHere, problem: str = "", secret: str = "") -> Response:
    assert who.owner is not None
    secret = secret or new_secret()
    uri = address_of(secret, who.owner.name)
    values = {"who": who.owner, "problem": problem, "secret": secret, "uri": uri, "used": who.owner.totp is not None}
    return page(request, "account.html", 400 if problem else 200, **values)


@router.post("/account/password", responses=_FORM)
def new_password(
    request: Request, site: SiteHere, who: ReaderHere, old: Password, new: Password, csrf: Csrf = ""
) -> Response:
    """Change the password; all sessions of the account end."""
    check_csrf(request, csrf)
    assert who.owner is not None
    try:
        change_password(site.db, who.owner.name, old, new, client_address(request))
    except CreperieError as e:
        return _account_page(request, who, str(e))
    return to("/owner/login")


@router.post("/account/second-factor", responses=_FORM)
def second_factor(
    request: Request,
    site: SiteHere,
    who: ReaderHere,
    password: Password,
    secret: Annotated[str, Form(pattern="^[A-Z2-7]{0,64}$")] = "",
    code: Annotated[str, Form(max_length=10)] = "",
    csrf: Csrf = "",
) -> Response:
    """Use a second factor from now on, or, without a secret, no longer."""
    check_csrf(request, csrf)
    assert who.owner is not None
    if secret and (len(secret) != 32 or not is_code(secret, code)):
        return _account_page(request, who, "the code is wrong: is the clock of your phone right?", secret)
    try:
        set_second_factor(site.db, who.owner.name, password, secret or None, client_address(request))
    except CreperieError as e:
        return _account_page(request, who, str(e), secret)
    return to("/owner/account")
