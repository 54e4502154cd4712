"""The chain of an annotator's answers: a row that was changed, taken out or slipped in shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.schema import Annotator, Answer, Study

START = "0" * 64
SEALED = (
    "study_id",
    "question_id",
    "slot_id",
    "annotator_id",
    "turn",
    "kind",
    "key",
    "value",
    "comment",
    "seconds",
    "at",
)


def seal(before: str, answer: Answer) -> str:
    """The digest of a row, over its content and the digest of the row before it."""
    content = [getattr(answer, name) for name in SEALED]
    text = json.dumps([before, *content], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Break:
    """Where a chain does not hold."""

    annotator: str
    turn: int
    why: str


def broken_links(session: Session, study: Study) -> list[Break]:
    """Where the answers of a study are not those that were acknowledged."""
    found: list[Break] = []
    annotators = session.execute(select(Annotator.id, Annotator.pseudonym).where(Annotator.study_id == study.id))
    for annotator, pseudonym in annotators.all():
        rows = session.scalars(select(Answer).where(Answer.annotator_id == annotator).order_by(Answer.turn))
        found += _breaks(pseudonym, rows)
    return found


def _breaks(pseudonym: str, rows: Iterable[Answer]) -> Iterable[Break]:
    before, expected = START, 1
    for row in rows:
        if row.turn != expected:
            yield Break(pseudonym, expected, "a row is missing")
        elif row.digest != seal(before, row):
            yield Break(pseudonym, row.turn, "a row was changed")
        before, expected = row.digest, row.turn + 1
