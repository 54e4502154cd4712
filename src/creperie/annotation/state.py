"""The states of studies, slots and answers: tables of allowed transitions, checked when rows are flushed.

A study is open, paused or closed. In a closed study, the only thing still possible is to erase a person's answers at
their request. `GuardedSession` refuses every row that the tables do not allow, no matter which part of creperie writes
it.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import event, inspect, select
from sqlalchemy.orm import Session

from creperie.annotation.schema import (
    ANSWER,
    CLOSED,
    DONE,
    FREE,
    HELD,
    MAIN,
    OPEN,
    PAUSED,
    SKIP,
    UNDO,
    VOID,
    Annotator,
    Answer,
    Decision,
    Event,
    Question,
    Revision,
    SchemaTable,
    Slot,
    StudyRow,
)
from creperie.annotation.settings import changed
from creperie.core import CreperieError, Json, json_value, unknown

#: Allowed changes of a study's state.
STUDY_MOVES = {OPEN: (PAUSED, CLOSED), PAUSED: (OPEN, CLOSED), CLOSED: (PAUSED,)}
_OWNERS = ("invite", "adjudicate", "exclude", "include", "settings", "release", "void", "erase")
#: Allowed actions by state of the study. A paused study still accepts answers to questions already given out.
PERMITTED = {
    OPEN: frozenset(("take", ANSWER, SKIP, UNDO, *_OWNERS)),
    PAUSED: frozenset((ANSWER, SKIP, *_OWNERS)),
    CLOSED: frozenset(("erase", "void", "release")),
}
#: Allowed changes of a slot's state, and the action of each.
SLOT_MOVES = {
    (FREE, HELD): "take",
    (HELD, HELD): "take",  # by somebody else, after the lease expired
    (HELD, DONE): ANSWER,
    (HELD, FREE): "release",
    (DONE, HELD): UNDO,
    (DONE, VOID): "void",
    (VOID, DONE): "include",
}
#: Allowed actions of an annotator after their last one on a slot; None: no action yet.
ANSWER_MOVES = {None: (ANSWER, SKIP), UNDO: (ANSWER, SKIP), ANSWER: (UNDO,), SKIP: (UNDO,)}
#: The columns that change when an answer is erased; no other column of an answer ever changes.
ERASED = frozenset(("given", "value", "shown_order", "comment", "seconds", "erased"))


class StateError(CreperieError):
    """Raised when the state of a study, slot or answer does not allow an action. `code` tells the page why."""

    code = "stopped"


class GuardedSession(Session):
    """A database session that checks changes of state. It raises an error for a change that the transition tables do
    not allow.
    """


@event.listens_for(GuardedSession, "before_flush")
def _guard(session: Session, context: object, instances: object) -> None:
    for row in session.deleted:
        if isinstance(row, (Answer, Decision, Revision, Event)):
            raise StateError(
                f"a stored {row.__tablename__} cannot be deleted",
                hint="to erase a person's answers, use `annotate withdraw`",
            )
    for row in session.new:
        _check_new(session, row)
    for row in session.dirty:
        if session.is_modified(row):
            _check_changed(session, row)


def _check_new(session: Session, row: Any) -> None:
    if isinstance(row, Answer):
        _permit(session, row.study_id, row.kind)
        own = select(Answer.kind).where(Answer.slot_id == row.slot_id, Answer.annotator_id == row.annotator_id)
        last = session.scalar(own.order_by(Answer.turn.desc()).limit(1))
        if row.kind not in ANSWER_MOVES[last]:
            when = f"is not possible after {last!r}" if last else "cannot come first"
            raise StateError(f"the action {row.kind!r} {when}", hint="load the page again")
    elif isinstance(row, Annotator):
        _permit(session, row.study_id, "invite")
    elif isinstance(row, Decision):
        _permit(session, session.get_one(Question, row.question_id).study_id, "adjudicate")


def _check_changed(session: Session, row: SchemaTable) -> None:
    changes = {a.key: a.history for a in inspect(row).attrs if a.history.has_changes()}
    before = {name: (history.deleted or (None,))[0] for name, history in changes.items()}
    if isinstance(row, (Decision, Revision, Event)):
        raise StateError(f"a stored {row.__tablename__} cannot be changed", hint="store a new one instead")
    if isinstance(row, Answer) and (set(changes) - ERASED or row.erased is None or row.value is not None):
        raise StateError(
            "a stored answer cannot be changed, only erased", hint="use `annotate withdraw` to erase answers"
        )
    if isinstance(row, Annotator) and "excluded" in changes:
        action = "erase" if row.withdrawn else "exclude" if row.excluded else "include"
        _permit(session, row.study_id, action)
    if isinstance(row, Slot) and ("state" in changes or "annotator_id" in changes):
        old = str(before.get("state", row.state))
        move = SLOT_MOVES.get((old, row.state))
        if move is None:
            raise StateError(f"a question that is {old} cannot become {row.state}", hint="load the page again")
        _permit(session, row.study_id, move)
    if isinstance(row, StudyRow):
        old = str(before.get("state", row.state))
        if old != row.state and row.state not in STUDY_MOVES[old]:
            hint = f"it can become {' or '.join(sorted(STUDY_MOVES[old]))}"
            raise StateError(f"a study cannot change from {old} to {row.state}", where=row.name, hint=hint)
        if "settings" in before or "instructions" in before:
            _permit(session, row.id, "settings")
            if "revision" not in before:
                what = "the settings were changed without counting up their revision"
                raise StateError(what, where=row.name, hint="change them with `annotate settings`")


def _permit(session: Session, study: int, action: str) -> None:
    """Raise an error if the study's state does not allow the action. The state is read from the database; changes that
    are not written yet do not count.
    """
    row = session.get_one(StudyRow, study)
    state = (inspect(row).attrs.state.history.deleted or [row.state])[0]
    if action not in PERMITTED[state]:
        states = [name for name, actions in PERMITTED.items() if action in actions]
        hint = f"it is possible in these states: {', '.join(states) or 'none'}"
        raise StateError(f"the action {action!r} is not possible while the study is {state}", where=row.name, hint=hint)


# -- studies -----------------------------------------------------------------------------------------------------------


def study_named(session: Session, name: str) -> StudyRow:
    """Return the stored study of this name. If there is none, raise an error that lists the names.

    In a writing session the study's row is locked, so that its state stays the same until the end of the transaction.
    """
    own = select(StudyRow).where(StudyRow.name == name)
    study = session.scalar(own.with_for_update(key_share=True) if isinstance(session, GuardedSession) else own)
    if study is None:
        raise unknown("study", name, session.scalars(select(StudyRow.name)).all())
    return study


def set_state(session: Session, study: StudyRow, state: str, actor: str) -> None:
    """Pause, reopen or close a study."""
    if state not in STUDY_MOVES:
        raise unknown("state", state, STUDY_MOVES)
    if study.state != state:
        study.state = state
        log(session, actor, f"{state} study", study)


class OldRevisionError(StateError):
    """Raised if somebody else saved the settings in the meantime. `both` maps each setting in conflict to two values:
    the stored one, and the one that could not be saved.
    """

    def __init__(self, study: str, both: dict[str, tuple[Any, Any]]) -> None:
        self.both = both
        super().__init__("somebody else has changed the settings in the meantime", where=study, hint="load them again")


def change_settings(session: Session, study: StudyRow, actor: str, changes: Json, revision: int | None = None) -> None:
    """Change settings or the instructions of a study, and store the result as a new revision. The keys of `changes` are
    names of StudySettings, or `instructions`.

    `revision` is the number of the revision on which the changes are based. If the study has a newer revision by now,
    nothing is changed and an OldRevisionError is raised.
    """
    before, others = changed(study.settings, {}), dict(changes)
    now = before | {"instructions": study.instructions}
    if revision is not None and revision != study.revision:
        raise OldRevisionError(study.name, {k: (now[k], v) for k, v in changes.items() if k in now and now[k] != v})
    text = str(others.pop("instructions", study.instructions))
    settings = changed(study.settings, others)
    if (settings, text) == (before, study.instructions):
        return
    study.settings, study.instructions, study.revision = settings, text, study.revision + 1
    session.flush()
    write_revision(session, study, actor)
    names = sorted(name for name, value in (settings | {"instructions": text}).items() if value != now[name])
    log(session, actor, "change settings", study, names=names, revision=study.revision)


def adjudicate(session: Session, study: StudyRow, ordinal: int, value: Json, comment: str, actor: str) -> None:
    """Store a decision on a question. Earlier decisions stay on record."""
    own = select(Question.id).where(Question.study_id == study.id, Question.ordinal == ordinal, Question.kind == MAIN)
    question = session.scalars(own).one()
    session.add(Decision(question_id=question, by=actor[:64], value=value, comment=comment, at=time.time()))
    log(session, actor, "adjudicate", study, question=ordinal, value=value)


def write_revision(session: Session, study: StudyRow, actor: str) -> None:
    """Store the current settings and instructions as a revision."""
    session.add(
        Revision(
            study_id=study.id,
            number=study.revision,
            at=time.time(),
            actor=actor[:80],
            settings=study.settings,
            instructions=study.instructions,
        )
    )


def log(session: Session, actor: str, what: str, study: StudyRow | None, /, **detail: Any) -> None:
    """Add an event to the audit trail."""
    own = study.id if study else None
    session.add(Event(study_id=own, at=time.time(), actor=actor[:80], what=what, detail=json_value(detail)))
    session.flush()
