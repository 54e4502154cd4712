"""Start the server, with limits on open connections: a number per address, and a time to send a request in."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from creperie.annotation.database import Database
from creperie.annotation.invitations import remember_address
from creperie.annotation.web.app import LOOPBACK, create_app
from creperie.annotation.web.site import Site
from creperie.core import UsageError

#: A browser opens six connections; a class-room behind one address opens many.
PER_ADDRESS, MOST_CONNECTIONS = 256, 1500
#: Seconds until the headers of a request must be there.
HEADER_SECONDS = 10.0


def limited_protocol(
    trusted: Sequence[str] = (), per_address: int = PER_ADDRESS, header_seconds: float = HEADER_SECONDS
) -> type[Any]:
    """uvicorn's protocol with both limits. Trusted proxies may open as many connections as they need."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    networks = [ip_network(one, strict=False) for one in trusted]
    open_from: Counter[str] = Counter()

    class LimitedProtocol(HttpToolsProtocol):
        timer: asyncio.TimerHandle | None = None
        counted = ""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            address = self.client[0] if self.client else ""
            if not _is_in(address, networks):
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


def _is_in(address: str, networks: Sequence[Any]) -> bool:
    try:
        own = ip_address(address)
    except ValueError:
        return False
    return any(own in network for network in networks)


def allow_many_files() -> None:
    """As many open files as the system allows, up to what the connections need."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * MOST_CONNECTIONS + 200
        if soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@dataclass(frozen=True)
class Address:
    """Where the server listens, and how it is reached.

    `url` is what links begin with, where a proxy stands in front; it may have a path. `proxies` are the addresses
    whose X-Forwarded headers are believed.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    url: str = ""
    proxies: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if self.url and (urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname):
            raise UsageError(f"{self.url[:80]!r} is not an address", hint="https://people.example or …/sub")
        for proxy in self.proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError:
                raise UsageError(
                    f"{proxy[:60]!r} is not an IP address or network", hint="10.0.0.5, 10.0.0.0/8"
                ) from None

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url.rstrip("/") or f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that requests may call the server by; none means any."""
        if self.url:
            return (urlsplit(self.url).hostname or "", *LOOPBACK)
        if self.host in ("0.0.0.0", "::"):
            return ()
        return (self.host, *LOOPBACK)


def serve(db: Database, address: Address, *, root: Path, out: Path) -> None:
    """Serve until interrupted. Listens on this machine only, unless the address says otherwise."""
    import uvicorn

    if bool(address.certificate) != bool(address.key):
        raise UsageError("TLS needs both a certificate and its key", hint="pass `certificate=` and `key=`")
    site = Site(db, root.resolve(), out.resolve(), secure=address.base.startswith("https://"), url=address.url)
    if address.host not in LOOPBACK and not site.secure:
        print("creperie: passwords and links will travel unencrypted; use TLS (--certificate, --url)", file=sys.stderr)
    remember_address(db, address.base)
    allow_many_files()
    config = uvicorn.Config(
        create_app(site, address.names),
        host=address.host,
        port=address.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=limited_protocol(address.proxies),
        backlog=512,
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=bool(address.proxies),
        forwarded_allow_ips=list(address.proxies) if address.proxies else None,
        ssl_certfile=str(address.certificate) if address.certificate else None,
        ssl_keyfile=str(address.key) if address.key else None,
    )
    print(f"creperie: annotation pages at {address.base} (Ctrl+C ends)", file=sys.stderr, flush=True)
    uvicorn.Server(config).run()
