"""The people of a study as its owner manages them: links, exclusion, settings, crowds, payment."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import select

from creperie.annotation.adjudication import add_gold
from creperie.annotation.crowd import PAYMENT_COLUMNS, WORKER_PARAMETER, crowd_address, list_workers, payments
from creperie.annotation.export import as_csv
from creperie.annotation.links import reissue, revoke
from creperie.annotation.people import delete_study, exclude, exclude_by_rules, include, person_data
from creperie.annotation.quality import overview
from creperie.annotation.schema import Question, StudyRow
from creperie.annotation.settings import BOUNDS, LANGUAGES, PLATFORMS, StudySettings, settings_of
from creperie.annotation.state import OldRevisionError, change_settings, study_named
from creperie.annotation.study import copy_study
from creperie.annotation.tasks import task_named
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
from creperie.core import CreperieError, UsageError
from creperie.metrics import MetricSettings

router = APIRouter(default_response_class=HTMLResponse)

PREVIEWED = 20


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
    actor = actor_of(who)
    if action == "reissue":
        link = reissue(site.db, name, annotator, actor=actor).link(site.url or str(request.base_url))
        return page(request, "link.html", who=who.link, study=name, annotator=annotator, link=link)
    if action == "exclude":
        exclude(site.db, name, annotator, "by hand", actor)
    else:
        (revoke if action == "revoke" else include)(site.db, name, annotator, actor)
    return to(f"/owner/studies/{name}#annotators")


@router.post("/studies/{name}/rules")
def run_rules(request: Request, site: SiteHere, who: OwnerHere, name: Name, csrf: Csrf = "") -> Response:
    """Exclude whom the rules rule out."""
    check_csrf(request, csrf)
    exclude_by_rules(site.db, name, actor_of(who))
    return to(f"/owner/studies/{name}#annotators")


@router.get("/studies/{name}/annotators/{pseudonym}.json", response_class=JSONResponse)
def annotator_data(site: SiteHere, who: OwnerHere, name: Name, pseudonym: str) -> Response:
    """What one annotator may ask for: everything that is stored about them."""
    return JSONResponse(person_data(site.db, name, pseudonym[:64]))


@router.get("/studies/{name}/payments.csv", response_class=Response)
def payment_file(site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """What each annotator is owed."""
    with site.db.read() as session:
        study = study_named(session, name)
        rows = payments(study, overview(session, study, MetricSettings())["annotators"])
    return download(as_csv(rows, PAYMENT_COLUMNS), "text/csv", f"{name}-payments.csv")


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/settings")
def settings_page(request: Request, site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """Consent, crowd, qualification, exclusion."""
    return _settings_page(request, site, who, name)


def _settings_page(request: Request, site: Site, who: OwnerHere, name: str, status: int = 200, **more: Any) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
    settings = settings_of(study.settings)
    screening = json.dumps(list(settings.screening), ensure_ascii=False, indent=1) if settings.screening else ""
    own = {"who": who.link, "study": study, "settings": settings, "screening": screening, "platforms": PLATFORMS}
    own |= {"languages": LANGUAGES, "parameter": WORKER_PARAMETER[settings.platform]}
    return page(request, "settings.html", status, **own, **{"problem": "", "link": "", "both": {}, **more})


@router.post("/studies/{name}/settings")
def save_settings(request: Request, site: SiteHere, who: OwnerHere, name: Name, given: Posted) -> Response:
    """Change the settings, unless somebody else did since the page was loaded: then both values are shown."""
    check_csrf(request, given.get("csrf"))
    revision = given.get("revision", "")
    if not (revision.isascii() and revision.isdecimal() and len(revision) < 10):
        raise HTTPException(400, "the form lacks the revision of the settings; load the page again")
    try:
        with site.db.write() as session:
            study = study_named(session, name)
            change_settings(session, study, actor_of(who), read_settings(given), int(revision))
    except OldRevisionError as e:
        return _settings_page(request, site, who, name, 409, both=e.both)
    except CreperieError as e:
        return _settings_page(request, site, who, name, 400, problem=str(e))
    return to(f"/owner/studies/{name}/settings")


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


def read_settings(given: dict[str, str]) -> dict[str, Any]:
    """A form's texts as settings; an empty number means that there is none."""
    changes: dict[str, Any] = {}
    for name in (f.name for f in fields(StudySettings)):
        value = given.get(name, "").replace("\r\n", "\n")
        if name not in given or name in ("crowd_address", "gold", "codes"):
            continue
        try:
            if name in BOUNDS:
                changes[name] = BOUNDS[name][0](value) if value else (0.0 if name == "pay" else None)
            elif name == "screening":
                changes[name] = json.loads(value) if value.strip() else []
            else:
                changes[name] = value
        except (ValueError, RecursionError):
            raise UsageError(f"{name}: {value[:60]!r} is not valid") from None
    if any(key.startswith("code_") for key in given):
        codes = {key.removeprefix("code_"): value for key, value in given.items() if key.startswith("code_") and value}
        changes["codes"] = codes
    return changes


# -- before and after ------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/preview")
def preview(request: Request, site: SiteHere, who: AdjudicatorHere, name: Name) -> Response:
    """The first questions of each kind as annotators see them, with the answers that are known."""
    with site.db.read() as session:
        study = study_named(session, name)
        own = select(Question).where(Question.study_id == study.id).order_by(Question.ordinal)
        shown = [
            q
            for kind in ("practice", "attention", "main")
            for q in session.scalars(own.where(Question.kind == kind).limit(PREVIEWED))
        ]
    return page(request, "preview.html", who=who.link, study=study, shown=[_previewed(study, q) for q in shown])


def _previewed(study: StudyRow, question: Question) -> dict[str, Any]:
    task = task_named(study.task)
    form = task.show(question.payload, range(task.shuffled(question.payload)))
    known = task.say(question.payload, question.expected) if question.expected else ""
    return {"question": question, "form": form, "known": known}


@router.post("/studies/{name}/manage")
def manage(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    action: Annotated[str, Form(pattern="^(delete|copy|gold)$")],
    value: Annotated[Text, Form(max_length=64)] = "",
    csrf: Csrf = "",
) -> Response:
    """Delete a study, copy it, or add gold questions. To delete what people said, its name must be given."""
    check_csrf(request, csrf)
    if action == "gold":
        if not (value.isascii() and value.isdecimal() and 0 < int(value[:6]) <= 1000):
            raise HTTPException(400, "how many gold questions?")
        add_gold(site.db, name, int(value), actor_of(who))
    elif action == "copy":
        copy_study(site.db, name, value, actor_of(who))
        return to(f"/owner/studies/{value}")
    else:
        delete_study(site.db, name, actor_of(who), erase_answers=value == name)
        return to("/owner")
    return to(f"/owner/studies/{name}")
