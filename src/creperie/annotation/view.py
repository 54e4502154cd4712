"""What an annotator may see: the one way from a slot to anything that is sent to its holder.

A `SlotView` has no place for the truth, for the benchmark's order or names, or for the kind of a question: it is built
from the shuffled form alone, and pages, API, pictures and people's own data are built from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creperie.annotation.schema import PRACTICE, Annotator, Answer, Question, Slot, StudyRow
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.performance import picture_order


@dataclass(frozen=True)
class SlotView:
    """A question as its annotator sees it. Options are named by their places on the page, pictures by number."""

    slot: str
    practice: bool
    ask: str
    texts: tuple[tuple[str, str], ...]
    pictures: tuple[str, ...]
    fields: tuple[Field, ...]


def view_of(study: StudyRow, question: Question, slot: Slot) -> SlotView:
    """The view of a slot."""
    form = form_of(study, question, slot.order)
    return SlotView(slot.token or "", slot.kind == PRACTICE, form.ask, form.texts, form.pictures, form.fields)


def form_of(study: StudyRow, question: Question, order: Sequence[int] | None) -> PageForm:
    return task_named(study.task).show(question.payload, order or [])


def picture_at(question: Question, slot: Slot, place: int) -> str | None:
    """The reference of the picture at a place of the page; None where there is none."""
    places = picture_order(question.payload, slot.order or [])
    return str(question.payload["images"][places[place]]) if place < len(places) else None


#: What an annotator is told about themselves.
OWN_ANSWER = ("given", "comment", "seconds", "at", "revision", "erased")
OWN = ("pseudonym", "entry", "created", "consented", "consent_version", "excluded", "withdrawn", "finished", "outcome")


def own_data(study: StudyRow, annotator: Annotator, rows: Sequence[tuple[Answer, Question]]) -> dict[str, Any]:
    """Everything that is stored about an annotator; answers are in the terms of their own pages."""
    answers = [_own_answer(study, *row) for row in rows]
    return {"study": study.name, **{name: getattr(annotator, name) for name in OWN}, "answers": answers}


def _own_answer(study: StudyRow, answer: Answer, question: Question) -> dict[str, Any]:
    """A row as the page showed it; the order in which it was shown is that of the answer, not of the slot today."""
    shown = None
    if answer.shown_order is not None:
        form = form_of(study, question, answer.shown_order)
        options = [[option.label for option in f.options] for f in form.fields]
        shown = {"ask": form.ask, "texts": [text for _, text in form.texts], "options": options}
    stored = {name: getattr(answer, name) for name in OWN_ANSWER}
    return {"number": answer.turn + 1, "event": answer.kind, "shown": shown, **stored}
