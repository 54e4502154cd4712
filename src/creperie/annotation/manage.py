"""Studies as a whole: copy, archive, delete; time and cost that are still to come."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select

from creperie.annotation.chain import questions_digest
from creperie.annotation.database import Database
from creperie.annotation.privacy import erase
from creperie.annotation.schema import FREE, MAIN, START, Annotator, Answer, Question, Slot, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.study import check_name, record, study_named
from creperie.core import UsageError

_QUESTION = ("ordinal", "kind", "source", "subset", "item", "payload", "expected")


def copy_study(db: Database, name: str, new: str, actor: str = "cli") -> None:
    """A study with the same questions, settings and instructions, and nobody in it. It has a secret of its own."""
    import secrets

    check_name(new)
    with db.write() as session:
        study = study_named(session, name)
        if session.scalar(select(StudyRow.id).where(StudyRow.name == new)) is not None:
            raise UsageError(f"there is already a study {new!r}", where=db.place, hint="choose another name")
        settings = {k: v for k, v in study.settings.items() if k != "open_link"}
        made = StudyRow(
            name=new,
            task=study.task,
            instructions=study.instructions,
            plan=study.plan,
            bench=study.bench,
            state=study.state,
            phase=0 if study.plan["pilot"] else 1,
            created=time.time(),
            secret=secrets.token_hex(32),
            settings=settings,
            events=0,
            head=START,
        )
        session.add(made)
        session.flush()
        own = select(Question).where(Question.study_id == study.id).order_by(Question.ordinal)
        rows = [{c: getattr(q, c) for c in _QUESTION} | {"study_id": made.id} for q in session.scalars(own)]
        session.execute(insert(Question), rows)
        _copy_slots(session, study, made)
        record(session, actor, "copy study", made, {"from": name})
        record(session, actor, "store questions", made, {"questions_digest": questions_digest(session, made)})


def _copy_slots(session: Any, study: StudyRow, made: StudyRow) -> None:
    new = {q.ordinal: q.id for q in session.execute(_ordinals(made))}
    old = {q.id: q.ordinal for q in session.execute(_ordinals(study))}
    slots = session.execute(
        select(Slot.question_id, Slot.copy, Slot.rank, Slot.phase).where(
            Slot.study_id == study.id, Slot.kind == MAIN, Slot.copy < study.plan["overlap"]
        )
    )
    rows = [
        {
            "study_id": made.id,
            "question_id": new[old[slot.question_id]],
            "kind": MAIN,
            "copy": slot.copy,
            "rank": slot.rank,
            "phase": slot.phase,
            "state": FREE,
        }
        for slot in slots
    ]
    session.execute(insert(Slot), rows)


def _ordinals(study: StudyRow) -> Any:
    return select(Question.id, Question.ordinal).where(Question.study_id == study.id)


def archive(db: Database, name: str, actor: str = "cli", *, back: bool = False) -> None:
    """Take a study off the lists and close it; with `back`, put it on them again."""
    with db.write() as session:
        study = study_named(session, name)
        study.archived = None if back else time.time()
        if not back:
            study.state = "closed"
        record(session, actor, "unarchive" if back else "archive", study, {})


def delete_study(db: Database, name: str, actor: str = "cli", *, erase_answers: bool = False) -> None:
    """Delete a study. What people said is erased, too, but only where that is asked for; its name becomes free."""
    with db.write() as session:
        study = study_named(session, name)
        answered = session.scalar(select(Answer.id).where(Answer.study_id == study.id).limit(1)) is not None
        if answered and not erase_answers:
            raise UsageError(f"study {name!r} has answers", hint="archive it, or pass `erase_answers=True`")
        for annotator in session.scalars(select(Annotator).where(Annotator.study_id == study.id)).all():
            erase(session, study, annotator)
            annotator.worker = None
        if not answered:
            session.execute(delete(Slot).where(Slot.study_id == study.id))
            session.execute(delete(Question).where(Question.study_id == study.id))
        record(session, actor, "delete study", study, {"name": name})
        study.state, study.archived, study.instructions, study.settings = "closed", time.time(), "", {}
        study.name = f"~deleted-{study.id}"


def forecast(study: StudyRow, seen: Sequence[dict[str, Any]], open_slots: int) -> dict[str, Any]:
    """How long the remaining answers will take people, and what they will cost, going by those that are there."""
    medians = [a["median_seconds"] for a in seen if a["answers"] and a["median_seconds"] == a["median_seconds"]]
    settings, quota = settings_of(study.settings), study.plan["per_annotator"]
    hours = open_slots * statistics.median(medians) / 3600 if medians else None
    people = -(-open_slots // quota) if quota else None
    cost = people * settings.pay if people is not None and settings.pay else None
    return {"open": open_slots, "hours": hours, "people": people, "cost": cost, "currency": settings.currency}
