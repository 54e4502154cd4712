"""The tables of the people's database.

Answers, decisions, revisions and events are append-only; the one exception is erasing what a person said on request.
`creperie.annotation.state` enforces this and every change of state when rows are flushed. An annotator's last row about
a slot says what holds: an answer, a skip, or an undo that takes back the row before it.
"""

from __future__ import annotations

from typing import Annotated, Any

from sqlalchemy import JSON, Double, ForeignKey, Index, Integer, MetaData, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

#: Names of constraints, so that later migrations can speak of them on every database.
NAMES = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

#: A void slot is that of an excluded annotator: it stays on record, and another one is given out in its place.
FREE, HELD, DONE, VOID = "free", "held", "done", "void"
MAIN, PRACTICE, ATTENTION = "main", "practice", "attention"
ANSWER, SKIP, UNDO = "answer", "skip", "undo"
OPEN, PAUSED, CLOSED = "open", "paused", "closed"
#: How the work of an annotator ended; empty while it has not.
COMPLETED = "completed"
#: What a link lets its holder do. An adjudicator's is for one study.
OWNER, ADJUDICATOR, ANNOTATOR = "owner", "adjudicator", "annotator"
#: How an annotator came in. Nobody vouches for `unverified` ids, which older versions took from the address: they
#: count in no result and are owed nothing.
INVITED, SIGNED, LISTED, UNVERIFIED = "invited", "signed", "listed", "unverified"

Word = Annotated[str, mapped_column(String(16))]
Name = Annotated[str, mapped_column(String(64))]
OfStudy = Annotated[int, mapped_column(ForeignKey("study.id"))]
OfQuestion = Annotated[int, mapped_column(ForeignKey("question.id"))]
Document = Annotated[dict[str, Any], mapped_column(JSON(none_as_null=True))]
Order = Annotated[list[int], mapped_column(JSON(none_as_null=True))]


class SchemaTable(DeclarativeBase):
    """What all tables share. Times are seconds since 1970, UTC."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {dict[str, Any]: JSON, list[int]: JSON, float: Double, str: Text}  # noqa: RUF012  SQLAlchemy's own form

    id: Mapped[int] = mapped_column(Integer, primary_key=True)


class StudyRow(SchemaTable):
    """One benchmark, one task. `plan` says how it was set up, `bench` which content it is about."""

    __tablename__ = "study"

    name: Mapped[str] = mapped_column(String(64), unique=True)
    task: Mapped[str] = mapped_column(String(32))
    instructions: Mapped[str]
    plan: Mapped[dict[str, Any]]
    bench: Mapped[dict[str, Any]]
    state: Mapped[Word]
    created: Mapped[float]
    #: Drawn at random for this study; places of checks and signatures of ids come from it. Never exported or shown.
    secret: Mapped[Name]
    settings: Mapped[dict[str, Any]]  #: see `creperie.annotation.settings.StudySettings`
    revision: Mapped[int] = mapped_column(default=1)  #: of settings and instructions; see `Revision`


class Revision(SchemaTable):
    """Settings and instructions as they were from a moment on; every answer names the revision it was given under."""

    __tablename__ = "revision"
    __table_args__ = (UniqueConstraint("study_id", "number"),)

    study_id: Mapped[OfStudy]
    number: Mapped[int]
    at: Mapped[float]
    actor: Mapped[str] = mapped_column(String(80))
    settings: Mapped[dict[str, Any]]
    instructions: Mapped[str]


class Question(SchemaTable):
    """One thing to be judged: what the item looked like, and, for practice and attention checks, the known answer."""

    __tablename__ = "question"
    __table_args__ = (UniqueConstraint("study_id", "ordinal"),)

    study_id: Mapped[OfStudy]
    ordinal: Mapped[int]
    kind: Mapped[Word]
    source: Mapped[str] = mapped_column(String(255))
    subset: Mapped[str]
    item: Mapped[str]
    payload: Mapped[dict[str, Any]]
    expected: Mapped[Document | None]


class Annotator(SchemaTable):
    """Somebody who takes part in a study. `note` never leaves the owner's page."""

    __tablename__ = "annotator"
    __table_args__ = (
        UniqueConstraint("study_id", "pseudonym"),
        Index("ix_annotator_worker", "study_id", "worker", unique=True),
    )

    study_id: Mapped[OfStudy]
    pseudonym: Mapped[Name]
    note: Mapped[str]
    entry: Mapped[str] = mapped_column(String(16), default=INVITED)
    quota: Mapped[int | None]
    created: Mapped[float]
    #: Hash of the worker's id on a crowd platform, keyed with the study's secret.
    worker: Mapped[str | None] = mapped_column(String(64))
    consented: Mapped[float | None]
    consent_version: Mapped[str | None] = mapped_column(String(16))
    excluded: Mapped[float | None]
    excluded_why: Mapped[str] = mapped_column(default="")
    withdrawn: Mapped[float | None]
    finished: Mapped[float | None]
    outcome: Mapped[str] = mapped_column(String(16), default="")


