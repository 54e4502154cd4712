"""What holds for every request: who may call from where, how much may be sent, what a browser may do with a page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from creperie.annotation.tasks.task import speaking
from creperie.annotation.web.language import preferred

MAX_BODY = 64 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers hide the origin of our own forms from us
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_SAFE = ("GET", "HEAD", "OPTIONS")
#: Requests that work at a time, fewer than there are threads: static files get through when the database does not.
AT_A_TIME = 24
#: Seconds that a request waits for its turn, and that its whole body may take to arrive.
PATIENCE, BODY_SECONDS = 10.0, 20.0
#: Paths that never touch the database.
_LIGHT = ("/static/", "/health")


class Guard:
    """Refuses foreign hosts, foreign origins and large or slow bodies; adds the headers; limits concurrent requests.

    A body is read as a whole before the request gets its turn, so nobody who sends slowly keeps others from theirs.
    `prefix` is the path under which the pages are reached; a proxy may or may not take it off.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], prefix: str = "") -> None:
        self.app = app
        self.hosts = frozenset(h.lower() for h in hosts)
        self.prefix = prefix
        self.turns = asyncio.Semaphore(AT_A_TIME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.prefix and scope["path"].startswith(self.prefix + "/"):
            scope = {**scope, "path": scope["path"][len(self.prefix) :]}
            scope["raw_path"] = scope.get("raw_path", b"")[len(self.prefix) :]

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        answer = self._refusal(scope)
        body = b""
        if answer is None:
            try:
                body = await asyncio.wait_for(_read(receive), BODY_SECONDS)
            except TimeoutError:
                answer = PlainTextResponse("the request did not arrive in time", 408)
            if len(body) > MAX_BODY:
                answer = PlainTextResponse("request too large", 413)
        if answer is not None:
            await answer(scope, receive, send_guarded)
            return
        language = preferred(Headers(scope=scope).get("accept-language", ""))
        with speaking(language if scope["path"].startswith("/owner") else "en"):
            await self._in_turn(scope, _again(body, receive), send_guarded)

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        if headers.get("location", "").startswith("/"):
            headers["location"] = self.prefix + headers["location"]
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        if scope["path"].startswith("/api/"):
            headers.setdefault("Content-Disposition", 'attachment; filename="api.json"')
        if scope["scheme"] == "https":
            headers.setdefault("Strict-Transport-Security", "max-age=31536000")

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(_LIGHT):
            await self.app(scope, receive, send)
            return
        try:
            await asyncio.wait_for(self.turns.acquire(), PATIENCE)
        except TimeoutError:
            await busy()(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self.turns.release()

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts and _name(f"//{host}") not in self.hosts:
            # Another name that leads here is a page of somebody else's that had its name pointed at us.
            return PlainTextResponse("unknown host", 400)
        if scope["method"] not in _SAFE:
            origin = headers.get("origin")
            if origin is not None and _netloc(origin) != host.lower():
                return PlainTextResponse("requests from other sites are refused", 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return PlainTextResponse("bad content-length", 400)
        return PlainTextResponse("request too large", 413) if int(length[:20]) > MAX_BODY else None


async def _read(receive: Receive) -> bytes:
    """The whole body, or the first part of one that is too large."""
    body = b""
    while len(body) <= MAX_BODY:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once more, for the application."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def busy() -> Response:
    """The page tries again by itself."""
    return JSONResponse({"detail": "the server is busy; try again in a moment"}, 503, headers={"Retry-After": "2"})


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # an origin that is not a URL is not ours
        return ""


def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
