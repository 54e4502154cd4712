"""Backups: all tables in one file, as they are at one moment, while the server runs; for SQLite and PostgreSQL alike.

A backup is a zip file with one JSON line per row, so that it can be restored into either kind of database.
"""

from __future__ import annotations

import base64
import json
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text

from creperie.annotation.database import Database, upgrade
from creperie.annotation.schema import SchemaTable
from creperie.core import DataError, UsageError, draft_of

MANIFEST = "backup.json"
BATCH = 1000


def backup_people(db: Database, path: Path) -> dict[str, int]:
    """Write all tables into a file; rows by table. The file is readable by its owner only."""
    counts: dict[str, int] = {}
    with draft_of(path) as draft:
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        # One transaction sees one state: a snapshot in SQLite's WAL, repeatable read in PostgreSQL.
        engine = db.engine if not db.locks_rows else db.engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.connect() as connection, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
            for table in SchemaTable.metadata.sorted_tables:
                with archive.open(f"{table.name}.jsonl", "w") as file:
                    counts[table.name] = 0
                    for line in _lines(connection, table):
                        file.write(line)
                        counts[table.name] += 1
            archive.writestr(MANIFEST, json.dumps({"version": version, "at": time.time(), "rows": counts}))
    return counts


def _lines(connection: Connection, table: Table) -> Iterator[bytes]:
    rows = connection.execution_options(yield_per=BATCH).execute(select(table).order_by(table.c.id))
    for row in rows:
        plain = {k: _packed(v) for k, v in zip(table.columns.keys(), row, strict=True)}
        yield json.dumps(plain, ensure_ascii=False).encode() + b"\n"


def _packed(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    data = row.get("data")
    if table.name == "attachment" and isinstance(data, dict):
        return {**row, "data": base64.b64decode(data["base64"])}
    return row


def restore_people(db: Database, path: Path) -> dict[str, int]:
    """Fill an empty database from a backup, all of it or nothing; rows by table."""
    tables = SchemaTable.metadata.sorted_tables
    upgrade(db.engine)
    try:
        with zipfile.ZipFile(path) as archive, db.write() as session:
            manifest = json.loads(archive.read(MANIFEST))
            here = session.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
            if manifest["version"] != here:
                raise DataError(f"was made by another version ({manifest['version']}, here {here})", where=str(path))
            if any(session.scalar(select(func.count()).select_from(table)) for table in tables):
                raise UsageError("the database is not empty", where=db.place, hint="restore into a new one")
            connection = session.connection()
            for table in tables:
                with archive.open(f"{table.name}.jsonl") as file:
                    _fill(connection, table, (_unpacked(table, json.loads(line)) for line in file))
                if db.locks_rows:
                    last = f"COALESCE((SELECT MAX(id) FROM {table.name}), 0) + 1"
                    session.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {last}, false)"))
            return dict(manifest["rows"])
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as e:
        raise DataError(f"not a backup ({e})", where=str(path)) from None


def _fill(connection: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            connection.execute(insert(table), batch)
            batch.clear()
    if batch:
        connection.execute(insert(table), batch)
