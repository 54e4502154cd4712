"""What the routes share: the database, the pictures, the templates, and who is calling."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import Cookie, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import AfterValidator
from starlette.responses import Response

from creperie.annotation.access import Visitor, csrf_token, visitor
from creperie.annotation.database import Database
from creperie.annotation.schema import OWNER
from creperie.annotation.tasks.form import is_storable
from creperie.annotation.web.pictures import StudyPictures

#: With Secure, the prefix makes browsers refuse the cookie from anywhere but this very host over TLS.
SESSION, FORM = "creperie_session", "creperie_form"


@dataclass(frozen=True)
class Site:
    """What a server serves. `secure` where it is reached over TLS, however that is done."""

    db: Database
    root: Path
    out: Path
    secure: bool = False
    url: str = ""
    pictures: StudyPictures = field(default_factory=StudyPictures)


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("holds characters that are no text")
    return text


Text = Annotated[str, AfterValidator(_storable)]
SiteHere = Annotated[Site, Depends(site_of)]
SessionCookie = Annotated[str, Cookie(alias=SESSION)]


@cache
def templates() -> Environment:
    return Environment(
        loader=PackageLoader("creperie.annotation", "templates"),
        autoescape=True,  # captions and comments are data, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A page; its forms carry a token that only pages of ours can know."""
    secret = request.cookies.get(SESSION) or request.cookies.get(FORM)
    fresh = None if secret else secrets.token_urlsafe(24)
    html = templates().get_template(template).render(csrf=csrf_token(secret or fresh or ""), **values)
    response = HTMLResponse(html, status)
    if fresh:
        set_cookie(response, request, FORM, fresh)
    return response


def set_cookie(response: Response, request: Request, name: str, value: str, lasts: float | None = None) -> None:
    site = site_of(request)
    response.set_cookie(
        name,
        value,
        max_age=None if lasts is None else int(lasts),
        httponly=True,
        samesite="lax" if name == SESSION else "strict",
        secure=site.secure or request.url.scheme == "https",
    )


def to(place: str) -> RedirectResponse:
    """After a form was taken: look at something."""
    return RedirectResponse(place, 303)


def check_csrf(request: Request, given: str | None) -> None:
    """Only pages of ours can make a browser do something."""
    secret = request.cookies.get(SESSION) or request.cookies.get(FORM) or ""
    expected = csrf_token(secret) if secret else ""
    if not expected or not hmac.compare_digest(expected.encode(), (given or "").encode()):
        raise HTTPException(403, "this form is out of date; load the page again")


def current_visitor(request: Request) -> Visitor | None:
    token = request.cookies.get(SESSION)
    if not token:
        return None
    with site_of(request).db.read() as session:
        return visitor(session, token)


def the_annotator(request: Request) -> Visitor:
    """The annotator who is calling; 401 for everybody else."""
    found = current_visitor(request)
    if found is None or found.annotator is None:
        raise HTTPException(401, "open your invitation link first")
    return found


def the_reader(request: Request) -> Visitor:
    """The owner or reviewer who is calling; 401 for everybody else."""
    found = current_visitor(request)
    if found is None or found.owner is None:
        raise HTTPException(401, "log in first")
    return found


def the_owner(request: Request) -> Visitor:
    """The owner who is calling; a reviewer may look but not change."""
    found = the_reader(request)
    if found.owner is None or found.owner.role != OWNER:
        raise HTTPException(403, "this is for owners")
    return found


def actor_of(found: Visitor) -> str:
    return f"owner:{found.owner.name}" if found.owner else "nobody"


AnnotatorHere = Annotated[Visitor, Depends(the_annotator)]
ReaderHere = Annotated[Visitor, Depends(the_reader)]
OwnerHere = Annotated[Visitor, Depends(the_owner)]


def static_folder() -> Path:
    return Path(str(resources.files("creperie.annotation") / "static"))
