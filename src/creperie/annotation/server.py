"""Start the server, with limits on connections: their number per address, and the time to send a request."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from creperie.annotation.database import Database
from creperie.annotation.links import Invitation, local_owner_link, remember_address
from creperie.annotation.plans import LOOPBACK, Address
from creperie.annotation.web.app import create_app
from creperie.annotation.web.site import Site
from creperie.core import UsageError

#: A browser opens six connections; a class-room behind one address opens many.
PER_ADDRESS, MOST_CONNECTIONS = 256, 800
#: Seconds within which the headers of a request must arrive.
HEADER_SECONDS = 10.0


def limited_protocol(
    trusted: Sequence[str] = (), per_address: int = PER_ADDRESS, header_seconds: float = HEADER_SECONDS
) -> type[Any]:
    """Return uvicorn's protocol with both limits. Trusted proxies may open as many connections as they need."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    is_trusted = _members(trusted)
    open_from: Counter[str] = Counter()

    class LimitedProtocol(HttpToolsProtocol):
        timer: asyncio.TimerHandle | None = None
        counted = ""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            address = self.client[0] if self.client else ""
            if not is_trusted(address):
                self.counted = address
                open_from[address] += 1
                if open_from[address] > per_address:
                    transport.abort()
                    return
            self._expect_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            if self.counted:
                open_from[self.counted] -= 1
                if not open_from[self.counted]:
                    del open_from[self.counted]
                self.counted = ""
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_headers()

        def on_headers_complete(self) -> None:
            self._stop_timer()
            super().on_headers_complete()

        def _expect_headers(self) -> None:
            self._stop_timer()
            self.timer = self.loop.call_later(header_seconds, self.transport.abort)

        def _stop_timer(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return LimitedProtocol


def _members(proxies: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that returns True for an address in one of these networks."""
    networks = [ip_network(one, strict=False) for one in proxies]

    def contains(address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in networks)
        except ValueError:
            return False

    return contains


def serve(db: Database, address: Address) -> None:
    """Serve the annotation pages until interrupted, by default to this machine only. Prints the owner's link."""
    import uvicorn

    if bool(address.certificate) != bool(address.key):
        raise UsageError("TLS needs both a certificate and its key", hint="pass `certificate=` and `key=`")
    secure = address.base.startswith("https://")
    header = address.trusted_header
    site = Site(db, secure=secure, url=address.url, trusted_header=header)
    if address.host not in LOOPBACK and not secure:
        print("creperie: links will travel unencrypted; use TLS (--certificate, --url)", file=sys.stderr)
    remember_address(db, address.base)
    config = uvicorn.Config(
        behind_proxies(create_app(site, address.names), address.proxies, header),
        host=address.host,
        port=address.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=limited_protocol(address.proxies),
        backlog=512,
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=False,
        ssl_certfile=str(address.certificate) if address.certificate else None,
        ssl_keyfile=str(address.key) if address.key else None,
    )
    print(f"creperie: annotation pages at {address.base} (Ctrl+C ends)", file=sys.stderr)
    link = Invitation("", local_owner_link(db)).link(address.base)
    print(f"creperie: open this link as the owner of the studies: {link}", file=sys.stderr, flush=True)
    uvicorn.Server(config).run()


def behind_proxies(app: Any, proxies: Sequence[str], header: str = "") -> Any:
    """Return an application that trusts X-Forwarded headers, and the name in `header`, from these proxies only."""
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    is_trusted = _members(proxies)
    inner = ProxyHeadersMiddleware(app, trusted_hosts=list(proxies)) if proxies else app
    unwanted = header.lower().encode()

    async def believe(scope: Any, receive: Any, send: Any) -> None:
        client = scope.get("client") or ("",)
        if unwanted and scope["type"] == "http" and not is_trusted(client[0]):
            scope = {**scope, "headers": [(k, v) for k, v in scope["headers"] if k.lower() != unwanted]}
        await inner(scope, receive, send)

    return believe
