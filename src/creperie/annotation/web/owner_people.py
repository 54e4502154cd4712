"""The people of a study as its owner manages them: links, exclusion, crowd settings, payment."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import select

from creperie.annotation.access import give_role
from creperie.annotation.crowd import PAYMENT_COLUMNS, open_link, payments
from creperie.annotation.exchange import as_csv
from creperie.annotation.exclusion import apply_rules, exclude, include
from creperie.annotation.invitations import reissue, revoke
from creperie.annotation.manage import archive, copy_study, delete_study
from creperie.annotation.outcome import add_gold
from creperie.annotation.privacy import person_data
from creperie.annotation.schema import Question, StudyRow
from creperie.annotation.settings import LANGUAGES, PLATFORMS, StudySettings, settings_of
from creperie.annotation.study import change_settings, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.web.entry import posted
from creperie.annotation.web.site import (
    Name,
    OwnerHere,
    Site,
    SiteHere,
    Text,
    ViewerHere,
    actor_of,
    check_csrf,
    page,
    to,
)
from creperie.core import CreperieError, UsageError

router = APIRouter(default_response_class=HTMLResponse)

Csrf = Annotated[str, Form(max_length=200)]
Who = Annotated[Text, Form(max_length=64)]
_SEE: dict[int | str, dict[str, Any]] = {400: {}, 401: {}, 403: {}, 404: {}, 503: {}}
_FORM: dict[int | str, dict[str, Any]] = {303: {}, 408: {}, 413: {}, **_SEE}
PREVIEWED = 20


@router.post("/studies/{name}/annotator", responses=_FORM)
def change_annotator(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    annotator: Who,
    action: Annotated[str, Form(pattern="^(revoke|exclude|include|reissue)$")],
    csrf: Csrf = "",
) -> Response:
    """End an invitation, exclude somebody, take that back, or replace a lost link."""
    check_csrf(request, csrf)
    actor = actor_of(who)
    if action == "reissue":
        made = reissue(site.db, name, annotator, actor=actor)
        link = made.link(site.url or str(request.base_url))
        return page(request, "link.html", who=who.owner, study=name, annotator=annotator, link=link)
    if action == "exclude":
        exclude(site.db, name, annotator, "by hand", actor)
    else:
        (revoke if action == "revoke" else include)(site.db, name, annotator, actor)
    return to(f"/owner/studies/{name}#annotators")


@router.post("/studies/{name}/rules", responses=_FORM)
def run_rules(request: Request, site: SiteHere, who: OwnerHere, name: Name, csrf: Csrf = "") -> Response:
    """Exclude whom the study's rules rule out."""
    check_csrf(request, csrf)
    apply_rules(site.db, name, actor_of(who))
    return to(f"/owner/studies/{name}#annotators")


@router.get("/studies/{name}/annotators/{pseudonym}.json", response_class=JSONResponse, responses=_SEE)
def annotator_data(site: SiteHere, who: OwnerHere, name: Name, pseudonym: str) -> Response:
    """Everything that is stored about one annotator."""
    return JSONResponse(person_data(site.db, name, pseudonym[:64]))


