"""The annotator's side: the API that the page calls.

Nothing that is sent says what is true: captions stand in an order of their own for every slot and are named by their
places, pictures by the slot's random token, attention checks look like other questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.schema import DONE, HELD, Question, Slot, StudyRow
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
    current_visitor,
    page,
    to,
)
from creperie.annotation.work import Desk, Receipt, Ticket, answer, skip, undo
from creperie.bench import ImageError
from creperie.core import DataError, UsageError

router = APIRouter()

Place = Annotated[int, Path(ge=0, le=15)]


def _csrf_header(request: Request, x_csrf_token: Annotated[str | None, Header()] = None) -> None:
    check_csrf(request, x_csrf_token)


checked = [Depends(_csrf_header)]

# -- what the API speaks ---------------------------------------------------------------------------------------------


class OptionOut(BaseModel):
    value: str
    label: str
    hint: str
    quote: bool


class FieldOut(BaseModel):
    name: str
    kind: str
    label: str
    options: list[OptionOut]
    value: str
    when: tuple[str, str] | None
    low: int
    high: int
    ends: tuple[str, str]


class QuestionOut(BaseModel):
    """A question as the page shows it."""

    slot: str
    practice: bool
    ask: str
    texts: list[tuple[str, str]]
    pictures: list[str]
    fields: list[FieldOut]


class StandingOut(BaseModel):
    done: int
    total: int | None
    practice_left: int
    stopped: bool


class EndingOut(BaseModel):
    """How the work ended, with the code and the address that a crowd platform gave."""

    outcome: str
    code: str
    url: str


class ReceiptOut(BaseModel):
    """That an answer is stored; for practice questions also whether it was right."""

    key: str
    right: bool | None
    feedback: str | None


class StateOut(BaseModel):
    """What is to be done now; no question means that the work is done."""

    question: QuestionOut | None
    standing: StandingOut
    receipt: ReceiptOut | None = None
    ending: EndingOut | None = None


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
        fields=[
            FieldOut(
                name=f.name,
                kind=f.kind,
                label=say(f.label),
                options=[OptionOut(value=o.value, label=o.label, hint=o.hint, quote=o.quote) for o in f.options],
                value=f.value,
                when=f.when,
                low=f.low,
                high=f.high,
                ends=(say(f.ends[0]), say(f.ends[1])),
            )
            for f in form.fields
        ],
    )


def _state(site: SiteHere, who: AnnotatorHere, act: Callable[[Desk], Receipt | None]) -> StateOut:
    """Do something and take the next slot, in one transaction; answers when it is on disk."""
    assert who.annotator is not None
    me = who.annotator.id

    def job(session: Session) -> StateOut:
        desk = Desk(site.db, session, me)
        with speaking(desk.settings.language):
            receipt = act(desk)
            session.flush()
            ticket = desk.take()
            return StateOut(
                question=_question(ticket, translator(desk.settings.language)) if ticket else None,
                standing=StandingOut(**vars(desk.standing())),
                receipt=ReceiptOut(**vars(receipt)) if receipt else None,
                ending=EndingOut(**vars(ending)) if ticket is None and (ending := desk.ending()) else None,
            )

    return site.db.in_turn(job)


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"description": "no session"},
    403: {"description": "no CSRF token"},
    400: {"description": "a foreign host"},
    409: {"model": Problem, "description": "not possible now"},
    408: {"description": "the body came too slowly"},
    413: {"description": "request too large"},
    503: {"description": "the database is busy; try again"},
}


@router.post("/api/next", dependencies=checked, responses=_PROBLEMS)
def next_question(site: SiteHere, who: AnnotatorHere) -> StateOut:
    """The question in hand, or the next one."""
    return _state(site, who, lambda desk: None)


@router.post("/api/answer", dependencies=checked, responses=_PROBLEMS)
def take_answer(site: SiteHere, who: AnnotatorHere, given: AnswerIn) -> StateOut:
    """Store an answer. Once this returns, the answer is on disk; sent again with the same key, it is stored once."""
    return _state(
        site, who, lambda desk: answer(desk, given.slot, given.key, given.fields, given.comment, given.seconds)
    )


@router.post("/api/skip", dependencies=checked, responses=_PROBLEMS)
def take_skip(site: SiteHere, who: AnnotatorHere, given: SkipIn) -> StateOut:
    """Leave a question to others."""
    return _state(site, who, lambda desk: skip(desk, given.slot, given.key, given.comment))


@router.post("/api/undo", dependencies=checked, responses=_PROBLEMS)
def take_undo(site: SiteHere, who: AnnotatorHere, given: UndoIn) -> StateOut:
    """Take the last answer back; its question comes again."""
    return _state(site, who, lambda desk: undo(desk, given.key))


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
