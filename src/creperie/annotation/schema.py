"""The tables of the annotation database.

Rows of answers, decisions, revisions and events are only ever added. The one exception is erasing a person's answers on
request. `creperie.annotation.state` checks this, and every change of state, when rows are flushed.

An annotator may have several rows about a slot: answers, skips and undos. The last one counts; an undo takes back the
row before it.
"""

from __future__ import annotations

from typing import Annotated

from sqlalchemy import JSON, Double, ForeignKey, Index, Integer, MetaData, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from creperie.core import Json

#: Names of constraints, so that later migrations can refer to them on every database.
NAMES = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

#: A void slot belongs to an excluded annotator: it stays on record, and a new slot replaces it.
FREE, HELD, DONE, VOID = "free", "held", "done", "void"
MAIN, PRACTICE, ATTENTION = "main", "practice", "attention"
ANSWER, SKIP, UNDO = "answer", "skip", "undo"
OPEN, PAUSED, CLOSED = "open", "paused", "closed"
#: How the work of an annotator ended; empty while it goes on.
COMPLETED = "completed"
#: The roles of links. An adjudicator's link is for one study.
OWNER, ADJUDICATOR, ANNOTATOR = "owner", "adjudicator", "annotator"
#: How an annotator entered. Nobody vouches for `unverified` ids, which older versions took from the URL: they
#: count in no result and are owed nothing.
INVITED, SIGNED, LISTED, UNVERIFIED = "invited", "signed", "listed", "unverified"
#: Why an annotator is excluded who withdrew; who completed the study before is paid all the same.
WITHDREW = "withdrew"

Word = Annotated[str, mapped_column(String(16))]
Name = Annotated[str, mapped_column(String(64))]
Person = Annotated[str, mapped_column(String(128))]
OfStudy = Annotated[int, mapped_column(ForeignKey("study.id"))]
OfQuestion = Annotated[int, mapped_column(ForeignKey("question.id"))]
OfAnnotator = Annotated[int, mapped_column(ForeignKey("annotator.id"))]
JsonColumn = Annotated[Json, mapped_column(JSON(none_as_null=True))]
Order = Annotated[list[int], mapped_column(JSON(none_as_null=True))]


class SchemaTable(DeclarativeBase):
    """The base class of all tables. Times are in seconds since 1970 (UTC)."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {Json: JSON, list[int]: JSON, float: Double, str: Text}  # noqa: RUF012  SQLAlchemy's own form

    id: Mapped[int] = mapped_column(Integer, primary_key=True)

    def part(self, *names: str) -> Json:
        """Return the columns with these names as a dictionary."""
        return {name: getattr(self, name) for name in names}


class StudyRow(SchemaTable):
    """A study of one benchmark with one task. `plan` is the setup, `bench` identifies the benchmark's content."""

    __tablename__ = "study"

    name: Mapped[Name] = mapped_column(unique=True)
    task: Mapped[Name]
    instructions: Mapped[str]
    plan: Mapped[Json]
    bench: Mapped[Json]
    state: Mapped[Word]
    created: Mapped[float]
    #: Drawn at random for this study; signatures and hashes of ids are keyed with it. Never exported or shown.
    secret: Mapped[Name]
    settings: Mapped[Json]  #: see `creperie.annotation.settings.StudySettings`
    revision: Mapped[int] = mapped_column(default=1)  #: of settings and instructions; see `Revision`


class Revision(SchemaTable):
    """A version of the settings and instructions; every answer names the revision under which it was given."""

    __tablename__ = "revision"
    __table_args__ = (UniqueConstraint("study_id", "number"),)

    study_id: Mapped[OfStudy]
    number: Mapped[int]
    at: Mapped[float]
    actor: Mapped[Person]
    settings: Mapped[Json]
    instructions: Mapped[str]


class Question(SchemaTable):
    """A question: the content it shows and, for practice and attention checks, the known answer."""

    __tablename__ = "question"
    __table_args__ = (UniqueConstraint("study_id", "ordinal"),)

    study_id: Mapped[OfStudy]
    ordinal: Mapped[int]
    kind: Mapped[Word]
    source: Mapped[str] = mapped_column(String(255))
    subset: Mapped[str]
    item: Mapped[str]
    payload: Mapped[Json]
    expected: Mapped[JsonColumn | None]