@router.get("/studies/{name}/payments.csv", response_class=Response, responses=_SEE)
def payment_file(site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """What each annotator is owed."""
    text = as_csv(payments(site.db, name), PAYMENT_COLUMNS)
    headers = {"Content-Disposition": f'attachment; filename="{name}-payments.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/settings", responses=_SEE)
def settings_page(request: Request, site: SiteHere, who: OwnerHere, name: Name) -> Response:
    """Consent, crowd, qualification, exclusion."""
    return _settings_page(request, site, who, name)


def _settings_page(
    request: Request, site: Site, who: OwnerHere, name: str, problem: str = "", link: str = ""
) -> Response:
    with site.db.read() as session:
        study = study_named(session, name)
    settings = settings_of(study.settings)
    screening = json.dumps(list(settings.screening), ensure_ascii=False, indent=1) if settings.screening else ""
    return page(
        request,
        "settings.html",
        400 if problem else 200,
        who=who.owner,
        study=study,
        settings=settings,
        screening=screening,
        platforms=PLATFORMS,
        languages=LANGUAGES,
        problem=problem,
        link=link,
    )


@router.post("/studies/{name}/settings", responses=_FORM)
def save_settings(
    request: Request, site: SiteHere, who: OwnerHere, name: Name, given: Annotated[dict[str, str], Depends(posted)]
) -> Response:
    """Change the settings, or make the self-service link."""
    check_csrf(request, given.get("csrf"))
    try:
        changes = read_settings(given)
        if given.get("make_link"):
            token = open_link(site.db, name, actor_of(who), **changes)
            link = f"{(site.url or str(request.base_url)).rstrip('/')}/study/{token}"
            return _settings_page(request, site, who, name, link=link)
        change_settings(site.db, name, actor_of(who), **changes)
    except CreperieError as e:
        return _settings_page(request, site, who, name, str(e))
    return to(f"/owner/studies/{name}/settings")


_NUMBERS = {"retention_days": int, "cap": int, "pass_practice": int, "minutes": float, "pay": float}
_NUMBERS |= dict.fromkeys(("max_attention_failures", "min_median_seconds", "min_agreement"), float)


def read_settings(given: dict[str, str]) -> dict[str, Any]:
    """A form's texts as settings; an empty number means that there is none."""
    changes: dict[str, Any] = {}
    for name in (f.name for f in fields(StudySettings)):
        value = given.get(name, "").replace("\0", "").replace("\r\n", "\n")
        if name not in given or name in ("open_link", "gold", "codes"):
            continue
        try:
            if name in _NUMBERS:
                changes[name] = _NUMBERS[name](value) if value else (0.0 if name == "pay" else None)
            elif name == "screening":
                changes[name] = json.loads(value) if value.strip() else []
            else:
                changes[name] = value
        except ValueError:
            raise UsageError(f"{name}: {value[:60]!r} is not valid") from None
    codes = {key.removeprefix("code_"): value for key, value in given.items() if key.startswith("code_") and value}
    if any(key.startswith("code_") for key in given):
        changes["codes"] = {key: value[:64] for key, value in codes.items()}
    return changes


# -- before and after ------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/preview", responses=_SEE)
def preview(request: Request, site: SiteHere, who: ViewerHere, name: Name) -> Response:
    """The first questions of each kind as annotators see them, with the answers that are known."""
    with site.db.read() as session:
        study = study_named(session, name)
        own = select(Question).where(Question.study_id == study.id).order_by(Question.ordinal)
        shown = [
            q
            for kind in ("practice", "attention", "main")
            for q in session.scalars(own.where(Question.kind == kind).limit(PREVIEWED))
        ]
    return page(request, "preview.html", who=who.owner, study=study, shown=[_previewed(study, q) for q in shown])


def _previewed(study: StudyRow, question: Question) -> dict[str, Any]:
    task = task_named(study.task)
    form = task.show(question.payload, range(task.shuffled(question.payload)))
    known = task.say(question.payload, question.expected) if question.expected else ""
    return {"question": question, "form": form, "known": known}


@router.post("/studies/{name}/manage", responses=_FORM)
def manage(
    request: Request,
    site: SiteHere,
    who: OwnerHere,
    name: Name,
    action: Annotated[str, Form(pattern="^(archive|unarchive|delete|copy|gold|role)$")],
    value: Annotated[Text, Form(max_length=64)] = "",
    role: Annotated[str, Form(pattern="^(owner|reviewer|viewer|)$")] = "",
    csrf: Csrf = "",
) -> Response:
    """Archive a study or bring it back, delete it, copy it, add gold questions, or give an account a role in it.

    To delete a study with what people said, its name must be given.
    """
    check_csrf(request, csrf)
    if action == "gold":
        if not (value.isascii() and value.isdecimal() and 0 < int(value[:6]) <= 1000):
            raise HTTPException(400, "how many gold questions?")
        add_gold(site.db, name, int(value), actor_of(who))
    elif action == "copy":
        copy_study(site.db, name, value, actor_of(who))
        return to(f"/owner/studies/{value}")
    elif action == "role":
        give_role(site.db, name, value, role, actor_of(who))
    else:
        if action == "delete":
            delete_study(site.db, name, actor_of(who), erase_answers=value == name)
        else:
            archive(site.db, name, actor_of(who), back=action == "unarchive")
        return to("/owner")
    return to(f"/owner/studies/{name}")
