"""The pages on which people enter and leave: personal links, a crowd's shared address, consent, withdrawal, and the
download of their data.
"""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import JSONResponse, Response

from creperie.annotation.crowd import admitted, enter, entrant_of, study_of_address
from creperie.annotation.links import (
    ENTRIES,
    LASTS,
    WRONG_LINKS,
    Invitation,
    Participant,
    Visitor,
    end_visit,
    link_of,
    open_visit,
)
from creperie.annotation.people import withdraw
from creperie.annotation.schema import ANNOTATOR, OPEN, Annotator, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.view import own_data, terms_of
from creperie.annotation.web.site import (
    CSRF,
    OWNED,
    SESSION,
    AnnotatorHere,
    SiteHere,
    base_url,
    client_address,
    cookie,
    current_visitor,
    message,
    page,
    recognised,
    redirect,
    set_cookie,
)
from creperie.core import Json

router = APIRouter(include_in_schema=False, dependencies=CSRF)

TOKEN = r"^[A-Za-z0-9_-]{8,64}$"
Token = Annotated[str, Path(pattern=TOKEN)]
Consent = Annotated[str, Form(max_length=16)]


# -- by a personal link ------------------------------------------------------------------------------------------------


def _linked(request: Request, site: SiteHere, token: str) -> Visitor:
    """Return the visitor whose link has this token. If there is none, respond with 404. After too many failed attempts
    from the same address, respond with 429.
    """
    with site.db.read() as session:
        who = recognised(request, link_of(session, token))
    if who is None:
        if not site.limiter.hit(WRONG_LINKS, client_address(request)):
            raise HTTPException(429, "Too many attempts; please try again later.")
        raise HTTPException(
            404,
            "This link has ended or is incomplete. Check that you copied all of it, or ask for a new link. "
            "(If you own the study, make one with `creperie annotate link`.)",
        )
    return who


@router.get("/join/{token}")
def join_page(request: Request, site: SiteHere, token: Token) -> Response:
    """Show an annotator what the study is about. An owner is let in at once.

    Opening the page stores nothing, because link previews fetch it as well.
    """
    who = _linked(request, site, token)
    if not isinstance(who, Participant):
        return _let_in(request, site, who)
    return _entry_page(request, who.study, f"/join/{token}", who=who)


def _entry_page(
    request: Request, study: StudyRow, action: str, *, who: Participant | None = None, refused: bool = False
) -> Response:
    with request.app.state.site.db.read() as session:
        terms = terms_of(session, study, who.annotator if who else None)
    own = {**_about(study), "action": action, "who": who, "refused": refused, "terms": terms}
    return page(request, "enter.html", 400 if refused else 200, **own)


def _about(study: StudyRow) -> Json:
    """Return what annotators' pages show about a study."""
    return {"study": study, "task": task_named(study.task).words, "settings": settings_of(study.settings)}


@router.post("/join/{token}")
def join(request: Request, site: SiteHere, token: Token, consent: Consent = "") -> Response:
    """Exchange an annotator's link for a session cookie, once the annotator has consented."""
    who = _linked(request, site, token)
    if isinstance(who, Participant) and not _consents(site, who, consent):
        return _entry_page(request, who.study, f"/join/{token}", who=who, refused=True)
    return _let_in(request, site, who)


def _consents(site: SiteHere, who: Participant, given: str) -> bool:
    """Return True if the annotator has accepted the current consent text, earlier or with this request. `given` is the
    version of the text that this request accepts; a new acceptance is stored.
    """
    if not who.consent_due:
        return True
    if given == who.consent_due:
        with site.db.write() as session:
            own = session.get_one(Annotator, who.annotator.id)
            own.consented, own.consent_version = time.time(), given
    return given == who.consent_due


