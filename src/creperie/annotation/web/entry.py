"""How an annotator gets in and out: invitation or self-service link, consent, screening, withdrawal, own data."""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy.orm import Session

from creperie.annotation.access import ANNOTATOR_SESSION, DeniedError, count_attempt, leave, open_session
from creperie.annotation.crowd import EntryError, enter, entrant_of, study_of_link
from creperie.annotation.desk import is_welcome
from creperie.annotation.invitations import find_invitation
from creperie.annotation.privacy import person_document, withdraw
from creperie.annotation.schema import OPEN, Annotator, Attachment, StudyRow
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.task import speaking
from creperie.annotation.web.site import (
    SESSION,
    AnnotatorHere,
    SiteHere,
    check_csrf,
    client_address,
    cookie,
    drop_cookie,
    page,
    set_cookie,
    to,
)

router = APIRouter()

TOKEN = r"^[A-Za-z0-9_-]{8,64}$"
Token = Annotated[str, Path(pattern=TOKEN)]
Csrf = Annotated[str, Form(max_length=200)]
_IN: dict[int | str, dict[str, Any]] = {303: {}, 400: {}, 403: {}, 404: {}, 408: {}, 413: {}, 429: {}, 503: {}}


async def posted(request: Request) -> dict[str, str]:
    """The fields of a form whose names the study decides."""
    form = await request.form()
    return {key: value for key, value in form.items() if isinstance(value, str)}


# -- by invitation ---------------------------------------------------------------------------------------------------


@router.get("/join/{token}", response_class=HTMLResponse, responses={404: {}, 400: {}, 503: {}})
def join_page(request: Request, site: SiteHere, token: Token) -> Response:
    """What an invitation is about. Looking at it changes nothing: programs that preview links do that."""
    with site.db.read() as session:
        annotator, study = _invited(session, token)
    if study is None or annotator is None:
        text = "This invitation has ended, or the link is incomplete."
        return page(request, "message.html", 404, title="Invitation not valid", text=text)
    consented = annotator.consent_version == (settings_of(study.settings).consent_version or None)
    return _entry_page(request, study, f"/join/{token}", name=annotator.pseudonym, consented=consented)


def _invited(session: Session, token: str) -> tuple[Annotator | None, StudyRow | None]:
    annotator = find_invitation(session, token)
    if annotator is None or not is_welcome(annotator, time.time()):
        return None, None
    return annotator, session.get_one(StudyRow, annotator.study_id)


def _entry_page(
    request: Request, study: StudyRow, action: str, *, name: str = "", problem: str = "", consented: bool = False
) -> Response:
    settings = settings_of(study.settings)
    with speaking(settings.language):
        words = dict(task_named(study.task).words)
    return page(
        request,
        "enter.html",
        400 if problem else 200,
        language=settings.language,
        study=study,
        task=words,
        settings=settings,
        action=action,
        name=name,
        problem=problem,
        consented=consented,
    )


@router.post("/join/{token}", response_class=HTMLResponse, status_code=303, responses=_IN)
def join(
    request: Request, site: SiteHere, token: Token, csrf: Csrf = "", consent: Annotated[str, Form(max_length=16)] = ""
) -> Response:
    """Begin: a session of two weeks."""
    check_csrf(request, csrf)
    with site.db.read() as session:
        annotator, study = _invited(session, token)
    if annotator is None or study is None:
        count_attempt(site.db, "join", "", client_address(request))
        raise DeniedError("this link is not valid, or the invitation has ended")
    wanted = settings_of(study.settings).consent_version
    if wanted and wanted not in (consent, annotator.consent_version):
        return _entry_page(request, study, f"/join/{token}", name=annotator.pseudonym, problem="consent")
    with site.db.write() as session:
        own = session.get_one(Annotator, annotator.id)
        if wanted and own.consent_version != wanted:
            own.consented, own.consent_version = time.time(), wanted
        made = open_session(session, ANNOTATOR_SESSION, annotator_id=own.id)
    return _let_in(request, made)


def _let_in(request: Request, made: str) -> Response:
    response = to("/work")
    set_cookie(response, request, SESSION, made, ANNOTATOR_SESSION)
    return response


# -- by the link of a study ------------------------------------------------------------------------------------------


def _open_study(site: SiteHere, token: str) -> tuple[StudyRow, StudySettings]:
    with site.db.read() as session:
        study = study_of_link(session, token)
    if study is None:
        raise HTTPException(404, "there is no such study")
    return study, settings_of(study.settings)


@router.get("/study/{token}", response_class=HTMLResponse, responses={400: {}, 404: {}, 503: {}})
def study_link(request: Request, site: SiteHere, token: Token) -> Response:
    """What a study is about, for everybody with its link. Nothing is stored before consent is given."""
    study, settings = _open_study(site, token)
    try:
        entrant_of(settings, request.query_params)
    except EntryError as e:
        return page(request, "message.html", 400, title="Not yet", text=f"{e.what[:1].upper()}{e.what[1:]}.")
    return _entry_page(request, study, f"/study/{token}?{request.url.query}")


