"""A real HTTP server on 127.0.0.1 that misbehaves on demand, and the patience of a test."""

from __future__ import annotations

import gzip
import io
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from PIL import Image

from creperie.bench.catalog.download import Limits
from creperie.bench.catalog.entries import File

Content = bytes | Callable[[str], bytes | None]


@dataclass
class Site:
    """What the server has, how it treats each path, and what it was asked.

    `moves[path]` is a list of misbehaviours, one for each request; after them (or where there are none) it serves
    properly. A move is ("status", code, headers), ("drop", bytes), ("hang", seconds), ("drip", bytes a time, pause),
    ("whole",) for ignoring Range, ("gzip",), or ("redirect", to).
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    anything: Callable[[str], bytes | None] = lambda path: None
    moves: dict[str, list[tuple[object, ...]]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def asked(self, path: str) -> list[dict[str, str]]:
        return [headers for asked, headers in self.requests if asked == path]

    def file(self, path: str, content: bytes, **known: object) -> File:
        """Put a file on the server and describe it as the catalog would."""
        self.files[path] = content
        return File((self.url + path,), path.strip("/"), **known)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, format: str, *args: object) -> None:
        return None

    def do_GET(self) -> None:
        site = self.site
        site.requests.append((self.path, dict(self.headers)))
        moves = site.moves.get(self.path)
        move = moves.pop(0) if moves else ("serve",)
        content = site.files.get(self.path)
        if content is None:
            content = site.anything(self.path)
        if move[0] == "status":
            return self.answer(int(str(move[1])), b"", dict(move[2]) if len(move) > 2 else {})  # type: ignore[call-overload]
        if move[0] == "redirect":
            return self.answer(302, b"", {"Location": str(move[1])})
        if content is None:
            return self.answer(404, b"not here", {})
        if move[0] == "hang":
            site.ended.wait(float(str(move[1])))
        headers: dict[str, str] = {}
        asked = self.headers.get("Range", "")
        start = int(asked[len("bytes=") : -1]) if asked and move[0] != "whole" else None
        if move[0] == "gzip":
            return self.answer(200, gzip.compress(content), {"Content-Encoding": "gzip"})
        if start is None:
            return self.body(200, content, headers, move)
        if start >= len(content):
            return self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return self.body(206, content[start:], headers, move)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def body(self, status: int, body: bytes, headers: dict[str, str], move: tuple[object, ...]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if move[0] == "drop":
            self.wfile.write(body[: int(str(move[1]))])
            self.close_connection = True
        elif move[0] == "drip":
            step = int(str(move[1]))
            for at in range(0, len(body), step):
                if self.site.ended.wait(float(str(move[2]))):
                    return
                self.wfile.write(body[at : at + step])
        else:
            self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        return None  # a client that hangs up is part of the tests


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield site
    site.ended.set()
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    """Seconds that a test can spare; patient enough for a loaded machine, where no test is about slowness."""
    monkeypatch.setattr("creperie.core.http.FIRST_WAIT", 0.02)
    return Limits(connect=5, read=5, attempts=3)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """One client for all tests: the certificates, which nobody needs here, take long to load."""
    with httpx.Client(verify=False, follow_redirects=True, max_redirects=5, trust_env=False) as client:
        yield client


@pytest.fixture
def jpeg() -> Callable[[int], bytes]:
    """Small pictures, each of another colour."""

    def make(number: int) -> bytes:
        out = io.BytesIO()
        Image.new("RGB", (8, 8), (number * 37 % 256, number * 59 % 256, 90)).save(out, "JPEG")
        return out.getvalue()

    return make


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data home, and no mirror from outside."""
    folder = tmp_path / "home"
    monkeypatch.setenv("CREPERIE_HOME", str(folder))
    monkeypatch.delenv("CREPERIE_MIRROR", raising=False)
    return folder


@pytest.fixture
def stopwatch() -> Callable[[], float]:
    start = time.monotonic()
    return lambda: time.monotonic() - start
