"""What holds for every request: who may call from where, how much may be sent, what a browser may do with a page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
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
#: How long a request waits for its turn, and for its own body.
PATIENCE, BODY_PATIENCE = 10.0, 20.0
#: Paths that never touch the database.
_LIGHT = ("/static/", "/health", "/metrics")


class _TooLargeError(Exception):
    """Never leaves this module."""


class _TooSlowError(Exception):
    """Never leaves this module."""


class Guard:
    """Refuses foreign hosts, foreign origins and large bodies; adds the headers; limits concurrent requests.

    `prefix` is the path under which the pages are reached; a proxy may or may not take it off.
    """

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], prefix: str = "", replies: Counter[int] | None = None
    ) -> None:
        self.app = app
        self.hosts = frozenset(h.lower() for h in hosts)
        self.prefix = prefix
        self.replies = replies if replies is not None else Counter()
        self.turns = asyncio.Semaphore(AT_A_TIME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.prefix and scope["path"].startswith(self.prefix + "/"):
            scope = {**scope, "path": scope["path"][len(self.prefix) :]}
            scope["raw_path"] = scope.get("raw_path", b"")[len(self.prefix) :]
        body = _Body(receive)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.replies[message["status"]] += 1
                headers = MutableHeaders(scope=message)
                if headers.get("location", "").startswith("/"):
                    headers["location"] = self.prefix + headers["location"]
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Content-Disposition", 'attachment; filename="api.json"')
                if scope["scheme"] == "https":
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return

        async def send_unless_too_large(message: Message) -> None:
            # The framework answers a body that breaks off with an error of its own.
            if not body.too_large:
                await send_guarded(message)

        language = preferred(Headers(scope=scope).get("accept-language", ""))
        try:
            with suppress(_TooLargeError), speaking(language if scope["path"].startswith("/owner") else "en"):
                await self._in_turn(scope, body.receive, send_unless_too_large)
        except _TooSlowError:
            await PlainTextResponse("the request did not arrive in time", 408)(scope, receive, send_guarded)
        if body.too_large:
            await PlainTextResponse("request too large", 413)(scope, receive, send_guarded)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(_LIGHT):
            await self.app(scope, receive, send)
            return
        try:
            # Where nobody waits there is nothing to time.
            await (asyncio.wait_for(self.turns.acquire(), PATIENCE) if self.turns.locked() else self.turns.acquire())
        except TimeoutError:
            await busy()(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self.turns.release()

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
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


class _Body:
    """A request's body, counted as it comes: it need not have the length that it states."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0
        self._ended = False
        self.too_large = False

    async def receive(self) -> Message:
        try:
            message = (
                await asyncio.wait_for(self._receive(), BODY_PATIENCE) if not self._ended else await self._receive()
            )
        except TimeoutError:
            raise _TooSlowError from None
        self._ended = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._seen > MAX_BODY:
            self.too_large = True
            raise _TooLargeError
        return message
