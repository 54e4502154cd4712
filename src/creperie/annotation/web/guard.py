"""What holds for every request: who may call from where, how much may be sent, what a browser may do with a page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class _TooLargeError(Exception):
    """Never leaves this module."""


class Guard:
    """Refuses foreign hosts, foreign origins and large bodies; adds the headers."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = frozenset(h.lower() for h in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(receive)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
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

        with suppress(_TooLargeError):
            await self.app(scope, body.receive, send_unless_too_large)
        if body.too_large:
            await PlainTextResponse("too much was sent", 413)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts and _name(f"//{host}") not in self.hosts:
            # Another name that leads here is a page of somebody else's that had its name pointed at us.
            return PlainTextResponse("unknown host", 400)
        if scope["method"] not in _SAFE:
            origin = headers.get("origin")
            if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
                return PlainTextResponse("requests from other sites are refused", 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return PlainTextResponse("bad content-length", 400)
        return PlainTextResponse("too much was sent", 413) if int(length) > MAX_BODY else None


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
        self.too_large = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > MAX_BODY:
            self.too_large = True
            raise _TooLargeError
        return message
