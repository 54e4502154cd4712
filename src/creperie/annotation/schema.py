"""The tables of the people's database.

`answer`, `decision` and `event` are append-only: the database itself refuses to change or delete their rows (see
the migrations), so an answer that was acknowledged stays. The one exception is erasing what a person said after they
withdraw. What an annotator said last about a slot is the last of its rows: an answer, a skip, or an undo that takes
back the row before it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Double, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Text, UniqueConstraint
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
#: Account roles. A member sees only the studies they own or were given a role in; the others see every study.
OWNER, REVIEWER, VIEWER, MEMBER = "owner", "reviewer", "viewer", "member"
#: How the work of an annotator ended.
COMPLETED, SCREENED, TIMED_OUT = "completed", "screened", "timed-out"
START = "0" * 64


class SchemaTable(DeclarativeBase):
    """What all tables share. Times are seconds since 1970, UTC."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {dict[str, Any]: JSON, list[int]: JSON, float: Double}  # noqa: RUF012  SQLAlchemy's own form

    id: Mapped[int] = mapped_column(Integer, primary_key=True)


class Owner(SchemaTable):
    """An account with a password: an owner may do everything, a reviewer looks and adjudicates, a viewer looks."""

    __tablename__ = "owner"

    name: Mapped[str] = mapped_column(String(64), unique=True)
    password: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16))
    created: Mapped[float]
    totp: Mapped[str | None] = mapped_column(String(64))  #: secret of the second factor, where it is in use


class StudyRow(SchemaTable):
    """One benchmark, one task. `plan` says how it was set up, `bench` which content it is about."""

    __tablename__ = "study"

    name: Mapped[str] = mapped_column(String(64), unique=True)
    task: Mapped[str] = mapped_column(String(32))
    instructions: Mapped[str] = mapped_column(Text)
    plan: Mapped[dict[str, Any]]
    bench: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    phase: Mapped[int]  #: slots of later phases are not given out yet: phase 0 is the pilot
    created: Mapped[float]
    #: Drawn at random for this study; orders and positions of checks come from it. Never exported, never shown.
    secret: Mapped[str] = mapped_column(String(64))
    settings: Mapped[dict[str, Any]]  #: see `creperie.annotation.settings.StudySettings`
    events: Mapped[int] = mapped_column(default=0)  #: length of the chain of events
    head: Mapped[str] = mapped_column(String(64), default=START)  #: digest of its last event
    archived: Mapped[float | None]


class StudyRole(SchemaTable):
    """What an account may do in one study; it goes before the role of the account."""

    __tablename__ = "study_role"
    __table_args__ = (UniqueConstraint("owner_id", "study_id"),)

    owner_id: Mapped[int] = mapped_column(ForeignKey("owner.id"))
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    role: Mapped[str] = mapped_column(String(16))


class Attachment(SchemaTable):
    """A picture in the instructions of a study."""

    __tablename__ = "attachment"
    __table_args__ = (UniqueConstraint("study_id", "name"),)

    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    name: Mapped[str] = mapped_column(String(255))
    media_type: Mapped[str] = mapped_column(String(32))
    data: Mapped[bytes] = mapped_column(LargeBinary)


class Question(SchemaTable):
    """One thing to be judged: what the item looked like, and, for practice and attention checks, the known answer."""

    __tablename__ = "question"
    __table_args__ = (UniqueConstraint("study_id", "ordinal"),)

    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    ordinal: Mapped[int]
    kind: Mapped[str] = mapped_column(String(16))
    source: Mapped[str] = mapped_column(String(255))
    subset: Mapped[str] = mapped_column(Text)
    item: Mapped[str] = mapped_column(Text)
    payload: Mapped[dict[str, Any]]
    expected: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class Annotator(SchemaTable):
    """Somebody with an invitation. Only the hash of the link's token is kept; `note` never leaves the owner's page."""

    __tablename__ = "annotator"
    __table_args__ = (
        UniqueConstraint("study_id", "pseudonym"),
        Index("ix_annotator_worker", "study_id", "worker", unique=True),
    )

    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    pseudonym: Mapped[str] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(Text)
    token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    quota: Mapped[int | None]
    expires: Mapped[float | None]
    revoked: Mapped[float | None]
    created: Mapped[float]
    #: Hash of the worker's id on a crowd platform, keyed with the study's secret.
    worker: Mapped[str | None] = mapped_column(String(64))
    consented: Mapped[float | None]
    consent_version: Mapped[str | None] = mapped_column(String(16))
    excluded: Mapped[float | None]
    excluded_why: Mapped[str] = mapped_column(Text, default="")
    withdrawn: Mapped[float | None]
    finished: Mapped[float | None]
    outcome: Mapped[str] = mapped_column(String(16), default="")
    turns: Mapped[int] = mapped_column(default=0)  #: length of the chain of answers
    head: Mapped[str] = mapped_column(String(64), default=START)  #: digest of its last row


