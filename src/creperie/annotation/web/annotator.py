"""The annotator's side: the API that the page calls.

Nothing that is sent says what is true: captions stand in an order of their own for every slot and are named by their
places, pictures by the slot's random token, attention checks look like other questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.answers import Receipt, answer, skip, undo
from creperie.annotation.database import PATIENCE
from creperie.annotation.desk import AnnotatorProgress, Desk, Ending, Ticket, WorkError
from creperie.annotation.invitations import hashed
from creperie.annotation.schema import DONE, HELD, Question, Slot, StudyRow
from creperie.annotation.tasks.form import Field as FormField
from creperie.annotation.tasks.performance import picture_order
from creperie.annotation.tasks.task import speaking
from creperie.annotation.web.entry import TOKEN, Token
from creperie.annotation.web.language import translator
from creperie.annotation.web.site import (
    OWNED,
    SESSION,
    AnnotatorHere,
    SiteHere,
    Text,
    check_csrf,
    cookie,
    current_visitor,
    page,
    site_of,
    to,
)
from creperie.bench import ImageError
from creperie.core import DataError, UsageError

router = APIRouter()

In = TypeVar("In", bound=BaseModel)
Place = Annotated[int, Path(ge=0, le=15)]


# -- what the API speaks ---------------------------------------------------------------------------------------------


class QuestionOut(BaseModel):
    """A question as the page shows it."""

    slot: str
    practice: bool
    ask: str
    texts: list[tuple[str, str]]
    pictures: list[str]
    fields: list[FormField]


class StateOut(BaseModel):
    """What is to be done now; no question means that the work is done."""

    question: QuestionOut | None
    standing: AnnotatorProgress
    receipt: Receipt | None = None
    ending: Ending | None = None


class Problem(BaseModel):
    code: str
    message: str


Key = Annotated[str, Field(pattern=TOKEN, description="made by the page; a repeated request has the same")]
Comment = Annotated[Text, Field(max_length=2000)]


class AnswerIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    slot: Annotated[str, Field(pattern=TOKEN)]
    key: Key
    fields: dict[str, str | int] = Field(max_length=16)
    comment: Comment = ""
    seconds: Annotated[float, Field(ge=0, le=30 * 86400)] | None = Field(None, description="time in view")


class SkipIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    slot: Annotated[str, Field(pattern=TOKEN)]
    key: Key
    comment: Comment = ""


class UndoIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: Key


def _question(ticket: Ticket, say: Callable[..., str]) -> QuestionOut:
    form = ticket.form
    return QuestionOut(
        slot=ticket.slot.token or "",
        practice=ticket.slot.kind == "practice",
        ask=form.ask,
        texts=[(say(label), text) for label, text in form.texts],
        pictures=[say(label) for label in form.pictures],
        fields=[replace(f, label=say(f.label), ends=(say(f.ends[0]), say(f.ends[1]))) for f in form.fields],
    )


async def _given(request: Request, form: type[In]) -> In:
    """What a request says. Read here, not by the framework, which needs as long for it as all the rest takes."""
    check_csrf(request, request.headers.get("x-csrf-token"))
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "send JSON, and say so (Content-Type: application/json)")
    try:
        return form.model_validate_json(await request.body() or b"{}")
    except ValidationError as e:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in e.errors()]) from None


def _takes(form: type[BaseModel]) -> dict[str, Any]:
    """How the document of the API says what a request holds."""
    return {"requestBody": {"content": {"application/json": {"schema": form.model_json_schema()}}, "required": True}}


async def _state(
    request: Request, act: Callable[[Desk], Receipt | None], about: tuple[str, str] | None = None
) -> Response:
    """Do something and take the next slot, in one transaction; answers when it is on disk.

    Nothing here waits in a thread: the one that writes finds out who is calling, too.
    """
    db, session_hash = site_of(request).db, hashed(cookie(request, SESSION))

    def job(session: Session) -> bytes:
        desk = Desk(db, session, session_hash, about=about)
        with speaking(desk.settings.language):
            receipt = act(desk)
            ticket = desk.take()
            state = StateOut(
                question=_question(ticket, translator(desk.settings.language)) if ticket else None,
                standing=desk.standing(),
                receipt=receipt,
                ending=desk.ending() if ticket is None else None,
            )
        return state.model_dump_json().encode()

    try:
        made = await asyncio.wait_for(asyncio.wrap_future(db.submit(job)), PATIENCE)
    except TimeoutError:
        raise db.busy() from None
    except WorkError as e:
        if e.code in ("nobody", "revoked"):
            raise HTTPException(401, e.what) from None
        raise
    return Response(made, media_type="application/json")


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"description": "no session"},
    403: {"description": "no CSRF token"},
    400: {"description": "a foreign host"},
    409: {"model": Problem, "description": "not possible now"},
    408: {"description": "the body came too slowly"},
    413: {"description": "request too large"},
    415: {"description": "not JSON"},
    422: {"description": "not an answer to this question"},
    503: {"description": "the database is busy; try again"},
}


@router.post("/api/next", response_model=StateOut, responses=_PROBLEMS)
async def next_question(request: Request) -> Response:
    """The question in hand, or the next one."""
    check_csrf(request, request.headers.get("x-csrf-token"))
    return await _state(request, lambda desk: None)


@router.post("/api/answer", response_model=StateOut, responses=_PROBLEMS, openapi_extra=_takes(AnswerIn))
async def take_answer(request: Request) -> Response:
    """Store an answer. Once this returns, the answer is on disk; sent again with the same key, it is stored once."""
    one = await _given(request, AnswerIn)
    said = (one.slot, one.key, one.fields, one.comment, one.seconds)
    return await _state(request, lambda desk: answer(desk, *said), (one.slot, one.key))


@router.post("/api/skip", response_model=StateOut, responses=_PROBLEMS, openapi_extra=_takes(SkipIn))
async def take_skip(request: Request) -> Response:
    """Leave a question to others."""
    one = await _given(request, SkipIn)
    said = (one.slot, one.key, one.comment)
    return await _state(request, lambda desk: skip(desk, *said), said[:2])


@router.post("/api/undo", response_model=StateOut, responses=_PROBLEMS, openapi_extra=_takes(UndoIn))
async def take_undo(request: Request) -> Response:
    """Take the last answer back; its question comes again."""
    one = await _given(request, UndoIn)
    return await _state(request, lambda desk: undo(desk, one.key))


@router.get(
    "/picture/{token}/{place}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}, "image/jpeg": {}}}, 401: {}, 404: {}, 400: {}},
)
def picture(site: SiteHere, who: AnnotatorHere, token: Token, place: Place) -> Response:
    """A picture of a slot that the caller holds or has answered."""
    assert who.annotator is not None
    with site.db.read() as session:
        found = session.execute(
            select(Slot.order, Question.payload, StudyRow.bench)
            .join(Question, Question.id == Slot.question_id)
            .join(StudyRow, StudyRow.id == Slot.study_id)
            .where(Slot.token == token, Slot.annotator_id == who.annotator.id, Slot.state.in_((HELD, DONE)))
        ).first()
    if found is None:
        raise HTTPException(404, "no such picture")
    order, payload, bench = found
    places = picture_order(payload, order or [])
    if place >= len(places):
        raise HTTPException(404, "no such picture")
    return picture_response(site, bench, payload["images"][places[place]])


def picture_response(site: SiteHere, bench: dict[str, Any], reference: str) -> Response:
    try:
        found = site.pictures.get(bench["images"], reference, follow_links=bench.get("follow_links", False))
    except (ImageError, DataError, UsageError, OSError):
        # Which file is missing is the owner's business, not the annotator's.
        raise HTTPException(404, "the picture cannot be read") from None
    return Response(found.data, media_type=found.media_type, headers={"Cache-Control": "private, max-age=3600"})


# -- pages -----------------------------------------------------------------------------------------------------------


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def home(request: Request) -> Response:
    if current_visitor(request, SESSION) is not None:
        return to("/work")
    if current_visitor(request, OWNED) is not None:
        return to("/owner")
    return page(request, "message.html", title="creperie", text="Open the link in your invitation to begin.")
