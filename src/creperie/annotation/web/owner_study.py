"""One study as its owner sees it: dashboard, invitations, adjudication, export, apply."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import select

from creperie.annotation.adjudication import adjudicate
from creperie.annotation.apply import apply_study, bench_of, write_applied
from creperie.annotation.export import answer_rows, as_csv, exported, study_record
from creperie.annotation.links import DAYS, Invitation, invite
from creperie.annotation.outcome import disagreements, judged, settle
from creperie.annotation.quality import forecast, overview, progress
from creperie.annotation.schema import ARCHIVED, CLOSED, OPEN, OWNER, PAUSED, Event, Question, StudyRow
from creperie.annotation.state import STUDY_MOVES, end_pilot, set_state, study_named
from creperie.annotation.study import set_instructions
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import AnswerError, PageForm, read_form
from creperie.annotation.web.annotator import Place, picture_response
from creperie.annotation.web.site import (
    AdjudicatorHere,
    Csrf,
    Name,
    OwnerHere,
    Posted,
    Site,
    SiteHere,
    Text,
    actor_of,
    check_csrf,
    download,
    page,
    to,
)
from creperie.core import locked
from creperie.metrics import MetricSettings

router = APIRouter(default_response_class=HTMLResponse)

SHOWN_EVENTS = 30

Ordinal = Annotated[int, Path(ge=0, le=2**31 - 1)]


# -- dashboard -------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}")
def study_page(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """Progress, agreement, annotators, disagreements, the audit trail."""
    return dashboard(request, site, who, name)


@router.get("/studies/{name}/progress.json", response_model=None, response_class=JSONResponse)
def live_progress(site: SiteHere, who: AdjudicatorHere, name: Name) -> dict[str, Any]:
    """What the dashboard asks for every few seconds."""
    with site.db.read() as session:
        rows = progress(session, study_named(session, name))
    return {"subsets": rows, **{part: sum(row[part] for row in rows) for part in ("done", "slots", "held")}}


def dashboard(
    request: Request, site: Site, who: AdjudicatorHere, name: str, links: Sequence[Invitation] = (), said: str = ""
) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
        seen = overview(session, study, MetricSettings())
        found = judged(study_record(session, study))
        last = select(Event).where(Event.study_id == study.id).order_by(Event.id.desc())
        events = session.scalars(last.limit(SHOWN_EVENTS)).all()
    task = task_named(study.task)
    base = site.url or str(request.base_url)
    return page(
        request,
        "study.html",
        who=who.link,
        may_change=who.may(OWNER),
        moves=STUDY_MOVES[study.state],
        study=study,
        task=task,
        seen=seen,
        disputed=disagreements(task, found),
        commented=[one for one in found if any(s.comment for s in one.said)],
        events=events,
        forecast=forecast(study, seen["annotators"], seen["slots"] - seen["done"]),
        links=[(i.pseudonym, i.link(base)) for i in links],
        said=said,
        days=DAYS,
        once=secrets.token_hex(16),
    )


@router.post("/studies/{name}/state")
def change_state(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    state: Annotated[str, Form(pattern=f"^({OPEN}|{PAUSED}|{CLOSED}|{ARCHIVED}|end-pilot)$")],
    csrf: Csrf = "",
) -> Response:
    """Pause, go on, close, archive, or let the rest follow the pilot."""
    check_csrf(request, csrf)
    with site.db.write() as session:
        study = study_named(session, name)
        if state == "end-pilot":
            end_pilot(session, study, actor_of(who))
        else:
            set_state(session, study, state, actor_of(who))
    return to("/owner" if state == ARCHIVED else f"/owner/studies/{name}")


@router.post("/studies/{name}/instructions")
def change_instructions(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    text: Annotated[Text, Form(min_length=1, max_length=20000)],
    revision: Annotated[int, Form(ge=1, le=2**31 - 1)],
    csrf: Csrf = "",
) -> Response:
    """What annotators read."""
    check_csrf(request, csrf)
    set_instructions(site.db, name, text.replace("\r\n", "\n"), actor_of(who), revision=revision)
    return to(f"/owner/studies/{name}#instructions")


@router.post("/studies/{name}/invitations")
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
        return dashboard(request, site, who, name, links=site.shown_links[once])
    made = invite(site.db, name, count, days=days, note=note, actor=actor_of(who))
    if once:
        site.shown_links[once] = made
        while len(site.shown_links) > 20:
            site.shown_links.pop(next(iter(site.shown_links)))
    return dashboard(request, site, who, name, links=made)


# -- adjudication ----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/adjudicate")
def next_dispute(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """The next disagreement that nobody has decided."""
    with site.db.read() as session:
        study = study_named(session, name)
        left = disagreements(task_named(study.task), judged(study_record(session, study)), undecided_only=True)
    if not left:
        return dashboard(request, site, who, name, said="There is nothing left to decide.")
    return to(f"/owner/studies/{name}/questions/{left[0].question.ordinal}")


@router.get("/studies/{name}/questions/{ordinal}")
def question_page(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal) -> Response:
    """A question with what everybody said, and the form to decide it."""
    return _question_page(request, site, who, name, ordinal)


def _question_page(
    request: Request, site: Site, who: AdjudicatorHere, name: str, ordinal: int, problem: str = ""
) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
        found = judged(study_record(session, study))
    task = task_named(study.task)
    one = next((one for one in found if one.question.ordinal == ordinal), None)
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
        left=len(disagreements(task, found, undecided_only=True)),
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
    try:
        with site.db.write() as session:
            study = study_named(session, name)
            question = _question(site, name, ordinal)
            task, form = task_named(study.task), _plain_form(study, question.payload)
            read = read_form(form, _typed(form, given))
            value = task.mean(question.payload, range(task.shuffled(question.payload)), read)
            adjudicate(session, study, ordinal, value, comment, actor_of(who))
    except AnswerError as e:
        return _question_page(request, site, who, name, ordinal, e.what)
    return to(f"/owner/studies/{name}/adjudicate")


def _question(site: Site, name: str, ordinal: int) -> Question:
    with site.db.read() as session:
        study = study_named(session, name)
        own = select(Question).where(Question.study_id == study.id, Question.ordinal == ordinal)
        question = session.scalar(own)
    if question is None:
        raise HTTPException(404, "there is no such question")
    return question


def _typed(form: PageForm, given: dict[str, str]) -> dict[str, str | int]:
    """A form's text as the fields want it; what is not a number is refused by the field."""
    typed: dict[str, str | int] = {}
    for field in form.fields:
        value = given.get(field.name)
        if value is not None:
            number = field.kind == "scale" and re.fullmatch(r"-?[0-9]{1,6}", value)
            typed[field.name] = int(value) if number else value
    return typed