def _let_in(request: Request, site: SiteHere, who: Visitor, response: Response | None = None) -> Response:
    """Start a session and return the response, which sets the session's cookie. The default response is a redirect."""
    with site.db.write() as session:
        token = open_visit(session, who.link)
    mine = who.link.kind == ANNOTATOR
    answer = response or redirect("/work" if mine else "/owner")
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
    """Show workers with a signed or listed id what a study is about. Nothing is stored before they consent."""
    study = _crowd_study(site, token)
    here = current_visitor(request, SESSION)
    with site.db.read() as session:
        worker, _ = entrant_of(session, study, request.query_params)
        if isinstance(here, Participant) and here.annotator.worker == worker:
            return redirect("/work")
        admitted(session, study, request.query_params)  # nobody reads terms who cannot take part
    return _entry_page(request, study, f"/crowd/{token}?{request.url.query}")


@router.post("/crowd/{token}")
def enter_by_address(request: Request, site: SiteHere, token: Token, consent: Consent = "") -> Response:
    """Exchange a signed or listed worker id for a personal link, and show the link so that the worker can come back."""
    study = _crowd_study(site, token)
    current_version = settings_of(study.settings).consent_version
    if current_version and consent != current_version:
        return _entry_page(request, study, f"/crowd/{token}?{request.url.query}", refused=True)
    if not site.limiter.hit(ENTRIES, client_address(request)):
        raise HTTPException(429, "Too many people have entered from your network; please try again later.")
    annotator, made = enter(site.db, study.name, request.query_params)
    link = Invitation(annotator.pseudonym, made).link(base_url(request))
    shown = page(request, "entered.html", name=annotator.pseudonym, link=link)
    return _let_in(request, site, _linked(request, site, made), shown)


# -- while taking part -----------------------------------------------------------------------------------------------


@router.get("/")
def home(request: Request) -> Response:
    if current_visitor(request, SESSION) is not None:
        return redirect("/work")
    if current_visitor(request, OWNED) is not None:
        return redirect("/owner")
    return message(request, "creperie", "Open the link in your invitation to begin.")


@router.get("/work")
def work_page(request: Request, who: AnnotatorHere) -> Response:
    """Show the page on which annotators work. If the consent text has changed, show the new text first."""
    if who.consent_due:
        return _entry_page(request, who.study, "/consent", who=who)
    return page(request, "work.html", **_about(who.study), annotator=who.annotator, stopped=who.study.state != OPEN)


@router.post("/consent")
def accept_consent(request: Request, site: SiteHere, who: AnnotatorHere, consent: Consent = "") -> Response:
    """Store that the annotator accepts the changed consent text, and go on to the questions."""
    if not _consents(site, who, consent):
        return _entry_page(request, who.study, "/consent", who=who, refused=True)
    return redirect("/work")


@router.post("/withdraw")
def withdraw_now(request: Request, site: SiteHere, who: AnnotatorHere) -> Response:
    """Leave the study for good. All answers of the annotator are erased."""
    withdraw(site.db, who.study.name, who.annotator.pseudonym, "annotator")
    text = "Your answers have been erased and count in no result. Thank you."
    response = message(request, "You have withdrawn", text)
    set_cookie(response, request, SESSION, "", 0)
    return response


@router.get("/my-data")
def my_data(site: SiteHere, who: AnnotatorHere) -> Response:
    """Return everything stored about the annotator, each answer with its question as the page showed it."""
    with site.db.read() as session:
        document = own_data(session, who.study, session.get_one(Annotator, who.annotator.id))
    return JSONResponse(document, headers={"Content-Disposition": 'attachment; filename="my-data.json"'})


@router.post("/leave")
@router.post("/owner/logout")
def leave(request: Request, site: SiteHere) -> Response:
    """End the session of this browser. Opening the link again starts a new one."""
    area = OWNED if request.url.path.startswith("/owner") else SESSION
    end_visit(site.db, cookie(request, area))
    response = redirect("/")
    set_cookie(response, request, area, "", 0)
    return response
