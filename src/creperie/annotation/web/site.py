"""What the routes share: the database, the pictures, the templates, who is calling, and what they may do."""

from __future__ import annotations

import hmac
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from time import gmtime, strftime
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import AfterValidator
from sqlalchemy import select
from starlette.responses import Response

from creperie.annotation.access import Visitor, csrf_token, role_in, stay, visitor
from creperie.annotation.database import Database
from creperie.annotation.schema import MEMBER, OWNER, REVIEWER, VIEWER, StudyRow
from creperie.annotation.tasks.form import is_storable
from creperie.annotation.web.language import direction, preferred, prose, translator
from creperie.annotation.web.pictures import StudyPictures

#: An owner can open an invitation without being logged out: annotators and owners have cookies of their own.
SESSION, OWNED, FORM = "creperie_session", "creperie_owner", "creperie_form"


@dataclass(frozen=True)
class Site:
    """What a server serves. `secure` where it is reached over TLS, however that is done."""

    db: Database
    root: Path
    out: Path
    secure: bool = False
    url: str = ""
    pictures: StudyPictures = field(default_factory=StudyPictures)
    replies: Counter[int] = field(default_factory=Counter)  #: by status, for /metrics
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


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("creperie.annotation", "templates"),
        autoescape=True,  # captions and comments are data, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"prose": prose, "when": lambda at: strftime("%Y-%m-%d %H:%M", gmtime(at)) if at else "–"}
    return made


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A page; its forms carry a token that only our own pages can know."""
    secret = _secret(request)
    fresh = None if secret else secrets.token_urlsafe(24)
    csrf = csrf_token(secret or fresh or "")
    language = values.pop("language", "") or preferred(request.headers.get("accept-language", ""))
    own = {"_": translator(language), "language": language, "direction": direction(language)}
    html = templates().get_template(template).render(csrf=csrf, base=site_of(request).prefix, **own, **values)
    response = HTMLResponse(html, status)
    if fresh:
        set_cookie(response, request, FORM, fresh)
    return response


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
    """What the token of a form is made from: the session, or a cookie for those who have none yet."""
    return cookie(request, (OWNED if request.url.path.startswith("/owner") else SESSION)) or cookie(request, FORM)


def to(place: str) -> RedirectResponse:
    """Redirect to a page after a form was accepted."""
    return RedirectResponse(place, 303)


def check_csrf(request: Request, given: str | None) -> None:
    """Refuse a form that does not carry the token of one of our own pages."""
    secret = _secret(request)
    expected = csrf_token(secret) if secret else ""
    if not expected or not hmac.compare_digest(expected.encode(), (given or "").encode()):
        raise HTTPException(403, "this form is out of date; load the page again")


def current_visitor(request: Request, area: str) -> Visitor | None:
    token = cookie(request, area)
    if not token:
        return None
    with site_of(request).db.read() as session:
        return visitor(session, token)


def the_annotator(request: Request) -> Visitor:
    """The annotator who is calling; 401 for everybody else."""
    found = current_visitor(request, SESSION)
    if found is None or found.annotator is None:
        raise HTTPException(401, "open your invitation link first")
    return found


def the_reader(request: Request) -> Visitor:
    """The account that is calling; 401 for everybody else."""
    found = current_visitor(request, OWNED)
    if found is None or found.owner is None:
        raise HTTPException(401, "log in first")
    if not request.url.path.endswith("/progress.json"):  # which an open page asks for by itself
        stay(site_of(request).db, found.login)
    return found


def the_maker(request: Request) -> Visitor:
    """An account that may create studies."""
    found = the_reader(request)
    if found.owner is None or found.owner.role not in (OWNER, MEMBER):
        raise HTTPException(403, "only owners and members can create studies")
    return found


def client_address(request: Request) -> str:
    return request.client.host if request.client else ""


def actor_of(found: Visitor) -> str:
    return f"owner:{found.owner.name}" if found.owner else "nobody"


AnnotatorHere = Annotated[Visitor, Depends(the_annotator)]
ReaderHere = Annotated[Visitor, Depends(the_reader)]
MakerHere = Annotated[Visitor, Depends(the_maker)]


def static_folder() -> Path:
    return Path(str(resources.files("creperie.annotation") / "static"))


Name = Annotated[str, PathParameter(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]
RANK = {"": 0, VIEWER: 1, REVIEWER: 2, OWNER: 3}


def _at_least(needed: str) -> Callable[[Request, str], Visitor]:
    """Who is calling, if the account has at least this role in the study that the address names."""

    def check(request: Request, name: Name) -> Visitor:
        who = the_reader(request)
        with site_of(request).db.read() as session:
            study = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
            role = role_in(session, who, study) if study is not None else ""
        if not role:  # whether it exists is nobody's business who has no role in it
            raise HTTPException(404, "there is no such study")
        if RANK[role] < RANK[needed]:
            raise HTTPException(403, f"this needs the role of {needed}; yours is {role}")
        return who

    return check


ViewerHere = Annotated[Visitor, Depends(_at_least(VIEWER))]
ReviewerHere = Annotated[Visitor, Depends(_at_least(REVIEWER))]
OwnerHere = Annotated[Visitor, Depends(_at_least(OWNER))]


def may_change(request: Request, who: Visitor, study: StudyRow) -> bool:
    """Whether an account owns a study."""
    with site_of(request).db.read() as session:
        return role_in(session, who, study.id) == OWNER
