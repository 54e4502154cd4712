"""Start the server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from creperie.annotation.database import Database
from creperie.annotation.web.app import LOOPBACK, create_app
from creperie.annotation.web.site import Site
from creperie.core import UsageError


@dataclass(frozen=True)
class Address:
    """Where the server listens, and how it is reached. `url` is what links begin with, where a proxy stands before."""

    host: str = "127.0.0.1"
    port: int = 8765
    url: str = ""
    behind_proxy: bool = False
    certificate: Path | None = None
    key: Path | None = None

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url or f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

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
    config = uvicorn.Config(
        create_app(site, address.names),
        host=address.host,
        port=address.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=address.behind_proxy,
        forwarded_allow_ips="127.0.0.1" if address.behind_proxy else None,
        ssl_certfile=str(address.certificate) if address.certificate else None,
        ssl_keyfile=str(address.key) if address.key else None,
    )
    print(f"creperie: annotation pages at {address.base} (Ctrl+C ends)", file=sys.stderr, flush=True)
    uvicorn.Server(config).run()
