"""What owners and adjudicators decide, and checks that are made of their decisions."""

from __future__ import annotations

import secrets
import time

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.export import study_record
from creperie.annotation.outcome import judged
from creperie.annotation.schema import ATTENTION, MAIN, Decision, Question, StudyRow
from creperie.annotation.settings import settings_of
from creperie.annotation.state import change_settings, record, study_named
from creperie.annotation.tasks.task import Value
from creperie.core import UsageError


def adjudicate(session: Session, study: StudyRow, ordinal: int, value: Value, comment: str, actor: str) -> None:
    """Decide a question. Earlier decisions stay on record."""
    own = select(Question.id).where(Question.study_id == study.id, Question.ordinal == ordinal, Question.kind == MAIN)
    question = session.scalars(own).one()
    session.add(Decision(question_id=question, by=actor[:64], value=value, comment=comment, at=time.time()))
    record(session, actor, "adjudicate", study, {"question": ordinal, "value": value})


def add_gold(db: Database, name: str, count: int, actor: str = "cli") -> int:
    """Add gold questions: checks of later annotators, drawn from what was adjudicated; how many there are now."""
    with db.write() as session:
        study = study_named(session, name)
        checks = select(Question.payload).where(Question.study_id == study.id, Question.kind == ATTENTION)
        used = {payload.get("gold") for payload in session.scalars(checks)}
        main = select(Question.ordinal, Question.id).where(Question.study_id == study.id, Question.kind == MAIN)
        ids = dict(session.execute(main).all())
        decided = [one for one in judged(study_record(session, study)) if one.decision]
        left = [one for one in decided if ids[one.question.ordinal] not in used]
        if len(left) < count:
            raise UsageError(f"{count} gold questions asked for, {len(left)} adjudicated questions left", where=name)
        last = session.scalar(select(func.max(Question.ordinal)).where(Question.study_id == study.id)) or 0
        rows = [
            {
                "study_id": study.id,
                "ordinal": last + n,
                "kind": ATTENTION,
                "source": one.question.source,
                "subset": one.question.subset,
                "item": one.question.item,
                "payload": {**one.question.payload, "gold": ids[one.question.ordinal]},
                "expected": one.decision["value"] if one.decision else None,
            }
            for n, one in enumerate(secrets.SystemRandom().sample(left, count), 1)
        ]
        session.execute(insert(Question), rows)
        total = settings_of(study.settings).gold + count
        change_settings(session, study, actor, {"gold": total})
        record(session, actor, "add gold", study, {"count": count})
    return total
