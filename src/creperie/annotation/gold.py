"""Gold questions: what an owner decided becomes a check of later annotators."""

from __future__ import annotations

import secrets

from sqlalchemy import func, insert, select

from creperie.annotation.chain import questions_digest
from creperie.annotation.database import Database
from creperie.annotation.outcome import judged
from creperie.annotation.schema import ATTENTION, Question
from creperie.annotation.settings import changed, settings_of
from creperie.annotation.study import record, study_named
from creperie.core import UsageError


def add_gold(db: Database, name: str, count: int, actor: str = "cli") -> int:
    """Add checks drawn from the adjudicated questions of a study; how many there are now."""
    with db.write() as session:
        study = study_named(session, name)
        used = {
            payload.get("gold")
            for payload in session.scalars(
                select(Question.payload).where(Question.study_id == study.id, Question.kind == ATTENTION)
            )
        }
        decided = [one for one in judged(session, study) if one.decision and one.question.id not in used]
        if len(decided) < count:
            raise UsageError(f"{count} gold questions asked for, {len(decided)} adjudicated questions left", where=name)
        last = session.scalar(select(func.max(Question.ordinal)).where(Question.study_id == study.id)) or 0
        rows = [
            {
                "study_id": study.id,
                "ordinal": last + n,
                "kind": ATTENTION,
                "source": one.question.source,
                "subset": one.question.subset,
                "item": one.question.item,
                "payload": {**one.question.payload, "gold": one.question.id},
                "expected": one.decision.value if one.decision else None,
            }
            for n, one in enumerate(secrets.SystemRandom().sample(decided, count), 1)
        ]
        session.execute(insert(Question), rows)
        total = settings_of(study.settings).gold + count
        study.settings = changed(study.settings, {"gold": total})
        record(
            session, actor, "add gold", study, {"count": count, "questions_digest": questions_digest(session, study)}
        )
    return total
