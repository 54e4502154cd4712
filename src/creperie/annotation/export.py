"""The record of a study: answers, exclusions, decisions, plan and settings in one document with one digest.

Results are computed from the record alone, so anybody who has the file can reproduce them. Records with equal digests
are equal. The digest does not prove that the owner of the database left the answers unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.outcome import StudyRecord
from creperie.annotation.schema import (
    CLOSED,
    Annotator,
    Answer,
    Decision,
    Question,
    Revision,
    StudyRow,
)
from creperie.annotation.state import log, study_named
from creperie.core import DataError, Document, Json, UsageError, csv_text, parse_json, read_text, write_text

FORMAT = 2
AGAIN = "export the study again with `annotate export`"
LARGEST = 512 * 2**20
_ABOUT = ("study", "task", "question", "kind", "source", "subset", "id", "annotator", "event", "value", "comment")
COLUMNS = (*_ABOUT, "seconds", "at", "key", "revision", "excluded", "shown_order")
_ANSWER = ("turn", "value", "comment", "seconds", "at", "key", "revision", "shown_order", "erased")
_PERSON = ("entry", "quota", "created", "excluded", "withdrawn", "finished", "outcome")


def study_record(session: Session, study: StudyRow) -> StudyRecord:
    """Return the record of a study. It holds everything that the study's results are computed from."""

    def rows(table: Any, *order: Any) -> Sequence[Any]:
        return session.scalars(select(table).where(table.study_id == study.id).order_by(*order)).all()

    questions, annotators = rows(Question, Question.ordinal), rows(Annotator, Annotator.id)
    numbers, names = {q.id: q.ordinal for q in questions}, {a.id: a.pseudonym for a in annotators}
    decided = select(Decision).join(Question).where(Question.study_id == study.id).order_by(Decision.id)
    return {
        "format": FORMAT,
        "study": study.name,
        **study.part("task", "state", "created", "plan"),
        "bench": {k: v for k, v in study.bench.items() if k not in ("images", "spec")},
        "revisions": [
            {
                **one.part("number", "at", "actor", "instructions"),
                "settings": {k: v for k, v in one.settings.items() if k != "crowd_address"},
            }
            for one in rows(Revision, Revision.number)
        ],
        "questions": [q.part("ordinal", "kind", "source", "subset", "item", "payload", "expected") for q in questions],
        "people": [{"annotator": a.pseudonym, **a.part(*_PERSON), "why": a.excluded_why} for a in annotators],
        "answers": [
            {
                "question": numbers[row.question_id],
                "annotator": names[row.annotator_id],
                "event": row.kind,
                **row.part(*_ANSWER),
            }
            for row in rows(Answer, Answer.annotator_id, Answer.turn)
        ],
        "decisions": [
            {"question": numbers[d.question_id], **d.part("by", "value", "comment", "at")}
            for d in session.scalars(decided)
        ],
    }


def exported(record: StudyRecord) -> Json:
    """Return the record for export, with its digest.

    The order in which captions were shown could reveal which are true. It is left out until the study is closed.
    """
    over = record["state"] == CLOSED
    answers = [row if over else {**row, "shown_order": None} for row in record["answers"]]
    document = {**record, "answers": answers, "erased": sum(row["erased"] is not None for row in answers)}
    return {**document, "digest": digest_of(document)}


def digest_of(document: Document) -> str:
    """Return the SHA-256 of a record as canonical JSON, without its field `digest`."""
    plain = {k: v for k, v in document.items() if k != "digest"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_export(path: Path) -> Json:
    """Return a record that `annotate export` wrote; raise an error if the file was changed since."""
    document = parse_json(read_text(path, max_bytes=LARGEST), str(path))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError("is not a study exported by this version of creperie", where=str(path), hint=AGAIN)
    if document.get("digest") != digest_of(document):
        what = "digest mismatch: the file was changed after it was exported"
        raise DataError(what, where=str(path), hint=AGAIN)
    return document


def export_text(document: StudyRecord, kind: str) -> str:
    """Return an exported record as JSON. If `kind` is "csv", return its answers as CSV."""
    if kind == "csv":
        return csv_text(COLUMNS, map(itemgetter(*COLUMNS), answer_rows(document)))
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def export_study(db: Database, name: str, path: Path) -> Json:
    """Write a study's record to a .json file, or its answers to a .csv file. Return a summary: the record's digest, the
    number of entries (answers, skips and undos), and the number of erased entries.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("json", "csv"):
        raise UsageError("the file must end in .json (the whole record) or .csv (the answers)", where=str(path))
    with db.read() as session:
        document = exported(study_record(session, study_named(session, name)))
    write_text(path, export_text(document, kind))
    with db.write() as session:
        log(session, "cli", "export", study_named(session, name), digest=document["digest"])
    return {"events": len(document["answers"]), "digest": document["digest"], "erased": document["erased"]}


def answer_rows(document: StudyRecord) -> Iterator[Json]:
    """Yield one flat row for every answer, skip and undo, in order of time. Erased ones are left out."""
    questions = {q["ordinal"]: q for q in document["questions"]}
    excluded = {p["annotator"]: p["excluded"] is not None for p in document["people"]}
    for row in sorted((r for r in document["answers"] if r["erased"] is None), key=lambda r: r["at"]):
        asked = questions[row["question"]]
        about = {"study": document["study"], "task": document["task"], "id": asked["item"]}
        about |= {name: asked[name] for name in ("kind", "source", "subset")}
        when = datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="milliseconds")
        yield {**row, **about, "at": when, "excluded": excluded[row["annotator"]]}
