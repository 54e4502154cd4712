"""Short ways to do what tests of a study do again and again."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation import (
    Database,
    StudyPlan,
    invite,
    judged,
    overview,
    state,
    store_study,
    study_named,
    study_record,
)
from creperie.annotation.answers import answer
from creperie.annotation.assignment import Desk
from creperie.annotation.links import Participant
from creperie.annotation.outcome import Judged
from creperie.annotation.schema import Annotator, Link, Slot, StudyRow
from creperie.bench import Benchmark


@contextmanager
def listening(config: uvicorn.Config) -> Iterator[tuple[str, int]]:
    """A running server; where it listens."""
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield listener.getsockname()
        server.should_exit = True
        thread.join(30)


def desk_for(session: Session, who: int, now: float | None = None) -> Desk:
    """The desk of an annotator, as a request of theirs has it."""
    annotator = session.scalars(select(Annotator).where(Annotator.id == who).with_for_update()).one()
    link = session.scalars(select(Link).where(Link.annotator_id == who)).first()
    assert link is not None
    own = select(StudyRow).where(StudyRow.id == annotator.study_id).with_for_update(read=True)
    return Desk(session, Participant(link, annotator, session.scalars(own).one()), now)


def begin(db: Database, bench: Benchmark, people: int = 2, **plan: Any) -> list[int]:
    """A foil check with annotators; their ids."""
    store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check", **({"practice": 0} | plan)))
    invite(db, "s", people)
    with db.read() as session:
        return list(session.scalars(select(Annotator.id).order_by(Annotator.id)))


def always_false(desk: Desk, ticket: Slot) -> dict[str, Any]:
    return {"verdict": "false"}


def work(db: Database, who: int, n: int = 1000, fields: Callable[[Desk, Slot], dict[str, Any]] = always_false) -> int:
    """Answer up to n questions with these fields; how many there were."""
    for done in range(n):
        with db.write() as session:
            desk = desk_for(session, who)
            ticket = desk.take()
            if ticket is None:
                return done
            answer(desk, ticket.token or "", f"k-{who}-{ticket.id}-{done}", fields(desk, ticket), "a remark")
    return n


def seen_in(db: Database, name: str) -> dict[str, Any]:
    """What its owner sees of a study."""
    with db.read() as session:
        return overview(session, study_named(session, name))


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