class Listed(SchemaTable):
    """A worker's id (its keyed hash) that may enter a study once."""

    __tablename__ = "listed"
    __table_args__ = (UniqueConstraint("study_id", "worker"),)

    study_id: Mapped[OfStudy]
    worker: Mapped[Name]


class Link(SchemaTable):
    """A personal credential. Only the hash of its token is stored; `name` is a person's name, or a pseudonym."""

    __tablename__ = "link"
    __table_args__ = (Index("ix_link_name", "kind", "name"), Index("ix_link_annotator", "annotator_id"))

    kind: Mapped[Word]
    name: Mapped[str] = mapped_column(String(128))
    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id"))
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotator.id"))
    token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    created: Mapped[float]
    expires: Mapped[float]
    revoked: Mapped[float | None]


class Visit(SchemaTable):
    """A browser that opened a link: the hash of its cookie."""

    __tablename__ = "visit"

    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("link.id"))
    expires: Mapped[float]


class Slot(SchemaTable):
    """A place for one answer to a question. It is held by at most one annotator, and nobody holds two of a question."""

    __tablename__ = "slot"
    __table_args__ = (
        UniqueConstraint("question_id", "copy"),
        Index("ix_slot_one_per_annotator", "question_id", "annotator_id", unique=True),
        Index("ix_slot_queue", "study_id", "state", "rank"),
        Index("ix_slot_holder", "annotator_id", "state"),
    )

    study_id: Mapped[OfStudy]
    question_id: Mapped[OfQuestion]
    kind: Mapped[Word]
    copy: Mapped[int]
    rank: Mapped[int]
    state: Mapped[str] = mapped_column(String(8))
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotator.id"))
    lease_until: Mapped[float | None]
    shown: Mapped[float | None]
    token: Mapped[str | None] = mapped_column(String(32), unique=True)
    order: Mapped[Order | None] = mapped_column("shuffle")


class Answer(SchemaTable):
    """What an annotator did with a slot: `given` as the page sent it, `value` in the terms of the benchmark."""

    __tablename__ = "answer"
    __table_args__ = (
        UniqueConstraint("annotator_id", "key"),
        Index("ix_answer_turn", "annotator_id", "turn", unique=True),
        Index("ix_answer_question", "question_id"),
        Index("ix_answer_slot", "slot_id"),
    )

    study_id: Mapped[OfStudy]
    question_id: Mapped[OfQuestion]
    slot_id: Mapped[int] = mapped_column(ForeignKey("slot.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    turn: Mapped[int]
    kind: Mapped[str] = mapped_column(String(8))
    key: Mapped[Name]
    given: Mapped[Document | None]
    value: Mapped[Document | None]
    shown_order: Mapped[Order | None]
    comment: Mapped[str]
    seconds: Mapped[float | None]
    at: Mapped[float]
    revision: Mapped[int | None]
    erased: Mapped[float | None]


class Decision(SchemaTable):
    """What an owner or adjudicator decided about a question; the last one counts."""

    __tablename__ = "decision"
    __table_args__ = (Index("ix_decision_question", "question_id"),)

    question_id: Mapped[OfQuestion]
    by: Mapped[str] = mapped_column("decided_by", String(64))
    value: Mapped[dict[str, Any]]
    comment: Mapped[str]
    at: Mapped[float]


class Event(SchemaTable):
    """The audit trail: who did what, besides answering."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_study", "study_id"),)

    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id"))
    at: Mapped[float]
    actor: Mapped[str] = mapped_column(String(80))
    what: Mapped[Name]
    detail: Mapped[dict[str, Any]]
