"""What the routes share: the database, the pictures, the templates, and the caller with their rights."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import gmtime, strftime
from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from markupsafe import Markup
from pydantic import AfterValidator
from sqlalchemy import select
from starlette.responses import Response

from creperie.annotation.connections import WELCOME
from creperie.annotation.database import Database
from creperie.annotation.links import Participant, Visitor, csrf_token, visitor, visitor_named
from creperie.annotation.schema import ADJUDICATOR, OWNER, StudyRow
from creperie.annotation.tasks.form import is_storable
from creperie.annotation.web.pictures import StudyPictures
from creperie.core import Json, render

#: Annotators and owners have separate cookies: an owner who opens an invitation stays an owner.
SESSION, OWNED, FORM = "creperie_session", "creperie_owner", "creperie_form"


@dataclass(frozen=True)
class Site:
    """The state of a server. `secure` is True if people reach the server over TLS."""

    db: Database
    secure: bool = False
    url: str = ""
    trusted_header: str = ""  #: the header in which an identity proxy names the caller; removed from all other requests
    pictures: StudyPictures = field(default_factory=StudyPictures)
    #: counts attempts by network address, in memory
    limiter: MovingWindowRateLimiter = field(default_factory=lambda: MovingWindowRateLimiter(MemoryStorage()))
    shown_links: Json = field(default_factory=dict)  #: new links by form, so that a reload shows them again
    inviting: Lock = field(default_factory=Lock)  #: held while `shown_links` is read and written


async def site_of(request: Request) -> Site:  # as a coroutine it needs no thread
    return request.app.state.site


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("contains characters that cannot be stored; paste it again as plain text")
    return text


Text = Annotated[str, AfterValidator(_storable)]
SiteHere = Annotated[Site, Depends(site_of)]
Name = Annotated[str, PathParameter(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]


# -- pages -------------------------------------------------------------------------------------------------------------


def prose(text: str) -> Markup:
    """Return Markdown as HTML. Raw HTML is escaped; pictures and links that run scripts are left as text.

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
    """Return a page whose forms carry a CSRF token."""
    secret = _secret(request) or secrets.token_urlsafe(32)
    values |= {"csrf": csrf_token(secret), "prose": prose, "when": _when}
    response = HTMLResponse(render("annotation", template, **values), status)
    if not _secret(request):
        set_cookie(response, request, FORM, secret)
    return response


def message(request: Request, title: str, text: str, status: int = 200) -> HTMLResponse:
    """Return a page with one message."""
    return page(request, "message.html", status, title=title, text=text)


def redirect(place: str) -> RedirectResponse:
    """Return a redirect to another page, as the response to an accepted form."""
    return RedirectResponse(place, 303)


# -- cookies and forms -------------------------------------------------------------------------------------------------


