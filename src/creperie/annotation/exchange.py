"""Answers out of a study and into one: JSONL or CSV, one row an event, annotators by pseudonym."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.chain import START, seal
from creperie.annotation.database import Database
from creperie.annotation.schema import ANSWER, DONE, FREE, Annotator, Answer, Question, Slot, Study
from creperie.annotation.study import NAME, record, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import is_storable
from creperie.core import DataError, UsageError

COLUMNS = (
    "study",
    "task",
    "question",
    "kind",
    "source",
    "subset",
    "id",
    "annotator",
    "event",
    "value",
    "comment",
    "seconds",
    "at",
    "key",
)
#: A spreadsheet takes cells that start like this for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def export_rows(session: Session, study: Study) -> Iterator[dict[str, Any]]:
    """All events of a study in order of time."""
    rows = session.execute(
        select(Answer, Question, Annotator.pseudonym)
        .join(Question, Question.id == Answer.question_id)
        .join(Annotator, Annotator.id == Answer.annotator_id)
        .where(Answer.study_id == study.id)
        .order_by(Answer.id)
    )
    for answer, question, pseudonym in rows:
        yield {
            "study": study.name,
            "task": study.task,
            "question": question.ordinal,
            "kind": question.kind,
            "source": question.source,
            "subset": question.subset,
            "id": question.item,
            "annotator": pseudonym,
            "event": answer.kind,
            "value": answer.value,
            "comment": answer.comment,
            "seconds": answer.seconds,
            "at": datetime.fromtimestamp(answer.at, UTC).isoformat(timespec="milliseconds"),
            "key": answer.key,
        }


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows for a spreadsheet: values as JSON; a comment that looks like a formula gets an apostrophe in front."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        value = "" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)
        comment = row["comment"]
        writer.writerow({**row, "value": value, "comment": f"'{comment}" if comment.startswith(_FORMULA) else comment})
    return buffer.getvalue()


def export_study(db: Database, name: str, path: Path) -> int:
    """Write all events of a study into a .jsonl or .csv file; how many there are."""
    writers = {".jsonl": as_jsonl, ".csv": as_csv}
    if path.suffix.lower() not in writers:
        raise UsageError("is neither .jsonl nor .csv", where=str(path))
    with db.read() as session:
        rows = list(export_rows(session, study_named(session, name)))
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(writers[path.suffix.lower()](rows), encoding="utf-8", newline="")
    draft.replace(path)
    return len(rows)


# -- in --------------------------------------------------------------------------------------------------------------


def import_answers(db: Database, name: str, path: Path, actor: str = "cli") -> dict[str, int]:
    """Add the answers of a file that `export` wrote, or that has its columns. Answers that are here are left alone."""
    rows = _final(list(_read(path)))
    counts = {"added": 0, "known": 0}
    with db.write() as session:
        study = study_named(session, name)
        for where, row in rows:
            counts["added" if _add(session, study, row, where) else "known"] += 1
        record(session, actor, "import", study, {"file": path.name, **counts})
    return counts


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(path)) from None
    if path.suffix.lower() == ".csv":
        for row in (reader := csv.DictReader(io.StringIO(text, newline=""))):
            cell = row.get("comment") or ""
            comment = cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
            where = f"{path}:{reader.line_num}"
            yield where, {**row, "comment": comment, "value": _json(row.get("value") or "null", where)}
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            found = _json(line, f"{path}:{number}")
            if not isinstance(found, dict):
                raise DataError("is no JSON object", where=f"{path}:{number}")
            yield f"{path}:{number}", found


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise DataError(f"is not JSON: {e.msg}", where=where) from None


def _final(rows: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The answers that count: an undo or skip takes away what the annotator said before."""
    kept: dict[tuple[Any, Any], tuple[str, dict[str, Any]]] = {}
    for where, row in rows:
        for column in ("question", "annotator", "event", "key"):
            if row.get(column) in (None, ""):
                raise DataError(f"has no {column!r}", where=where, hint=f"columns: {', '.join(COLUMNS)}")
        key = (str(row["question"]), row["annotator"])
        if row["event"] == ANSWER:
            kept[key] = (where, row)
        else:
            kept.pop(key, None)
    return list(kept.values())


