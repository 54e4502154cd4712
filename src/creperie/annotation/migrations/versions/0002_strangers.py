"""Studies with strangers: secrets, exclusion, consent, crowd workers, roles, chains over events, erasable answers."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

START = "0" * 64
#: What may not change when an answer is erased.
KEPT = ["id", "study_id", "question_id", "slot_id", "annotator_id", "turn", "kind", "key", "at", "digest", "content"]


def upgrade() -> None:
    _add_columns()
    _add_tables()
    bind = op.get_bind()
    for (study,) in bind.execute(sa.text("SELECT id FROM study")).all():
        given = {"secret": secrets.token_hex(32), "study": study}
        bind.execute(sa.text("UPDATE study SET secret = :secret WHERE id = :study"), given)
    bind.execute(
        sa.text(
            "UPDATE annotator SET "
            "turns = COALESCE((SELECT MAX(turn) FROM answer WHERE annotator_id = annotator.id), 0), "
            "head = COALESCE((SELECT digest FROM answer WHERE annotator_id = annotator.id "
            f"ORDER BY turn DESC LIMIT 1), '{START}')"
        )
    )
    (_erasable_on_postgresql if bind.dialect.name == "postgresql" else _erasable_on_sqlite)()


def downgrade() -> None:
    raise NotImplementedError("answers are never taken away; restore a backup instead")


def _add_columns() -> None:
    op.add_column("owner", sa.Column("totp", sa.String(length=64), nullable=True))
    for column in (
        sa.Column("secret", sa.String(length=64), nullable=False, server_default=""),
        sa.Column("settings", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("events", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("head", sa.String(length=64), nullable=False, server_default=START),
        sa.Column("archived", sa.Double(), nullable=True),
    ):
        op.add_column("study", column)
    for column in (
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("consented", sa.Double(), nullable=True),
        sa.Column("consent_version", sa.String(length=16), nullable=True),
        sa.Column("excluded", sa.Double(), nullable=True),
        sa.Column("excluded_why", sa.Text(), nullable=False, server_default=""),
        sa.Column("withdrawn", sa.Double(), nullable=True),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=False, server_default=""),
        sa.Column("turns", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("head", sa.String(length=64), nullable=False, server_default=START),
    ):
        op.add_column("annotator", column)
    op.create_index("ix_annotator_worker", "annotator", ["study_id", "worker"], unique=True)
    op.add_column("answer", sa.Column("salt", sa.String(length=32), nullable=True))
    op.add_column("answer", sa.Column("content", sa.String(length=64), nullable=True))
    op.add_column("answer", sa.Column("erased", sa.Double(), nullable=True))
    op.add_column("event", sa.Column("digest", sa.String(length=64), nullable=True))


def _add_tables() -> None:
    op.create_table(
        "study_role",
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["owner.id"], name=op.f("fk_study_role_owner_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_study_role_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_role")),
        sa.UniqueConstraint("owner_id", "study_id", name=op.f("uq_study_role_owner_id")),
    )
    op.create_table(
        "attachment",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("media_type", sa.String(length=32), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_attachment_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attachment")),
        sa.UniqueConstraint("study_id", "name", name=op.f("uq_attachment_study_id")),
    )


def _is_erasure() -> str:
    """An update that erases what was said and changes nothing else."""
    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in KEPT)
    erased = "NEW.erased IS NOT NULL AND NEW.value IS NULL AND NEW.comment = '' AND NEW.salt IS NULL"
    return f"(OLD.content IS NOT NULL AND {erased} AND NEW.seconds IS NULL AND {same})"


def _erasable_on_sqlite() -> None:
    op.execute("DROP TRIGGER answer_no_update")
    op.execute(
        f"CREATE TRIGGER answer_no_update BEFORE UPDATE ON answer WHEN NOT COALESCE({_is_erasure()}, 0) "
        "BEGIN SELECT RAISE(ABORT, 'answer is append-only'); END"
    )


def _erasable_on_postgresql() -> None:
    op.execute("DROP TRIGGER answer_append_only ON answer")
    op.execute(
        "CREATE TRIGGER answer_append_only BEFORE DELETE OR TRUNCATE ON answer "
        "FOR EACH STATEMENT EXECUTE FUNCTION answer_is_append_only()"
    )
    # JSON has no equality in PostgreSQL, so the value is looked at by NULL only.
    op.execute(
        "CREATE TRIGGER answer_no_update BEFORE UPDATE ON answer FOR EACH ROW "
        f"WHEN (NOT COALESCE({_is_erasure()}, false)) EXECUTE FUNCTION answer_is_append_only()"
    )
