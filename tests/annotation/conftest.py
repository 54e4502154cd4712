"""A small benchmark with pictures, and both kinds of database."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from PIL import Image, ImageDraw
from sqlalchemy import event
from sqlalchemy.pool import Pool
from tests.annotation.acting import listening

from creperie.annotation import Database, Site, StudyPlan, create_app, invite, link_for, open_database, store_study
from creperie.bench import PAIRED, Benchmark, Item, choice, from_items, load_folder, open_store, save

COLOURS = ["red", "green", "blue", "orange", "purple", "brown", "black", "grey"]
SHAPES = ["circle", "square"]


def _draw(path: Path, colour: str, shape: str) -> None:
    picture = Image.new("RGB", (120, 90), "white")
    pen = ImageDraw.Draw(picture)
    (pen.ellipse if shape == "circle" else pen.rectangle)((30, 15, 90, 75), fill=colour)
    picture.save(path)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Sixteen items each of pairs, triplets and two-image items, with pictures whose names tell the truth."""
    folder = tmp_path_factory.mktemp("shapes")
    images = folder / "images"
    images.mkdir()
    items = []
    for n, (colour, shape) in enumerate((c, s) for c in COLOURS for s in SHAPES):
        name = f"truth-{colour}-{shape}.png"
        _draw(images / name, colour, shape)
        wrong = COLOURS[(COLOURS.index(colour) + 3) % len(COLOURS)]
        true, second, foil = f"a {colour} {shape}", f"there is a {shape} that is {colour}", f"a {wrong} {shape} "
        items += [
            Item(str(n), "pair", (name,), (true, foil), choice(1, 1)),
            Item(str(n), "triplet", (name,), (true, second, foil), choice(2, 1)),
            Item(str(n), "several", (name,), (true, foil, f"no {shape} at all"), choice(1, 2)),
        ]
    for n, colour in enumerate(COLOURS):
        pair = tuple(f"truth-{colour}-{shape}.png" for shape in SHAPES)
        items.append(Item(str(n), "two", pair, tuple(f"a {colour} {shape}" for shape in SHAPES), PAIRED))
    made = from_items("shapes", items, images=open_store(images))
    save(made, folder / "bench", copy_images=True)
    return load_folder(folder / "bench")


# -- databases -------------------------------------------------------------------------------------------------------

POSTGRES = Path("/usr/lib/postgresql")


