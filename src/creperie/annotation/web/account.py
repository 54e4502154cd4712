"""An account's own page: change the password, use a second factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import select

from creperie.annotation.access import LONGEST_PASSWORD, change_password, end_sessions, recent, set_second_factor
from creperie.annotation.schema import Login
from creperie.annotation.totp import address_of, is_code, new_secret
from creperie.annotation.web.site import ReaderHere, SiteHere, Text, check_csrf, client_address, page, to
from creperie.core import CreperieError

router = APIRouter(default_response_class=HTMLResponse)

Csrf = Annotated[str, Form(max_length=200)]
Password = Annotated[Text, Form(max_length=LONGEST_PASSWORD)]
_FORM: dict[int | str, dict[str, Any]] = {303: {}, 400: {}, 401: {}, 403: {}, 408: {}, 413: {}, 429: {}, 503: {}}


@router.get("/account", responses={400: {}, 401: {}, 503: {}})
def account_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    return _account_page(request, site, who)


def _account_page(request: Request, site: SiteHere, who: ReaderHere, problem: str = "", secret: str = "") -> Response:
    assert who.owner is not None
    secret = secret or new_secret()
    uri = address_of(secret, who.owner.name)
    values = {"who": who.owner, "problem": problem, "secret": secret, "uri": uri, "used": who.owner.totp is not None}
    with site.db.read() as session:
        logins = session.scalars(select(Login).where(Login.owner_id == who.owner.id).order_by(Login.id.desc())).all()
    values |= {"events": recent(site.db, who.owner.name), "logins": logins, "here": who.login}
    return page(request, "account.html", 400 if problem else 200, **values)


def _after(
    request: Request, site: SiteHere, who: ReaderHere, place: str, change: Callable[..., None], *about: str | None
) -> Response:
    """Change something of the account, which asks for its password, and go on; or say why not."""
    assert who.owner is not None
    try:
        change(site.db, who.owner.name, *about, client_address(request))
    except CreperieError as e:  # a secret that stands in somebody's app already stays the same
        return _account_page(request, site, who, str(e), (about[-1] or "") if change is set_second_factor else "")
    return to(place)


@router.post("/account/password", responses=_FORM)
def new_password(
    request: Request, site: SiteHere, who: ReaderHere, old: Password, new: Password, csrf: Csrf = ""
) -> Response:
    """Change the password; all sessions of the account end."""
    check_csrf(request, csrf)
    return _after(request, site, who, "/owner/login", change_password, old, new)


@router.post("/account/sessions", responses=_FORM)
def log_out_everywhere(
    request: Request, site: SiteHere, who: ReaderHere, password: Password, csrf: Csrf = ""
) -> Response:
    """End all sessions of the account, this one too."""
    check_csrf(request, csrf)
    return _after(request, site, who, "/owner/login", end_sessions, password)


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
    if secret and (len(secret) != 32 or not is_code(secret, code)):
        return _account_page(request, site, who, "the code is wrong: is the clock of your phone right?", secret)
    return _after(request, site, who, "/owner/account", set_second_factor, password, secret or None)