def set_cookie(response: Response, request: Request, name: str, value: str, seconds: float | None = None) -> None:
    """Set a cookie that scripts and other sites cannot read; a lifetime of 0 `seconds` removes it."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=None if seconds is None else int(seconds),
        httponly=True,
        samesite="strict" if name == FORM else "lax",
        secure=_is_secure(request),
    )


def cookie_name(request: Request, name: str) -> str:
    """Return the full name of a cookie. Over TLS it has a prefix that makes browsers refuse the cookie from any other
    host.
    """
    return f"__Host-{name}" if _is_secure(request) else name


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(cookie_name(request, name), "")


def _is_secure(request: Request) -> bool:
    return request.app.state.site.secure or request.url.scheme == "https"


def _secret(request: Request) -> str:
    """Return the secret behind the CSRF token: the session cookie or, before there is a session, a separate cookie."""
    return cookie(request, OWNED if request.url.path.startswith("/owner") else SESSION) or cookie(request, FORM)


async def posted(request: Request) -> dict[str, str]:
    """Return the text fields of a submitted form."""
    form = await request.form()
    return {key: value for key, value in form.items() if isinstance(value, str)}


Posted = Annotated[dict[str, str], Depends(posted)]


async def check_csrf(request: Request, form: Posted) -> None:
    """Respond with 403 to a POST request without the CSRF token. The token is in the form or in a header."""
    given = request.headers.get("x-csrf-token") or form.get("csrf", "")
    secret = _secret(request)
    expected = csrf_token(secret) if secret else ""
    if request.method == "POST" and not (expected and secrets.compare_digest(expected.encode(), given.encode())):
        raise HTTPException(403, "this form is out of date; load the page again")


#: The dependency of every route that accepts a form or an answer.
CSRF = [Depends(check_csrf)]


# -- the caller --------------------------------------------------------------------------------------------------------


def current_visitor(request: Request, area: str) -> Visitor | None:
    """Return the visitor behind a request; None if there is none. Visitors are known by their cookie. Owners and
    adjudicators may also be known by the name that the identity proxy sent.
    """
    site, token = request.app.state.site, cookie(request, area)
    name = request.headers.get(site.trusted_header, "") if site.trusted_header and area == OWNED else ""
    if not token and not name:
        return None
    with site.db.read() as session:
        return recognised(request, visitor_named(session, name) if name else visitor(session, token))


Known = TypeVar("Known", bound=Visitor | None)


def recognised(request: Request, who: Known) -> Known:
    """Return `who` unchanged. If `who` is a visitor, record that a valid link was used from the address of this request
    (see the module `connections`).
    """
    welcome = request.scope.get("state", {}).get(WELCOME)
    if who is not None and welcome is not None:
        welcome()
    return who


def the_annotator(request: Request) -> Participant:
    """Return the annotator behind a request; respond with 401 if there is none."""
    who = current_visitor(request, SESSION)
    if not isinstance(who, Participant):
        raise HTTPException(401, "open your invitation link first")
    return who


def the_reader(request: Request) -> Visitor:
    """Return the owner or adjudicator behind a request; respond with 401 if there is none."""
    who = current_visitor(request, OWNED)
    if who is None or isinstance(who, Participant):
        raise HTTPException(401, "open your owner's link first; `creperie annotate link NAME` makes one")
    return who


def client_address(request: Request) -> str:
    return request.client.host if request.client else ""


def base_url(request: Request) -> str:
    """Return the base URL for links: the address given to the server, or else that of the request."""
    return str(request.app.state.site.url or request.base_url).rstrip("/")


@dataclass(frozen=True)
class StudyVisit:
    """A request by an owner or adjudicator for a page of the study named in the URL."""

    request: Request
    site: Site
    who: Visitor
    study: StudyRow

    @property
    def name(self) -> str:
        return self.study.name

    @property
    def db(self) -> Database:
        return self.site.db

    def page(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        return page(self.request, template, status, **{"who": self.who.link, "study": self.study, **values})

    def redirect(self, part: str = "") -> RedirectResponse:
        """Return a redirect to a page of the study."""
        return redirect(f"/owner/studies/{self.name}{part}")


def _allowed(kind: str) -> Callable[..., StudyVisit]:
    """Return a FastAPI dependency that passes the study named in the URL to the function of a page. `kind` is owner or
    adjudicator.

    The dependency responds with 404 if there is no such study or the visitor has no rights in it. It responds with 403
    if the visitor lacks the rights of `kind`.
    """

    def check(request: Request, site: SiteHere, name: Name) -> StudyVisit:
        who = the_reader(request)
        with site.db.read() as session:
            study = session.scalar(select(StudyRow).where(StudyRow.name == name))
        if study is None or not who.may(ADJUDICATOR, study.id):  # do not reveal whether it exists
            raise HTTPException(404, "there is no such study")
        if not who.may(kind, study.id):
            raise HTTPException(403, "only owners can do this")
        return StudyVisit(request, site, who, study)

    return check


AnnotatorHere = Annotated[Participant, Depends(the_annotator)]
ReaderHere = Annotated[Visitor, Depends(the_reader)]
AdjudicatorHere = Annotated[StudyVisit, Depends(_allowed(ADJUDICATOR))]
OwnerHere = Annotated[StudyVisit, Depends(_allowed(OWNER))]
