"""The first tables, and the rule that answers, decisions and events are only ever added."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("answer", "decision", "event")


def upgrade() -> None:
    _create_studies()
    _create_people()
    _create_slots()
    _create_records()
    refuse = _refuse_on_postgresql if op.get_bind().dialect.name == "postgresql" else _refuse_on_sqlite
    for table in APPEND_ONLY:
        refuse(table)


def downgrade() -> None:
    raise NotImplementedError("answers are never taken away; restore a copy of the database instead")


def _create_studies() -> None:
    op.create_table(
        "study",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("bench", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("name", name=op.f("uq_study_name")),
    )
    op.create_table(
        "question",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.Column("subset", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("expected", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_question_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.UniqueConstraint("study_id", "ordinal", name=op.f("uq_question_study_id")),
    )


def _create_people() -> None:
    op.create_table(
        "owner",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("password", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owner")),
        sa.UniqueConstraint("name", name=op.f("uq_owner_name")),
    )
    op.create_table(
        "annotator",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(length=64), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=True),
        sa.Column("quota", sa.Integer(), nullable=True),
        sa.Column("expires", sa.Double(), nullable=True),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_annotator_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotator")),
        sa.UniqueConstraint("study_id", "pseudonym", name=op.f("uq_annotator_study_id")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_annotator_token_hash")),
    )
    op.create_table(
        "login",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("annotator_id", sa.Integer(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_login_annotator_id")),
        sa.ForeignKeyConstraint(["owner_id"], ["owner.id"], name=op.f("fk_login_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_login_token_hash")),
    )
    op.create_table(
        "attempt",
        sa.Column("who", sa.String(length=80), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
    )
    op.create_index("ix_attempt_who", "attempt", ["who", "at"], unique=False)


def _create_slots() -> None:
    op.create_table(
        "slot",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("copy", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("shown", sa.Double(), nullable=True),
        sa.Column("token", sa.String(length=32), nullable=True),
        sa.Column("shuffle", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_slot_annotator_id")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_slot_question_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_slot_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_slot")),
        sa.UniqueConstraint("question_id", "copy", name=op.f("uq_slot_question_id")),
        sa.UniqueConstraint("token", name=op.f("uq_slot_token")),
    )
    op.create_index("ix_slot_holder", "slot", ["annotator_id", "state"], unique=False)
    op.create_index("ix_slot_one_per_annotator", "slot", ["question_id", "annotator_id"], unique=True)
    op.create_index("ix_slot_queue", "slot", ["study_id", "state", "rank"], unique=False)


def _create_records() -> None:
    op.create_table(
        "answer",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("slot_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_answer_annotator_id")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_answer_question_id")),
        sa.ForeignKeyConstraint(["slot_id"], ["slot.id"], name=op.f("fk_answer_slot_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_answer_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answer")),
        sa.UniqueConstraint("annotator_id", "key", name=op.f("uq_answer_annotator_id")),
    )
    op.create_index("ix_answer_question", "answer", ["question_id"], unique=False)
    op.create_index("ix_answer_slot", "answer", ["slot_id"], unique=False)
    op.create_index("ix_answer_turn", "answer", ["annotator_id", "turn"], unique=True)
    op.create_table(
        "decision",
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("decided_by", sa.String(length=64), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_decision_question_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index("ix_decision_question", "decision", ["question_id"], unique=False)
    op.create_table(
        "event",
        sa.Column("study_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(length=80), nullable=False),
        sa.Column("what", sa.String(length=64), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_event_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index("ix_event_study", "event", ["study_id"], unique=False)


def _refuse_on_sqlite(table: str) -> None:
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _refuse_on_postgresql(table: str) -> None:
    op.execute(
        f"CREATE FUNCTION {table}_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_is_append_only()"
    )
