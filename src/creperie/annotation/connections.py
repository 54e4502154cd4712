"""Limits on open connections: a number per address, and a time within which a request must be sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any

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
