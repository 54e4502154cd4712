"""The annotator's side: the API that the page calls. Everything it sends is a `SlotView` or says how far one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from creperie.annotation.answers import Receipt, WorkError, answer, skip, undo
from creperie.annotation.assignment import AnnotatorProgress, Desk
from creperie.annotation.links import Participant, visitor
from creperie.annotation.schema import DONE, HELD, Question, Slot, StudyRow
from creperie.annotation.view import SlotView, picture_at, view_of
from creperie.annotation.web.entry import TOKEN, Token
from creperie.annotation.web.site import CSRF, SESSION, AnnotatorHere, SiteHere, Text, cookie
from creperie.bench import ImageError
from creperie.core import DataError, UsageError

router = APIRouter(dependencies=CSRF)

Place = Annotated[int, Path(ge=0, le=15)]
Key = Annotated[str, Field(pattern=TOKEN, description="made by the page; a repeated request has the same")]
Comment = Annotated[Text, Field(max_length=2000)]


class StateOut(BaseModel):
    """What is to be done now; no question means that the work is done."""

    question: SlotView | None
    standing: AnnotatorProgress
    receipt: Receipt | None = None
    ending: str | None = Field(None, description="where a crowd platform wants people to go on")


class Problem(BaseModel):
    code: str
    message: str


class UndoIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: Key


class SkipIn(UndoIn):
    slot: Annotated[str, Field(pattern=TOKEN)]
    comment: Comment = ""


class AnswerIn(SkipIn):
    fields: dict[Text, Text | int] = Field(max_length=16)
    seconds: Annotated[float, Field(ge=0, le=30 * 86400, allow_inf_nan=False)] | None = Field(
        None, description="time in view"
    )


def _state(request: Request, act: Callable[[Desk], Receipt | None]) -> StateOut:
    """Do something and take the next slot, in one transaction; returns when it is on disk."""
    db = request.app.state.site.db
    with db.write() as session:
        who = visitor(session, cookie(request, SESSION))
        if not isinstance(who, Participant):
            raise HTTPException(401, "open your invitation link first")
        desk = Desk(db, session, who)
        if desk.settings.consent_version not in ("", desk.me.consent_version):
            raise WorkError("consent", "please read and accept the consent text first")
        receipt, ticket = act(desk), desk.take()
        return StateOut(
            question=view_of(desk.study, ticket.question, ticket.slot) if ticket else None,
            standing=desk.standing(),
            receipt=receipt,
            ending=desk.ending() if ticket is None else None,
        )


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"description": "a foreign host, or not JSON"},
    401: {"description": "no visit"},
    403: {"description": "no CSRF token"},
    408: {"description": "the body came too slowly"},
    409: {"model": Problem, "description": "not possible now"},
    413: {"description": "request too large"},
    422: {"description": "not an answer to this question"},
    503: {"description": "the database is busy; try again"},
}


@router.post("/api/next", responses=_PROBLEMS)
def next_question(request: Request) -> StateOut:
    """The question in hand, or the next one."""
    return _state(request, lambda desk: None)


@router.post("/api/answer", responses=_PROBLEMS)
def take_answer(request: Request, one: AnswerIn) -> StateOut:
    """Store an answer. Once this returns, the answer is on disk; sent again with the same key, it is stored once."""
    return _state(request, lambda desk: answer(desk, one.slot, one.key, one.fields, one.comment, one.seconds))


@router.post("/api/skip", responses=_PROBLEMS)
def take_skip(request: Request, one: SkipIn) -> StateOut:
    """Leave a question to others."""
    return _state(request, lambda desk: skip(desk, one.slot, one.key, one.comment))


@router.post("/api/undo", responses=_PROBLEMS)
def take_undo(request: Request, one: UndoIn) -> StateOut:
    """Take the last answer back; its question comes again."""
    return _state(request, lambda desk: undo(desk, one.key))


@router.get(
    "/picture/{token}/{place}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}, "image/jpeg": {}}}, 401: {}, 404: {}, 400: {}, 422: {}},
)
def picture(site: SiteHere, who: AnnotatorHere, token: Token, place: Place) -> Response:
    """A picture of a slot that the caller holds or has answered."""
    with site.db.read() as session:
        row = session.execute(
            select(Slot, Question, StudyRow.bench)
            .join(Question, Question.id == Slot.question_id)
            .join(StudyRow, StudyRow.id == Slot.study_id)
            .where(Slot.token == token, Slot.annotator_id == who.annotator.id, Slot.state.in_((HELD, DONE)))
        ).first()
    reference = picture_at(row[1], row[0], place) if row else None
    if row is None or reference is None:
        raise HTTPException(404, "no such picture")
    return picture_response(site, row[2], reference)


def picture_response(site: SiteHere, bench: dict[str, Any], reference: str) -> Response:
    try:
        shown = site.pictures.get(bench["images"], reference)
    except (ImageError, DataError, UsageError, OSError):
        # Which file is missing is the owner's business, not the annotator's.
        raise HTTPException(404, "the picture cannot be read") from None
    return Response(shown.data, media_type=shown.media_type, headers={"Cache-Control": "private, max-age=3600"})
