"""A whole paid study behind a real nginx with TLS, under a host name and under a sub-path; and backups."""

from __future__ import annotations

import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.annotation.acting import desk_for
from tests.annotation.conftest import ARGUMENTS, CHROMIUM, PATIENCE_MS

from creperie.annotation.answers import answer
from creperie.annotation.backup import backup_people, restore_people
from creperie.annotation.database import Database, open_database
from creperie.annotation.links import invite
from creperie.annotation.schema import Answer, Question, Slot
from creperie.annotation.server import Address, limited_protocol
from creperie.annotation.study import StudyPlan, store_study
from creperie.annotation.web.app import create_app
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark
from creperie.core import UsageError

HOST = "people.example.org"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"


# -- backups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_a_backup_is_one_moment_of_a_database_that_is_written_to(
    db: Database, bench: Benchmark, tmp_path: Path
) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check", practice=0, overlap=1))
    invite(db, "s", 1)
    going = threading.Event()

    def write() -> None:
        for n in range(30):
            with db.write() as session:
                desk = desk_for(db, session, 1)
                ticket = desk.take()
                assert ticket is not None
                answer(desk, ticket.slot.token or "", f"k{n}", {"verdict": "false"}, "é")
            if n == 5:
                going.set()

    writer = threading.Thread(target=write)
    writer.start()
    going.wait(30)
    rows = backup_people(db, tmp_path / "b.zip")
    writer.join()
    assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600
    again = open_database(tmp_path / "again.db")
    assert restore_people(again, tmp_path / "b.zip") == rows
    with again.read() as session:
        assert len(session.scalars(select(Answer)).all()) == rows["answer"] >= 6
    with again.write() as session:  # it goes on from there
        ticket = desk_for(again, session, 1).take()
        assert ticket is not None
    with pytest.raises(UsageError, match="not empty"):
        restore_people(again, tmp_path / "b.zip")
    again.close()


# -- nginx -----------------------------------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _serving(db: Database, bench: Benchmark, out: Path, url: str) -> Iterator[int]:
    """The server as `annotate serve --url URL --proxy 127.0.0.1` runs it; its port."""
    import uvicorn

    address = Address(url=url, proxies=("127.0.0.1",))
    site = Site(db, Path(bench.images.location).resolve().parents[1], out, secure=True, url=url)
    config = uvicorn.Config(
        create_app(site, address.names),
        log_level="warning",
        http=limited_protocol(address.proxies),
        proxy_headers=True,
        forwarded_allow_ips=list(address.proxies),
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)


@contextmanager
def _nginx(folder: Path, port: int, tls: int, prefix: str) -> Iterator[None]:
    """nginx with the configuration that we ship; only names of files, ports and the sub-path are changed."""
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed here")
    for part in ("conf", "logs", "tmp"):
        (folder / part).mkdir(parents=True)
    certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    certificate += ["-addext", f"subjectAltName=DNS:{HOST}", "-keyout", "privkey.pem", "-out", "fullchain.pem"]
    subprocess.run(certificate, cwd=folder, check=True, capture_output=True)
    site = CONFIG.read_text(encoding="utf-8")
    for old, new in (
        ("listen 80;", f"listen 127.0.0.1:{_free_port()};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{tls} ssl;"),
        ("/etc/ssl/people", str(folder)),
        ("127.0.0.1:8765", f"127.0.0.1:{port}"),
        ("location / {", f"location {prefix}/ {{"),
    ):
        assert old in site
        site = site.replace(old, new)
    paths = "".join(f"{kind}_temp_path tmp;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    main = f"pid nginx.pid; error_log logs/error.log; daemon off; events {{}} http {{ access_log off; {paths} {site} }}"
    (folder / "conf" / "nginx.conf").write_text(main, encoding="utf-8")
    folder.chmod(0o755)
    running = subprocess.Popen([NGINX, "-p", str(folder), "-c", "conf/nginx.conf"], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", tls)) == 0:
                    break
            assert running.poll() is None, running.stderr.read().decode() if running.stderr else ""
            time.sleep(0.05)
        yield
    finally:
        running.terminate()
        running.wait(20)


@pytest.fixture
def behind(db: Database, bench: Benchmark, tmp_path: Path) -> Callable[..., Any]:
    """Starts server and nginx for a sub-path; the address."""

    @contextmanager
    def start(prefix: str = "") -> Iterator[str]:
        tls = _free_port()
        url = f"https://{HOST}:{tls}{prefix}"
        folder = Path(f"/tmp/creperie-nginx-{tls}")
        try:
            with _serving(db, bench, tmp_path / "out", url) as port, _nginx(folder, port, tls, prefix):
                yield url
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return start


@pytest.fixture
def visit() -> Iterator[Callable[[], Any]]:
    """Opens pages in profiles of their own; the host name leads to this machine."""
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP {HOST} 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, rules])
        problems: list[str] = []

        def open_page() -> Any:
            context = browser.new_context(ignore_https_errors=True, viewport={"width": 900, "height": 800})
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
            page.on("pageerror", lambda e: problems.append(str(e)))
            page.on("dialog", lambda dialog: dialog.accept())
            return page

        yield open_page
        browser.close()
        assert problems == []


def _shown(page: Any) -> None:
    """Wait for the first question or the end: a page that is still arriving has neither, or one of the two."""
    page.wait_for_function("() => ['stage', 'done'].some((part) => document.getElementById(part)?.hidden === false)")


def _take_part(page: Any, link: str, worker: str) -> None:
    page.goto(f"{link}?PROLIFIC_PID={worker}")
    page.get_by_label("I have read this and agree.").check()
    page.get_by_role("button", name="Start").click()
    _shown(page)


def _question(db: Database, page: Any) -> tuple[str, str]:
    """Kind and item of the question on the page, by its picture's address."""
    token = page.locator("#pictures img").get_attribute("src").split("/")[-2]
    with db.read() as session:
        found = session.execute(
            select(Slot.kind, Question.item).join(Question, Question.id == Slot.question_id).where(Slot.token == token)
        ).one()
    return found.kind, found.item


def _work(db: Database, page: Any, press: Callable[[str, str], list[str]], most: int = 100) -> int:
    """Answer until the page says that it is over; how many answers."""
    for done in range(most):
        _shown(page)
        if page.locator("#done").is_visible():
            return done
        kind, item = _question(db, page)
        before = page.locator("#pictures img").get_attribute("src")
        for key in press(kind, item):
            page.keyboard.press(key)
            if key == "s":
                page.wait_for_function(
                    "(b) => document.getElementById('problem').textContent !== ''"
                    " || document.getElementById('stage').hidden"
                    " || document.querySelector('#pictures img').getAttribute('src') !== b",
                    arg=before,
                )
                if page.locator("#problem").inner_text() == "":
                    break
        page.wait_for_function(
            "(b) => document.getElementById('stage').hidden"
            " || document.querySelector('#pictures img').getAttribute('src') !== b",
            arg=before,
        )
    return most


def _honest(kind: str, item: str) -> list[str]:
    return ["2" if kind == "attention" or int(item) < 3 else "1", "Enter"]
