"""Short ways to do what tests of a study do again and again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation import state
from creperie.annotation.assignment import Desk
from creperie.annotation.database import Database
from creperie.annotation.export import study_record
from creperie.annotation.links import Participant
from creperie.annotation.outcome import Judged, judged
from creperie.annotation.schema import Annotator, Link, StudyRow
from creperie.annotation.state import study_named


def desk_for(db: Database, session: Session, who: int, now: float | None = None) -> Desk:
    """The desk of an annotator, as a request of theirs has it."""
    annotator = session.scalars(select(Annotator).where(Annotator.id == who).with_for_update()).one()
    link = session.scalars(select(Link).where(Link.annotator_id == who)).first()
    assert link is not None
    own = select(StudyRow).where(StudyRow.id == annotator.study_id).with_for_update(read=True)
    return Desk(db, session, Participant(link, annotator, session.scalars(own).one()), now)


def set_state(db: Database, name: str, to: str, actor: str = "test") -> None:
    with db.write() as session:
        state.set_state(session, study_named(session, name), to, actor)


def change_settings(db: Database, name: str, actor: str = "test", **changes: Any) -> None:
    with db.write() as session:
        state.change_settings(session, study_named(session, name), actor, changes)


def judged_in(db: Database, name: str, *more: Any, **how: Any) -> list[Judged]:
    with db.read() as session:
        return judged(study_record(session, study_named(session, name)), *more, **how)


def record_of(db: Database, name: str) -> Any:
    with db.read() as session:
        return study_record(session, study_named(session, name))