def _add(session: Session, study: Study, row: Mapping[str, Any], where: str) -> bool:
    question = _question(session, study, row, where)
    _check_value(study, question, row.get("value"), where)
    annotator = _annotator(session, study, str(row["annotator"]), where)
    own = select(Answer).where(Answer.annotator_id == annotator.id)
    if session.scalar(own.where((Answer.key == str(row["key"])) | (Answer.question_id == question.id)).limit(1)):
        return False
    slot = _slot(session, study, question, annotator)
    last = session.scalars(own.order_by(Answer.turn.desc()).limit(1)).first()
    comment = str(row.get("comment") or "")
    if not is_storable(comment) or len(comment) > 2000 or not 0 < len(str(row["key"])) <= 64:
        raise DataError("the comment or key is no text that can be stored", where=where)
    added = Answer(
        study_id=study.id,
        question_id=question.id,
        slot_id=slot.id,
        annotator_id=annotator.id,
        turn=last.turn + 1 if last else 1,
        kind=ANSWER,
        key=str(row["key"]),
        value=row["value"],
        comment=comment,
        seconds=_number(row.get("seconds"), where),
        at=_time(row.get("at"), where),
    )
    added.digest = seal(last.digest if last else START, added)
    session.add(added)
    session.flush()
    return True


def _question(session: Session, study: Study, row: Mapping[str, Any], where: str) -> Question:
    """The question that a row is about; its number must belong to the item that the row names."""
    try:
        ordinal = int(row["question"])
    except (TypeError, ValueError):
        raise DataError(f"{row['question']!r} is no number of a question", where=where) from None
    own = select(Question).where(Question.study_id == study.id)
    found = session.scalar(own.where(Question.ordinal == ordinal)) if abs(ordinal) < 2**31 else None
    if found is None or (found.subset, found.item) != (row.get("subset"), row.get("id")):
        raise DataError(
            f"question {ordinal} of study {study.name!r} is not about item {row.get('subset')}/{row.get('id')}",
            where=where,
        )
    return found


def _check_value(study: Study, question: Question, value: Any, where: str) -> None:
    task = task_named(study.task)
    try:
        for dimension in task.dimensions:
            dimension.code(question.payload, value)
        task.say(question.payload, value)
    except (KeyError, ValueError, IndexError, TypeError, AttributeError):
        raise DataError(f"is no answer to a {study.task} question: {str(value)[:80]}", where=where) from None


def _annotator(session: Session, study: Study, name: str, where: str) -> Annotator:
    """The annotator of this pseudonym; a new one has no link."""
    found = session.scalar(select(Annotator).where(Annotator.study_id == study.id, Annotator.pseudonym == name))
    if found is None:
        if not NAME.fullmatch(name):
            raise DataError(f"{name[:60]!r} is no pseudonym", where=where, hint="use small letters, digits and dashes")
        found = Annotator(study_id=study.id, pseudonym=name, note="imported", created=time.time())
        session.add(found)
        session.flush()
    return found


def _slot(session: Session, study: Study, question: Question, annotator: Annotator) -> Slot:
    """A free slot of the question, or one more."""
    own = select(Slot).where(Slot.question_id == question.id)
    slot = session.scalars(own.where(Slot.annotator_id == annotator.id)).first()
    slot = slot or session.scalars(own.where(Slot.state == FREE, Slot.annotator_id.is_(None)).limit(1)).first()
    if slot is None:
        copies = session.scalar(select(func.max(Slot.copy)).where(Slot.question_id == question.id))
        slot = Slot(
            study_id=study.id,
            question_id=question.id,
            kind=question.kind,
            copy=(copies if copies is not None else -1) + 1,
            rank=0,
            phase=0,
        )
        session.add(slot)
    slot.state, slot.annotator_id, slot.lease_until = DONE, annotator.id, None
    session.flush()
    return slot


def _number(value: Any, where: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r} is no number of seconds", where=where) from None


def _time(value: Any, where: str) -> float:
    if value in (None, ""):
        return time.time()
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        raise DataError(f"{value!r} is no time", where=where, hint="write 2026-01-31T12:00:00+00:00") from None
