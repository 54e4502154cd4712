"""Chains of digests: they reveal every row that was changed, removed or inserted.

Every annotator has a chain of answers, every study one of events. An event names the digest of what it did: the
questions when a study is created, the decision when a question is adjudicated. So all of it is covered. A signed
checkpoint is a copy of where all chains of a study ended, which nobody with the database alone can forge.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.schema import START, Annotator, Answer, Decision, Event, Question, StudyRow
from creperie.core import DataError, read_json

_SEALED = ["study_id", "question_id", "slot_id", "annotator_id", "turn", "kind", "key", "at", "content"]


def digest_of(*content: Any) -> str:
    """sha256 of values as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def seal(before: str, answer: Answer) -> str:
    """The digest of an answer, over its content's hash and the digest of the row before it."""
    return digest_of(before, *(getattr(answer, name) for name in _SEALED))


def fill_content(answer: Answer) -> None:
    """Give an answer the salted hash of what it says."""
    answer.salt = secrets.token_hex(16)
    answer.content = _content(answer)


def _content(answer: Answer) -> str:
    return digest_of(answer.salt, answer.value, answer.comment, answer.seconds)


def append_answer(annotator: Any, answer: Any) -> None:
    """Put an answer at the end of its annotator's chain: rows of the tables, or what has the same attributes."""
    answer.turn = annotator.turns + 1
    fill_content(answer)
    answer.digest = seal(annotator.head, answer)
    annotator.turns, annotator.head = answer.turn, answer.digest


def event_digest(before: str, event: Event) -> str:
    return digest_of(before, event.study_id, event.at, event.actor, event.what, event.detail)


def decision_digest(decision: Decision) -> str:
    return digest_of(decision.question_id, decision.by, decision.value, decision.comment, decision.at)


def questions_digest(session: Session, study: StudyRow) -> str:
    """One digest over all questions of a study, with their known answers."""
    rows = session.execute(
        select(
            Question.ordinal,
            Question.kind,
            Question.source,
            Question.subset,
            Question.item,
            Question.payload,
            Question.expected,
        )
        .where(Question.study_id == study.id)
        .order_by(Question.ordinal)
    )
    return digest_of([list(row) for row in rows])


@dataclass(frozen=True)
class Break:
    """Where a chain does not hold. `annotator` is empty for what belongs to the study itself."""

    annotator: str
    turn: int
    why: str


def broken_links(session: Session, study: StudyRow, checkpoint: Mapping[str, Any] | None = None) -> list[Break]:
    """Where the study is not what was acknowledged; with a checkpoint, also where rows written before it are gone."""
    found: list[Break] = []
    marks = dict((checkpoint or {}).get("annotators", {}))
    for annotator in session.scalars(select(Annotator).where(Annotator.study_id == study.id)):
        mark = marks.pop(annotator.pseudonym, {"turns": 0, "head": START})
        rows = session.scalars(select(Answer).where(Answer.annotator_id == annotator.id).order_by(Answer.turn))
        found += _breaks(annotator, rows, mark)
    found += [Break(name, 1, "the annotator is missing") for name in marks]
    found += _event_breaks(session, study, (checkpoint or {}).get("events", {"count": 0, "head": START}))
    if checkpoint and checkpoint["questions"] != questions_digest(session, study):
        found.append(Break("", 0, "questions differ from the checkpoint"))
    return found


def _breaks(annotator: Annotator, rows: Iterable[Answer], mark: Mapping[str, Any]) -> Iterator[Break]:
    before, expected, name, heads = START, 1, annotator.pseudonym, {0: START}
    for row in rows:
        if row.turn != expected:
            yield Break(name, expected, "a row is missing")
        elif row.digest != seal(before, row) or (not row.erased and row.content != _content(row)):
            yield Break(name, row.turn, "a row was changed")
        before, expected = row.digest, row.turn + 1
        heads[row.turn] = row.digest
    if (annotator.turns, annotator.head) != (expected - 1, before):
        yield Break(name, expected, "rows at the end are missing")
    if heads.get(mark["turns"]) != mark["head"]:
        yield Break(name, mark["turns"], "a row differs from the checkpoint")


