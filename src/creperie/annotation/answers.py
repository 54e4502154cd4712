"""What an annotator can do with the current question: answer it, skip it, or undo the last step.

Every step adds a row to the table of answers and changes no earlier row. Requests are idempotent: each has a key, and
repeating a key adds nothing and returns the stored result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from creperie.annotation.assignment import Desk
from creperie.annotation.schema import ANSWER, DONE, FREE, MAIN, PRACTICE, SKIP, UNDO, Answer, Question, Slot
from creperie.annotation.tasks.form import read_form
from creperie.core import CreperieError, Json


class WorkError(CreperieError):
    """Raised when an annotator's request cannot be fulfilled at present. `code` tells the page why."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        super().__init__(what)


@dataclass(frozen=True)
class Receipt:
    """The reply to an answer; only answers to practice questions get feedback."""

    key: str
    right: bool | None = None
    feedback: str | None = None


def answer(
    desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str, visible: float | None = None
) -> Receipt:
    """Store the annotator's answer to the question that was issued with this `token`, and return a receipt. A question
    that was issued before the study was paused can still be answered.

    `given` holds the fields of the form, and `visible` the seconds that the question was in view. `key` identifies the
    request: if the request is repeated, the first receipt is returned again.
    """
    if isinstance(slot := _slot_held(desk, token, key, ANSWER), Receipt):
        return slot
    payload, order = slot.question.payload, slot.order or []
    fields = read_form(desk.task.show(payload, order), given)
    value = desk.task.mean(payload, order, fields)
    _store_action(desk, slot, ANSWER, key, comment, given=fields, value=value, visible=visible)
    slot.state, slot.lease_until = DONE, None
    desk.save()
    return _receipt(desk, key, slot.question, value)


def skip(desk: Desk, token: str, key: str, comment: str) -> None:
    """Skip the question that was issued with this `token`. Other annotators can still get it; this annotator cannot. A
    skipped attention check counts as failed.
    """
    if isinstance(slot := _slot_held(desk, token, key, SKIP), Receipt):
        return
    skipped = sum(row.kind == SKIP for row in _steps(desk))
    if skipped >= desk.plan.skips_allowed(desk.answered()):
        raise WorkError("skips", "you have skipped too many questions: please answer this one")
    _store_action(desk, slot, SKIP, key, comment)
    if slot.kind == MAIN:
        desk.release(slot)
    else:
        slot.state, slot.lease_until = DONE, None
        desk.save()


def undo(desk: Desk, key: str) -> None:
    """Take back the annotator's last answer or skip, and give them the question again. The answer or skip stays on
    record.
    """
    if _repeated(desk, key, UNDO) is not None:
        return
    steps = _steps(desk)
    slot = desk.locked(Slot.id == steps[-1].slot_id) if steps else None
    if slot is None or slot.kind == PRACTICE:
        raise WorkError("nothing", "there is no answer to take back")
    if slot.annotator_id != desk.me.id and not (slot.annotator_id is None and slot.state == FREE):
        raise WorkError("gone", "the skipped question has been given to someone else: go on with the next one")
    current = desk.own_slot()
    if current is not None and current.id != slot.id and current.state != FREE:
        desk.release(current)
    _store_action(desk, slot, UNDO, key, "")
    if slot.state == DONE:  # shown in the same order as before; the time in view starts again
        slot.shown = desk.now
    desk.hold(slot)
    desk.save()


def _slot_held(desk: Desk, token: str, key: str, kind: str) -> Slot | Receipt:
    """Return the slot with this `token`. If the request is a repetition, return the receipt stored under `key` instead.
    Raise a WorkError if the annotator does not hold the slot.
    """
    held_or_done = _repeated(desk, key, kind) or desk.holds(token)
    if held_or_done is None:
        raise WorkError("slot", "this question is no longer yours: it was open for too long, or is already answered")
    return held_or_done


def _repeated(desk: Desk, key: str, kind: str) -> Receipt | None:
    row = desk.session.scalar(select(Answer).where(Answer.annotator_id == desk.me.id, Answer.key == key))
    if row is None:
        return None
    if row.kind != kind:
        raise WorkError("key", "this was already sent as part of another action: load the page again")
    return _receipt(desk, key, row.question, row.value)


def _receipt(desk: Desk, key: str, question: Question, value: Json | None) -> Receipt:
    """Return the receipt for an answer. Only the receipt of a practice question reveals the right answer."""
    known = question.expected
    if question.kind != PRACTICE or known is None or value is None:
        return Receipt(key)
    why = desk.task.words.get("why", {}).get(known.get("verdict"), "")
    answer = desk.task.say(question.payload, known)
    return Receipt(key, desk.task.right(value, known), f"{answer}. {why}" if why else answer)


def _store_action(
    desk: Desk,
    slot: Slot,
    kind: str,
    key: str,
    comment: str,
    *,
    given: Json | None = None,
    value: Json | None = None,
    visible: float | None = None,
) -> None:
    """Store an action of the annotator: an answer, a skip or an undo. `visible` is the number of seconds that the
    question was in view, as the page measured it.
    """
    turns = select(func.coalesce(func.max(Answer.turn), -1) + 1).where(Answer.annotator_id == desk.me.id)
    desk.session.add(
        Answer(
            study_id=desk.study.id,
            question_id=slot.question_id,
            slot_id=slot.id,
            annotator_id=desk.me.id,
            turn=turns.scalar_subquery(),
            kind=kind,
            key=key,
            given=given,
            value=value,
            shown_order=slot.order,
            comment=comment,
            seconds=_seconds(desk, slot, visible),
            at=desk.now,
            revision=desk.study.revision,
        )
    )


def _seconds(desk: Desk, slot: Slot, visible: float | None) -> float | None:
    """Return for how many seconds a question was in view. The page measures a time (`visible`), and the server knows
    the time since the question was shown. Return the shorter time or, if only one is known, that one.
    """
    # The time since is negative if the server's clock was set back.
    passed = desk.now - slot.shown if slot.shown is not None else -1.0
    if passed < 0:
        return visible
    return passed if visible is None else min(visible, passed)


def _steps(desk: Desk) -> list[Answer]:
    """Return the annotator's answers and skips that were not taken back, in order."""
    steps: list[Answer] = []
    own = select(Answer).where(Answer.annotator_id == desk.me.id).order_by(Answer.turn)
    for row in desk.session.scalars(own):
        if row.kind == UNDO:
            steps.pop()
        else:
            steps.append(row)
    return steps
