"""What an annotator does with a question in hand: answer it, skip it, take the last step back.

Requests are idempotent: a repeated key returns what was stored under it. Rows are only added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from creperie.annotation.assignment import Desk, Ticket
from creperie.annotation.schema import ANSWER, DONE, FREE, MAIN, PRACTICE, SKIP, UNDO, Answer, Question, Slot
from creperie.annotation.tasks.form import read_form
from creperie.core import CreperieError


class WorkError(CreperieError):
    """Something an annotator cannot do now. `code` says why, for the page."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        super().__init__(what)


@dataclass(frozen=True)
class Receipt:
    """The reply to an answer; the feedback is for practice questions only."""

    key: str
    right: bool | None = None
    feedback: str | None = None


def answer(
    desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str, visible: float | None = None
) -> Receipt:
    """Store an answer to the slot of this token. A study that was paused still takes the answer in hand."""
    if isinstance(ticket := _held(desk, token, key, ANSWER), Receipt):
        return ticket
    payload, order = ticket.question.payload, ticket.slot.order or []
    fields = read_form(desk.task.show(payload, order), given)
    value = desk.task.mean(payload, order, fields)
    _add(desk, ticket, ANSWER, key, comment, given=fields, value=value, visible=visible)
    ticket.slot.state, ticket.slot.lease_until = DONE, None
    desk.save()
    return _receipt(desk, key, ticket.question, value)


def skip(desk: Desk, token: str, key: str, comment: str) -> None:
    """Leave a question to others; it is not asked of this annotator again. A skipped check counts as failed."""
    if isinstance(ticket := _held(desk, token, key, SKIP), Receipt):
        return
    if skipped(desk) >= desk.plan.skips_allowed(desk.answered()):
        raise WorkError("skips", "you have skipped too many questions: please answer this one")
    _add(desk, ticket, SKIP, key, comment)
    if ticket.slot.kind == MAIN:
        desk.put_down(ticket.slot)
    else:
        ticket.slot.state, ticket.slot.lease_until = DONE, None
        desk.save()


def undo(desk: Desk, key: str) -> None:
    """Take back the last answer or skip and hold its slot again. What was taken back stays on record."""
    if _repeated(desk, key, UNDO) is not None:
        return
    last = _last_step(desk)
    ticket = desk.ticket_of(last.slot_id) if last else None
    if ticket is None or ticket.slot.kind == PRACTICE:
        raise WorkError("nothing", "there is no answer to take back")
    slot = ticket.slot
    if slot.annotator_id != desk.me.id and not (slot.annotator_id is None and slot.state == FREE):
        raise WorkError("gone", "the skipped question has been given to someone else")
    current = desk.mine()
    if current is not None and current.slot.id != slot.id:
        desk.put_down(current.slot) if current.slot.state != FREE else None
    _add(desk, ticket, UNDO, key, "")
    if slot.state == DONE:  # as it was shown before; the time in view begins anew
        slot.shown = desk.now
    desk.hold(ticket)
    desk.save()


def _held(desk: Desk, token: str, key: str, kind: str) -> Ticket | Receipt:
    """My slot of this token, or what was done under the key before; an error where the slot is no longer mine."""
    held_or_done = _repeated(desk, key, kind) or desk.ticket_named(token)
    if held_or_done is None:
        raise WorkError("slot", "this question is no longer yours: it waited too long, or it was answered already")
    return held_or_done


def _repeated(desk: Desk, key: str, kind: str) -> Receipt | None:
    row = desk.session.execute(
        select(Answer, Question)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.annotator_id == desk.me.id, Answer.key == key)
    ).first()
    if row is None:
        return None
    if row[0].kind != kind:
        raise WorkError("key", "this key was used for something else")
    return _receipt(desk, key, row[1], row[0].value)


def _receipt(desk: Desk, key: str, question: Question, value: dict[str, Any] | None) -> Receipt:
    """Only practice questions say what would have been right."""
    known = question.expected
    if question.kind != PRACTICE or known is None or value is None:
        return Receipt(key)
    return Receipt(key, desk.task.right(value, known), desk.task.say(question.payload, known))


def _add(
    desk: Desk,
    ticket: Ticket,
    kind: str,
    key: str,
    comment: str,
    *,
    given: dict[str, Any] | None = None,
    value: dict[str, Any] | None = None,
    visible: float | None = None,
) -> None:
    """Add a row of mine under the settings of the moment. `visible` is how long the page says it was in view."""
    last = desk.session.scalar(select(func.max(Answer.turn)).where(Answer.annotator_id == desk.me.id))
    desk.session.add(
        Answer(
            study_id=desk.study.id,
            question_id=ticket.question.id,
            slot_id=ticket.slot.id,
            annotator_id=desk.me.id,
            turn=0 if last is None else last + 1,
            kind=kind,
            key=key,
            given=given,
            value=value,
            shown_order=ticket.slot.order,
            comment=comment,
            seconds=_seconds(desk, ticket.slot, visible),
            at=desk.now,
            revision=desk.study.revision,
        )
    )


def _seconds(desk: Desk, slot: Slot, visible: float | None) -> float | None:
    """Return the time in view, as the page measured it, but not more than has passed here: pages can lie.

    What the page does not say is what has passed; None where the clock was set back.
    """
    passed = desk.now - slot.shown if slot.shown is not None else -1.0
    if passed < 0:
        return visible
    return passed if visible is None else min(visible, passed)


def skipped(desk: Desk) -> int:
    """Return how many questions I skipped and did not take back."""
    rows = select(Answer.slot_id, Answer.kind).where(Answer.annotator_id == desk.me.id).order_by(Answer.turn)
    last = dict(desk.session.execute(rows).all())
    return sum(kind == SKIP for kind in last.values())


def _last_step(desk: Desk) -> Answer | None:
    """My last answer or skip that was not taken back."""
    recent = select(Answer).where(Answer.annotator_id == desk.me.id).order_by(Answer.turn.desc()).limit(200)
    taken_back = 0
    for row in desk.session.scalars(recent):
        if row.kind == UNDO:
            taken_back += 1
        elif taken_back:
            taken_back -= 1
        else:
            return row
    return None
