"""The pages of owners and adjudicators: dashboard, invitations, settings, adjudication, export."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import select

from creperie.annotation.crowd import WORKER_PARAMETER, crowd_address, list_workers
from creperie.annotation.export import answer_rows, as_csv, exported, study_record
from creperie.annotation.links import DAYS, Invitation, invite, leave, reissue, revoke
from creperie.annotation.outcome import disagreements, judged, settle
from creperie.annotation.people import exclude, exclude_by_rules, include
from creperie.annotation.quality import overview, progress
from creperie.annotation.schema import ADJUDICATOR, ARCHIVED, OWNER, Event, Question, StudyRow
from creperie.annotation.settings import BOUNDS, LANGUAGES, PLATFORMS, StudySettings, settings_of
from creperie.annotation.state import (
    STUDY_MOVES,
    OldRevisionError,
    adjudicate,
    change_settings,
    set_state,
    study_named,
)
from creperie.annotation.study import all_studies
from creperie.annotation.tasks import TASKS, task_named
from creperie.annotation.tasks.form import AnswerError, PageForm, read_form
from creperie.annotation.web.annotator import Place, picture_response
from creperie.annotation.web.site import (
    OWNED,
    AdjudicatorHere,
    Csrf,
    Name,
    OwnerHere,
    Posted,
    ReaderHere,
    Site,
    SiteHere,
    Text,
    actor_of,
    check_csrf,
    cookie,
    drop_cookie,
    page,
    to,
)
from creperie.core import CreperieError, UsageError

router = APIRouter(prefix="/owner", default_response_class=HTMLResponse, include_in_schema=False)

SHOWN_EVENTS = 30

Ordinal = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.post("/logout")
def logout(request: Request, site: SiteHere, csrf: Csrf = "") -> Response:
    """End the visit of this browser; the link opens it again."""
    check_csrf(request, csrf)
    leave(site.db, cookie(request, OWNED))
    response = to("/")
    drop_cookie(response, request, OWNED)
    return response


@router.get("")
def studies_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    """All studies that the caller may see."""
    with site.db.read() as session:
        studies = [s for s in all_studies(session) if who.may(ADJUDICATOR, s["id"])]
    titles = {name: task.words["title"] for name, task in TASKS.items()}
    return page(request, "studies.html", who=who.link, studies=studies, titles=titles)


# -- dashboard -------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}")
def study_page(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """Progress, agreement, annotators, disagreements, the audit trail."""
    return _dashboard(request, site, who, name)


@router.get("/studies/{name}/progress.json", response_model=None, response_class=JSONResponse)
def live_progress(site: SiteHere, who: AdjudicatorHere, name: Name) -> dict[str, Any]:
    """What the dashboard asks for every few seconds."""
    with site.db.read() as session:
        rows = progress(session, study_named(session, name))
    return {"subsets": rows, **{part: sum(row[part] for row in rows) for part in ("done", "slots", "held")}}


def _dashboard(
    request: Request, site: Site, who: AdjudicatorHere, name: str, links: Sequence[Invitation] = (), notice: str = ""
) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
        seen, questions = overview(session, study), judged(study_record(session, study))
        last = select(Event).where(Event.study_id == study.id).order_by(Event.id.desc())
        events = session.scalars(last.limit(SHOWN_EVENTS)).all()
    task = task_named(study.task)
    return page(
        request,
        "study.html",
        who=who.link,
        may_change=who.may(OWNER),
        moves=STUDY_MOVES[study.state],
        study=study,
        task=task,
        seen=seen,
        disputed=disagreements(task, questions),
        commented=[one for one in questions if any(s.comment for s in one.answers)],
        events=events,
        links=[(i.pseudonym, i.link(site.url or str(request.base_url))) for i in links],
        notice=notice,
        days=DAYS,
        once=secrets.token_hex(16),
    )


@router.post("/studies/{name}/state")
def change_state(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    state: Annotated[str, Form(pattern=f"^({'|'.join(STUDY_MOVES)})$")],
    csrf: Csrf = "",
) -> Response:
    """Pause, go on, close or archive."""
    check_csrf(request, csrf)
    with site.db.write() as session:
        set_state(session, study_named(session, name), state, actor_of(who))
    return to("/owner" if state == ARCHIVED else f"/owner/studies/{name}")


# -- people ------------------------------------------------------------------------------------------------------------


@router.post("/studies/{name}/invitations")
def make_invitations(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    once: Annotated[str, Form(pattern="^[0-9a-f]{32}$")],
    count: Annotated[int, Form(ge=1, le=200)] = 1,
    days: Annotated[float, Form(gt=0, le=3650, allow_inf_nan=False)] = DAYS,
    note: Annotated[Text, Form(max_length=200)] = "",
    csrf: Csrf = "",
) -> Response:
    """New links. Only their hashes are stored; a form that is sent again shows the same links."""
    check_csrf(request, csrf)
    if once not in site.shown_links:
        site.shown_links[once] = invite(site.db, name, count, days=days, note=note, actor=actor_of(who))
        while len(site.shown_links) > 20:
            site.shown_links.pop(next(iter(site.shown_links)))
    return _dashboard(request, site, who, name, links=site.shown_links[once])


@router.post("/studies/{name}/annotator")
def change_annotator(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    annotator: Annotated[Text, Form(max_length=64)],
    action: Annotated[str, Form(pattern="^(revoke|exclude|include|reissue)$")],
    csrf: Csrf = "",
) -> Response:
    """End an invitation, exclude somebody, take that back, or replace a lost link."""
    check_csrf(request, csrf)
    if action == "reissue":
        return _dashboard(request, site, who, name, [reissue(site.db, name, annotator, actor=actor_of(who))])
    if action == "exclude":
        exclude(site.db, name, annotator, "by hand", actor_of(who))
    else:
        (revoke if action == "revoke" else include)(site.db, name, annotator, actor_of(who))
    return to(f"/owner/studies/{name}#annotators")


@router.post("/studies/{name}/rules")
def run_rules(request: Request, site: SiteHere, who: OwnerHere, name: Name, csrf: Csrf = "") -> Response:
    """Exclude whom the rules rule out."""
    check_csrf(request, csrf)
    exclude_by_rules(site.db, name, actor_of(who))
    return to(f"/owner/studies/{name}#annotators")


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/settings")
def settings_page(request: Request, site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """Instructions, consent, crowd, qualification, exclusion."""
    return _settings_page(request, site, who, name)


def _settings_page(request: Request, site: Site, who: OwnerHere, name: str, status: int = 200, **more: Any) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
    settings = settings_of(study.settings)
    own = {"who": who.link, "study": study, "settings": settings, "platforms": PLATFORMS}
    own |= {"languages": LANGUAGES, "parameter": WORKER_PARAMETER[settings.platform]}
    return page(request, "settings.html", status, **own, **{"problem": "", "link": "", "both": {}, **more})


@router.post("/studies/{name}/settings")
def save_settings(request: Request, site: SiteHere, who: OwnerHere, name: Name, given: Posted) -> Response:
    """Change the settings, unless somebody else did since the page was loaded: then both values are shown."""
    check_csrf(request, given.get("csrf"))
    if not re.fullmatch(r"[0-9]{1,9}", given.get("revision", "")):
        raise HTTPException(400, "the form lacks the revision of the settings; load the page again")
    try:
        with site.db.write() as session:
            study = study_named(session, name)
            change_settings(session, study, actor_of(who), _read_settings(given), int(given["revision"]))
    except OldRevisionError as e:
        return _settings_page(request, site, who, name, 409, both=e.both)
    except CreperieError as e:
        return _settings_page(request, site, who, name, 400, problem=str(e))
    return to(f"/owner/studies/{name}/settings")


def _read_settings(given: dict[str, str]) -> dict[str, Any]:
    """A form's texts as settings; an empty number means that there is none."""
    texts = {name: value.replace("\r\n", "\n") for name, value in given.items()}
    changes: dict[str, Any] = {k: texts[k] for k in ("instructions",) if texts.get(k)}
    for name in {f.name for f in fields(StudySettings)} & set(texts) - {"crowd_address"}:
        value = texts[name]
        try:
            empty = 0.0 if name == "pay" else None
            changes[name] = value if name not in BOUNDS else BOUNDS[name][0](value) if value else empty
        except ValueError:
            raise UsageError(f"{name}: {value[:60]!r} is not valid") from None
    return changes


