"""The pages of owners and adjudicators: dashboard, invitations, settings, adjudication, export."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import Response
from sqlalchemy import select

from creperie.annotation.crowd import WORKER_PARAMETER, crowd_address, list_workers
from creperie.annotation.export import answer_rows, as_csv, exported, study_record
from creperie.annotation.links import DAYS, Invitation, invite, reissue, revoke
from creperie.annotation.outcome import Judged, disagreements, judged, settle
from creperie.annotation.people import exclude, exclude_by_rules, include
from creperie.annotation.quality import overview
from creperie.annotation.schema import ADJUDICATOR, OWNER, Event, Question, StudyRow
from creperie.annotation.settings import BOUNDS, PLATFORMS, StudySettings, settings_of
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
    CSRF,
    AdjudicatorHere,
    Name,
    OwnerHere,
    Posted,
    ReaderHere,
    Site,
    SiteHere,
    Text,
    page,
    to,
)
from creperie.core import CreperieError, UsageError

router = APIRouter(prefix="/owner", include_in_schema=False, dependencies=CSRF)

SHOWN_EVENTS = 30

Ordinal = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("")
def studies_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    """All studies that the caller may see."""
    with site.db.read() as session:
        studies = [s for s in all_studies(session) if who.may(ADJUDICATOR, s["id"])]
    return page(request, "studies.html", who=who.link, studies=studies, tasks=TASKS)


# -- dashboard -------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}")
def study_page(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """Progress, agreement, annotators, disagreements, the audit trail."""
    return _dashboard(request, site, who, name)


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
def change_state(site: SiteHere, who: OwnerHere, name: Name, state: Annotated[Text, Form(max_length=16)]) -> Response:
    """Pause, go on or close."""
    with site.db.write() as session:
        set_state(session, study_named(session, name), state, who.actor)
    return to(f"/owner/studies/{name}")


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
) -> Response:
    """New links. Only their hashes are stored; a form that is sent again shows the same links."""
    if once not in site.shown_links:
        site.shown_links[once] = invite(site.db, name, count, days=days, note=note, actor=who.actor)
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
) -> Response:
    """End an invitation, exclude somebody, take that back, or replace a lost link."""
    if action == "reissue":
        return _dashboard(request, site, who, name, [reissue(site.db, name, annotator, actor=who.actor)])
    if action == "exclude":
        exclude(site.db, name, annotator, "by hand", who.actor)
    elif action == "revoke":
        revoke(site.db, annotator, name, who.actor)
    else:
        include(site.db, name, annotator, who.actor)
    return to(f"/owner/studies/{name}#annotators")


@router.post("/studies/{name}/rules")
def run_rules(site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """Exclude whom the rules rule out."""
    exclude_by_rules(site.db, name, who.actor)
    return to(f"/owner/studies/{name}#annotators")


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/settings")
def settings_page(request: Request, site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """Instructions, consent, crowd, exclusion rules."""
    return _settings_page(request, site, who, name)


def _settings_page(request: Request, site: Site, who: OwnerHere, name: str, status: int = 200, **more: Any) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
    settings = settings_of(study.settings)
    own = {"who": who.link, "study": study, "settings": settings, "platforms": PLATFORMS}
    own |= {"parameter": WORKER_PARAMETER[settings.platform], "problem": "", "link": "", "both": {}}
    return page(request, "settings.html", status, **(own | more))


@router.post("/studies/{name}/settings")
def save_settings(request: Request, site: SiteHere, who: OwnerHere, name: Name, given: Posted) -> Response:
    """Change the settings, unless somebody else did since the page was loaded: then both values are shown."""
    if not re.fullmatch(r"[0-9]{1,9}", given.get("revision", "")):
        raise HTTPException(400, "the form lacks the revision of the settings; load the page again")
    try:
        with site.db.write() as session:
            study = study_named(session, name)
            change_settings(session, study, who.actor, _read_settings(given), int(given["revision"]))
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
    request: Request, site: SiteHere, who: OwnerHere, name: Name, ids: Annotated[Text, Form(max_length=60_000)] = ""
) -> Response:
    """Add ids to the list, or make the shared address."""
    if ids.strip():
        list_workers(site.db, name, ids.splitlines(), who.actor)
        return to(f"/owner/studies/{name}/settings")
    token = crowd_address(site.db, name, who.actor)
    link = f"{(site.url or str(request.base_url)).rstrip('/')}/crowd/{token}"
    return _settings_page(request, site, who, name, link=link)


# -- adjudication ----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/adjudicate")
def next_dispute(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """The next disagreement that nobody has decided."""
    study, questions = _judged(site, name)
    left = disagreements(task_named(study.task), questions, undecided_only=True)
    if not left:
        return _dashboard(request, site, who, name, notice="There is nothing left to decide.")
    return to(f"/owner/studies/{name}/questions/{left[0].question.ordinal}")


def _judged(site: Site, name: str) -> tuple[StudyRow, list[Judged]]:
    with site.db.read() as session:
        study = study_named(session, name)
        return study, judged(study_record(session, study))


def _asked(questions: Sequence[Judged], ordinal: int) -> Judged:
    one = next((one for one in questions if one.question.ordinal == ordinal), None)
    if one is None:
        raise HTTPException(404, "there is no such question")
    return one


@router.get("/studies/{name}/questions/{ordinal}")
def question_page(
    request: Request, site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, problem: str = ""
) -> Response:
    """A question with what everybody said, and the form to decide it."""
    study, questions = _judged(site, name)
    task, one = task_named(study.task), _asked(questions, ordinal)
    return page(
        request,
        "question.html",
        400 if problem else 200,
        who=who.link,
        study=study,
        one=one,
        form=_plain_form(study, one),
        settled=settle(task, one),
        say=lambda value: task.say(one.question.payload, value),
        left=len(disagreements(task, questions, undecided_only=True)),
        problem=problem,
    )


def _plain_form(study: StudyRow, one: Judged) -> PageForm:
    """A question in the benchmark's own order."""
    task = task_named(study.task)
    return task.show(one.question.payload, range(task.shuffled(one.question.payload)))


