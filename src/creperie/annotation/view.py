"""What an annotator may see of a slot. Everything sent to annotators is built here.

A `SlotView` does not say which captions are true, how the benchmark orders and names them, or of what kind the question
is. Pages, the API, pictures and the download of personal data are all built from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.assignment import arrivals
from creperie.annotation.schema import (
    ATTENTION,
    DONE,
    FREE,
    HELD,
    MAIN,
    PRACTICE,
    SKIP,
    Annotator,
    Answer,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import settings_of
from creperie.annotation.study import count_questions
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import PageForm
from creperie.annotation.tasks.performance import picture_order
from creperie.core import Json


@dataclass(frozen=True, kw_only=True)
class SlotView(PageForm):
    """A question as its annotator sees it. Options are identified by their position on the page, pictures by number."""

    slot: str
    practice: bool


def view_of(study: StudyRow, slot: Slot) -> SlotView:
    """Return what the annotator may see of a slot."""
    form = form_of(study, slot.question, slot.order)
    return SlotView(slot=slot.token or "", practice=slot.kind == PRACTICE, **vars(form))


def form_of(study: StudyRow, question: Question, order: Sequence[int] | None) -> PageForm:
    return task_named(study.task).show(question.payload, order or [])


def picture_at(slot: Slot, place: int) -> str | None:
    """Return the reference of the picture at a place on the page; None if no picture is there."""
    payload = slot.question.payload
    places = picture_order(payload, slot.order or [])
    return str(payload["images"][places[place]]) if place < len(places) else None


SECONDS = 15.0  #: expected per question, until three people have answered


@dataclass(frozen=True)
class StudyTerms:
    """What a person is told before taking part, as (heading, text) pairs.

    `fewer` is True if the person may get fewer questions than stated because others answer some of them first. `paid`
    says on what condition the pay is owed; it is empty if nothing is paid.
    """

    rows: list[tuple[str, str]]
    fewer: bool
    paid: str


def terms_of(session: Session, study: StudyRow, me: Annotator | None = None) -> StudyTerms:
    """Return the terms of a study: how many questions are left for the annotator `me`, how long they take, and the pay.
    Without `me`, the terms are for somebody who comes by the study's shared crowd address.

    The time is computed from the median time of this study's answers; until three people have answered, a fixed guess
    is used.
    """
    settings = settings_of(study.settings)
    number, practice = _left(session, study, me)
    arrived, expected = arrivals(session, study, settings)
    asked = count_questions(session, study)[MAIN]
    answers_expected = max(expected, arrived + (me is None)) * (_quota(study, me) or asked)
    fewer = number > 0 and answers_expected > study.plan["overlap"] * asked
    taken = select(Answer.annotator_id, Answer.seconds).where(Answer.study_id == study.id, Answer.seconds.is_not(None))
    seconds = [(who, one) for who, one in session.execute(taken.limit(1000)) if one is not None]
    several = len({who for who, _ in seconds}) >= 3
    each = median(one for _, one in seconds) if several else SECONDS
    most = "up to " if fewer else ""
    questions_text = f"{most}{number:,}" + (f" and {practice} for practice" if practice else "")
    rows = [("Questions", questions_text if number else "none at the moment")]
    if number:
        rows.append(("Time", f"{most}about {max(1, math.ceil((number + practice) * each / 60))} min"))
    if not settings.pay:
        return StudyTerms(rows, fewer, "")
    rows.append(("Pay", f"{settings.pay:.2f} {settings.currency}".rstrip()))
    return StudyTerms(rows, fewer, PAID)


def _quota(study: StudyRow, me: Annotator | None) -> int | None:
    """Return the largest number of questions for a person; None if there is no limit."""
    return me.quota if me else study.plan.get("per_annotator")


#: When a participation is paid; `creperie.annotation.crowd` computes it.
PAID = (
    "The pay is for the whole, however many questions you are given. It is owed once none is left for you, "
    "unless your answers are excluded."
)


def _left(session: Session, study: StudyRow, me: Annotator | None) -> tuple[int, int]:
    """Return two numbers: the highest number of questions (with attention checks) that a person may still be given, and
    the number of practice questions.
    """
    own = me.id if me else 0
    had = select(Slot.question_id).where(Slot.annotator_id == own, Slot.state != HELD)
    skipped = select(Answer.question_id).where(Answer.annotator_id == own, Answer.kind == SKIP)
    open_ = select(func.count(Slot.question_id.distinct())).where(
        Slot.study_id == study.id,
        Slot.kind == MAIN,
        Slot.state.in_((FREE, HELD)),
        Slot.question_id.not_in(had),
        Slot.question_id.not_in(skipped),
    )
    mine = select(Slot.kind, Slot.state, func.count()).where(Slot.annotator_id == own).group_by(Slot.kind, Slot.state)
    counts = {(kind, state): n for kind, state, n in session.execute(mine)}
    number, quota = session.scalar(open_) or 0, _quota(study, me)
    if quota is not None:
        number = max(0, min(number, quota - counts.get((MAIN, DONE), 0)))
    if not counts:  # not begun: these slots are made with the first question
        made = count_questions(session, study)
        checks, practice = made[ATTENTION], made[PRACTICE]
    else:
        checks, practice = (counts.get((k, FREE), 0) + counts.get((k, HELD), 0) for k in (ATTENTION, PRACTICE))
    return (number + checks, practice) if number else (checks if counts else 0, 0)


#: The columns of an answer, and of their own row, that an annotator may see.
OWN_ANSWER = ("given", "comment", "seconds", "at", "revision", "erased")
OWN = ("pseudonym", "entry", "created", "consented", "consent_version", "excluded", "withdrawn", "finished", "outcome")


def own_data(session: Session, study: StudyRow, annotator: Annotator) -> Json:
    """Return everything stored about an annotator. Answers are described as their pages showed them."""
    answers = []
    rows = select(Answer).where(Answer.annotator_id == annotator.id).order_by(Answer.turn)
    for answer in session.scalars(rows):
        shown = None
        if answer.shown_order is not None:  # not that of the slot, which may have changed
            form = form_of(study, answer.question, answer.shown_order)
            options = [[option.label for option in f.options] for f in form.fields]
            shown = {"ask": form.ask, "texts": [text for _, text in form.texts], "options": options}
        about = {"number": answer.turn + 1, "event": answer.kind, "shown": shown}
        answers.append({**about, **answer.part(*OWN_ANSWER)})
    return {"study": study.name, **annotator.part(*OWN), "answers": answers}