class Annotator(SchemaTable):
    """A participant of a study. `note` is shown on the owner's page only."""

    __tablename__ = "annotator"
    __table_args__ = (
        UniqueConstraint("study_id", "pseudonym"),
        Index("ix_annotator_worker", "study_id", "worker", unique=True),
    )

    study_id: Mapped[OfStudy]
    pseudonym: Mapped[Name]
    note: Mapped[str]
    entry: Mapped[Word] = mapped_column(default=INVITED)
    quota: Mapped[int | None]
    created: Mapped[float]
    #: Hash of the worker's id on a crowd platform, keyed with the study's secret.
    worker: Mapped[Name | None]
    consented: Mapped[float | None]
    consent_version: Mapped[Word | None]
    excluded: Mapped[float | None]
    excluded_why: Mapped[str] = mapped_column(default="")
    withdrawn: Mapped[float | None]
    finished: Mapped[float | None]
    outcome: Mapped[Word] = mapped_column(default="")


class Listed(SchemaTable):
    """The keyed hash of a worker's id; a worker with this id may enter a study once."""

    __tablename__ = "listed"
    __table_args__ = (UniqueConstraint("study_id", "worker"),)

    study_id: Mapped[OfStudy]
    worker: Mapped[Name]


class Link(SchemaTable):
    """A personal credential. Only the hash of the token is stored; `name` is a person's name or a pseudonym."""

    __tablename__ = "link"
    __table_args__ = (Index("ix_link_name", "kind", "name"), Index("ix_link_annotator", "annotator_id"))

    kind: Mapped[Word]
    name: Mapped[Person]
    study_id: Mapped[OfStudy | None]
    annotator_id: Mapped[OfAnnotator | None]
    token_hash: Mapped[Name | None] = mapped_column(unique=True)
    created: Mapped[float]
    expires: Mapped[float]
    revoked: Mapped[float | None]


class Visit(SchemaTable):
    """The session of a browser that opened a link, with the hash of the session's cookie."""

    __tablename__ = "visit"

    token_hash: Mapped[Name] = mapped_column(unique=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("link.id"))
    expires: Mapped[float]


class Slot(SchemaTable):
    """A place for one answer to one question. At most one annotator holds it, and nobody holds two for the same
    question.
    """

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
    state: Mapped[Word]
    annotator_id: Mapped[OfAnnotator | None]
    lease_until: Mapped[float | None]
    shown: Mapped[float | None]
    token: Mapped[Name | None] = mapped_column(unique=True)
    order: Mapped[Order | None] = mapped_column("shuffle")
    question: Mapped[Question] = relationship(lazy="joined", innerjoin=True)


class Answer(SchemaTable):
    """An annotator's action on a slot. `given` is the answer as the page sent it. `value` is the same answer in terms
    of the item's own captions, independent of the order on the page.
    """

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
    annotator_id: Mapped[OfAnnotator]
    turn: Mapped[int]
    kind: Mapped[Word]
    key: Mapped[Name]
    given: Mapped[JsonColumn | None]
    value: Mapped[JsonColumn | None]
    shown_order: Mapped[Order | None]
    comment: Mapped[str]
    seconds: Mapped[float | None]
    at: Mapped[float]
    revision: Mapped[int | None]
    erased: Mapped[float | None]
    question: Mapped[Question] = relationship()


class Decision(SchemaTable):
    """The decision of an owner or adjudicator on a question; the last decision counts."""

    __tablename__ = "decision"
    __table_args__ = (Index("ix_decision_question", "question_id"),)

    question_id: Mapped[OfQuestion]
    by: Mapped[str] = mapped_column("decided_by", String(64))
    value: Mapped[Json]
    comment: Mapped[str]
    at: Mapped[float]


class Event(SchemaTable):
    """An entry of the audit trail: who did what. Answers are not recorded here."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_study", "study_id"),)

    study_id: Mapped[OfStudy | None]
    at: Mapped[float]
    actor: Mapped[Person]
    what: Mapped[Name]
    detail: Mapped[Json]
