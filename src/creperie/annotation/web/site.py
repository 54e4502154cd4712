"""What the routes share: the database, the pictures, the templates, who is calling, and what they may do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from time import gmtime, strftime
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Form, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import AfterValidator
from sqlalchemy import select
from starlette.responses import Response

from creperie.annotation.database import Database
from creperie.annotation.links import Limiter, Visitor, csrf_token, is_csrf_token, visitor, visitor_named
from creperie.annotation.schema import ADJUDICATOR, OWNER, StudyRow
from creperie.annotation.tasks.form import is_storable
from creperie.annotation.web.language import direction, preferred, prose, translator
from creperie.annotation.web.pictures import StudyPictures

#: An owner can open an invitation without being logged out: annotators and owners have cookies of their own.
SESSION, OWNED, FORM = "creperie_session", "creperie_owner", "creperie_form"


@dataclass(frozen=True)
class Site:
    """What a server serves. `secure` where it is reached over TLS, however that is done."""

    db: Database
    secure: bool = False
    url: str = ""
    trusted_header: str = ""  #: in which an identity proxy names who is calling; the server removes it from strangers
    pictures: StudyPictures = field(default_factory=StudyPictures)
    limiter: Limiter = field(default_factory=Limiter)
    shown_links: dict[str, Any] = field(default_factory=dict)  #: new links by form, so that a reload shows them again

    @property
    def prefix(self) -> str:
        """The path under which the pages are reached: `/sub` for https://people.example/sub."""
        return urlsplit(self.url).path.rstrip("/")


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


async def _site_here(request: Request) -> Site:  # without a thread of its own, as functions that wait get one
    return site_of(request)


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("holds characters that are not text")
    return text


Text = Annotated[str, AfterValidator(_storable)]
SiteHere = Annotated[Site, Depends(_site_here)]
Csrf = Annotated[str, Form(max_length=200)]


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("creperie.annotation", "templates"),
        autoescape=True,  # captions and comments are data, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"prose": prose, "when": _when}
    return made


def _when(at: float | None) -> str:
    return strftime("%Y-%m-%d %H:%M", gmtime(at)) if at else "–"


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A page; its forms carry a token that only our own pages can know."""
    secret = _secret(request)
    fresh = None if secret else secrets.token_urlsafe(32)
    language = values.pop("language", "") or preferred(request.headers.get("accept-language", ""))
    own = {"_": translator(language), "language": language, "direction": direction(language)}
    own |= {"csrf": csrf_token(secret or fresh or ""), "base": site_of(request).prefix}
    response = HTMLResponse(templates().get_template(template).render(**own, **values), status)
    if fresh:
        set_cookie(response, request, FORM, fresh)
    return response


def message(request: Request, title: str, text: str, status: int = 200, language: str = "") -> HTMLResponse:
    """A page that says one thing."""
    return page(request, "message.html", status, title=title, text=text, language=language)


def set_cookie(response: Response, request: Request, name: str, value: str, lasts: float | None = None) -> None:
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=None if lasts is None else int(lasts),
        httponly=True,
        samesite="strict" if name == FORM else "lax",
        secure=_is_secure(request),
    )


def drop_cookie(response: Response, request: Request, name: str) -> None:
    response.delete_cookie(cookie_name(request, name), secure=_is_secure(request), httponly=True, samesite="lax")


def cookie_name(request: Request, name: str) -> str:
    """Over TLS, the prefix makes browsers refuse the cookie from anywhere but this very host."""
    prefix = site_of(request).prefix.replace("/", "-")  # two servers under one host keep apart
    return f"__Host-{name}{prefix}" if _is_secure(request) else f"{name}{prefix}"


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(cookie_name(request, name), "")


def _is_secure(request: Request) -> bool:
    return site_of(request).secure or request.url.scheme == "https"


def _secret(request: Request) -> str:
    """What the token of a form is made from: the visit, or a cookie for those who have none yet."""
    return cookie(request, (OWNED if request.url.path.startswith("/owner") else SESSION)) or cookie(request, FORM)


def to(place: str) -> RedirectResponse:
    """Redirect to a page after a form was accepted."""
    return RedirectResponse(place, 303)


def check_csrf(request: Request, given: str | None) -> None:
    """Refuse a form that does not carry the token of one of our own pages."""
    if not is_csrf_token(_secret(request), given or ""):
        raise HTTPException(403, "this form is out of date; load the page again")


def current_visitor(request: Request, area: str) -> Visitor | None:
    """Who is calling: by the cookie, or, among owners, as the identity proxy says."""
    site, token = site_of(request), cookie(request, area)
    named = request.headers.get(site.trusted_header, "") if site.trusted_header and area == OWNED else ""
    if not token and not named:
        return None
    with site.db.read() as session:
        return visitor_named(session, named) if named else visitor(session, token)


def the_annotator(request: Request) -> Visitor:
    """The annotator who is calling; 401 for everybody else."""
    who = current_visitor(request, SESSION)
    if who is None or who.annotator is None:
        raise HTTPException(401, "open your invitation link first")
    return who


def the_reader(request: Request) -> Visitor:
    """The owner or adjudicator who is calling; 401 for everybody else."""
    who = current_visitor(request, OWNED)
    if who is None or who.annotator is not None:
        raise HTTPException(401, "open your owner's link first; `creperie annotate link NAME` makes one")
    return who


def client_address(request: Request) -> str:
    return request.client.host if request.client else ""


def actor_of(who: Visitor) -> str:
    return f"{who.link.kind}:{who.link.name}"


Name = Annotated[str, PathParameter(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]


def _allowed(kind: str) -> Callable[[Request, str], Visitor]:
    """Who is calling, if their link allows this in the study that the address names."""

    def check(request: Request, name: Name) -> Visitor:
        who = the_reader(request)
        with site_of(request).db.read() as session:
            study = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
        if study is None or not who.may(ADJUDICATOR, study):  # whether it exists is nobody else's business
            raise HTTPException(404, "there is no such study")
        if not who.may(kind, study):
            raise HTTPException(403, "only owners can do this")
        return who

    return check


AnnotatorHere = Annotated[Visitor, Depends(the_annotator)]
ReaderHere = Annotated[Visitor, Depends(the_reader)]
AdjudicatorHere = Annotated[Visitor, Depends(_allowed(ADJUDICATOR))]
OwnerHere = Annotated[Visitor, Depends(_allowed(OWNER))]


def static_folder() -> Path:
    return Path(str(resources.files("creperie.annotation") / "static"))


async def posted(request: Request) -> dict[str, str]:
    """The fields of a form whose names the study decides."""
    form = await request.form()
    return {key: value for key, value in form.items() if isinstance(value, str)}


Posted = Annotated[dict[str, str], Depends(posted)]
