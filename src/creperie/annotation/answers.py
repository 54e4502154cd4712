"""What an annotator does with a question in hand: answer it, skip it, take the last step back.

A request that is sent again does nothing again: its key finds what was done before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from creperie.annotation.chain import append_answer
from creperie.annotation.desk import Desk, Ticket, WorkError
from creperie.annotation.schema import ANSWER, DONE, FREE, MAIN, PRACTICE, SKIP, UNDO
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import read_form


@dataclass(frozen=True)
class Receipt:
    """What an annotator is told after an answer; the feedback is for practice questions only."""

    key: str
    right: bool | None = None
    feedback: str | None = None


def answer(
    desk: Desk, token: str, key: str, given: Mapping[str, Any], comment: str, visible: float | None = None
) -> Receipt:
    """Store an answer to the slot of this token. A study that was stopped still takes the answer in hand."""
    if isinstance(ticket := _held(desk, token, key, ANSWER), Receipt):
        return ticket
    task = task_named(desk.study.task)
    value = task.mean(ticket.question.payload, ticket.order, read_form(ticket.form, given))
    row = _row(desk, ticket, ANSWER, key, value, comment, visible)
    desk.write(row, ticket.slot, state=DONE, lease_until=None)
    return _receipt(desk, key, ticket.question, value)


def skip(desk: Desk, token: str, key: str, comment: str) -> None:
    """Leave a question to others; it is not asked of this annotator again. A skipped check counts as failed."""
    if isinstance(ticket := _held(desk, token, key, SKIP), Receipt):
        return
    if _skipped(desk) >= desk.plan.skips_allowed(desk.answered()):
        raise WorkError("skips", "you have skipped too many questions: please answer this one")
    desk.write(_row(desk, ticket, SKIP, key, None, comment), ticket.slot)
    if ticket.slot.kind == MAIN:
        desk.put_down(ticket.slot)
    else:
        desk.save(ticket.slot, state=DONE, lease_until=None)


def undo(desk: Desk, key: str) -> None:
    """Take back the last answer or skip and hold its slot again. What was taken back stays on record."""
    if _repeated(desk, key, UNDO) is not None:
        return
    ticket = _last_step(desk)
    if ticket is None:
        raise WorkError("nothing", "there is no answer to take back")
    slot = ticket.slot
    mine, free = slot.annotator_id == desk.me.id, slot.annotator_id is None and slot.state == FREE
    if not mine and not free:
        raise WorkError("gone", "the skipped question has been given to someone else")
    current = desk.current()
    if current is not None:
        desk.put_down(current)
    desk.write(_row(desk, ticket, UNDO, key, None, ""), slot)
    desk.hold_again(ticket)


def _held(desk: Desk, token: str, key: str, kind: str) -> Ticket | Receipt:
    """My slot of this token, or what was done under the key before; an error where the slot is no longer mine."""
    found = desk.hand or desk.found("my_slot_of_token", token=token, key=key) or _repeated(desk, key, kind)
    if found is None:
        raise WorkError("slot", "this question is no longer yours: it waited too long, or it was answered already")
    return found


def _repeated(desk: Desk, key: str, kind: str) -> Receipt | None:
    row = desk.ask("my_row_of_key", me=desk.me.id, key=key).fetchone()
    if row is None:
        return None
    if row[0] != kind:
        raise WorkError("key", "this key was used for something else")
    value = None if row[1] is None else json.loads(row[1])
    return _receipt(desk, key, desk.slot_of(row[2]).question, value)


def _receipt(desk: Desk, key: str, question: SimpleNamespace, value: dict[str, Any] | None) -> Receipt:
    """Only practice questions say what would have been right."""
    known = question.expected
    if question.kind != PRACTICE or known is None or value is None:
        return Receipt(key)
    task = task_named(desk.study.task)
    return Receipt(key, task.right(value, known), task.say(question.payload, known))


def _row(
    desk: Desk, ticket: Ticket, kind: str, key: str, value: Any, comment: str, visible: float | None = None
) -> SimpleNamespace:
    """The next row of my chain. `visible` is how long the page says the question was in view."""
    row = SimpleNamespace(
        study_id=desk.study.id,
        question_id=ticket.question.id,
        slot_id=ticket.slot.id,
        annotator_id=desk.me.id,
        kind=kind,
        key=key,
        value=value,
        comment=comment,
        seconds=_seconds(desk, ticket.slot, visible),
        at=desk.now,
    )
    append_answer(desk.me, row)
    return row


def _seconds(desk: Desk, slot: SimpleNamespace, visible: float | None) -> float | None:
    """Time in view, but never more than has passed here: clocks jump, pages can lie."""
    begun = desk.shown.pop(slot.id, None)
    if begun is not None:
        passed = time.monotonic() - begun
    elif slot.shown is not None and 0 <= desk.now - slot.shown <= 86400:  # the server was started again since
        passed = desk.now - slot.shown
    else:
        return visible
    return passed if visible is None else min(visible, passed)


def _skipped(desk: Desk) -> int:
    """How many questions I skipped and did not take back."""
    rows = _recent(desk, limit=100_000)
    return sum(row.kind == SKIP for row in rows) - sum(row.kind == UNDO for row in rows if _undoes_skip(row, rows))


def _undoes_skip(undo: SimpleNamespace, rows: list[SimpleNamespace]) -> bool:
    """Whether an undo took back a skip: of the rows of its slot before it, the last that stood was one."""
    before = [row.kind for row in rows if row.slot_id == undo.slot_id and row.turn < undo.turn]
    return bool(before) and before[0] == SKIP


def _last_step(desk: Desk) -> Ticket | None:
    """The slot of my last answer or skip that was not taken back."""
    taken_back = 0
    for row in _recent(desk, limit=200):
        if row.kind == UNDO:
            taken_back += 1
        elif taken_back:
            taken_back -= 1
        else:
            found = desk.slot_of(row.slot_id)
            return None if found.slot.kind == PRACTICE else found
    return None


def _recent(desk: Desk, limit: int) -> list[SimpleNamespace]:
    rows = desk.ask("my_rows", me=desk.me.id, most=limit).fetchall()
    return [SimpleNamespace(slot_id=slot, kind=kind, turn=turn) for slot, kind, turn in rows]
