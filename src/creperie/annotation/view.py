"""What an annotator may see: the one way from a slot to anything that is sent to its holder.

A `SlotView` has no place for the truth, for the benchmark's order or names, or for the kind of a question: it is built
from the shuffled form alone, and pages, API, pictures and people's own data are built from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from creperie.annotation.schema import PRACTICE, Annotator, Answer, Question, Slot, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.performance import picture_order
from creperie.annotation.tasks.task import speaking


@dataclass(frozen=True)
class SlotView:
    """A question as its annotator sees it. Options are named by their places on the page, pictures by number."""

    slot: str
    practice: bool
    ask: str
    texts: tuple[tuple[str, str], ...]
    pictures: tuple[str, ...]
    fields: tuple[Field, ...]


def view_of(study: StudyRow, question: Question, slot: Slot, say: Callable[[str], str] = str) -> SlotView:
    """The view of a slot, in the language of the moment."""
    form = form_of(study, question, slot.order)
    return SlotView(
        slot=slot.token or "",
        practice=slot.kind == PRACTICE,
        ask=form.ask,
        texts=tuple((say(label), text) for label, text in form.texts),
        pictures=tuple(say(label) for label in form.pictures),
        fields=tuple(replace(f, label=say(f.label), ends=(say(f.ends[0]), say(f.ends[1]))) for f in form.fields),
    )


def form_of(study: StudyRow, question: Question, order: Sequence[int] | None) -> PageForm:
    return task_named(study.task).show(question.payload, order or [])


def picture_at(question: Question, slot: Slot, place: int) -> str | None:
    """The reference of the picture at a place of the page; None where there is none."""
    places = picture_order(question.payload, slot.order or [])
    return str(question.payload["images"][places[place]]) if place < len(places) else None


#: What an annotator is told about themselves.
OWN = ("pseudonym", "entry", "created", "consented", "consent_version", "excluded", "withdrawn", "finished", "outcome")


def own_data(study: StudyRow, annotator: Annotator, rows: Sequence[tuple[Answer, Question, Slot]]) -> Mapping[str, Any]:
    """Everything that is stored about an annotator, what they said in the terms of their own pages."""
    with speaking(settings_of(study.settings).language):
        answers = [_own_answer(study, *row) for row in rows]
    return {"study": study.name, **{name: getattr(annotator, name) for name in OWN}, "answers": answers}


def _own_answer(study: StudyRow, answer: Answer, question: Question, slot: Slot) -> dict[str, Any]:
    """A row as the page showed it; the order in which it was shown is that of the answer, not of the slot today."""
    shown = None
    if answer.shown_order is not None:
        form = form_of(study, question, answer.shown_order)
        options = [[option.label for option in f.options] for f in form.fields]
        shown = {"ask": form.ask, "texts": [text for _, text in form.texts], "options": options}
    return {
        "number": answer.turn + 1,
        "event": answer.kind,
        "shown": shown,
        "given": answer.given,
        "comment": answer.comment,
        "seconds": answer.seconds,
        "at": answer.at,
        "revision": answer.revision,
        "erased": answer.erased,
    }


def as_document(view: SlotView) -> dict[str, Any]:
    return asdict(view)
