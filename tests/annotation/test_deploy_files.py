"""The files in deploy/: what can be checked of them without a container engine. nginx is run in test_deployment.py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from creperie.annotation.server import limited_protocol
from creperie.annotation.web.app import create_app
from creperie.annotation.web.site import Site
from creperie.cli.annotate import serve

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CADDY = os.environ.get("CREPERIE_CADDY") or shutil.which("caddy")


def serve_options(words: list[str]) -> dict[str, Any]:
    """What the command makes of words after `serve`; an error where it does not know one of them."""
    return dict(serve.make_context("serve", words, resilient_parsing=False).params)


def test_the_compose_file_names_what_is_there() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    filled = re.sub(r"\$\{(\w+)[^}]*\}", lambda m: {"PEOPLE_HOST": "people.example.org"}.get(m[1], "secret"), text)
    services = yaml.safe_load(filled)["services"]
    people, proxy, database = services["people"], services["proxy"], services["database"]
    assert (DEPLOY / people["build"]["context"] / people["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    command = shlex.split(people["command"])
    assert command[0] == "serve"
    options = serve_options(command[1:])
    assert "https://people.example.org" in str(options)
    # Only the proxy is reached from outside, and only its address is believed.
    assert [name for name, one in services.items() if one.get("ports")] == ["proxy"]
    assert proxy["networks"]["inside"]["ipv4_address"] in command
    assert database["environment"]["POSTGRES_PASSWORD"] in people["environment"]["CREPERIE_PEOPLE_DB"]
    assert proxy["environment"]["PEOPLE_SERVER"] == "people:8765"
    assert "PEOPLE_SERVER" in (DEPLOY / "Caddyfile").read_text(encoding="utf-8")


def test_the_container_file_copies_what_exists_and_does_not_run_as_root() -> None:
    lines = [line for line in (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    for words in (shlex.split(line)[1:] for line in lines if line.startswith("COPY")):
        assert [name for name in words[:-1] if not (ROOT / name).exists()] == []
    copied = " ".join(line for line in lines if line.startswith("COPY"))
    assert "hatch_build.py" in copied  # which pyproject.toml names, and without which nothing is installed
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}
    assert said["USER"] == "creperie"
    assert f"install -d -o creperie {said['WORKDIR']}" in "\n".join(lines)  # Docker would make it root's
    assert said["ENTRYPOINT"] == '["creperie", "annotate"]'
    assert serve_options(yaml.safe_load(said["CMD"])[1:])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "creperie-people.service").read_text(encoding="utf-8")
    command = re.findall(r"(?m)^ExecStart=(.*)$", text)[0]
    assert serve_options(shlex.split(command.partition(" serve ")[2]))
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / "creperie-people.service"
    unit.write_text(text.replace(command.partition(" ")[0], "/bin/true"), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert "creperie-people.service" not in found.stderr, found.stderr


@pytest.mark.slow
@pytest.mark.skipif(CADDY is None, reason="there is no caddy; $CREPERIE_CADDY may name one")
def test_pages_behind_caddy_with_tls(site: Site, tmp_path: Path) -> None:
    import uvicorn

    app = create_app(site, ["people.example.org"])
    config = uvicorn.Config(app, log_level="warning", http=limited_protocol(["127.0.0.1"]))
    config.proxy_headers, config.forwarded_allow_ips = True, ["127.0.0.1"]
    server = uvicorn.Server(config)
    with socket.socket() as listener, socket.socket() as taken:
        listener.bind(("127.0.0.1", 0))
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.close()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        own = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
        own = own.replace("people.example.org {", f"https://people.example.org:{port} {{\n\ttls internal", 1)
        (tmp_path / "Caddyfile").write_text(
            "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n" + own, encoding="utf-8"
        )
        home = {"HOME": str(tmp_path), "PEOPLE_SERVER": f"127.0.0.1:{listener.getsockname()[1]}"}
        command = [str(CADDY), "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
        caddy = subprocess.Popen(command, env=os.environ | home, stderr=subprocess.DEVNULL)
        try:
            assert _asked(port, "/health")[:2] == (200, True)
            assert _asked(port, "/metrics")[0] == 404
            status, safe, cookie = _asked(port, "/owner/login")
            assert (status, safe) == (200, True)
            assert cookie.startswith("__Host-")
        finally:
            caddy.terminate()
            caddy.wait(20)
            server.should_exit = True
            thread.join(20)


def _asked(port: int, path: str) -> tuple[int, bool, str]:
    """Status, whether browsers are told to stay with TLS, and the cookie; tries until the proxy is there."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the certificate is the proxy's own
    deadline = time.monotonic() + 60
    while True:
        try:
            with (
                socket.create_connection(("127.0.0.1", port), 5) as plain,
                context.wrap_socket(plain, server_hostname="people.example.org") as tls,
            ):
                head = f"GET {path} HTTP/1.1\r\nHost: people.example.org:{port}\r\nConnection: close\r\n\r\n"
                tls.sendall(head.encode())
                reply = tls.recv(65536).decode("latin-1")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
            continue
        cookie = re.search(r"(?i)^set-cookie: (\S+)", reply, re.MULTILINE)
        return int(reply.split()[1]), "strict-transport-security" in reply.lower(), cookie[1] if cookie else ""