@router.post("/study/{token}", response_class=HTMLResponse, status_code=303, responses=_IN)
def enter_by_link(
    request: Request, site: SiteHere, token: Token, given: Annotated[dict[str, str], Depends(posted)]
) -> Response:
    """Take part: a new annotator, or the one that this worker already is."""
    check_csrf(request, given.get("csrf"))
    study, settings = _open_study(site, token)
    action = f"/study/{token}?{request.url.query}"
    if settings.consent_version and given.get("consent") != settings.consent_version:
        return _entry_page(request, study, action, problem="consent")
    answers = [given.get(f"screening{n}", "") for n in range(len(settings.screening))]
    if not all(a.isascii() and a.isdecimal() and len(a) < 4 for a in answers):
        return _entry_page(request, study, action, problem="screening")
    if not settings.platform:  # nobody vouches for these: a limited number per address
        count_attempt(site.db, "open", secrets.token_hex(4), client_address(request))
    try:
        annotator = enter(site.db, study.id, entrant_of(settings, request.query_params, [int(a) for a in answers]))
    except EntryError as e:
        return page(request, "message.html", 403, title="Not possible", text=f"{e.what[:1].upper()}{e.what[1:]}.")
    with site.db.write() as session:
        made = open_session(session, ANNOTATOR_SESSION, annotator_id=annotator.id)
    return _let_in(request, made)


@router.get("/attachment/{name}", response_class=Response, responses={404: {}, 503: {}})
def attachment(site: SiteHere, name: Annotated[str, Path(pattern=TOKEN)]) -> Response:
    """A picture of some instructions; its name is random."""
    from sqlalchemy import select

    with site.db.read() as session:
        found = session.scalar(select(Attachment).where(Attachment.name == name))
    if found is None:
        raise HTTPException(404, "no such picture")
    return Response(found.data, media_type=found.media_type, headers={"Cache-Control": "private, max-age=3600"})


# -- while taking part -----------------------------------------------------------------------------------------------


@router.get("/work", response_class=HTMLResponse, responses={400: {}, 401: {}, 503: {}})
def work_page(request: Request, who: AnnotatorHere) -> Response:
    """The page on which everything happens; the consent text first, where it has changed."""
    assert who.study is not None
    assert who.annotator is not None
    settings = settings_of(who.study.settings)
    if settings.consent_version not in ("", who.annotator.consent_version):
        return _entry_page(request, who.study, "/consent", name=who.annotator.pseudonym)
    with speaking(settings.language):
        words = dict(task_named(who.study.task).words)
    stopped = who.study.state != OPEN
    return page(
        request,
        "work.html",
        language=settings.language,
        study=who.study,
        task=words,
        settings=settings,
        annotator=who.annotator,
        stopped=stopped,
    )


@router.post("/consent", response_class=HTMLResponse, status_code=303, responses={401: {}, **_IN})
def accept_consent(
    request: Request,
    site: SiteHere,
    who: AnnotatorHere,
    csrf: Csrf = "",
    consent: Annotated[str, Form(max_length=16)] = "",
) -> Response:
    """Accept a consent text that has changed."""
    check_csrf(request, csrf)
    assert who.study is not None
    assert who.annotator is not None
    if consent != settings_of(who.study.settings).consent_version:
        return _entry_page(request, who.study, "/consent", name=who.annotator.pseudonym, problem="consent")
    with site.db.write() as session:
        own = session.get_one(Annotator, who.annotator.id)
        own.consented, own.consent_version = time.time(), consent
    return to("/work")


@router.post("/withdraw", response_class=HTMLResponse, responses={401: {}, **_IN})
def withdraw_now(request: Request, site: SiteHere, who: AnnotatorHere, csrf: Csrf = "") -> Response:
    """Leave the study for good: what was said is erased."""
    check_csrf(request, csrf)
    assert who.study is not None
    assert who.annotator is not None
    withdraw(site.db, who.study.name, who.annotator.pseudonym, "annotator")
    text = "Your answers have been erased and count in no result. Thank you."
    response = page(request, "message.html", title="You have withdrawn", text=text)
    drop_cookie(response, request, SESSION)
    return response


@router.get("/my-data", responses={400: {}, 401: {}, 503: {}})
def my_data(site: SiteHere, who: AnnotatorHere) -> Response:
    """Everything that is stored about the caller, as JSON."""
    assert who.study is not None
    assert who.annotator is not None
    with site.db.read() as session:
        found = person_document(session, who.study, session.get_one(Annotator, who.annotator.id))
    found.pop("note")  # the owner's
    return JSONResponse(found, headers={"Content-Disposition": 'attachment; filename="my-data.json"'})


@router.post("/leave", response_class=HTMLResponse, status_code=303, responses=_IN)
def leave_page(request: Request, site: SiteHere, csrf: Csrf = "") -> Response:
    """End the session in this browser; the link opens it again."""
    check_csrf(request, csrf)
    leave(site.db, cookie(request, SESSION))
    response = to("/")
    drop_cookie(response, request, SESSION)
    return response
