"""Start the server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from creperie.annotation.connections import MOST_CONNECTIONS, allow_many_files, limited_protocol
from creperie.annotation.database import Database
from creperie.annotation.invitations import remember_address
from creperie.annotation.web.app import LOOPBACK, create_app
from creperie.annotation.web.site import Site
from creperie.core import UsageError


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
