"""The database of studies: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.orm import Session

from creperie.annotation.schema import Event, SchemaTable
from creperie.annotation.state import GuardedSession
from creperie.core import CreperieError, DataError, UsageError

DEFAULT_DATABASE = "creperie-people.db"
#: What a URL may begin with, and the driver that speaks to it.
DRIVERS = {"sqlite": "sqlite", "postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
#: How long a writer waits for another process that writes into the same SQLite file.
BUSY_MS = 10_000
#: Connections; as many requests work at a time.
POOL = 24


class BusyError(CreperieError):
    """Something else writes into the database for too long."""


class Database:
    """Sessions to read and to write with. Writing sessions commit when their block ends well."""

    def __init__(self, engine: Engine, place: str) -> None:
        self.engine = engine
        self.place = place
        self.locks_rows = engine.dialect.name != "sqlite"  #: SQLite locks the whole file instead
        self._writers = engine.execution_options(creperie_writes=True)
        # SQLite has one writer; waiting here is fair and cheap, waiting in SQLite is polling.
        self._turn = threading.Lock()
        #: how many questions of each kind a study has
        self.questions: dict[int, Counter[str]] = {}

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        if self.locks_rows:
            with GuardedSession(self._writers, expire_on_commit=False) as session, session.begin():
                yield session
            return
        if not self._turn.acquire(timeout=BUSY_MS / 1000):
            raise BusyError("the database is busy", where=self.place, hint="try again in a moment")
        try:
            with GuardedSession(self._writers, expire_on_commit=False) as session, session.begin():
                yield session
        finally:
            self._turn.release()

    def close(self) -> None:
        self.engine.dispose()


def open_database(place: str | Path = DEFAULT_DATABASE) -> Database:
    """The database at a path or URL, with its tables brought up to date."""
    url = _url(str(place))
    where = url.render_as_string(hide_password=True)
    try:
        engine = create_engine(url, **_engine_options(url))
        if engine.dialect.name == "sqlite":
            _set_up_sqlite(engine)
        upgrade(engine, where)
    except OperationalError as e:
        reason = str(e.orig).splitlines()[0]
        raise UsageError(f"cannot be opened ({reason})", where=where, hint="is the server running?") from None
    except DBAPIError as e:
        raise DataError(f"not a creperie database ({e.orig})", where=where) from None
    return Database(engine, where)


def _engine_options(url: URL) -> dict[str, Any]:
    if url.drivername == "sqlite":
        return {"connect_args": {"check_same_thread": False, "timeout": BUSY_MS / 1000}, "pool_size": POOL}
    waits = {"options": f"-c lock_timeout={BUSY_MS}"}  # for a row that somebody else changes
    return {"connect_args": waits, "pool_size": POOL, "max_overflow": 8, "pool_pre_ping": True}


def _url(place: str) -> URL:
    """A URL of SQLAlchemy; plain paths are SQLite files, `postgresql://` is spoken by psycopg 3.

    >>> str(_url("people.db")), str(_url("postgresql://me@db/people"))
    ('sqlite:///people.db', 'postgresql+psycopg://me@db/people')
    """
    try:
        url = make_url(place) if "://" in place else URL.create("sqlite", database=place)
    except ArgumentError:
        url = URL.create("unreadable")
    if url.drivername not in DRIVERS:
        raise UsageError(
            f"not a database ({place.partition('://')[0][:40]!r})",
            hint="give a path for SQLite, or postgresql://user@host/name",
        )
    if url.drivername == "sqlite" and url.database:  # it holds what people said: only its owner may read it
        path = Path(url.database)
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)  # SQLite gives its journal files the mode of the database
    return url.set(drivername=DRIVERS[url.drivername])


def _set_up_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions on its own: we say which kind
        cursor = connection.cursor()
        for line in (
            f"PRAGMA busy_timeout={BUSY_MS}",
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
            "PRAGMA foreign_keys=ON",
        ):
            cursor.execute(line)
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("creperie_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def upgrade(engine: Engine, where: str) -> None:
    """Make the tables, or bring those of an earlier version up to date; refuse a database of a later one."""
    from alembic import command
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(resources.files("creperie.annotation") / "migrations"))
    with engine.execution_options(creperie_writes=True).begin() as connection:
        if engine.dialect.name == "postgresql":  # two servers that start at once come one after the other
            connection.execute(text("SELECT pg_advisory_xact_lock(727274)"))
        config.attributes["connection"] = connection
        before = MigrationContext.configure(connection).get_current_revision()
        try:
            if before is None and not inspect(connection).has_table("study"):
                SchemaTable.metadata.create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, "head")
        except CommandError as e:
            raise DataError(f"was written by another version of creperie ({e})", where=where) from None
        if before == "0001":
            _tell_of_links(connection)


def _tell_of_links(connection: Connection) -> None:
    """Say what became of the accounts of an earlier version."""
    detail = connection.scalar(select(Event.detail).where(Event.what == "accounts became links"))
    names = ", ".join(detail["accounts"]) if detail else "there were none"
    print(
        f"creperie: this database is of an earlier version and was brought up to date. Accounts and passwords became "
        f"links: {names}. Make each of them a new one with `creperie annotate link NAME`.",
        file=sys.stderr,
        flush=True,
    )
