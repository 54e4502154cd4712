"""Whose answers count: exclude an annotator by hand or by rule, give their questions out again, take it back."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.invitations import annotator_named
from creperie.annotation.measures import annotators
from creperie.annotation.schema import DONE, FREE, HELD, MAIN, VOID, Annotator, Answer, Login, Slot, StudyRow
from creperie.annotation.settings import StudySettings, settings_of
from creperie.annotation.study import record, study_named
from creperie.core import UsageError

#: A rule says nothing about somebody with less evidence than this.
FEWEST_CHECKS, FEWEST_ANSWERS, FEWEST_COMPARED = 2, 5, 10


def exclude(db: Database, name: str, pseudonym: str, why: str = "", actor: str = "cli") -> int:
    """Leave an annotator's answers out of all results and give their questions to others; how many are given out.

    The answers stay on record, and `include` takes it back.
    """
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded is not None:
            raise UsageError(f"{pseudonym} is already excluded", where=name)
        annotator.excluded, annotator.excluded_why = time.time(), why
        given = release(session, study, annotator)
        record(session, actor, "exclude", study, {"annotator": pseudonym, "why": why, "given_out_again": given})
    return given


def include(db: Database, name: str, pseudonym: str, actor: str = "cli") -> None:
    """Let an excluded annotator's answers count again; replacement questions that nobody has begun are withdrawn."""
    with db.write() as session:
        study = study_named(session, name)
        annotator = annotator_named(session, study, pseudonym)
        if annotator.excluded is None or annotator.withdrawn is not None:
            raise UsageError(f"{pseudonym} is not excluded", where=name)
        annotator.excluded, annotator.excluded_why = None, ""
        for slot in session.scalars(select(Slot).where(Slot.annotator_id == annotator.id, Slot.state == VOID)):
            slot.state = DONE
            session.flush()
            _drop_surplus(session, study, slot.question_id)
        record(session, actor, "include", study, {"annotator": pseudonym})


def release(session: Session, study: StudyRow, annotator: Annotator) -> int:
    """End an annotator's work: answered slots become void, with a free one in their place; how many were made."""
    session.execute(delete(Login).where(Login.annotator_id == annotator.id))
    made = 0
    own = select(Slot).where(Slot.annotator_id == annotator.id, Slot.kind == MAIN)
    for slot in session.scalars(own).all():
        if slot.state == DONE:
            slot.state = VOID
            session.flush()
            made += _replace(session, study, slot)
        elif slot.state == HELD:
            slot.state, slot.annotator_id, slot.order, slot.token, slot.lease_until = FREE, None, None, None, None
    session.flush()
    return made


def _replace(session: Session, study: StudyRow, slot: Slot) -> bool:
    """A new slot in the place of a void one, unless the question has enough without it."""
    states = session.execute(select(Slot.state, Slot.copy).where(Slot.question_id == slot.question_id)).all()
    if sum(state != VOID for state, _ in states) >= study.plan["overlap"]:
        return False
    session.add(
        Slot(
            study_id=study.id,
            question_id=slot.question_id,
            kind=MAIN,
            copy=max(copy for _, copy in states) + 1,
            rank=slot.rank,
            phase=slot.phase,
            state=FREE,
        )
    )
    session.flush()
    return True


def _drop_surplus(session: Session, study: StudyRow, question: int) -> None:
    """Remove free slots beyond what was asked for, where nobody has done anything with them."""
    slots = session.scalars(select(Slot).where(Slot.question_id == question, Slot.state != VOID)).all()
    surplus = len(slots) - study.plan["overlap"]
    for slot in [s for s in slots if s.state == FREE and s.annotator_id is None][: max(0, surplus)]:
        if session.scalar(select(Answer.id).where(Answer.slot_id == slot.id).limit(1)) is None:
            session.delete(slot)
    session.flush()


# -- by rule ---------------------------------------------------------------------------------------------------------


def apply_rules(db: Database, name: str, actor: str = "cli", *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Exclude every annotator whom the study's rules rule out; who, and why.

    Checks and time come first: who fails them no longer counts among the others with whom people must agree.
    """
    found: list[dict[str, Any]] = []
    for agreement in (False, True):
        with db.read() as session:
            study = study_named(session, name)
            rows = annotators(session, study)
        settings = settings_of(study.settings)
        alone = replace(settings, min_agreement=None)
        together = replace(settings, max_attention_failures=None, min_median_seconds=None)
        known = {one["annotator"] for one in found}
        new = [one for one in ruled_out(together if agreement else alone, rows) if one["annotator"] not in known]
        for one in new if not dry_run else ():
            exclude(db, name, one["annotator"], one["why"], actor)
        found += new
    return found


def ruled_out(settings: StudySettings, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who breaks a rule. Those who are excluded or withdrew already are left out."""
    found = []
    for row in rows:
        why = "; ".join(_reasons(settings, row))
        if why and not row["excluded"] and not row["withdrawn"]:
            found.append({"annotator": row["annotator"], "why": why})
    return found


def _reasons(settings: StudySettings, row: dict[str, Any]) -> list[str]:
    reasons = []
    asked, failed = row["attention_asked"], row["attention_asked"] - row["attention_passed"]
    most = settings.max_attention_failures
    if most is not None and asked >= FEWEST_CHECKS and failed / asked > most:
        reasons.append(f"failed {failed} of {asked} checks")
    median, least = row["median_seconds"], settings.min_median_seconds
    if least is not None and row["answers"] >= FEWEST_ANSWERS and not math.isnan(median) and median < least:
        reasons.append(f"median time {median:.1f} s, below {least:g} s")
    agreement = settings.min_agreement
    if agreement is not None and row["compared"] >= FEWEST_COMPARED and row["agreement"] < agreement:
        reasons.append(f"agrees with others in {row['agreement']:.0%}, below {agreement:.0%}")
    return reasons