@router.get("/studies/{name}/pictures/{ordinal}/{place}", response_class=Response)
def question_picture(site: SiteHere, who: AdjudicatorHere, name: Name, ordinal: Ordinal, place: Place) -> Response:
    """A picture of a question, in the benchmark's own order."""
    question = _question(site, name, ordinal)
    if place >= len(question.payload["images"]):
        raise HTTPException(404, "no such picture")
    with site.db.read() as session:
        bench = study_named(session, name).bench
    return picture_response(site, bench, question.payload["images"][place])


# -- out -------------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/export.json", response_class=Response)
def download_record(site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """The study's record with its digest."""
    with site.db.read() as session:
        document = exported(study_record(session, study_named(session, name)))
    return download(json.dumps(document, ensure_ascii=False, indent=1), "application/json", f"{name}.json")


@router.get("/studies/{name}/answers.csv", response_class=Response)
def download_answers(site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """All answers for a spreadsheet."""
    with site.db.read() as session:
        document = exported(study_record(session, study_named(session, name)))
    return download(as_csv(answer_rows(document)), "text/csv", f"{name}.csv")


@router.post("/studies/{name}/apply")
def apply_page(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    undecided: Annotated[str, Form(pattern="^(keep|drop)$")] = "keep",
    verdict: Annotated[str, Form(pattern="^(majority|weighted)$")] = "majority",
    csrf: Csrf = "",
) -> Response:
    """Write what the answers amount to: a new version of the benchmark, or human runs."""
    check_csrf(request, csrf)
    done = apply_study(site.db, name, bench_of(site.db, name), undecided=undecided, verdict=verdict)
    # Two that apply at once get a version each.
    with locked(site.out / ".apply.lock", "another version is being written", where=site.out, wait=True):
        folder = _next_version(site.out, name) if done.bench is not None else None
        document = write_applied(site.db, done, out=folder, runs=site.out / "runs", actor=actor_of(who))
    return page(request, "applied.html", who=who.link, study=name, document=document)


def _next_version(out: FilePath, name: str) -> FilePath:
    """The first version of this study that is not there yet."""
    return next(path for n in range(1, 10_000) if not (path := out / f"{name}-v{n}").exists())
