"""Answers out of a study and into one: JSONL or CSV, one row per event, annotators by pseudonym."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import insert, select, text, update
from sqlalchemy.orm import Session

from creperie.annotation.chain import append_answer, checkpoint_of, sign
from creperie.annotation.database import Database
from creperie.annotation.schema import ANSWER, CLOSED, DONE, FREE, START, Annotator, Answer, Question, Slot, StudyRow
from creperie.annotation.study import NAME, record, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.form import is_storable
from creperie.core import DataError, UsageError, write_json, write_text

_ABOUT = ("study", "task", "question", "kind", "source", "subset", "id", "annotator", "event", "value", "comment")
COLUMNS = (*_ABOUT, "seconds", "at", "key", "excluded", "shown_order")
#: A spreadsheet takes cells that start like this for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
LONGEST_SECONDS = 30 * 86400.0
#: Rows that are imported in one transaction, and how long others may write then: SQLite looks every 0.1 s for its turn.
TOGETHER, PAUSE = 750, 0.12


def export_rows(session: Session, study: StudyRow) -> Iterator[dict[str, Any]]:
    """All events of a study in order of time, without those of people who withdrew.

    In which order captions were shown stays out until the study is closed: it could tell others what is true.
    """
    rows = session.execute(
        select(Answer, Question, Annotator, Slot.order, Slot.annotator_id)
        .join(Question, Question.id == Answer.question_id)
        .join(Annotator, Annotator.id == Answer.annotator_id)
        .join(Slot, Slot.id == Answer.slot_id)
        .where(Answer.study_id == study.id, Annotator.withdrawn.is_(None))
        .order_by(Answer.id)
    )
    for answer, question, annotator, order, holder in rows:
        told = study.state == CLOSED and holder == annotator.id
        yield {
            "study": study.name,
            "task": study.task,
            "question": question.ordinal,
            "kind": question.kind,
            "source": question.source,
            "subset": question.subset,
            "id": question.item,
            "annotator": annotator.pseudonym,
            "event": answer.kind,
            "value": answer.value,
            "comment": answer.comment,
            "seconds": answer.seconds,
            "at": datetime.fromtimestamp(answer.at, UTC).isoformat(timespec="milliseconds"),
            "key": answer.key,
            "excluded": annotator.excluded is not None,
            "shown_order": order if told else None,
        }


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = COLUMNS) -> str:
    """Rows for a spreadsheet: lists and objects as JSON; text that looks like a formula gets an apostrophe in front.

    >>> as_csv([{"a": "=1+1", "b": -1.5, "c": None}], "abc")
    "a,b,c\\n'=1+1,-1.5,\\n"
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(columns), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _uncell(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def export_study(db: Database, name: str, path: Path) -> int:
    """Write all events of a study into a .jsonl or .csv file, and a signed checkpoint beside it; how many there are."""
    writers = {".jsonl": as_jsonl, ".csv": as_csv}
    if path.suffix.lower() not in writers:
        raise UsageError("the file must end in .jsonl or .csv", where=str(path))
    with db.read() as session:
        study = study_named(session, name)
        rows = list(export_rows(session, study))
        checkpoint = sign(checkpoint_of(session, study), db)
    write_text(path, writers[path.suffix.lower()](rows))
    write_json(path.with_suffix(".checkpoint.json"), checkpoint)
    return len(rows)


# -- in --------------------------------------------------------------------------------------------------------------


def import_answers(db: Database, name: str, path: Path, actor: str = "cli") -> dict[str, int]:
    """Add the answers of a file that `export` wrote, or that has its columns. Answers that are here are left alone.

    Every row is checked with the task's own form before the first one is written. Then they are written some at a time,
    so that annotators at work need not wait; the same import goes on where it was interrupted.
    """
    rows = _final(list(_read(path)))
    with db.read() as session:
        study = study_named(session, name)
        questions = _questions(session, study)
        checked = [_check(study, questions, row, where) for where, row in rows]
    counts: Counter[str] = Counter()
    for start in range(0, max(1, len(checked)), TOGETHER):
        time.sleep(PAUSE if start and not db.locks_rows else 0)  # only SQLite keeps others out
        with db.write() as session:
            study = study_named(session, name)
            some = _add_all(session, study, checked[start : start + TOGETHER])
            record(session, actor, "import", study, {"file": path.name, "from": start + 1, **some})
        counts.update(some)
    with db.write() as session:
        session.execute(text("ANALYZE"))  # a database that does not know of so many new rows plans badly, for minutes
    return dict(counts)


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(path)) from None
    if path.suffix.lower() == ".csv":
        for row in (reader := csv.DictReader(io.StringIO(written, newline=""))):
            where = f"{path}:{reader.line_num}"
            cells = {k: _uncell(v) if isinstance(v, str) else "" for k, v in row.items() if k is not None}
            yield where, {**cells, "value": _json(cells.get("value") or "null", where)}
        return
    for number, line in enumerate(written.splitlines(), 1):
        if line.strip():
            found = _json(line, f"{path}:{number}")
            if not isinstance(found, dict):
                raise DataError("not a JSON object", where=f"{path}:{number}")
            yield f"{path}:{number}", found