def _binaries() -> Path | None:
    found = sorted(POSTGRES.glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    return found[-1].parent if found else None


def _as_postgres(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


def _call(command: list[str], folder: str) -> None:
    done = subprocess.run(_as_postgres(command), capture_output=True, text=True, timeout=120, cwd=folder)
    if done.returncode:
        pytest.skip(f"PostgreSQL cannot be started: {(done.stderr or done.stdout).strip()[-200:]}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, without a database name; tests skip where there is none."""
    bin_dir = _binaries()
    if bin_dir is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("PostgreSQL is not installed here")
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = f"{folder}/data"
    try:
        _call([str(bin_dir / "initdb"), "-D", data, "-A", "trust", "-U", "creperie", "-E", "UTF8", "--no-sync"], folder)
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c max_connections=200 -c fsync=off"
        start = [str(bin_dir / "pg_ctl"), "-D", data, "-l", f"{folder}/log", "-w", "-t", "60", "-o", options, "start"]
        _call(start, folder)
        try:
            yield f"postgresql://creperie@127.0.0.1:{port}"
        finally:
            _call([str(bin_dir / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@event.listens_for(Pool, "checkout")
def wait_for_no_disk(connection: object, *_: object) -> None:
    """Like PostgreSQL with fsync=off: in tests no answer has to survive a power cut."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with its tables; copying it is quicker than making it."""
    path = tmp_path_factory.mktemp("empty") / "people.db"
    open_database(path).close()
    return path


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, empty_file: Path) -> str:
    """Where a fresh database is: a SQLite file; with `@both_databases`, also one on PostgreSQL."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return str(shutil.copy(empty_file, tmp_path / "people.db"))
    import psycopg

    server = request.getfixturevalue("postgres")
    name = f"t{abs(hash(request.node.nodeid)) % 10**12}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.fixture
def db(place: str) -> Iterator[Database]:
    opened = open_database(place)
    yield opened
    opened.close()


@pytest.fixture
def another(place: str) -> Iterator[Callable[[], Database]]:
    """Opens the same database again, as a second process would."""
    opened = []

    def open_again() -> Database:
        opened.append(open_database(place))
        return opened[-1]

    yield open_again
    for database in opened:
        database.close()


# -- the server ------------------------------------------------------------------------------------------------------


class Browser:
    """A client that keeps cookies and knows the CSRF token of the last page, as a browser would."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.csrf = ""

    def get(self, path: str, accept: str = "text/html", **more: Any) -> Any:
        reply = self.client.get(path, headers={"accept": accept}, follow_redirects=False, **more)
        if found := re.search(r'name="csrf" content="([^"]+)"', reply.text if "html" in _kind(reply) else ""):
            self.csrf = found[1]
        return reply

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> Any:
        form = {"csrf": self.csrf, **(data or {})}
        return self.client.post(path, data=form, headers={"accept": "text/html"}, follow_redirects=False, **more)

    def api(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.post(f"/api/{path}", json=body or {}, headers={"X-CSRF-Token": self.csrf, **headers})

    def question(self) -> Any:
        """The next question, as the page gets it."""
        return self.api("next").json()["question"]

    def join(self, token: str) -> Browser:
        self.get(f"/join/{token}")
        assert self.post(f"/join/{token}").status_code == 303
        self.get("/work")
        return self

    def open(self, token: str) -> Browser:
        """Open the link of an owner or adjudicator."""
        assert self.get(f"/join/{token}").status_code == 303
        self.get("/owner")
        return self

    def log_in(self, name: str = "ana") -> Browser:
        """Come in as an owner, with a new link."""
        return self.open(link_for(self.client.app.state.site.db, name))


def _kind(reply: Any) -> str:
    return str(reply.headers.get("content-type", ""))


@pytest.fixture
def site(db: Database) -> Site:
    return Site(db)


@pytest.fixture
def browser(site: Site) -> Iterator[Callable[..., Browser]]:
    """Makes browsers, each with its own cookies."""
    app = create_app(site)
    opened = []

    def open_browser(address: str = "127.0.0.1", base: str = "http://127.0.0.1") -> Browser:
        client = TestClient(app, base_url=base, client=(address, 50000), raise_server_exceptions=True)
        opened.append(client)
        return Browser(client)

    yield open_browser
    for client in opened:
        client.close()


@pytest.fixture
def study(site: Site, bench: Benchmark) -> Callable[..., list[str]]:
    """Makes a study and gives the tokens of its annotators' links."""

    def make(name: str = "s", people: int = 2, subsets: tuple[str, ...] = ("pair",), **plan: Any) -> list[str]:
        plan = {"task": "foil-check", "practice": 0} | plan
        spec = str(Path(bench.images.location).parent)
        store_study(site.db, name, bench, StudyPlan(subsets=subsets, **plan), spec=spec)
        return [i.token for i in invite(site.db, name, people)]

    return make


@pytest.fixture
def who(browser: Callable[..., Browser], study: Callable[..., list[str]]) -> Browser:
    """An annotator who has joined a study of two."""
    return browser().join(study()[0])


# -- a browser -------------------------------------------------------------------------------------------------------
#: Patient enough for a machine that does other things as well.
PATIENCE_MS = 60_000


@pytest.fixture
def address(db: Database) -> Iterator[str]:
    """A running server."""
    with listening(uvicorn.Config(create_app(Site(db)), log_level="warning")) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
def page_of(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, each in a browser profile of its own; errors in the console fail the test."""
    contexts, problems = [], []

    def open_page(width: int = 1280, height: int = 800, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("console", lambda m: problems.append(m.text) if "Content Security Policy" in m.text else None)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
