"""Replace accounts by links, add revisions of the settings, and drop hash chains.

An account becomes a link without a token, which nobody can open until the owner makes a new one (`annotate link NAME`).
Annotators' links and open sessions keep working. Annotators who entered with an id in the URL become `unverified`.
"""

import sys
import time

import sqlalchemy as sa
from alembic import op

from creperie.annotation.schema import Link, Listed, Revision, Visit
from creperie.annotation.settings import changed
from creperie.core import Json, UsageError

revision = "0002"
down_revision = "0001"

TABLES_GONE = ("login", "study_role", "owner", "attempt", "attachment")
COLUMNS_GONE = {
    "study": ("events", "head", "archived", "phase"),
    "slot": ("phase",),
    "annotator": ("turns", "head", "expires", "revoked"),
    "answer": ("digest", "salt", "content"),
    "event": ("digest",),
}
MOVES = (
    """INSERT INTO link (kind, name, study_id, annotator_id, token_hash, created, expires, revoked)
       SELECT 'annotator', pseudonym, study_id, id, token_hash, created, COALESCE(expires, created + 2592000), revoked
       FROM annotator""",
    """INSERT INTO visit (token_hash, link_id, expires)
       SELECT login.token_hash, link.id, login.expires
       FROM login JOIN link ON link.annotator_id = login.annotator_id""",
    "UPDATE annotator SET token_hash = NULL",
    "UPDATE annotator SET entry = 'unverified' WHERE worker IS NOT NULL OR note = 'self-service'",
    """INSERT INTO link (kind, name, created, expires)
       SELECT 'owner', name, created, :now + 2592000 FROM owner WHERE role IN ('owner', 'member')""",
    # An adjudicator without studies of their own could see all of them.
    """INSERT INTO link (kind, name, study_id, created, expires)
       SELECT 'adjudicator', owner.name, study.id, owner.created, :now + 2592000
       FROM owner CROSS JOIN study
       WHERE owner.role NOT IN ('owner', 'member')
       AND (EXISTS (SELECT 1 FROM study_role WHERE owner_id = owner.id AND study_id = study.id)
            OR NOT EXISTS (SELECT 1 FROM study_role WHERE owner_id = owner.id))""",
    "UPDATE study SET state = 'closed' WHERE archived IS NOT NULL",
)


def upgrade() -> None:
    bind = op.get_bind()
    sqlite = bind.dialect.name == "sqlite"
    for table in ("answer", "decision", "event"):
        for verb in ("update", "delete") if sqlite else ():
            op.execute(f"DROP TRIGGER IF EXISTS {table}_no_{verb}")
        if not sqlite:
            op.execute(f"DROP FUNCTION IF EXISTS {table}_is_append_only() CASCADE")
    op.add_column("study", sa.Column("revision", sa.Integer, nullable=False, server_default="1"))
    op.add_column("annotator", sa.Column("entry", sa.String(16), nullable=False, server_default="invited"))
    for name, kind in (("given", sa.JSON), ("shown_order", sa.JSON), ("revision", sa.Integer)):
        op.add_column("answer", sa.Column(name, kind))
    for made in (Revision, Listed, Link, Visit):
        made.__table__.create(bind)  # type: ignore[attr-defined]
    for statement in MOVES:
        bind.execute(sa.text(statement), {"now": time.time()} if ":now" in statement else {})
    _name_accounts(bind)
    _begin_revisions(bind)
    for name in TABLES_GONE:
        op.drop_table(name)
    for table, names in COLUMNS_GONE.items():
        for name in names:
            op.drop_column(table, name)
    if not sqlite:  # SQLite cannot drop a unique column; there it stays, empty
        op.drop_column("annotator", "token_hash")


def _name_accounts(bind: sa.Connection) -> None:
    """Print what became of each account, for the owner to read."""
    owners = bind.execute(sa.text("SELECT name, role FROM owner ORDER BY id")).all()
    roles = {"owner": "owner", "member": "owner"}
    accounts = [f"{name} ({roles.get(role, 'adjudicator')})" for name, role in owners]
    print(
        "creperie: this database was upgraded from an earlier version. Links replace accounts and passwords: "
        f"{', '.join(accounts) or 'there were none'}. Make a new link for each person with `creperie annotate link "
        "NAME`.",
        file=sys.stderr,
        flush=True,
    )


def _begin_revisions(bind: sa.Connection) -> None:
    """Store the settings of every study as its first revision. Settings whose values are invalid are left out."""
    studies = sa.table(
        "study", *(sa.column(n) for n in ("id", "created", "instructions")), sa.column("settings", sa.JSON)
    )
    for row in bind.execute(sa.select(studies)).all():
        settings = {k: v for k, v in row.settings.items() if _is_valid(k, v)}
        bind.execute(sa.update(studies).where(studies.c.id == row.id).values(settings=settings))
        own: Json = {"study_id": row.id, "number": 1, "at": row.created, "actor": "migration"}
        bind.execute(sa.insert(Revision).values(**own, settings=settings, instructions=row.instructions))


def _is_valid(name: str, value: object) -> bool:
    try:
        changed({}, {name: value})
    except UsageError:
        return False
    return True
