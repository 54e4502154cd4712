"""The tables, and the rule that answers, decisions and events are only ever added.

What a person said may be erased after they withdraw: the one change that the database allows.
"""

from importlib import resources

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("answer", "decision", "event")
TYPES = {
    "sqlite": {"id": "INTEGER", "float": "DOUBLE", "bytes": "BLOB"},
    "postgresql": {"id": "SERIAL", "float": "DOUBLE PRECISION", "bytes": "BYTEA"},
}
#: What may not change when an answer is erased.
KEPT = ["id", "study_id", "question_id", "slot_id", "annotator_id", "turn", "kind", "key", "at", "digest", "content"]


def upgrade() -> None:
    database = op.get_bind().dialect.name
    tables = resources.files("creperie.annotation") / "migrations" / "versions" / "0001_tables.sql"
    for statement in tables.read_text("utf-8").format(**TYPES[database]).split("\n\n"):
        op.execute(statement)
    for table in APPEND_ONLY:
        (_refuse_on_postgresql if database == "postgresql" else _refuse_on_sqlite)(table)


def downgrade() -> None:
    raise NotImplementedError("answers are never taken away; restore a backup instead")


def _is_erasure() -> str:
    """An update that erases what was said and changes nothing else."""
    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in KEPT)
    erased = "NEW.erased IS NOT NULL AND NEW.value IS NULL AND NEW.comment = '' AND NEW.salt IS NULL"
    return f"({erased} AND NEW.seconds IS NULL AND {same})"


def _refuse_on_sqlite(table: str) -> None:
    unless = f"WHEN NOT COALESCE({_is_erasure()}, 0) " if table == "answer" else ""
    for verb, when in (("UPDATE", unless), ("DELETE", "")):
        op.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {when}"
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _refuse_on_postgresql(table: str) -> None:
    op.execute(
        f"CREATE FUNCTION {table}_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
    )
    # JSON has no equality in PostgreSQL, so the value is looked at by NULL only.
    unless = f"WHEN (NOT COALESCE({_is_erasure()}, false)) " if table == "answer" else ""
    # A trigger for rows may look at them, but TRUNCATE only has triggers for statements.
    for name, when in (
        ("no_update", f"BEFORE UPDATE ON {table} FOR EACH ROW {unless}"),
        ("append_only", f"BEFORE DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT "),
    ):
        op.execute(f"CREATE TRIGGER {table}_{name} {when}EXECUTE FUNCTION {table}_is_append_only()")
