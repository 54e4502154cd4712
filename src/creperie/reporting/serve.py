"""A folder of runs in the browser: a leaderboard that keeps up, and the report of any run on it."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from creperie.bench import Benchmark, ImageError, load
from creperie.core import CreperieError, UsageError
from creperie.reporting.gather import RunGroup, fits, gather_runs
from creperie.reporting.leaderboard import Board, LeaderboardEntry, RunsFolder, board_html, board_site, matrix_page
from creperie.reporting.page import Contents, page_of, report_page
from creperie.reporting.thumbnails import thumbnail
from creperie.scoring import RUN_FILE, load_run

#: what a report is asked for by: a run's name, or the hash of a benchmark's content
Kind = Literal["run", "bench"]
KEPT = 6  #: reports held in memory
EDGE = 384  #: of pictures, in pixels
MOST_COMPARED = 4  #: runs beyond which the paired tests would keep a reader waiting
_STYLED = re.compile(rb' style="([^"<>]*)"')
_INLINE = re.compile(rb"<(script|style)(?:\s[^>]*)?>(.*?)</\1>", re.DOTALL)


def policy_of(html: bytes) -> str:
    """Nothing runs or loads in a page but its own scripts and style sheets, named by their hashes."""
    hashes: dict[bytes, set[str]] = {b"script": set(), b"style": set()}
    for kind, text in _INLINE.findall(html):
        hashes[kind].add(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'")
    scripts, styles = (" ".join(sorted(hashes[kind])) or "'none'" for kind in (b"script", b"style"))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def without_style_attributes(html: bytes) -> bytes:
    """A page whose style attributes, of which figures are full, are rules of a style sheet: those have a hash.

    >>> without_style_attributes(b'<html><head></head><p style="color: red">x</p></html>')
    b'<html><head><style>[data-s="0"]{color: red}</style></head><p data-s="0">x</p></html>'
    """
    known: dict[bytes, int] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return b' data-s="%d"' % known.setdefault(found[1], len(known))

    head, end, body = html.partition(b"</head>")
    body = _STYLED.sub(number, body)
    rules = b"".join(b'[data-s="%d"]{%s}' % (n, style) for style, n in known.items())
    return head + (b"<style>" + rules + b"</style>" if known else b"") + end + body


class ReportPage(HTMLResponse):
    """A page with the policy that fits it."""

    def render(self, content: Any) -> bytes:
        return without_style_attributes(bytes(super().render(content)))

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        super().init_headers(headers)
        self.headers["Content-Security-Policy"] = policy_of(bytes(self.body))


class Reports:
    """Reports of runs, made when they are asked for and made again when a run changed."""

    def __init__(self, benches: Sequence[str] = ()) -> None:
        self.benches = tuple(benches)
        self._kept: OrderedDict[str, tuple[str, RunGroup, str]] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, key: str, entries: Sequence[LeaderboardEntry]) -> str:
        """The report of these runs; `key` is its address."""
        return self._made(key, entries)[2]

    def picture(self, key: str, entries: Sequence[LeaderboardEntry], number: int) -> bytes:
        """A picture of a report, by its number among the images of the runs."""
        bench = self._made(key, entries)[1].bench
        if bench is None:
            raise ImageError("missing-image", "the benchmark was not found")
        names = bench.ragged("images")[1].dictionary_encode().dictionary
        if not 0 <= number < len(names):
            raise ImageError("missing-image", f"there is no picture {number}")
        return thumbnail(bench.images, names[number].as_py(), EDGE)

    def _made(self, key: str, entries: Sequence[LeaderboardEntry]) -> tuple[str, RunGroup, str]:
        state = repr([(e.name, (e.path / RUN_FILE).stat().st_mtime_ns) for e in entries])
        with self._lock:  # one at a time: a report takes much of the machine
            if key not in self._kept or self._kept[key][0] != state:
                self._kept[key] = (state, *self._make(key, entries))
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def _make(self, key: str, entries: Sequence[LeaderboardEntry]) -> tuple[RunGroup, str]:
        (group,) = gather_runs([e.path for e in entries], benches=self._fitting(entries))
        compared = len(entries) <= MOST_COMPARED
        title = f"{group.labels[0]} on {group.name}" if len(entries) == 1 else group.name
        page = report_page([group], Contents(title=title, comparisons=compared, address=f"/{quote(key)}/pictures/"))
        back = '<nav class="back"><a href="/">← all runs</a></nav>'
        return group, page.html.replace('<header class="top">', f'<header class="top">{back}', 1)

    def _fitting(self, entries: Sequence[LeaderboardEntry]) -> list[Benchmark]:
        if not self.benches:
            return []
        run = load_run(entries[0].path)
        return [bench for bench in map(load, self.benches) if fits(bench, run)][:1]


def make_app(folder: str | Path, *, benches: Sequence[str] = (), hosts: Sequence[str] = ("*",)) -> FastAPI:
    """The application over a folder of runs."""
    place = Path(folder)
    if not place.is_dir():
        raise UsageError(
            "there is no such folder", where=str(place), hint="give the folder that `score --out` writes to"
        )
    shelf = RunsFolder(place)
    app = FastAPI(title="creperie", docs_url=None, redoc_url=None, openapi_url=None)
    # A page from elsewhere that points its own name at this machine is not answered.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))

    @app.middleware("http")
    async def guarded(request: Request, call_next: Any) -> Response:
        answer: Response = await call_next(request)
        answer.headers.setdefault("Content-Security-Policy", policy_of(b""))
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer

    @app.exception_handler(CreperieError)
    async def told(request: Request, error: CreperieError) -> HTMLResponse:
        return ReportPage(page_of("creperie", back="/", notes=[str(error)]), status_code=404)

    _add_board(app, shelf)
    _add_reports(app, shelf, Reports(benches))
    return app


def _add_board(app: FastAPI, shelf: RunsFolder) -> None:
    pages: dict[str, str] = {}  # the matrix takes seconds: it is made once for every state of the folder

    @app.get("/", response_class=ReportPage)
    def board_page() -> str:
        return board_site(shelf.look(), shelf.folder)

    @app.get("/matrix", response_class=ReportPage)
    def matrix() -> str:
        board = shelf.look()
        if board.version not in pages:
            pages.clear()
            pages[board.version] = matrix_page(board, shelf.folder)
        return pages[board.version]

    @app.get("/board")
    def board(version: str = "") -> Response:
        now = shelf.look()
        if now.version == version:
            return Response(status_code=204)
        return HTMLResponse(board_html(now), headers={"X-Version": now.version, "Cache-Control": "no-store"})

    @app.get("/board.json")
    def board_json() -> JSONResponse:
        return JSONResponse(board_document(shelf.look()))


def _add_reports(app: FastAPI, shelf: RunsFolder, reports: Reports) -> None:
    @app.get("/{kind}/{name}", response_class=ReportPage)
    def report(kind: Kind, name: str) -> str:
        return reports.page(f"{kind}/{name}", _asked(shelf.look(), kind, name))

    @app.get("/{kind}/{name}/pictures/0/{number}")
    def picture(kind: Kind, name: str, number: int) -> Response:
        data = reports.picture(f"{kind}/{name}", _asked(shelf.look(), kind, name), number)
        return Response(data, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})


def board_document(board: Board) -> dict[str, Any]:
    """The leaderboard for scripts."""
    runs = [
        {
            "run": e.name,
            "model": e.model,
            "benchmark": e.benchmark,
            "hash": e.hash,
            "created": e.document["created"],
            "results": e.document["results"],
        }
        for e in board.entries
    ]
    return {"version": board.version, "runs": runs, "unreadable": dict(board.unreadable)}


def _asked(board: Board, kind: Kind, name: str) -> list[LeaderboardEntry]:
    """The run of this name, or the runs on this content."""
    found = board.by_content().get(name, []) if kind == "bench" else [e for e in board.entries if e.name == name]
    if not found:
        raise UsageError(f"there is no {'run' if kind == 'run' else 'benchmark'} {name[:60]!r} here any more")
    return found


# -- listening -------------------------------------------------------------------------------------------------------


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that port 0 has become a number before anybody is told."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as e:
        made.close()
        raise UsageError(f"cannot listen there ({e})", where=f"{host}:{port}", hint="choose another `port=`") from None
    return made


def trusted_hosts(host: str) -> list[str]:
    """The names by which a server at this address may be called: on loopback only its own."""
    local = host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
    return ["127.0.0.1", "localhost", "::1", "[::1]"] if local else ["*"]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
