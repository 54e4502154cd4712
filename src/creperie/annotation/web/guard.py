"""Rules for every request: allowed hosts and origins, size and speed of request bodies, security headers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
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
    "Referrer-Policy": "same-origin",  # with "no-referrer", browsers would not send the origin of our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_SAFE = ("GET", "HEAD", "OPTIONS")
#: Seconds that the whole body of a request may take to arrive.
BODY_SECONDS = 20.0


class Guard:
    """ASGI middleware that adds security headers to responses. It refuses requests for other hosts, from other origins,
    or with large or slow bodies.

    A body is read completely before a thread works on the request, so a slow sender does not block a thread.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = frozenset(h.lower() for h in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _headers(scope).items():
                    headers.setdefault(name, value)
            await send(message)

        refusal, body = self._refusal(scope), b""
        if refusal is None:
            try:
                body = await asyncio.wait_for(_read(receive), BODY_SECONDS)
            except TimeoutError:
                refusal = PlainTextResponse("the request did not arrive in time", 408)
        if len(body) > MAX_BODY:
            refusal = PlainTextResponse("request too large", 413)
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await (refusal or self.app)(scope, replay, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        origin = headers.get("origin") if scope["method"] not in _SAFE else None
        if self.hosts and _parsed(f"//{host}").hostname not in self.hosts:
            # Protects against DNS rebinding: another site's name that points at this server.
            return PlainTextResponse("unknown host", 400)
        if origin is not None and _parsed(origin).netloc.lower() != host.lower():
            return PlainTextResponse("requests from other sites are refused", 403)
        return None


def _headers(scope: Scope) -> dict[str, str]:
    own = {**HEADERS, "Cache-Control": "no-store"}
    if scope["path"].startswith("/api/"):
        own["Content-Disposition"] = 'attachment; filename="api.json"'
    if scope["scheme"] == "https":
        own["Strict-Transport-Security"] = "max-age=31536000"
    return own


async def _read(receive: Receive) -> bytes:
    """Return the whole body of a request or, if it is too large, only its beginning."""
    body = b""
    while len(body) <= MAX_BODY:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def busy() -> Response:
    """Return the response that says that the server is busy. The page then tries again by itself."""
    return JSONResponse({"detail": "the server is busy; try again in a moment"}, 503, headers={"Retry-After": "2"})


def _parsed(url: str) -> SplitResult:
    """Return the parts of a URL; all parts are empty if the URL is not valid."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
