"""One study as its owner sees it: dashboard, invitations, adjudication, export, apply."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.apply import apply_study, bench_of, write_applied
from creperie.annotation.exchange import as_csv, as_jsonl, export_rows
from creperie.annotation.invitations import DAYS, Invitation, invite
from creperie.annotation.manage import forecast
from creperie.annotation.measures import overview, progress
from creperie.annotation.outcome import adjudicate, disagreements, judged, settle
from creperie.annotation.schema import CLOSED, MAIN, OPEN, PAUSED, Event, Owner, Question, StudyRole, StudyRow
from creperie.annotation.study import end_pilot, set_instructions, set_state, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import AnswerError, read_form
from creperie.annotation.tasks.form import PageForm as Shown
from creperie.annotation.web.annotator import Place, picture_response
from creperie.annotation.web.entry import posted
from creperie.annotation.web.site import (
    Name,
    OwnerHere,
    ReviewerHere,
    Site,
    SiteHere,
    Text,
    ViewerHere,
    actor_of,
    check_csrf,
    may_change,
    page,
    to,
)
from creperie.core import locked
from creperie.metrics import MetricSettings

router = APIRouter(default_response_class=HTMLResponse)

SHOWN_EVENTS = 30

Ordinal = Annotated[int, Path(ge=0, le=2**31 - 1)]
Csrf = Annotated[str, Form(max_length=200)]
Comment = Annotated[Text, Form(max_length=2000)]
_SEE: dict[int | str, dict[str, Any]] = {400: {}, 401: {}, 404: {}}
_FORM: dict[int | str, dict[str, Any]] = {303: {}, 400: {}, 401: {}, 403: {}, 404: {}, 413: {}}


# -- dashboard -------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}", responses=_SEE)
def study_page(request: Request, site: SiteHere, who: ViewerHere, name: Name) -> Response:
    """Progress, agreement, annotators, disagreements, the audit trail."""
    return _dashboard(request, site, who, name)


@router.get("/api/studies/{name}", response_model=None, response_class=JSONResponse, responses=_SEE)
def study_document(site: SiteHere, who: ViewerHere, name: Name) -> dict[str, Any]:
    """The same as a document; null where there is no number."""
    with site.db.read() as session:
        return _plain(overview(session, study_named(session, name), MetricSettings()))


@router.get("/studies/{name}/progress.json", response_model=None, response_class=JSONResponse, responses=_SEE)
def live_progress(site: SiteHere, who: ViewerHere, name: Name) -> dict[str, Any]:
    """What the dashboard asks for every few seconds."""
    with site.db.read() as session:
        rows = progress(session, study_named(session, name))
    return {"subsets": rows, **{part: sum(row[part] for row in rows) for part in ("done", "slots", "held")}}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and value != value else value


def _dashboard(
    request: Request, site: Site, who: ViewerHere, name: str, links: Sequence[Invitation] = (), said: str = ""
) -> Response:
    assert who.owner is not None
    with site.db.read() as session:
        study = study_named(session, name)
        seen = overview(session, study, MetricSettings())
        task = task_named(study.task)
        found = judged(session, study)
        commented = [one for one in found if any(s.comment for s in one.said)]
        named = select(Owner.name, StudyRole.role).join(StudyRole, StudyRole.owner_id == Owner.id)
        roles = session.execute(named.where(StudyRole.study_id == study.id).order_by(Owner.name)).all()
        events = session.scalars(
            select(Event).where(Event.study_id == study.id).order_by(Event.id.desc()).limit(SHOWN_EVENTS)
        ).all()
    base = site.url or str(request.base_url)
    return page(
        request,
        "study.html",
        who=who.owner,
        may_change=may_change(request, who, study),
        study=study,
        task=task,
        seen=seen,
        disputed=disagreements(task, found),
        commented=commented,
        events=events,
        roles=roles,
        forecast=forecast(study, seen["annotators"], seen["slots"] - seen["done"]),
        links=[(i.pseudonym, i.link(base)) for i in links],
        said=said,
        settle=lambda one: settle(task, one),
        days=DAYS,
        once=secrets.token_hex(16),
    )


@router.post("/studies/{name}/state", responses=_FORM)
def change_state(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    state: Annotated[str, Form(pattern=f"^({OPEN}|{PAUSED}|{CLOSED}|end-pilot)$")],
    csrf: Csrf = "",
) -> Response:
    """Stop, go on, close, or let the rest follow the pilot."""
    check_csrf(request, csrf)
    if state == "end-pilot":
        end_pilot(site.db, name, actor_of(who))
    else:
        set_state(site.db, name, state, actor_of(who))
    return to(f"/owner/studies/{name}")


@router.post("/studies/{name}/instructions", responses=_FORM)
def change_instructions(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    text: Annotated[Text, Form(min_length=1, max_length=20000)],
    csrf: Csrf = "",
) -> Response:
    """What annotators read."""
    check_csrf(request, csrf)
    set_instructions(site.db, name, text.replace("\r\n", "\n"), actor_of(who))
    return to(f"/owner/studies/{name}#instructions")


# -- invitations -----------------------------------------------------------------------------------------------------


@router.post("/studies/{name}/invitations", responses=_FORM)
def make_invitations(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    once: Annotated[str, Form(pattern="^[0-9a-f]{0,32}$")] = "",
    count: Annotated[int, Form(ge=1, le=200)] = 1,
    days: Annotated[float, Form(gt=0, le=3650, allow_inf_nan=False)] = DAYS,
    note: Annotated[Text, Form(max_length=200)] = "",
    csrf: Csrf = "",
) -> Response:
    """New links. Only their hashes are kept; a form that is sent again invites nobody again."""
    check_csrf(request, csrf)
    if once and once in site.shown_links:
        return _dashboard(request, site, who, name, links=site.shown_links[once])
    made = invite(site.db, name, count, days=days, note=note, actor=actor_of(who))
    if once:
        site.shown_links[once] = made
        while len(site.shown_links) > 20:
            site.shown_links.pop(next(iter(site.shown_links)))
    return _dashboard(request, site, who, name, links=made)


# -- adjudication ----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/adjudicate", responses={303: {}, **_SEE})
def next_dispute(request: Request, site: SiteHere, who: ViewerHere, name: Name) -> Response:
    """The next disagreement that nobody has decided."""
    with site.db.read() as session:
        study = study_named(session, name)
        left = disagreements(task_named(study.task), judged(session, study), undecided_only=True)
    if not left:
        return _dashboard(request, site, who, name, said="There is nothing left to decide.")
    return to(f"/owner/studies/{name}/questions/{left[0].question.ordinal}")


@router.get("/studies/{name}/questions/{ordinal}", responses=_SEE)
def question_page(request: Request, site: SiteHere, who: ViewerHere, name: Name, ordinal: Ordinal) -> Response:
    """A question with what everybody said, and the form to decide it."""
    return _question_page(request, site, who, name, ordinal)


def _question_page(
    request: Request, site: Site, who: ViewerHere, name: str, ordinal: int, problem: str = ""
) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
        found = judged(session, study)
        one = next((one for one in found if one.question.ordinal == ordinal), None)
        left = len(disagreements(task_named(study.task), found, undecided_only=True))
    if one is None:
        raise HTTPException(404, "there is no such question")
    task = task_named(study.task)
    return page(
        request,
        "question.html",
        400 if problem else 200,
        who=who.owner,
        study=study,
        one=one,
        form=_plain_form(study, one.question),
        settled=settle(task, one),
        say=lambda value: task.say(one.question.payload, value),
        left=left,
        problem=problem,
    )


def _asked(session: Session, study: StudyRow, ordinal: int) -> Question:
    own = select(Question).where(Question.study_id == study.id, Question.ordinal == ordinal, Question.kind == MAIN)
    found = session.scalar(own)
    if found is None:
        raise HTTPException(404, "there is no such question")
    return found


def _plain_form(study: StudyRow, question: Question) -> Shown:
    """The question in the benchmark's own order."""
    task = task_named(study.task)
    return task.show(question.payload, range(task.shuffled(question.payload)))


