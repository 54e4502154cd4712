"""The database of studies: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.orm import Session

from creperie.annotation.schema import SchemaTable
from creperie.annotation.state import GuardedSession
from creperie.core import CreperieError, DataError, Json, UsageError

DEFAULT_DATABASE = "creperie-people.db"
PLACE = "CREPERIE_PEOPLE_DB"  #: the environment variable that names the database
#: Accepted URL schemes, and the driver of each.
DRIVERS = {"sqlite": "sqlite", "postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
#: How long a writer waits for another process that writes into the same SQLite file.
BUSY_MS = 10_000
#: Size of the connection pool; as many requests write at a time. More threads would only wait for each other.
POOL = 8


class BusyError(CreperieError):
    """Raised when another process holds the database's write lock for too long."""


class Database:
    """A database with sessions for reading and for writing. A writing session commits when its block ends without an
    error.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.engine = engine
        self.place = place
        self._writers = engine.execution_options(creperie_writes=True)
        # SQLite has one writer; waiting here is fair and cheap, waiting in SQLite is polling.
        self._turns = threading.Semaphore(1 if engine.dialect.name == "sqlite" else POOL)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        if not self._turns.acquire(timeout=BUSY_MS / 1000):
            raise BusyError("the database is busy", where=self.place, hint="try again in a moment")
        try:
            with GuardedSession(self._writers, expire_on_commit=False) as session, session.begin():
                yield session
        finally:
            self._turns.release()

    def close(self) -> None:
        self.engine.dispose()


def database_place(folder: str | Path = "", place: str | None = None) -> str:
    """Return the path or URL of the database. It is `place` if given, else $CREPERIE_PEOPLE_DB, else a file in
    `folder`.
    """
    return place or os.environ.get(PLACE) or str(Path(folder) / DEFAULT_DATABASE)


def open_database(place: str | Path = DEFAULT_DATABASE) -> Database:
    """Open the database at a path or URL, bring its tables up to date, and return it."""
    url = _url(str(place))
    where = url.render_as_string(hide_password=True)
    try:
        lock = f"-c lock_timeout={BUSY_MS}"  # for a row locked by another transaction
        options: Json = {"connect_args": {"options": lock}, "max_overflow": 8}
        if url.drivername == "sqlite":
            options = {"connect_args": {"check_same_thread": False, "timeout": BUSY_MS / 1000}}
        engine = create_engine(url, pool_size=POOL, **options)
        if engine.dialect.name == "sqlite":
            _set_up_sqlite(engine)
        upgrade(engine, where)
    except OperationalError as e:
        reason = str(e.orig).splitlines()[0]
        raise UsageError(
            f"cannot be opened ({reason})",
            where=where,
            hint="check that the path can be written, or that the server runs",
        ) from None
    except DBAPIError as e:
        raise DataError(
            f"is not a creperie database ({e.orig})", where=where, hint="pass the path of another file"
        ) from None
    return Database(engine, where)


def _url(place: str) -> URL:
    """Return the SQLAlchemy URL of a path or URL: a plain path becomes a SQLite URL, and `postgresql://` uses psycopg
    3.

    >>> str(_url("sqlite://")), str(_url("postgresql://me@db/people"))
    ('sqlite://', 'postgresql+psycopg://me@db/people')
    """
    try:
        url = make_url(place) if "://" in place else URL.create("sqlite", database=place)
    except ArgumentError:
        url = URL.create("unreadable")
    if url.drivername not in DRIVERS:
        raise UsageError(
            f"unsupported kind of database {place.partition('://')[0][:40]!r}",
            hint="pass a path for SQLite, or postgresql://user@host/name",
        )
    if url.drivername == "sqlite" and url.database:  # it holds people's answers: only its owner may read it
        path = Path(url.database)
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)  # SQLite gives its journal files the mode of the database
    return url.set(drivername=DRIVERS[url.drivername])


def _set_up_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself: we choose their kind
        for line in (
            f"PRAGMA busy_timeout={BUSY_MS}",
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
            "PRAGMA foreign_keys=ON",
        ):
            connection.execute(line)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("creperie_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def upgrade(engine: Engine, where: str) -> None:
    """Create the tables, or migrate those of an earlier version; raise an error for a database of a later version."""
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(resources.files("creperie.annotation") / "migrations"))
    with engine.execution_options(creperie_writes=True).begin() as connection:
        if engine.dialect.name == "postgresql":  # servers that start at the same time migrate one after the other
            connection.execute(text("SELECT pg_advisory_xact_lock(727274)"))
        config.attributes["connection"] = connection
        try:
            if not inspect(connection).has_table("study"):
                SchemaTable.metadata.create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, "head")
        except CommandError as e:
            raise DataError(
                f"was written by another version of creperie ({e})", where=where, hint="open it with that version"
            ) from None