class Slot(SchemaTable):
    """A place for one answer to a question. It is held by at most one annotator, and nobody holds two of a question."""

    __tablename__ = "slot"
    __table_args__ = (
        UniqueConstraint("question_id", "copy"),
        Index("ix_slot_one_per_annotator", "question_id", "annotator_id", unique=True),
        Index("ix_slot_queue", "study_id", "state", "rank"),
        Index("ix_slot_holder", "annotator_id", "state"),
    )

    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"))
    kind: Mapped[str] = mapped_column(String(16))
    copy: Mapped[int]
    rank: Mapped[int]
    phase: Mapped[int]
    state: Mapped[str] = mapped_column(String(8))
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotator.id"))
    lease_until: Mapped[float | None]
    shown: Mapped[float | None]
    token: Mapped[str | None] = mapped_column(String(32), unique=True)
    order: Mapped[list[int] | None] = mapped_column("shuffle", JSON(none_as_null=True))


class Answer(SchemaTable):
    """What an annotator did with a slot. `digest` chains the rows of an annotator, so a changed row shows."""

    __tablename__ = "answer"
    __table_args__ = (
        UniqueConstraint("annotator_id", "key"),
        Index("ix_answer_turn", "annotator_id", "turn", unique=True),
        Index("ix_answer_question", "question_id"),
        Index("ix_answer_slot", "slot_id"),
    )

    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"))
    slot_id: Mapped[int] = mapped_column(ForeignKey("slot.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    turn: Mapped[int]
    kind: Mapped[str] = mapped_column(String(8))
    key: Mapped[str] = mapped_column(String(64))
    value: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    comment: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float | None]
    at: Mapped[float]
    digest: Mapped[str] = mapped_column(String(64))
    #: The chain holds a salted hash of what was said, so that it still verifies when a person withdraws and what
    #: they said is erased.
    salt: Mapped[str | None] = mapped_column(String(32))
    content: Mapped[str] = mapped_column(String(64))
    erased: Mapped[float | None]


class Decision(SchemaTable):
    """What an owner decided about a question; the last one counts."""

    __tablename__ = "decision"
    __table_args__ = (Index("ix_decision_question", "question_id"),)

    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"))
    by: Mapped[str] = mapped_column("decided_by", String(64))
    value: Mapped[dict[str, Any]]
    comment: Mapped[str] = mapped_column(Text)
    at: Mapped[float]


class Event(SchemaTable):
    """The audit trail: who did what, besides answering."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_study", "study_id"),)

    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id"))
    at: Mapped[float]
    actor: Mapped[str] = mapped_column(String(80))
    what: Mapped[str] = mapped_column(String(64))
    detail: Mapped[dict[str, Any]]
    digest: Mapped[str | None] = mapped_column(String(64))  #: chains the events of a study


class Login(SchemaTable):
    """A session: the hash of its cookie, and whose it is. Exactly one of owner and annotator is set."""

    __tablename__ = "login"

    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("owner.id"))
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotator.id"))
    created: Mapped[float]
    expires: Mapped[float]


class Attempt(SchemaTable):
    """A failed attempt to enter, for the rate limit."""

    __tablename__ = "attempt"
    __table_args__ = (Index("ix_attempt_who", "who", "at"),)

    who: Mapped[str] = mapped_column(String(80))
    at: Mapped[float]
