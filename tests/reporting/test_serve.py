"""The live leaderboard: what it shows, what it refuses, and that it keeps up, in a real browser too."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from fastapi.testclient import TestClient

from creperie.core.errors import UsageError
from creperie.reporting.leaderboard import RunsFolder, board_html
from creperie.reporting.serve import listen, make_app, trusted_hosts


@pytest.fixture
def shelf(room: Path, tmp_path: Path) -> Path:
    """A folder with two of the three runs."""
    for path in sorted((room / "runs").iterdir()):
        if "beta" not in path.name:
            shutil.copytree(path, tmp_path / "runs" / path.name)
    return tmp_path / "runs"


def bring(room: Path, shelf: Path) -> str:
    """The third run arrives, as `score` writes it: whole."""
    path = next(p for p in (room / "runs").iterdir() if "beta" in p.name)
    shutil.copytree(path, shelf / ".draft")
    (shelf / ".draft").rename(shelf / path.name)
    return path.name


@pytest.fixture
def client(shelf: Path) -> TestClient:
    return TestClient(make_app(shelf, hosts=["testserver"]))


def test_the_board_keeps_up(client: TestClient, room: Path, shelf: Path) -> None:
    first = client.get("/")
    assert first.status_code == 200
    version = client.get("/board.json").json()["version"]
    assert version in first.text
    assert client.get("/board", params={"version": version}).status_code == 204
    name = bring(room, shelf)
    later = client.get("/board", params={"version": version})
    assert later.status_code == 200
    assert later.headers["x-version"] != version
    assert f'data-run="{name}"' in later.text
    assert f'data-run="{name}"' not in first.text
    shutil.rmtree(shelf / name)
    assert client.get("/board.json").json()["version"] == version


def test_headers_are_read_once(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = RunsFolder(shelf)
    first = here.look()
    monkeypatch.setattr("creperie.reporting.leaderboard.read_entry", lambda path: pytest.fail("read again"))
    assert here.look() == first


def test_runs_are_ordered_by_what_most_have(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    html = board_html(board)
    values = {e.name: e.result("itt") for e in board.entries}
    ranked = sorted((n for n, r in values.items() if r), key=lambda n: -values[n]["accuracy"])  # type: ignore[index]
    places = [html.index(f'data-run="{name}"') for name in ranked]
    assert places == sorted(places)


def test_weights_are_shown_in_thousands_or_millions(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    for count, shown in ((4_242, "4 k"), (151_277_313, "151.3 M"), (None, "")):
        for entry in board.entries:
            entry.document["model"]["parameters"] = count
        html = board_html(board)
        assert ("0.0 M" in html, not shown or f">{shown}<" in html) == (False, True), shown


def test_a_broken_run_is_named_and_the_others_stay(client: TestClient, shelf: Path) -> None:
    for name, content in {"torn": '{"creperie": 1, "na', "<b>odd</b>": '{"model": {}}'}.items():
        (shelf / name.replace("/", "")).mkdir()
        (shelf / name.replace("/", "") / "run.json").write_text(content, encoding="utf-8")
    shown = client.get("/board").text
    assert "torn: run.json cannot be read" in shown
    assert "&lt;b&gt;odd&lt;b&gt;" in shown
    assert "<b>odd" not in shown
    assert len(client.get("/board.json").json()["runs"]) == 2


def test_reports_of_a_run_and_of_a_benchmark(client: TestClient, shelf: Path) -> None:
    runs = client.get("/board.json").json()["runs"]
    alpha = next(r for r in runs if r["model"] == "fake:alpha")
    page = client.get(f"/run/{alpha['run']}")
    assert page.status_code == 200
    assert "← all runs" in page.text
    assert "<title>alpha on mine</title>" in page.text
    picture = client.get(f"/run/{alpha['run']}/pictures/0/2")
    assert picture.headers["content-type"] == "image/webp"
    assert picture.content[8:12] == b"WEBP"
    both = client.get(f"/bench/{alpha['hash']}")
    assert "<title>mine</title>" in both.text
    assert both.text.count('class="model"') == 0  # items are drawn in the browser


def test_a_run_whose_benchmark_is_gone_asks_for_no_pictures(client: TestClient, shelf: Path) -> None:
    for path in shelf.glob("*/run.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        document["benchmark"]["images"], document["command"] = "/nowhere/images", ""
        path.write_text(json.dumps(document), encoding="utf-8")
    page = client.get(f"/run/{client.get('/board.json').json()['runs'][0]['run']}")
    assert page.status_code == 200
    assert "was not found" in page.text
    assert '"address":""' in page.text


@pytest.mark.parametrize(
    "path",
    ["/run/none", "/bench/none", "/run/..%2F..%2Fetc", "/run/none/pictures/0/1", "/other/x", "/docs", "/openapi.json"],
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 422)


def test_pictures_out_of_range_are_not_found(client: TestClient) -> None:
    name = client.get("/board.json").json()["runs"][0]["run"]
    for number in ("99", "-1", "x"):
        assert client.get(f"/run/{name}/pictures/0/{number}").status_code in (404, 422)


def test_only_this_machine_is_answered(client: TestClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    name = client.get("/board.json").json()["runs"][0]["run"]
    for page in (client.get("/"), client.get(f"/run/{name}")):
        policy = dict(part.strip().partition(" ")[::2] for part in page.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert "unsafe" not in " ".join(policy.values())
        assert ' style="' not in page.text
        for kind in ("script", "style"):
            inline = re.findall(rf"(?s)<{kind}(?:\s[^>]*)?>(.*?)</{kind}>", page.text)
            assert inline
            for text in inline:
                assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy[f"{kind}-src"]
    assert "*" not in trusted_hosts("127.0.0.1")
    assert "*" not in trusted_hosts("::1")
    assert trusted_hosts("0.0.0.0") == ["*"]


def test_a_taken_port_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="cannot listen"):
            listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UsageError, match="no such folder"):
        make_app(tmp_path / "none")


# -- as a process, in a browser --------------------------------------------------------------------------------------


@pytest.fixture
def served(shelf: Path) -> Iterator[str]:
    """`creperie serve` on a free port, ended as a user would end it."""
    command = [sys.executable, "-m", "creperie", "serve", str(shelf), "--port", "0", "--json"]
    if not (Path(sys.executable).parent / "creperie").exists():
        pytest.skip("the command creperie is not installed beside this Python")
    command[:3] = [str(Path(sys.executable).parent / "creperie")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    killer = threading.Timer(240, process.kill)
    killer.start()
    try:
        yield json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
    finally:
        killer.cancel()
        process.kill()


@pytest.mark.slow
def test_a_run_that_appears_is_shown(served: str, room: Path, shelf: Path, chromium: Any) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(90_000)
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: trouble.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    page.goto(served)
    assert page.locator("[data-run]").count() == 2
    page.click("th:has-text('model') button")
    name = bring(room, shelf)
    start = time.monotonic()
    page.wait_for_selector(f"[data-run='{name}']")
    assert time.monotonic() - start < 60
    assert page.locator("tr.new").count() == 1
    assert page.locator("th:has-text('model')").get_attribute("aria-sort") == "ascending"
    assert page.inner_text("#state") == "live · 3 runs"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click(f"[data-run='{name}']")
    page.wait_for_selector("#list .row")
    page.locator("#list").scroll_into_view_if_needed()
    picture = page.locator("#list .row img").first
    patience = time.monotonic() + 90  # the page's policy forbids the browser's own waiting for a function
    while picture.evaluate("i => i.naturalWidth") != 320 and time.monotonic() < patience:
        page.wait_for_timeout(200)
    assert picture.evaluate("i => i.naturalWidth") == 320
    page.click("#list .row >> nth=0")
    assert page.locator("#item").evaluate("d => d.open")
    assert trouble == []
    assert all(a.startswith((served, "data:")) for a in asked), asked
    context.close()
