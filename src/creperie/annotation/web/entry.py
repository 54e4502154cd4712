"""How people get in and out: personal links, the shared address of a crowd, consent, withdrawal, own data."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import JSONResponse, Response

from creperie.annotation.crowd import enter, entrant_of, study_of_address, worker_hash
from creperie.annotation.links import (
    ENTRIES,
    LASTS,
    WRONG_LINKS,
    DeniedError,
    Invitation,
    Participant,
    TooManyError,
    Visitor,
    end_visit,
    link_of,
    open_visit,
)
from creperie.annotation.people import data_of, withdraw
from creperie.annotation.schema import ANNOTATOR, OPEN, Annotator, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.web.site import (
    CSRF,
    OWNED,
    SESSION,
    AnnotatorHere,
    SiteHere,
    client_address,
    cookie,
    current_visitor,
    message,
    page,
    set_cookie,
    to,
)

router = APIRouter(include_in_schema=False, dependencies=CSRF)

TOKEN = r"^[A-Za-z0-9_-]{8,64}$"
Token = Annotated[str, Path(pattern=TOKEN)]
Consent = Annotated[str, Form(max_length=16)]


# -- by a personal link ------------------------------------------------------------------------------------------------


def _linked(request: Request, site: SiteHere, token: str) -> Visitor:
    """Return whose link this is. Links that do not exist are counted, and only so many can be tried."""
    with site.db.read() as session:
        who = link_of(session, token)
    if who is None:
        if not site.limiter.hit(WRONG_LINKS, client_address(request)):
            raise TooManyError("too many attempts; please try again later")
        raise DeniedError("this link has ended, or it is incomplete")
    return who


@router.get("/join/{token}")
def join_page(request: Request, site: SiteHere, token: Token) -> Response:
    """Show what an invitation is about. Programs that preview links see it too, so it changes nothing. Owners go in."""
    who = _linked(request, site, token)
    if not isinstance(who, Participant):
        return _let_in(request, site, who)
    wanted = settings_of(who.study.settings).consent_version
    consented = who.annotator.consent_version == (wanted or None)
    return _entry_page(request, who.study, f"/join/{token}", name=who.annotator.pseudonym, consented=consented)


def _entry_page(
    request: Request, study: StudyRow, action: str, *, name: str = "", refused: bool = False, consented: bool = False
) -> Response:
    own = {"study": study, "task": task_named(study.task).words, "settings": settings_of(study.settings)}
    own |= {"action": action, "name": name, "refused": refused, "consented": consented}
    return page(request, "enter.html", 400 if refused else 200, **own)


@router.post("/join/{token}")
def join(request: Request, site: SiteHere, token: Token, consent: Consent = "") -> Response:
    """Begin: the link is exchanged for a cookie."""
    who = _linked(request, site, token)
    if isinstance(who, Participant) and not _consents(site, who, consent):
        return _entry_page(request, who.study, f"/join/{token}", name=who.annotator.pseudonym, refused=True)
    return _let_in(request, site, who)


def _consents(site: SiteHere, who: Participant, given: str) -> bool:
    """True if the consent text of the moment was accepted, now or before; what is accepted now is stored."""
    wanted = settings_of(who.study.settings).consent_version
    if wanted in ("", who.annotator.consent_version):
        return True
    if given != wanted:
        return False
    with site.db.write() as session:
        own = session.get_one(Annotator, who.annotator.id)
        own.consented, own.consent_version = time.time(), wanted
    return True


def _let_in(request: Request, site: SiteHere, who: Visitor, response: Response | None = None) -> Response:
    """Set the cookie of a visit, which ends when its link does."""
    with site.db.write() as session:
        token = open_visit(session, who.link)
    mine = who.link.kind == ANNOTATOR
    answer = response or to("/work" if mine else "/owner")
    set_cookie(answer, request, SESSION if mine else OWNED, token, LASTS[who.link.kind])
    return answer


# -- by the address of a crowd -----------------------------------------------------------------------------------------


def _crowd_study(site: SiteHere, token: str) -> StudyRow:
    with site.db.read() as session:
        study = study_of_address(session, token)
    if study is None:
        raise HTTPException(404, "there is no such study")
    return study


@router.get("/crowd/{token}")
def crowd_page(request: Request, site: SiteHere, token: Token) -> Response:
    """Show those who are signed or listed what a study is about. Nothing is stored before they consent."""
    study = _crowd_study(site, token)
    here = current_visitor(request, SESSION)
    with site.db.read() as session:
        who = entrant_of(session, study, request.query_params)
    if isinstance(here, Participant) and here.annotator.worker == worker_hash(study, who.worker):
        return to("/work")
    return _entry_page(request, study, f"/crowd/{token}?{request.url.query}")


@router.post("/crowd/{token}")
def enter_by_address(request: Request, site: SiteHere, token: Token, consent: Consent = "") -> Response:
    """Exchange a signed or listed id for a personal link, and show the link: it is the way back."""
    study = _crowd_study(site, token)
    wanted = settings_of(study.settings).consent_version
    if wanted and consent != wanted:
        return _entry_page(request, study, f"/crowd/{token}?{request.url.query}", refused=True)
    if not site.limiter.hit(ENTRIES, client_address(request)):
        raise TooManyError("too many people entered from here; please try again later")
    annotator, made = enter(site.db, study.id, request.query_params)
    link = Invitation(annotator.pseudonym, made).link(site.url or str(request.base_url))
    shown = page(request, "entered.html", name=annotator.pseudonym, link=link)
    return _let_in(request, site, _linked(request, site, made), shown)


# -- while taking part -----------------------------------------------------------------------------------------------


@router.get("/")
def home(request: Request) -> Response:
    if current_visitor(request, SESSION) is not None:
        return to("/work")
    if current_visitor(request, OWNED) is not None:
        return to("/owner")
    return message(request, "creperie", "Open the link in your invitation to begin.")


@router.get("/work")
def work_page(request: Request, who: AnnotatorHere) -> Response:
    """The page on which everything happens; the consent text first, where it has changed."""
    settings = settings_of(who.study.settings)
    if settings.consent_version not in ("", who.annotator.consent_version):
        return _entry_page(request, who.study, "/consent", name=who.annotator.pseudonym)
    own = {"study": who.study, "task": task_named(who.study.task).words, "settings": settings}
    return page(request, "work.html", **own, annotator=who.annotator, stopped=who.study.state != OPEN)


@router.post("/consent")
def accept_consent(request: Request, site: SiteHere, who: AnnotatorHere, consent: Consent = "") -> Response:
    """Accept a consent text that has changed."""
    if not _consents(site, who, consent):
        return _entry_page(request, who.study, "/consent", name=who.annotator.pseudonym, refused=True)
    return to("/work")


@router.post("/withdraw")
def withdraw_now(request: Request, site: SiteHere, who: AnnotatorHere) -> Response:
    """Leave the study for good: what the annotator said is erased."""
    withdraw(site.db, who.study.name, who.annotator.pseudonym, "annotator")
    text = "Your answers have been erased and count in no result. Thank you."
    response = message(request, "You have withdrawn", text)
    set_cookie(response, request, SESSION, "", 0)
    return response


@router.get("/my-data")
def my_data(site: SiteHere, who: AnnotatorHere) -> Response:
    """Everything that is stored about the caller, in the terms of their own pages."""
    with site.db.read() as session:
        document = data_of(session, who.study, session.get_one(Annotator, who.annotator.id))
    return JSONResponse(document, headers={"Content-Disposition": 'attachment; filename="my-data.json"'})


@router.post("/leave")
@router.post("/owner/logout")
def leave(request: Request, site: SiteHere) -> Response:
    """End the visit of this browser; the link opens it again."""
    area = OWNED if request.url.path.startswith("/owner") else SESSION
    end_visit(site.db, cookie(request, area))
    response = to("/")
    set_cookie(response, request, area, "", 0)
    return response
