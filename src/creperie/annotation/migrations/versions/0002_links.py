"""Links instead of accounts, revisions of settings, no hash chains.

Accounts become links without a token: nobody can open them until the owner makes a new one (`annotate link NAME`).
Annotators' links and open sessions go on working. Who entered by an id in the address was vouched for by nobody.
"""

import time
from typing import Any

import sqlalchemy as sa
from alembic import op

from creperie.annotation.schema import Link, Listed, Revision, Visit
from creperie.annotation.settings import changed
from creperie.core import UsageError

revision = "0002"
down_revision = "0001"

DAYS = 30 * 86400.0
GONE = {
    "study": ("events", "head", "archived", "phase"),
    "slot": ("phase",),
    "annotator": ("turns", "head", "expires", "revoked"),
    "answer": ("digest", "salt", "content"),
    "event": ("digest",),
}
NEW: dict[str, tuple[sa.Column[Any], ...]] = {
    "study": (sa.Column("revision", sa.Integer, nullable=False, server_default="1"),),
    "annotator": (sa.Column("entry", sa.String(16), nullable=False, server_default="invited"),),
    "answer": (
        sa.Column("given", sa.JSON),
        sa.Column("shown_order", sa.JSON),
        sa.Column("revision", sa.Integer),
    ),
}


def upgrade() -> None:
    bind = op.get_bind()
    _drop_triggers(bind)
    for table, columns in NEW.items():
        for column in columns:
            op.add_column(table, column)
    for made in (Revision, Listed, Link, Visit):
        made.__table__.create(bind)  # type: ignore[attr-defined]
    old = sa.MetaData()
    old.reflect(bind)
    tables = old.tables
    _move_links(bind, tables)
    _move_accounts(bind, tables)
    _begin_revisions(bind, tables)
    for name in ("login", "study_role", "owner", "attempt", "attachment"):
        op.drop_table(name)
    for table, names in GONE.items():
        for name in names:
            op.drop_column(table, name)
    if bind.dialect.name != "sqlite":  # which cannot drop a unique column; there it stays, empty
        op.drop_column("annotator", "token_hash")


def _drop_triggers(bind: sa.Connection) -> None:
    for table in ("answer", "decision", "event"):
        if bind.dialect.name == "sqlite":
            for verb in ("update", "delete"):
                op.execute(f"DROP TRIGGER IF EXISTS {table}_no_{verb}")
        else:
            op.execute(f"DROP FUNCTION IF EXISTS {table}_is_append_only() CASCADE")


def _move_links(bind: sa.Connection, tables: dict[str, sa.Table]) -> None:
    people, links, visits, logins = (tables[n] for n in ("annotator", "link", "visit", "login"))
    for row in bind.execute(sa.select(people)).mappings().all():
        values = {"kind": "annotator", "name": row["pseudonym"], "study_id": row["study_id"]}
        values |= {"annotator_id": row["id"], "token_hash": row["token_hash"], "created": row["created"]}
        values |= {"expires": row["expires"] or row["created"] + DAYS, "revoked": row["revoked"]}
        made: Any = bind.execute(sa.insert(links).values(**values)).inserted_primary_key
        for login in bind.execute(sa.select(logins).where(logins.c.annotator_id == row["id"])).mappings().all():
            visit = {"token_hash": login["token_hash"], "link_id": made[0], "expires": login["expires"]}
            bind.execute(sa.insert(visits).values(**visit))
    bind.execute(sa.update(people).values(token_hash=None))
    entered = sa.or_(people.c.worker.is_not(None), people.c.note == "self-service")
    bind.execute(sa.update(people).where(entered).values(entry="unverified"))


def _move_accounts(bind: sa.Connection, tables: dict[str, sa.Table]) -> None:
    owners, roles, links, events = (tables[n] for n in ("owner", "study_role", "link", "event"))
    now, accounts = time.time(), []
    for row in bind.execute(sa.select(owners)).mappings().all():
        values = {"name": row["name"], "created": row["created"], "expires": now + DAYS}
        if row["role"] in ("owner", "member"):
            bind.execute(sa.insert(links).values(kind="owner", **values))
            accounts.append(f"{row['name']} (owner)")
            continue
        own = sa.select(roles.c.study_id).where(roles.c.owner_id == row["id"])
        studies = bind.scalars(own).all() or bind.scalars(sa.select(tables["study"].c.id)).all()
        for study in studies:
            bind.execute(sa.insert(links).values(kind="adjudicator", study_id=study, **values))
        accounts.append(f"{row['name']} (adjudicator)")
    if accounts:
        detail = {"accounts": accounts}
        bind.execute(sa.insert(events).values(at=now, actor="migration", what="accounts became links", detail=detail))


def _begin_revisions(bind: sa.Connection, tables: dict[str, sa.Table]) -> None:
    studies, revisions = tables["study"], tables["revision"]
    bind.execute(sa.update(studies).where(studies.c.archived.is_not(None)).values(state="archived"))
    for row in bind.execute(sa.select(studies)).mappings().all():
        settings = {k: v for k, v in row["settings"].items() if _is_valid(k, v)}
        bind.execute(sa.update(studies).where(studies.c.id == row["id"]).values(settings=settings))
        values = {"study_id": row["id"], "number": 1, "at": row["created"], "actor": "migration"}
        values |= {"settings": settings, "instructions": row["instructions"]}
        bind.execute(sa.insert(revisions).values(**values))


def _is_valid(name: str, value: object) -> bool:
    """Earlier versions stored numbers that are none."""
    try:
        changed({}, {name: value})
    except UsageError:
        return False
    return True