@router.post("/studies/{name}/crowd")
def change_crowd(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    ids: Annotated[Text, Form(max_length=60_000)] = "",
    csrf: Csrf = "",
) -> Response:
    """Add ids to the list, or make the shared address."""
    check_csrf(request, csrf)
    if ids.strip():
        list_workers(site.db, name, ids.splitlines(), actor_of(who))
        return to(f"/owner/studies/{name}/settings")
    token = crowd_address(site.db, name, actor_of(who))
    link = f"{(site.url or str(request.base_url)).rstrip('/')}/crowd/{token}"
    return _settings_page(request, site, who, name, link=link)


# -- adjudication ----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/adjudicate")
def next_dispute(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """The next disagreement that nobody has decided."""
    with site.db.read() as session:
        study = study_named(session, name)
        left = disagreements(task_named(study.task), judged(study_record(session, study)), undecided_only=True)
    if not left:
        return _dashboard(request, site, who, name, notice="There is nothing left to decide.")
    return to(f"/owner/studies/{name}/questions/{left[0].question.ordinal}")


@router.get("/studies/{name}/questions/{ordinal}")
def question_page(
    request: Request, site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, problem: str = ""
) -> Response:
    """A question with what everybody said, and the form to decide it."""
    with site.db.read() as session:
        study = study_named(session, name)
        questions = judged(study_record(session, study))
    task = task_named(study.task)
    one = next((one for one in questions if one.question.ordinal == ordinal), None)
    if one is None:
        raise HTTPException(404, "there is no such question")
    return page(
        request,
        "question.html",
        400 if problem else 200,
        who=who.link,
        study=study,
        one=one,
        form=_plain_form(study, one.question.payload),
        settled=settle(task, one),
        say=lambda value: task.say(one.question.payload, value),
        left=len(disagreements(task, questions, undecided_only=True)),
        problem=problem,
    )


def _plain_form(study: StudyRow, payload: dict[str, Any]) -> PageForm:
    """A question in the benchmark's own order."""
    task = task_named(study.task)
    return task.show(payload, range(task.shuffled(payload)))


@router.post("/studies/{name}/questions/{ordinal}")
def decide(
    request: Request, site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, given: Posted
) -> Response:
    """Decide a question. Earlier decisions stay on record."""
    check_csrf(request, given.get("csrf"))
    comment = given.get("comment", "")[:2000].replace("\0", "")
    study, question = _question(site, name, ordinal)
    task, form = task_named(study.task), _plain_form(study, question.payload)
    try:
        read = read_form(form, _typed(form, given))
    except AnswerError as e:
        return question_page(request, site, who, name, ordinal, e.what)
    value = task.mean(question.payload, range(task.shuffled(question.payload)), read)
    with site.db.write() as session:
        adjudicate(session, study_named(session, name), ordinal, value, comment, actor_of(who))
    return to(f"/owner/studies/{name}/adjudicate")


def _question(site: Site, name: str, ordinal: int) -> tuple[StudyRow, Question]:
    with site.db.read() as session:
        study = study_named(session, name)
        own = select(Question).where(Question.study_id == study.id, Question.ordinal == ordinal)
        question = session.scalar(own)
    if question is None:
        raise HTTPException(404, "there is no such question")
    return study, question


def _typed(form: PageForm, given: dict[str, str]) -> dict[str, str | int]:
    """A form's text as the fields want it; what is not a number is refused by the field."""
    scales = {field.name for field in form.fields if field.kind == "scale"}
    texts = {field.name: given[field.name] for field in form.fields if field.name in given}
    return {k: int(v) if k in scales and re.fullmatch(r"-?[0-9]{1,6}", v) else v for k, v in texts.items()}


@router.get("/studies/{name}/pictures/{ordinal}/{place}", response_class=Response)
def question_picture(site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, place: Place) -> Response:
    """A picture of a question, in the benchmark's own order."""
    study, question = _question(site, name, ordinal)
    if place >= len(question.payload["images"]):
        raise HTTPException(404, "no such picture")
    return picture_response(site, study.bench, question.payload["images"][place])


# -- export ------------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/export.{kind}", response_class=Response)
def download(
    site: SiteHere, who: OwnerHere, name: Name, kind: Annotated[str, Path(pattern="^(json|csv)$")]
) -> Response:
    """The study's record with its digest, or its answers for a spreadsheet."""
    with site.db.read() as session:
        document = exported(study_record(session, study_named(session, name)))
    whole = kind == "json"
    text = json.dumps(document, ensure_ascii=False, indent=1) if whole else as_csv(answer_rows(document))
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(text, media_type=f"{'application/json' if whole else 'text/csv'}; charset=utf-8", headers=headers)
