"""What the routes share: the database, the pictures, the templates, who is calling, and what they may do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from time import gmtime, strftime
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from markupsafe import Markup
from pydantic import AfterValidator
from sqlalchemy import select
from starlette.responses import Response

from creperie.annotation.database import Database
from creperie.annotation.links import Participant, Visitor, csrf_token, is_csrf_token, visitor, visitor_named
from creperie.annotation.schema import ADJUDICATOR, OWNER, StudyRow
from creperie.annotation.tasks.form import is_storable
from creperie.annotation.web.pictures import StudyPictures

#: Annotators and owners have cookies of their own: an owner who opens an invitation stays an owner.
SESSION, OWNED, FORM = "creperie_session", "creperie_owner", "creperie_form"


@dataclass(frozen=True)
class Site:
    """What a server serves. `secure` says that people reach it over TLS."""

    db: Database
    secure: bool = False
    url: str = ""
    trusted_header: str = ""  #: in which an identity proxy names who is calling; the server removes it from strangers
    pictures: StudyPictures = field(default_factory=StudyPictures)
    #: counts attempts by address of the network, in memory
    limiter: MovingWindowRateLimiter = field(default_factory=lambda: MovingWindowRateLimiter(MemoryStorage()))
    shown_links: dict[str, Any] = field(default_factory=dict)  #: new links by form, so that a reload shows them again


async def site_of(request: Request) -> Site:  # as a coroutine it needs no thread of its own
    site: Site = request.app.state.site
    return site


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("holds characters that are not text")
    return text


Text = Annotated[str, AfterValidator(_storable)]
SiteHere = Annotated[Site, Depends(site_of)]
Name = Annotated[str, PathParameter(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]


# -- pages -------------------------------------------------------------------------------------------------------------


@cache
def templates() -> Environment:
    """The templates. Captions and comments are data, never markup."""
    loader = PackageLoader("creperie.annotation", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals |= {"prose": prose, "when": _when}
    return made


def prose(text: str) -> Markup:
    """Markdown as HTML: no markup of its own, no pictures, no scripts in links.

    >>> prose("**Look** <b>well</b>")
    Markup('<p><strong>Look</strong> &lt;b&gt;well&lt;/b&gt;</p>\\n')
    >>> prose("[x](javascript:alert(1)) ![y](https://elsewhere.example/y.png)")
    Markup('<p>[x](javascript:alert(1)) !<a href="https://elsewhere.example/y.png">y</a></p>\\n')
    """
    from markdown_it import MarkdownIt

    return Markup(MarkdownIt("commonmark", {"html": False}).disable("image").render(text))


def _when(at: float | None) -> str:
    return strftime("%Y-%m-%d %H:%M", gmtime(at)) if at else "–"


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A page whose forms carry a CSRF token."""
    secret = _secret(request) or secrets.token_urlsafe(32)
    response = HTMLResponse(templates().get_template(template).render(csrf=csrf_token(secret), **values), status)
    if not _secret(request):
        set_cookie(response, request, FORM, secret)
    return response


def message(request: Request, title: str, text: str, status: int = 200) -> HTMLResponse:
    """A page that says one thing."""
    return page(request, "message.html", status, title=title, text=text)


def to(place: str) -> RedirectResponse:
    """Redirect to a page after a form was accepted."""
    return RedirectResponse(place, 303)


# -- cookies and forms -------------------------------------------------------------------------------------------------


def set_cookie(response: Response, request: Request, name: str, value: str, seconds: float | None = None) -> None:
    """Set a cookie that scripts and other sites cannot read; with 0 seconds, remove it."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=None if seconds is None else int(seconds),
        httponly=True,
        samesite="strict" if name == FORM else "lax",
        secure=_is_secure(request),
    )


def cookie_name(request: Request, name: str) -> str:
    """Over TLS, the prefix makes browsers refuse the cookie from anywhere but this very host."""
    return f"__Host-{name}" if _is_secure(request) else name


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(cookie_name(request, name), "")


def _is_secure(request: Request) -> bool:
    return request.app.state.site.secure or request.url.scheme == "https"


def _secret(request: Request) -> str:
    """Return what the CSRF token is made from: the cookie of the visit, or one for those who have no visit yet."""
    return cookie(request, OWNED if request.url.path.startswith("/owner") else SESSION) or cookie(request, FORM)


async def posted(request: Request) -> dict[str, str]:
    """The texts of a form."""
    form = await request.form()
    return {key: value for key, value in form.items() if isinstance(value, str)}


Posted = Annotated[dict[str, str], Depends(posted)]


async def check_csrf(request: Request, form: Posted) -> None:
    """Refuse what is posted without the token of one of our own pages, in the form or in a header."""
    given = request.headers.get("x-csrf-token") or form.get("csrf", "")
    if request.method == "POST" and not is_csrf_token(_secret(request), given):
        raise HTTPException(403, "this form is out of date; load the page again")


#: Every route that takes a form or an answer is behind this.
CSRF = [Depends(check_csrf)]


# -- who is calling ----------------------------------------------------------------------------------------------------


def current_visitor(request: Request, area: str) -> Visitor | None:
    """Return who is calling: by the cookie, or, among owners, by the name that the identity proxy gives."""
    site, token = request.app.state.site, cookie(request, area)
    name = request.headers.get(site.trusted_header, "") if site.trusted_header and area == OWNED else ""
    if not token and not name:
        return None
    with site.db.read() as session:
        return visitor_named(session, name) if name else visitor(session, token)


def the_annotator(request: Request) -> Participant:
    """Return the annotator who is calling; everybody else gets 401."""
    who = current_visitor(request, SESSION)
    if not isinstance(who, Participant):
        raise HTTPException(401, "open your invitation link first")
    return who


def the_reader(request: Request) -> Visitor:
    """Return the owner or adjudicator who is calling; everybody else gets 401."""
    who = current_visitor(request, OWNED)
    if who is None or isinstance(who, Participant):
        raise HTTPException(401, "open your owner's link first; `creperie annotate link NAME` makes one")
    return who


def client_address(request: Request) -> str:
    return request.client.host if request.client else ""


def _allowed(kind: str) -> Callable[[Request, str], Visitor]:
    """A dependency: who is calling, if their link allows this in the study that the address names."""

    def check(request: Request, name: Name) -> Visitor:
        who = the_reader(request)
        with request.app.state.site.db.read() as session:
            study = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
        if study is None or not who.may(ADJUDICATOR, study):  # whether it exists is nobody else's business
            raise HTTPException(404, "there is no such study")
        if not who.may(kind, study):
            raise HTTPException(403, "only owners can do this")
        return who

    return check


AnnotatorHere = Annotated[Participant, Depends(the_annotator)]
ReaderHere = Annotated[Visitor, Depends(the_reader)]
AdjudicatorHere = Annotated[Visitor, Depends(_allowed(ADJUDICATOR))]
OwnerHere = Annotated[Visitor, Depends(_allowed(OWNER))]


def static_folder() -> str:
    return str(resources.files("creperie.annotation") / "static")