@router.post("/studies/{name}/questions/{ordinal}")
def decide(
    request: Request, site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, given: Posted
) -> Response:
    """Decide a question. Earlier decisions stay on record."""
    comment = given.get("comment", "")[:2000].replace("\0", "")
    study, questions = _judged(site, name)
    task, one = task_named(study.task), _asked(questions, ordinal)
    form, payload = _plain_form(study, one), one.question.payload
    try:
        read = read_form(form, _typed(form, given))
    except AnswerError as e:
        return question_page(request, site, who, name, ordinal, e.what)
    value = task.mean(payload, range(task.shuffled(payload)), read)
    with site.db.write() as session:
        adjudicate(session, study_named(session, name), ordinal, value, comment, who.actor)
    return to(f"/owner/studies/{name}/adjudicate")


def _typed(form: PageForm, given: dict[str, str]) -> dict[str, str | int]:
    """A form's text as the fields want it; what is not a number is refused by the field."""
    scales = {field.name for field in form.fields if field.kind == "scale"}
    texts = {field.name: given[field.name] for field in form.fields if field.name in given}
    return {k: int(v) if k in scales and re.fullmatch(r"-?[0-9]{1,6}", v) else v for k, v in texts.items()}


@router.get("/studies/{name}/pictures/{ordinal}/{place}")
def question_picture(site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, place: Place) -> Response:
    """A picture of a question, in the benchmark's own order."""
    with site.db.read() as session:
        study = study_named(session, name)
        own = select(Question.payload).where(Question.study_id == study.id, Question.ordinal == ordinal)
        images = (session.scalar(own) or {"images": []})["images"]
    if place >= len(images):
        raise HTTPException(404, "no such picture")
    return picture_response(site, study.bench, images[place])


# -- export ------------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/export.{kind}")
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
