"""The pages of owners and adjudicators: dashboard, invitations, settings, adjudication, export."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import Response
from sqlalchemy import select

from creperie.annotation.crowd import crowd_address, list_workers
from creperie.annotation.export import export_text, exported, study_record
from creperie.annotation.links import DAYS, Invitation, invite, reissue, revoke
from creperie.annotation.outcome import Judged, disagreements, judged, settle
from creperie.annotation.people import exclude, exclude_by_rules, include, withdraw
from creperie.annotation.quality import FEWEST_COMPARED, overview
from creperie.annotation.schema import ADJUDICATOR, OWNER, Event
from creperie.annotation.settings import BOUNDS, NAMES, PLACEHOLDER, WORKER_PARAMETER, changed, settings_of
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
from creperie.annotation.tasks.form import AnswerError, read_form
from creperie.annotation.web.annotator import Place, picture_response
from creperie.annotation.web.site import (
    CSRF,
    AdjudicatorHere,
    OwnerHere,
    Posted,
    ReaderHere,
    SiteHere,
    StudyVisit,
    Text,
    base_url,
    page,
)
from creperie.core import CreperieError, Json, counted

router = APIRouter(prefix="/owner", include_in_schema=False, dependencies=CSRF)

SHOWN_EVENTS = 30

Ordinal = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("")
def studies_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    """Show all studies that the caller may see."""
    with site.db.read() as session:
        studies = [s for s in all_studies(session) if who.may(ADJUDICATOR, s["id"])]
    return page(request, "studies.html", who=who.link, studies=studies, tasks=TASKS)


# -- dashboard -------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}")
def study_page(here: AdjudicatorHere) -> Response:
    """Show a study's progress, agreement, annotators, disagreements and audit trail."""
    return _dashboard(here)


def _dashboard(here: StudyVisit, links: Sequence[Invitation] = (), notice: str = "") -> Response:
    study, task, questions = here.study, task_named(here.study.task), _judged(here)
    with here.db.read() as session:
        seen = overview(session, study)
        last = select(Event).where(Event.study_id == study.id).order_by(Event.id.desc())
        events = session.scalars(last.limit(SHOWN_EVENTS)).all()
    return here.page(
        "study.html",
        may_change=here.who.may(OWNER),
        moves=STUDY_MOVES[study.state],
        task=task,
        seen=seen,
        disputed=disagreements(task, questions),
        commented=[one for one in questions if any(s.comment for s in one.answers)],
        events=[(one, _details(one)) for one in events],
        links=[(i.pseudonym, i.link(base_url(here.request))) for i in links],
        notice=notice,
        compared=FEWEST_COMPARED,
        days=DAYS,
        once=secrets.token_hex(16),
    )


def _details(event: Event) -> str:
    """Return whom or what an event of the audit trail is about, in words."""
    details = {name: v for name, v in event.detail.items() if v not in ("", None) and not isinstance(v, dict)}
    details.pop("form", None)  # it only tells whether a form was sent twice
    words = {name: ", ".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in details.items()}
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in words.items())[:300]


def _judged(here: StudyVisit) -> list[Judged]:
    with here.db.read() as session:
        return judged(study_record(session, here.study))


@router.post("/studies/{name}/state")
def change_state(here: OwnerHere, state: Annotated[Text, Form(max_length=16)]) -> Response:
    """Pause, reopen or close the study."""
    with here.db.write() as session:
        set_state(session, study_named(session, here.name), state, here.who.actor)
    return here.redirect()


# -- people ------------------------------------------------------------------------------------------------------------


@router.post("/studies/{name}/invitations")
def make_invitations(
    here: OwnerHere,
    once: Annotated[str, Form(pattern="^[0-9a-f]{32}$")],
    count: Annotated[int, Form(ge=1, le=200)] = 1,
    days: Annotated[float, Form(gt=0, le=3650, allow_inf_nan=False)] = DAYS,
    note: Annotated[Text, Form(max_length=200)] = "",
) -> Response:
    """Create links for new annotators and show them once; only their hashes are stored.

    Submitting the same form twice creates no further links. The first ones are shown again, as long as the server
    remembers them.
    """
    shown = here.site.shown_links
    with here.site.inviting:
        if once not in shown:
            about: Json = {"days": days, "note": note, "form": once, "actor": here.who.actor}
            shown[once] = invite(here.db, here.name, count, **about)
        while len(shown) > 20:
            shown.pop(next(iter(shown)))
        links = shown[once]
    gone = "This form was sent before, and its links cannot be shown again. Use “New link” beside a name."
    return _dashboard(here, links, "" if links else gone)