@router.post("/studies/{name}/questions/{ordinal}", responses={422: {}, **_FORM})
def decide(
    request: Request,
    site: SiteHere,
    who: ReviewerHere,
    name: Name,
    ordinal: Ordinal,
    given: Annotated[dict[str, str], Depends(posted)],
) -> Response:
    """Decide a question. Earlier decisions stay on record."""
    check_csrf(request, given.get("csrf"))
    comment = given.get("comment", "")[:2000].replace("\0", "")
    with site.db.write() as session:
        study = study_named(session, name)
        question = _asked(session, study, ordinal)
        task = task_named(study.task)
        form = _plain_form(study, question)
        order = range(task.shuffled(question.payload))
        try:
            value = task.mean(question.payload, order, read_form(form, _typed(form, given)))
        except AnswerError as e:
            problem = e.what
        else:
            problem = ""
            adjudicate(session, study, question, value, comment, actor_of(who))
    if problem:
        return _question_page(request, site, who, name, ordinal, problem)
    return to(f"/owner/studies/{name}/adjudicate")


def _typed(form: Shown, given: dict[str, str]) -> dict[str, str | int]:
    """A form's text as the fields want it; what is not a number is refused by the field."""
    typed: dict[str, str | int] = {}
    for field in form.fields:
        value = given.get(field.name)
        if value is not None:
            number = field.kind == "scale" and re.fullmatch(r"-?[0-9]{1,6}", value)
            typed[field.name] = int(value) if number else value
    return typed