def _event_breaks(session: Session, study: StudyRow, mark: Mapping[str, Any]) -> Iterator[Break]:
    before, count, heads, known = START, 0, {0: START}, set()
    chained = select(Event).where(Event.study_id == study.id, Event.digest.is_not(None)).order_by(Event.id)
    questions = ""
    for count, event in enumerate(session.scalars(chained), 1):
        if event.digest != event_digest(before, event):
            yield Break("", count, "an event was changed, or one before it is missing")
        before = heads[count] = event.digest or ""
        known.add(event.detail.get("decision"))
        questions = event.detail.get("questions_digest", questions)
    if (study.events, study.head) != (count, before):
        yield Break("", count + 1, "events at the end are missing")
    if heads.get(mark["count"]) != mark["head"]:
        yield Break("", mark["count"], "events differ from the checkpoint")
    if questions and questions != questions_digest(session, study):
        yield Break("", 0, "questions were changed")
    yield from _decision_breaks(session, study, known) if questions else ()


def _decision_breaks(session: Session, study: StudyRow, known: set[str | None]) -> Iterator[Break]:
    made = select(Decision).join(Question).where(Question.study_id == study.id).order_by(Decision.id)
    digests = {decision_digest(d): d.id for d in session.scalars(made)}
    for digest, number in digests.items():
        if digest not in known:
            yield Break("", number, "a decision was changed or slipped in")
    if missing := {d for d in known if d} - set(digests):
        yield Break("", 0, f"{len(missing)} decisions are missing")


KEY_FILE = "CREPERIE_PEOPLE_KEY"


def checkpoint_of(session: Session, study: StudyRow) -> dict[str, Any]:
    """Where the chains of a study end now."""
    everybody = select(Annotator).where(Annotator.study_id == study.id).order_by(Annotator.id)
    return {
        "study": study.name,
        "at": time.time(),
        "questions": questions_digest(session, study),
        "events": {"count": study.events, "head": study.head},
        "annotators": {a.pseudonym: {"turns": a.turns, "head": a.head} for a in session.scalars(everybody)},
    }


def sign(document: Mapping[str, Any], db: Database) -> dict[str, Any]:
    """A document with its signature (HMAC-SHA256)."""
    return {**document, "signature": _signature(document, signing_keys(db)[0])}


def read_checkpoint(path: Path, db: Database) -> dict[str, Any]:
    """A checkpoint from a file; DataError where its signature is not ours."""
    document = read_json(path)
    if not isinstance(document, dict) or not {"annotators", "events", "questions", "signature"} <= set(document):
        raise DataError("not a checkpoint", where=str(path))
    signature = str(document.pop("signature"))
    made = [_signature(document, key).encode() for key in signing_keys(db)]
    if not any(hmac.compare_digest(signature.encode(), one) for one in made):
        raise DataError("the signature is not valid", where=str(path), hint=f"was another ${KEY_FILE} in use?")
    return document


def _signature(document: Mapping[str, Any], key: bytes) -> str:
    return hmac.new(key, json.dumps(document, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def signing_keys(db: Database) -> list[bytes]:
    """The key, and those before it; one is made when it is first needed.

    It is in a file outside the database, readable by its owner only: `$CREPERIE_PEOPLE_KEY`, or beside a SQLite
    database under its name with `.key` at the end, or `creperie-people.key` in the working folder. Of several lines the
    first one signs, and all of them verify: a new key is put on top.
    """
    database = db.engine.url.database or ""
    beside = Path(f"{database}.key") if db.engine.dialect.name == "sqlite" else Path("creperie-people.key")
    path = Path(os.environ.get(KEY_FILE) or beside)
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return [bytes.fromhex(line) for line in path.read_text(encoding="ascii").split()]
