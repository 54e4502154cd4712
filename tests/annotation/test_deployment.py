"""The server behind a real nginx with the configuration that is shipped: host name, identity proxy."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from tests.annotation.acting import listening

from creperie.annotation import Address, Database, Site, StudyPlan, create_app, invite, link_for, store_study
from creperie.annotation.server import behind_proxies, limited_protocol
from creperie.bench import Benchmark

pytestmark = pytest.mark.slow

HOST = "people.example.org"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"
HEADER = "X-Forwarded-User"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _serving(db: Database, url: str) -> Iterator[int]:
    address = Address(url=url, proxies=("127.0.0.1",), trusted_header=HEADER)
    app = create_app(Site(db, secure=True, url=url, trusted_header=HEADER), address.names)
    http = limited_protocol(address.proxies)
    config = uvicorn.Config(behind_proxies(app, address.proxies, HEADER), log_level="warning", http=http)
    with listening(config) as (_, port):
        yield port


@contextmanager
def _nginx(folder: Path, port: int, tls: int, user: str) -> Iterator[None]:
    """nginx as we ship it; names of files, ports and who was recognised are filled in."""
    for part in ("conf", "logs", "tmp"):
        (folder / part).mkdir(parents=True)
    certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    certificate += ["-keyout", "privkey.pem", "-out", "fullchain.pem"]
    subprocess.run(certificate, cwd=folder, check=True, capture_output=True)
    site = CONFIG.read_text(encoding="utf-8")
    for old, new in (
        ("listen 80;", f"listen 127.0.0.1:{_free_port()};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{tls} ssl;"),
        ("/etc/ssl/people", str(folder)),
        ("127.0.0.1:8765", f"127.0.0.1:{port}"),
        (f'{HEADER} "";', f'{HEADER} "{user}";'),
    ):
        assert old in site
        site = site.replace(old, new)
    paths = "".join(f"{kind}_temp_path tmp;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    main = f"pid nginx.pid; error_log logs/error.log; daemon off; events {{}} http {{ access_log off; {paths} {site} }}"
    (folder / "conf" / "nginx.conf").write_text(main, encoding="utf-8")
    folder.chmod(0o755)
    running = subprocess.Popen([NGINX, "-p", str(folder), "-c", "conf/nginx.conf"], stderr=subprocess.PIPE)
    try:
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", tls)) == 0:
                    break
            assert running.poll() is None, running.stderr.read().decode() if running.stderr else ""
            time.sleep(0.05)
        yield
    finally:
        running.terminate()
        running.wait(20)


@contextmanager
def _visitor(db: Database, user: str = "") -> Iterator[httpx.Client]:
    """A client of the address that people use, through nginx."""
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed here")
    tls = _free_port()
    folder, url = Path(f"/tmp/creperie-nginx-{tls}"), f"https://{HOST}:{tls}"
    try:
        with _serving(db, url) as port, _nginx(folder, port, tls, user):
            base, headers = f"https://127.0.0.1:{tls}", {"Host": f"{HOST}:{tls}", "Accept": "text/html"}
            with httpx.Client(base_url=base, headers=headers, verify=False, trust_env=False, timeout=60) as client:
                yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_an_annotator_works_behind_nginx(db: Database, bench: Benchmark) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check", practice=0))
    token = invite(db, "s", 1)[0].token
    with _visitor(db) as client:
        page = client.get(f"/join/{token}")
        csrf = page.text.partition('name="csrf" content="')[2].partition('"')[0]
        entered = client.post(f"/join/{token}", data={"csrf": csrf})
        assert (entered.status_code, entered.headers["location"]) == (303, "/work")
        assert entered.headers["set-cookie"].startswith("__Host-creperie_session")
        assert "max-age" in page.headers["strict-transport-security"]
        work = client.get("/work").text
        assert 'src="/static/work.js"' in work
        csrf = work.partition('name="csrf" content="')[2].partition('"')[0]
        question = client.post("/api/next", json={}, headers={"X-CSRF-Token": csrf}).json()["question"]
        assert client.get(f"/picture/{question['slot']}/0").headers["content-type"] == "image/png"


def test_the_name_of_an_identity_proxy_is_believed_and_a_callers_is_not(db: Database) -> None:
    link_for(db, "ana")
    with _visitor(db) as client:
        assert client.get("/owner", headers={HEADER: "ana"}).status_code == 401
    with _visitor(db, user="ana") as client:
        assert client.get("/owner").status_code == 200
    with _visitor(db, user="stranger") as client:
        assert client.get("/owner", headers={HEADER: "ana"}).status_code == 401
