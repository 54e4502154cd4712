"""What an annotator may see of a slot. Everything sent to annotators is built here.

A `SlotView` has no field for the truth, for the benchmark's order or names, or for the kind of a question. Pages, the
API, pictures and the download of personal data are all built from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.schema import PRACTICE, Annotator, Answer, Question, Slot, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import Json, PageForm
from creperie.annotation.tasks.performance import picture_order


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


def terms_of(session: Session, study: StudyRow, quota: int | None) -> list[tuple[str, str]]:
    """Return what taking part involves, as (heading, text) pairs: the number of questions, the time and the pay.

    The number of questions is `quota`, else the plan's number per annotator, else the number of all questions. The time
    is computed from the median time of this study's answers; until three people have answered, a fixed guess is used.
    """
    questions = select(func.count()).select_from(Question).where(Question.study_id == study.id)
    number = quota or study.plan.get("per_annotator") or session.scalar(questions) or 0
    number += int(study.plan.get("attention") or 0)
    practice = int(study.plan.get("practice") or 0)
    taken = select(Answer.annotator_id, Answer.seconds).where(Answer.study_id == study.id, Answer.seconds.is_not(None))
    seconds = [(who, one) for who, one in session.execute(taken.limit(1000)) if one is not None]
    several = len({who for who, _ in seconds}) >= 3
    minutes = max(1, math.ceil((number + practice) * (median(one for _, one in seconds) if several else SECONDS) / 60))
    asked = f"{number:,}" + (f" and {practice} for practice" if practice else "")
    terms = [("Questions", asked), ("Time", f"about {minutes} min")]
    settings = settings_of(study.settings)
    return [*terms, ("Pay", f"{settings.pay:.2f} {settings.currency}".rstrip())] if settings.pay else terms


#: The columns of an answer, and of their own row, that an annotator may see.
OWN_ANSWER = ("given", "comment", "seconds", "at", "revision", "erased")
OWN = ("pseudonym", "entry", "created", "consented", "consent_version", "excluded", "withdrawn", "finished", "outcome")


def own_data(session: Session, study: StudyRow, annotator: Annotator) -> Json:
    """Return everything stored about an annotator. Answers are described as their pages showed them."""
    rows = select(Answer).where(Answer.annotator_id == annotator.id).order_by(Answer.turn)
    answers = [_own_answer(study, row) for row in session.scalars(rows)]
    return {"study": study.name, **annotator.part(*OWN), "answers": answers}


def _own_answer(study: StudyRow, answer: Answer) -> Json:
    """Return an answer as the page showed it. The order of options is the one stored with the answer, because that of
    the slot may have changed.
    """
    shown = None
    if answer.shown_order is not None:
        form = form_of(study, answer.question, answer.shown_order)
        options = [[option.label for option in f.options] for f in form.fields]
        shown = {"ask": form.ask, "texts": [text for _, text in form.texts], "options": options}
    return {"number": answer.turn + 1, "event": answer.kind, "shown": shown, **answer.part(*OWN_ANSWER)}