@router.post("/studies/{name}/annotator")
def change_annotator(
    here: OwnerHere,
    annotator: Annotated[Text, Form(max_length=64)],
    action: Annotated[str, Form(pattern="^(revoke|exclude|include|reissue|withdraw)$")],
) -> Response:
    """Perform one action on an annotator: revoke the invitation, exclude or include the annotator, replace a lost link,
    or erase the answers of somebody who withdraws.
    """
    db, actor = here.db, here.who.actor
    if action == "reissue":
        return _dashboard(here, [reissue(db, here.name, annotator, actor=actor)])
    if action == "exclude":
        exclude(db, here.name, annotator, "by hand", actor)
    elif action == "withdraw":
        withdraw(db, here.name, annotator, actor)
    elif action == "revoke":
        revoke(db, annotator, here.name, actor)
    else:
        include(db, here.name, annotator, actor)
    return here.redirect("#annotators")


@router.post("/studies/{name}/rules")
def run_rules(here: OwnerHere) -> Response:
    """Exclude every annotator who breaks one of the study's exclusion rules."""
    exclude_by_rules(here.db, here.name, here.who.actor)
    return here.redirect("#annotators")


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/settings")
def settings_page(here: OwnerHere, saved: bool = False) -> Response:
    """Show the form for the study's instructions, consent text, crowd and exclusion rules."""
    return _settings_page(here, notice="Saved." * saved)


def _settings_page(here: StudyVisit, status: int = 200, typed: Mapping[str, str] = {}, **more: Any) -> Response:
    """Show the form for the settings. Its fields hold the stored settings. If a form was refused, they hold what the
    owner had entered (`typed`).
    """
    with here.db.read() as session:
        study = study_named(session, here.name)  # it may have changed since
    settings = settings_of(study.settings)
    shown = asdict(settings) | {"instructions": study.instructions, "revision": study.revision} | dict(typed)
    own = {"study": study, "settings": shown, "platforms": WORKER_PARAMETER}
    news: Json = {"wrong": {}, "link": "", "both": {}, "notice": ""} | more
    return here.page("settings.html", status, **own, **news, parameter=WORKER_PARAMETER[settings.platform])


@router.post("/studies/{name}/settings")
def save_settings(here: OwnerHere, given: Posted) -> Response:
    """Save the settings. If somebody else changed them since the page was loaded, show both values instead."""
    if not re.fullmatch(r"[0-9]{1,9}", given.get("revision", "")):
        raise HTTPException(400, "the form lacks the revision of the settings; load the page again")
    typed = {name: given[name].replace("\r\n", "\n") for name in _SENT if name in given}
    changes, wrong = _read_settings(typed)
    try:
        if not wrong:
            with here.db.write() as session:
                study = study_named(session, here.name)
                change_settings(session, study, here.who.actor, changes, int(given["revision"]))
    except OldRevisionError as e:
        return _settings_page(here, 409, both=e.both)
    except CreperieError as e:
        wrong = {"": str(e)}
    if wrong:
        return _settings_page(here, 400, typed | {"revision": given["revision"]}, wrong=wrong)
    return here.redirect("/settings?saved=true")


#: The names of the fields in the form.
_SENT = NAMES - {"crowd_address"} | {"instructions"}


def _read_settings(typed: Mapping[str, str]) -> tuple[Json, dict[str, str]]:
    """Return two mappings by setting: the values typed into a form, and error messages for those that are not valid. An
    empty field for a number becomes None or, for the pay, 0.
    """
    changes: Json = {}
    wrong: dict[str, str] = {}
    for name, text in typed.items():
        try:
            empty = 0.0 if name == "pay" else None
            changes[name] = text if name not in BOUNDS else BOUNDS[name][0](text) if text else empty
            changed({}, {name: changes[name]} if name in NAMES else {})
        except ValueError:
            wrong[name] = f"the setting {name} must be a number, not {text[:60]!r}"
        except CreperieError as e:
            wrong[name] = str(e)
    return changes, wrong