@router.get("/studies/{name}/pictures/{ordinal}/{place}", response_class=Response, responses=_SEE)
def question_picture(site: SiteHere, who: ViewerHere, name: Name, ordinal: Ordinal, place: Place) -> Response:
    """A picture of a question, in the benchmark's own order."""
    with site.db.read() as session:
        study = study_named(session, name)
        question = session.scalar(select(Question).where(Question.study_id == study.id, Question.ordinal == ordinal))
    if question is None or place >= len(question.payload["images"]):
        raise HTTPException(404, "no such picture")
    return picture_response(site, study.bench, question.payload["images"][place])


# -- out -------------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/answers.jsonl", response_class=Response, responses=_SEE)
def download_jsonl(site: SiteHere, who: ViewerHere, name: Name) -> Response:
    """All events as JSONL."""
    with site.db.read() as session:
        text = as_jsonl(export_rows(session, study_named(session, name)))
    return _download(text, "application/jsonl", f"{name}.jsonl")


@router.get("/studies/{name}/answers.csv", response_class=Response, responses=_SEE)
def download_csv(site: SiteHere, who: ViewerHere, name: Name) -> Response:
    """All events as CSV."""
    with site.db.read() as session:
        text = as_csv(export_rows(session, study_named(session, name)))
    return _download(text, "text/csv", f"{name}.csv")


def _download(text: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


@router.post("/studies/{name}/apply", responses=_FORM)
def apply_page(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    undecided: Annotated[str, Form(pattern="^(keep|drop)$")] = "keep",
    csrf: Csrf = "",
) -> Response:
    """Write what the answers amount to: a new version of the benchmark, or human runs."""
    check_csrf(request, csrf)
    with site.db.read() as session:
        study = study_named(session, name)
    done = apply_study(site.db, name, bench_of(site.db, name), undecided=undecided)
    # Two that apply at once get a version each.
    with locked(site.out / ".apply.lock", "another version is being written", where=site.out, wait=True):
        folder = _next_version(site.out, name) if done.bench is not None else None
        document = write_applied(site.db, name, done, out=folder, runs=site.out / "runs", actor=actor_of(who))
    return page(request, "applied.html", who=who.owner, study=study, document=document)


def _next_version(out: FilePath, name: str) -> FilePath:
    """The first version of this study that is not there yet."""
    return next(path for n in range(1, 10_000) if not (path := out / f"{name}-v{n}").exists())
