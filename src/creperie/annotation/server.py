"""Start the server, and decide which proxies it trusts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from creperie.annotation.connections import DEFAULT_LIMITS, address_filter, limited_protocol
from creperie.annotation.database import Database
from creperie.annotation.links import Invitation, local_owner_link, remember_address
from creperie.annotation.plans import LOOPBACK, Address
from creperie.annotation.web.app import create_app
from creperie.annotation.web.site import Site
from creperie.core import UsageError


def serve(db: Database, address: Address) -> None:
    """Print the owner's link, then serve the annotation pages until interrupted. By default only this machine can reach
    them.
    """
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
        limit_concurrency=2 * DEFAULT_LIMITS.total,  # reached only by connections of proxies
        proxy_headers=False,
        ssl_certfile=str(address.certificate) if address.certificate else None,
        ssl_keyfile=str(address.key) if address.key else None,
    )
    print(f"creperie: annotation pages at {address.base} (Ctrl+C ends)", file=sys.stderr)
    link = Invitation("", local_owner_link(db)).link(address.base)
    print(f"creperie: open this link as the owner of the studies: {link}", file=sys.stderr, flush=True)
    uvicorn.Server(config).run()


def behind_proxies(app: Any, proxies: Sequence[str], header: str = "") -> Any:
    """Return an application that trusts some headers from these proxies: X-Forwarded headers, and the user's name in
    `header`.
    """
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    is_trusted = address_filter(proxies)
    inner = ProxyHeadersMiddleware(app, trusted_hosts=list(proxies)) if proxies else app
    unwanted = header.lower().encode()

    async def behind_proxy(scope: Any, receive: Any, send: Any) -> None:
        client = scope.get("client") or ("",)
        if unwanted and scope["type"] == "http" and not is_trusted(client[0]):
            scope = {**scope, "headers": [(k, v) for k, v in scope["headers"] if k.lower() != unwanted]}
        await inner(scope, receive, send)

    return behind_proxy