@router.post("/studies/{name}/crowd")
def change_crowd(here: OwnerHere, ids: Annotated[Text, Form(max_length=60_000)] = "") -> Response:
    """Add ids to the list of workers. Without ids, create the address that all workers share."""
    if ids.strip():
        new = list_workers(here.db, here.name, ids.splitlines(), here.who.actor)
        return _settings_page(here, notice=f"Added: {counted(new, 'new id')}.")
    token = crowd_address(here.db, here.name, here.who.actor)
    platform = settings_of(here.study.settings).platform
    query = f"?{WORKER_PARAMETER[platform]}={PLACEHOLDER[platform]}" if platform in PLACEHOLDER else ""
    return _settings_page(here, link=f"{base_url(here.request)}/crowd/{token}{query}")


# -- adjudication ----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/adjudicate")
def next_dispute(here: AdjudicatorHere) -> Response:
    """Redirect to the next undecided question on which people disagree. If there is none, redirect to the dashboard."""
    left = disagreements(task_named(here.study.task), _judged(here), undecided_only=True)
    if not left:
        return _dashboard(here, notice="There is nothing left to decide.")
    return here.redirect(f"/questions/{left[0].ordinal}")


@router.get("/studies/{name}/questions/{ordinal}")
def question_page(here: AdjudicatorHere, ordinal: Ordinal) -> Response:
    """Show a question with all answers to it, and the form for deciding it."""
    return _question_page(here, ordinal)


def _question_page(here: StudyVisit, ordinal: int, problem: str = "") -> Response:
    task, questions = task_named(here.study.task), _judged(here)
    one = _question_of(questions, ordinal)
    return here.page(
        "question.html",
        400 if problem else 200,
        one=one,
        form=task.show(one.payload, range(task.shuffled(one.payload))),
        settled=settle(task, one),
        say=lambda value: task.say(one.payload, value),
        left=len(disagreements(task, questions, undecided_only=True)),
        problem=problem,
    )


def _question_of(questions: Sequence[Judged], ordinal: int) -> Judged:
    one = next((one for one in questions if one.ordinal == ordinal), None)
    if one is None:
        raise HTTPException(404, "there is no such question")
    return one


@router.post("/studies/{name}/questions/{ordinal}")
def decide(here: AdjudicatorHere, ordinal: Ordinal, given: Posted) -> Response:
    """Store the decision of an owner or adjudicator on a question. `given` is the form of the question's page, where
    the options are in the benchmark's order. Earlier decisions stay on record.
    """
    task, payload = task_named(here.study.task), _question_of(_judged(here), ordinal).payload
    order = range(task.shuffled(payload))
    form = task.show(payload, order)
    fields = {field.name: given[field.name] for field in form.fields if field.name in given}
    try:
        value = task.mean(payload, order, read_form(form, fields))
    except AnswerError as e:
        return _question_page(here, ordinal, e.what)
    comment = given.get("comment", "")[:2000].replace("\0", "")
    with here.db.write() as session:
        adjudicate(session, study_named(session, here.name), ordinal, value, comment, here.who.actor)
    return here.redirect("/adjudicate")


@router.get("/studies/{name}/pictures/{ordinal}/{place}")
def question_picture(here: AdjudicatorHere, ordinal: Ordinal, place: Place) -> Response:
    """Return a picture of a question. `place` is its number in the benchmark's order."""
    images = _question_of(_judged(here), ordinal).payload["images"]
    if place >= len(images):
        raise HTTPException(404, "no such picture")
    return picture_response(here.site, here.study.bench, images[place])


# -- export ------------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/export.{kind}")
def download(here: OwnerHere, kind: Annotated[str, Path(pattern="^(json|csv)$")]) -> Response:
    """Return the study's record with its digest. If `kind` is "csv", return the record's answers as CSV."""
    with here.db.read() as session:
        text = export_text(exported(study_record(session, here.study)), kind)
    headers = {"Content-Disposition": f'attachment; filename="{here.name}.{kind}"'}
    media = "application/json" if kind == "json" else "text/csv"
    return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)