def _json(text: str, where: str) -> Any:
    def refuse(constant: str) -> None:
        raise DataError(f"{constant} is not a JSON number", where=where)

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as e:
        raise DataError(f"not JSON: {e.msg}", where=where) from None
    except RecursionError:
        raise DataError("nested too deeply", where=where) from None


def _final(rows: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The answers that count: an undo or skip takes away what the annotator said before."""
    kept: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    for where, row in rows:
        for column in ("question", "annotator", "event", "key"):
            if row.get(column) in (None, "") or isinstance(row[column], (list, dict)):
                raise DataError(f"has no {column!r}", where=where, hint=f"columns: {', '.join(COLUMNS)}")
        key = (str(row["question"]), str(row["annotator"]))
        if row["event"] == ANSWER:
            kept[key] = (where, row)
        else:
            kept.pop(key, None)
    return list(kept.values())


@dataclass(frozen=True)
class _Checked:
    """A row that fits its question."""

    question: int
    kind: str
    annotator: str
    key: str
    value: dict[str, Any]
    comment: str
    seconds: float | None
    at: float


def _questions(session: Session, study: StudyRow) -> dict[int, Question]:
    own = session.scalars(select(Question).where(Question.study_id == study.id))
    return {question.ordinal: question for question in own}


def _check(study: StudyRow, questions: Mapping[int, Question], row: Mapping[str, Any], where: str) -> _Checked:
    question = _question(study, questions, row, where)
    value = row.get("value")
    if not task_named(study.task).accepts(question.payload, value):
        raise DataError(f"not an answer to a {study.task} question: {str(value)[:80]}", where=where)
    name, key, comment = str(row["annotator"]), str(row["key"]), str(row.get("comment") or "")
    if not NAME.fullmatch(name):
        raise DataError(f"{name[:60]!r} is not a pseudonym", where=where, hint="use lowercase letters, digits, dashes")
    if not (is_storable(comment) and is_storable(key)) or len(comment) > 2000 or len(key) > 64:
        raise DataError("the comment or the key is not text that can be stored", where=where)
    seconds, at = _number(row.get("seconds"), where), _time(row.get("at"), where)
    return _Checked(question.id, question.kind, name, key, dict(value or {}), comment, seconds, at)


def _question(study: StudyRow, questions: Mapping[int, Question], row: Mapping[str, Any], where: str) -> Question:
    """The question that a row is about; its number must belong to the item that the row names."""
    try:
        found = questions.get(int(row["question"]))
    except (TypeError, ValueError):
        raise DataError(f"{row['question']!r} is not a question number", where=where) from None
    if found is None or (found.subset, found.item) != (row.get("subset"), row.get("id")):
        raise DataError(
            f"question {row['question']} of study {study.name!r} is not about item {row.get('subset')}/{row.get('id')}",
            where=where,
        )
    return found


@dataclass
class _Ledger:
    """What is in the study already, so that nothing has to be asked row by row."""

    people: dict[str, Annotator]
    keys: set[tuple[int, str]]
    answered: set[tuple[int, int]]
    free: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    mine: dict[tuple[int, int], int] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def _ledger(session: Session, study: StudyRow, questions: set[int]) -> _Ledger:
    lock = session.get_bind().dialect.name != "sqlite"
    own = select(Annotator).where(Annotator.study_id == study.id).order_by(Annotator.id)
    people = session.scalars(own.with_for_update() if lock else own).all()
    given = session.execute(
        select(Answer.annotator_id, Answer.key, Answer.question_id).where(Answer.study_id == study.id)
    ).all()
    ledger = _Ledger(
        {a.pseudonym: a for a in people},
        {(row.annotator_id, row.key) for row in given},
        {(row.annotator_id, row.question_id) for row in given},
    )
    slots = select(Slot.id, Slot.question_id, Slot.annotator_id, Slot.state, Slot.copy).where(
        Slot.study_id == study.id, Slot.question_id.in_(questions)
    )
    for row in session.execute(slots.with_for_update(of=Slot) if lock else slots):
        ledger.copies[row.question_id] = max(ledger.copies[row.question_id], row.copy + 1)
        if row.annotator_id is not None:
            ledger.mine[row.question_id, row.annotator_id] = row.id
        elif row.state == FREE:
            ledger.free[row.question_id].append(row.id)
    return ledger


def _add_all(session: Session, study: StudyRow, rows: Sequence[_Checked]) -> dict[str, int]:
    ledger = _ledger(session, study, {row.question for row in rows})
    counts = {"added": 0, "known": 0}
    taken: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    for row in rows:
        annotator = ledger.people.get(row.annotator) or _new_annotator(session, study, row.annotator, ledger)
        known = (annotator.id, row.key) in ledger.keys or (annotator.id, row.question) in ledger.answered
        counts["known" if known else "added"] += 1
        if known:
            continue
        slot = _slot_for(session, study, row, annotator, ledger)
        taken.append({"id": slot, "state": DONE, "annotator_id": annotator.id, "lease_until": None})
        added = SimpleNamespace(
            study_id=study.id,
            question_id=row.question,
            slot_id=slot,
            annotator_id=annotator.id,
            kind=ANSWER,
            key=row.key,
            value=row.value,
            comment=row.comment,
            seconds=row.seconds,
            at=row.at,
        )
        append_answer(annotator, added)
        answers.append(vars(added))
        ledger.keys.add((annotator.id, row.key))
        ledger.answered.add((annotator.id, row.question))
    if taken:
        session.execute(update(Slot), taken)
        session.connection().execute(insert(Answer), answers)  # as objects they took half of the time
    return counts


def _new_annotator(session: Session, study: StudyRow, name: str, ledger: _Ledger) -> Annotator:
    """An annotator without a link."""
    made = Annotator(
        study_id=study.id, pseudonym=name, note="imported", created=time.time(), turns=0, head=START, outcome=""
    )
    session.add(made)
    session.flush()
    ledger.people[name] = made
    return made


def _slot_for(session: Session, study: StudyRow, row: _Checked, annotator: Annotator, ledger: _Ledger) -> int:
    """A free slot of the question, or one more."""
    if (own := ledger.mine.get((row.question, annotator.id))) is not None:
        return own
    if ledger.free[row.question]:
        return ledger.free[row.question].pop(0)
    made = {
        "study_id": study.id,
        "question_id": row.question,
        "kind": row.kind,
        "copy": ledger.copies[row.question],
        "rank": 0,
        "phase": 0,
        "state": DONE,
        "annotator_id": annotator.id,
    }
    ledger.copies[row.question] += 1
    return int(session.execute(insert(Slot).returning(Slot.id), made).scalar_one())


def _number(value: Any, where: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise DataError(f"{str(value)[:40]!r} is not a number of seconds", where=where)
    return seconds


def _time(value: Any, where: str) -> float:
    if value in (None, ""):
        return time.time()
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        raise DataError(f"{str(value)[:40]!r} is not a time", where=where, hint="2026-01-31T12:00:00+00:00") from None
