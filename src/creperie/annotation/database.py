"""The database of studies: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.orm import Session

from creperie.core import CreperieError, DataError, UsageError

DEFAULT_DATABASE = "creperie-people.db"
#: What a URL may begin with, and the driver that speaks to it.
SCHEMES = {"sqlite": "sqlite", "postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
#: How long a writer waits for another process that writes into the same SQLite file.
BUSY_MS = 10_000
#: Connections to PostgreSQL; as many requests work at a time.
POOL = 16
#: Answers that are written in one transaction, and that wait for their turn, at most; and how long they wait.
TOGETHER, QUEUE, PATIENCE = 32, 1000, 3 * BUSY_MS / 1000
Result = TypeVar("Result")


class BusyError(CreperieError):
    """Something else writes into the database for too long."""


class Database:
    """Sessions to read and to write with. Writing sessions commit when their block ends well."""

    def __init__(self, engine: Engine, place: str) -> None:
        self.engine = engine
        self.place = place
        self._sqlite = engine.dialect.name == "sqlite"
        self._writers = engine.execution_options(creperie_writes=True)
        # SQLite has one writer; waiting here is fair and cheap, waiting in SQLite is polling.
        self._turn = threading.Lock()
        self._waiting: deque[tuple[Callable[[Session], Any], Future[Any]]] = deque()
        self._arrived = threading.Condition()
        self._worker: threading.Thread | None = None
        self._closed = False
        #: questions by kind; keyed by the study's secret and how many gold questions were added to it
        self.question_counts: dict[tuple[str, int], dict[str, int]] = {}
        #: when each held slot was shown, by a clock that never jumps
        self.shown: dict[int, float] = {}
        #: by a study's secret, until when no question that was given out can have been abandoned
        self.leases: dict[str, float] = {}

    @property
    def locks_rows(self) -> bool:
        """Whether rows can be locked; SQLite locks the whole file instead."""
        return not self._sqlite

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        if not self._sqlite:
            with Session(self._writers, expire_on_commit=False) as session, session.begin():
                yield session
            return
        if not self._turn.acquire(timeout=BUSY_MS / 1000):
            raise self.busy()
        try:
            with Session(self._writers, expire_on_commit=False) as session, session.begin():
                yield session
        finally:
            self._turn.release()

    def submit(self, job: Callable[[Session], Result]) -> Future[Result]:
        """Run a job in a writing transaction that it may share with others; done once that is on disk.

        Flushing a transaction to the disk is what takes time: jobs that arrive meanwhile go together. A job that
        fails is undone alone. One thread does it: several would only wait for each other.
        """
        done: Future[Any] = Future()
        with self._arrived:
            if self._closed or len(self._waiting) >= QUEUE:
                raise self.busy()
            self._waiting.append((job, done))
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="creperie-writer", daemon=True)
                self._worker.start()
            self._arrived.notify()
        return done

    def busy(self) -> BusyError:
        return BusyError("the database is busy", where=self.place, hint="try again in a moment")

    def _work(self) -> None:
        while True:
            with self._arrived:
                while not self._waiting and not self._closed:
                    self._arrived.wait()
                if not self._waiting:
                    return
                batch = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
            self._run_together([one for one in batch if one[1].set_running_or_notify_cancel()])

    def _run_together(self, batch: list[tuple[Callable[[Session], Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self.write() as session:
                for job, done in batch:
                    session.info.clear()
                    try:
                        outcomes.append((done, job(session), None))
                    except CreperieError as e:
                        if not session.info.get("clean"):  # refused after it wrote something
                            raise
                        outcomes.append((done, None, e))
        except Exception as e:  # nothing of the batch is on disk
            if len(batch) > 1 and isinstance(e, CreperieError) and not isinstance(e, BusyError):
                for one in batch:
                    self._run_together([one])
            else:
                broken = isinstance(e, self.engine.dialect.loaded_dbapi.OperationalError)  # no room, no server
                for _, done in batch:
                    done.set_exception(self.busy() if broken else e)
            return
        for done, result, error in outcomes:
            done.set_exception(error) if error is not None else done.set_result(result)

    def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()
        if self._worker is not None:
            self._worker.join(10)
        self.engine.dispose()


def open_database(place: str | Path = DEFAULT_DATABASE) -> Database:
    """The database at a path or URL, with its tables brought up to date."""
    url = _url(str(place))
    try:
        _keep_private(url)
        engine = create_engine(url, **_engine_options(url))
        if engine.dialect.name == "sqlite":
            _set_up_sqlite(engine)
        upgrade(engine)
    except ArgumentError as e:
        raise UsageError(f"not a database URL ({e})", where=_shown(url), hint="postgresql://user@host/name") from None
    except OperationalError as e:
        reason = str(e.orig).splitlines()[0]
        raise UsageError(f"cannot be opened ({reason})", where=_shown(url), hint="is the server running?") from None
    except DBAPIError as e:
        raise DataError(f"not a creperie database ({e.orig})", where=_shown(url)) from None
    return Database(engine, _shown(url))


def _keep_private(url: str) -> None:
    """A SQLite file holds what people said: only its owner may read it."""
    path = Path(url.partition(":///")[2])
    if url.startswith("sqlite:///") and path.name:
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)  # SQLite gives its journal files the mode of the database


def _engine_options(url: str) -> dict[str, Any]:
    if url.startswith("sqlite"):
        return {"connect_args": {"check_same_thread": False, "timeout": BUSY_MS / 1000}, "pool_size": POOL}
    waits = {"options": f"-c lock_timeout={BUSY_MS}"}  # for a row that somebody else changes
    return {"connect_args": waits, "pool_size": POOL, "max_overflow": 8, "pool_pre_ping": True}


def _url(place: str) -> str:
    """A URL of SQLAlchemy; plain paths are SQLite files, `postgresql://` is spoken by psycopg 3.

    >>> _url("people.db"), _url("postgresql://me@db/people")
    ('sqlite:///people.db', 'postgresql+psycopg://me@db/people')
    """
    if "://" not in place:
        Path(place).absolute().parent.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{place}"
    scheme, _, rest = place.partition("://")
    if scheme not in SCHEMES:
        raise UsageError(
            f"unknown database scheme {scheme[:40]!r}", hint="give a path for SQLite, or postgresql://user@host/name"
        )
    return f"{SCHEMES[scheme]}://{rest}"


def _shown(url: str) -> str:
    """The place without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.partition("://")[0] + "://…"


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


def upgrade(engine: Engine) -> None:
    """Bring the tables to this creperie's version; refuse a database of a later one."""
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(resources.files("creperie.annotation") / "migrations"))
    with engine.execution_options(creperie_writes=True).begin() as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as e:
            raise DataError(
                f"was written by another version of creperie ({e})", where=_shown(str(engine.url))
            ) from None
