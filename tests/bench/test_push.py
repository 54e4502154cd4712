"""`creperie data push` against a server on this machine that speaks the hub's protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from creperie.bench import from_items, load, open_store, push_benchmark, save
from creperie.bench.benchmark import Info
from creperie.bench.item import Item
from creperie.core import UsageError

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
TOKEN = "hf_made_up_for_this_test"


class Hub(ThreadingHTTPServer):
    """Repositories by name: the calls in their order, and the files as they arrived."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[str] = []
        self.files: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self.made: dict[str, Any] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self, document: Any, code: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self) -> None:
        self.answer({"error": "not found"}, 404)

    def do_PUT(self) -> None:  # where the batch endpoint sends large files
        data = self.body()
        assert self.path == f"/put/{hashlib.sha256(data).hexdigest()}"
        self.server.objects[self.path.removeprefix("/put/")] = data
        self.answer({})

    def do_POST(self) -> None:
        data = self.body()
        self.server.calls.append(self.path.partition("?")[0])
        if self.path != "/api/validate-yaml" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer({"error": "no"}, 401)
        if self.path == "/api/repos/create":
            self.server.made = json.loads(data)
            return self.answer({"url": f"{self.server.address}/datasets/me/mine", "name": "me/mine"})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if "/preupload/" in self.path:
            asked = json.loads(data)["files"]
            modes = {True: "lfs", False: "regular"}
            found = [{"path": f["path"], "uploadMode": modes[f["path"].endswith(".parquet")]} for f in asked]
            return self.answer({"files": [{**f, "shouldIgnore": False, "oid": None} for f in found]})
        if self.path.endswith("/info/lfs/objects/batch"):
            return self.answer({"transfer": "basic", "objects": [self.wanted(o) for o in json.loads(data)["objects"]]})
        assert "/commit/" in self.path
        for line in map(json.loads, data.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.server.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.server.files[value["path"]] = self.server.objects[value["oid"]]
        place = f"{self.server.address}/datasets/me/mine/commit/{'a' * 40}"
        return self.answer({"commitUrl": place, "commitOid": "a" * 40, "success": True})

    def wanted(self, thing: dict[str, Any]) -> dict[str, Any]:
        if thing["oid"] in self.server.objects:
            return thing  # no actions: it is here
        return {**thing, "actions": {"upload": {"href": f"{self.server.address}/put/{thing['oid']}"}}}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for i in range(3):
        Image.new("RGB", (4 + i, 5)).save(tmp_path / "pictures" / f"{i}.png")
    items = [Item(str(i), "s", (f"{i}.png",), (f"a crab {i}", f"a gull {i}"), ((True, False),)) for i in range(3)]
    made = from_items("mine", items, images=open_store(tmp_path / "pictures"))
    save(replace(made, info=Info(title="Mine", licence="MIT")), tmp_path / "mine")
    return tmp_path / "mine"


def push(bench: Path, hub: Hub, *more: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    own = {"HF_ENDPOINT": hub.address, "HF_TOKEN": token, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    home = {"HF_HOME": str(bench.parent / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-m", "creperie", "data", "push", str(bench), "me/mine", "--json", *more]
    return subprocess.run(command, env={**os.environ, **own, **home}, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_arrives_is_the_benchmark(hub: Hub, bench: Path, tmp_path: Path) -> None:
    done = push(bench, hub, "--private", "--copy-images")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["commit"].endswith("a" * 40)
    assert hub.made["type"] == "dataset"
    assert hub.made.get("private") is True or hub.made.get("visibility") == "private"  # by the hub's version
    assert set(document["files"]) == set(hub.files) - {".gitattributes"}
    for name, data in hub.files.items():
        (tmp_path / "back" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "back" / name).write_bytes(data)
    assert load(str(tmp_path / "back")).hash == load(str(bench)).hash
    assert any(call.endswith("/info/lfs/objects/batch") for call in hub.calls)
    assert b"license: mit" in hub.files["README.md"]
    datasets = pytest.importorskip("datasets")
    read = datasets.load_dataset(str(tmp_path / "back"), split="test", cache_dir=str(tmp_path / "cache"))
    assert [row["images"][0].size for row in read] == [(4, 5), (5, 5), (6, 5)]


@pytest.mark.slow
def test_a_token_that_may_not_write_is_one_line(hub: Hub, bench: Path) -> None:
    done = push(bench, hub, token="hf_wrong")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines() == [
        "creperie: me/mine: the hub does not let you write; log in with `hf auth login`, or set HF_TOKEN to a token "
        "that may write"
    ]


def test_a_dry_run_sends_nothing_and_no_licence_is_refused(bench: Path) -> None:
    found = load(str(bench))
    told = push_benchmark(found, "me/mine", dry_run=True)
    assert told.commit == ""
    assert {"README.md", "croissant.json"} <= set(told.files)
    with pytest.raises(UsageError, match="states no licence"):
        push_benchmark(replace(found, info=Info()), "me/mine", dry_run=True)
