"""Limits on the connections to the server, so that a few addresses cannot keep annotators from their work.

Visitors with a link come first. An address that showed a valid link within the last half hour has a limit of its own.
All other addresses are counted by network (/24, or /64 of IPv6) and share half of the total.

When there are too many connections, the server closes one that is waiting for its client. It chooses the network or
address with the most connections and, of these, the connection that has been silent for longest. If no connection is
waiting, the server refuses the new one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

#: The name under which a request's state holds the function to call when a valid link was shown.
WELCOME = "creperie_welcome"


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections may be open at once. A browser opens up to six, so a class of 60 opens up to 360."""

    total: int = 800
    strangers: int = 400  #: connections from addresses without a valid link
    per_network: int = 192  #: of these, from one network
    per_address: int = 384  #: connections from an address with a valid link
    welcome_seconds: float = 1800.0  #: how long a valid link counts for its address
    header_seconds: float = 10.0  #: within which the headers of a request must arrive


DEFAULT_LIMITS = ConnectionLimits()


def network_of(address: str) -> str:
    """Return the /24 network (IPv6: /64) of an address. Connections of unknown visitors are limited by network.

    >>> network_of("192.0.2.77"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.5"), network_of("")
    ('192.0.2.0/24', '2001:db8:1:2::/64', '192.0.2.0/24', '')
    """
    try:
        own = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(own, IPv6Address):
        own = own.ipv4_mapped or own
    return str(ip_network(f"{own}/{24 if own.version == 4 else 64}", strict=False))


class Places:
    """The open connections of a server, and the rule for closing some when there are too many."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open: set[Any] = set()
        self._welcome: dict[str, float] = {}  #: by address, until when its last valid link counts

    def welcome(self, address: str) -> None:
        """Record that somebody at this address has shown a valid link."""
        now = time.monotonic()
        if len(self._welcome) > 10_000:
            self._welcome = {one: until for one, until in self._welcome.items() if until > now}
        self._welcome[address] = now + self.limits.welcome_seconds

    def enter(self, new: Any) -> None:
        """Add the connection `new`. If there are now too many connections, close one that is waiting for its client. If
        no connection is waiting, close the new one.

        A connection must have `address`, `network`, `silent_since`, `waits()` and `abort()`.
        """
        self.open.add(new)
        now, limits = time.monotonic(), self.limits
        strangers = [one for one in self.open if self._welcome.get(one.address, 0) < now]
        groups = {one: one.address for one in self.open} | {one: one.network for one in strangers}
        sizes = Counter(groups.values())
        is_stranger = groups[new] == new.network
        if sizes[groups[new]] > (limits.per_network if is_stranger else limits.per_address):
            rivals = [one for one, group in groups.items() if group == groups[new]]
        elif is_stranger and len(strangers) > limits.strangers:
            rivals = strangers
        elif len(self.open) > limits.total:
            rivals = [one for one in strangers if one is not new and one.waits()] or list(self.open)
        else:
            return
        waiting = [one for one in rivals if one is not new and one.waits()]
        last = max(waiting, key=lambda one: (sizes[groups[one]], -one.silent_since), default=new)
        self.open.discard(last)
        last.abort()

    def leave(self, one: Any) -> None:
        self.open.discard(one)


def limited_protocol(trusted: Sequence[str] = (), limits: ConnectionLimits = DEFAULT_LIMITS) -> type[Any]:
    """Return uvicorn's HTTP protocol class with these limits. Trusted proxies may open any number of connections."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    is_trusted, places = address_filter(trusted), Places(limits)

    class LimitedProtocol(HttpToolsProtocol):
        timer: asyncio.TimerHandle | None = None
        address = network = ""
        silent_since = 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.address = self.client[0] if self.client else ""
            self.network, self.silent_since = network_of(self.address), self.loop.time()
            self._expect_headers()
            if not is_trusted(self.address):
                places.enter(self)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            places.leave(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self.silent_since = self.loop.time()
            super().data_received(data)

        def waits(self) -> bool:
            """Return True if the server is waiting for the client. It waits for a request, for the rest of a request,
            or for the client to read the response. Return False while the server is working on a complete request.
            """
            working = self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)
            return not working or self.flow.write_paused

        def abort(self) -> None:
            self.transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["state"][WELCOME] = lambda: places.welcome(self.address)
            self._expect_headers()

        def on_headers_complete(self) -> None:
            self._stop_timer()
            super().on_headers_complete()

        def _expect_headers(self) -> None:
            self._stop_timer()
            self.timer = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _stop_timer(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return LimitedProtocol


def address_filter(proxies: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether an address belongs to `proxies`, a list of addresses and networks."""
    networks = [ip_network(one, strict=False) for one in proxies]

    def contains(address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in networks)
        except ValueError:
            return False

    return contains
