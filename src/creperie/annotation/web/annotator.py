"""The annotator's API, called by the page. Every response is a StateOut, or a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from creperie.annotation.answers import Receipt, WorkError, answer, skip, undo
from creperie.annotation.assignment import AnnotatorProgress, Desk
from creperie.annotation.links import Participant, visitor
from creperie.annotation.schema import DONE, HELD, Slot
from creperie.annotation.view import SlotView, picture_at, view_of
from creperie.annotation.web.entry import TOKEN, Token
from creperie.annotation.web.site import CSRF, SESSION, AnnotatorHere, SiteHere, Text, cookie, recognised
from creperie.bench import ImageError
from creperie.core import DataError, Json, UsageError

router = APIRouter(dependencies=CSRF)

Place = Annotated[int, Path(ge=0, le=15)]
Key = Annotated[str, Field(pattern=TOKEN, description="made by the page; a repeated request has the same key")]
Comment = Annotated[Text, Field(max_length=2000)]


class StateOut(BaseModel):
    """What the annotator has to do now: answer `question`. If `question` is None, `progress` says whether the study is
    stopped, or whether more questions will open later. If it says neither, the work is done.
    """

    question: SlotView | None
    progress: AnnotatorProgress
    receipt: Receipt | None = None
    ending: str | None = Field(None, description="URL at which a crowd platform wants people to continue")


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
    """Perform an action and give out the next slot in one transaction. Return the new state after the commit."""
    db = request.app.state.site.db
    with db.write() as session:
        who = recognised(request, visitor(session, cookie(request, SESSION), lock=True))
        if not isinstance(who, Participant):
            raise HTTPException(401, "open your invitation link first")
        desk = Desk(session, who)
        if who.consent_due:
            raise WorkError("consent", "please read and accept the consent text first")
        receipt, slot = act(desk), desk.take()
        return StateOut(
            question=view_of(desk.study, slot) if slot else None,
            progress=desk.progress(),
            receipt=receipt,
            ending=desk.settings.completion_url if slot is None and desk.me.outcome else None,
        )


@router.post("/api/next")
def next_question(request: Request) -> StateOut:
    """Return the question that the annotator holds, or give out the next one if they hold none."""
    return _state(request, lambda desk: None)


@router.post("/api/answer")
def take_answer(request: Request, one: AnswerIn) -> StateOut:
    """Store an answer and return the next question. The answer is committed to the database before the response is
    sent. A repeated request stores nothing.
    """
    return _state(request, lambda desk: answer(desk, one.slot, one.key, one.fields, one.comment, one.seconds))


@router.post("/api/skip")
def take_skip(request: Request, one: SkipIn) -> StateOut:
    """Skip a question. Other annotators can still answer it."""
    return _state(request, lambda desk: skip(desk, one.slot, one.key, one.comment))


@router.post("/api/undo")
def take_undo(request: Request, one: UndoIn) -> StateOut:
    """Take back the last answer or skip and ask the question again."""
    return _state(request, lambda desk: undo(desk, one.key))


@router.get("/picture/{token}/{place}", response_class=Response)
def picture(site: SiteHere, who: AnnotatorHere, token: Token, place: Place) -> Response:
    """Return a picture of a slot that the caller holds or has answered."""
    own = select(Slot).where(Slot.token == token, Slot.annotator_id == who.annotator.id, Slot.state.in_((HELD, DONE)))
    with site.db.read() as session:
        slot = session.scalar(own)
    reference = picture_at(slot, place) if slot else None
    if reference is None:
        raise HTTPException(404, "no such picture")
    return picture_response(site, who.study.bench, reference)


def picture_response(site: SiteHere, bench: Json, reference: str) -> Response:
    try:
        shown = site.pictures.get(bench["images"], reference)
    except (ImageError, DataError, UsageError, OSError):
        # Do not tell annotators which file is missing.
        raise HTTPException(404, "the picture cannot be read") from None
    return Response(shown.data, media_type=shown.media_type, headers={"Cache-Control": "private, max-age=3600"})
