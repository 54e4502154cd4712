"""The batch endpoint: gathered, sent once whatever fails, fetched, and booked at half price."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from foils import foil_items
from loopback import Request, serving
from PIL import Image

from creperie.bench import from_items, open_store
from creperie.models import Prompt, load_model
from creperie.scoring import score


class BatchServer:
    """Files and batches in OpenAI's protocol. After call number `dies` it kills a process."""

    def __init__(self, dies: int = 0, running: Sequence[int] = ()) -> None:
        self.files: dict[str, str] = {}
        self.batches: list[dict[str, Any]] = []
        self.calls, self.dies, self.running, self.paid = 0, dies, running, list[str]()

    def answer(self, request: Request) -> None:
        length = int(request.headers["Content-Length"] or 0)
        body = request.rfile.read(length).decode()
        self.calls += 1
        document = self.document(request.command, request.path.removeprefix("/v1"), body)
        if self.calls == self.dies:
            while not self.running:  # its number is on the way
                time.sleep(0.001)
            os.kill(self.running[0], signal.SIGKILL)
        with suppress(OSError):  # the client may be dead
            request.reply(document if isinstance(document, str) else json.dumps(document))

    def document(self, method: str, path: str, body: str) -> Any:
        if path == "/files":
            self.files[name := f"in-{len(self.files)}"] = "\n".join(re.findall(r'^\{"custom_id.*$', body, re.MULTILINE))
            return {"id": name, "object": "file"}
        if path.endswith("/content"):
            return self.files[path.split("/")[2]]
        if method == "POST":
            asked = json.loads(body)
            self.batches.append({"id": f"b{len(self.batches)}", "object": "batch", "status": "in_progress", **asked})
            return self.batches[-1]
        if path.startswith("/batches?"):
            return {"object": "list", "data": self.batches, "has_more": False}
        batch = self.batches[int(path.split("/")[2][1:])]
        if batch["status"] == "in_progress":  # done at the second look
            batch |= {"status": "completed", "output_file_id": f"out-{batch['id']}"}
            lines = map(json.loads, self.files[batch["input_file_id"]].split("\n"))
            self.files[batch["output_file_id"]] = "\n".join(map(json.dumps, map(self.line, lines)))
            return {**batch, "status": "in_progress"}
        return batch

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        if "seed" in line["body"]:
            return {
                **line,
                "response": {"status_code": 400, "body": {"error": {"message": "Unknown parameter: 'seed'."}}},
            }
        self.paid.append(line["custom_id"])
        text = line["body"]["messages"][-1]["content"]
        said = f"echo {text}" if isinstance(text, str) else "(1), so: no"
        choices = [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {**line, "response": {"status_code": 200, "body": {"choices": choices, "usage": usage}}}


URI = "api:x?batch=true&price_in=1000&price_out=1000&retries=0&base_url="


def generated(url: str, texts: Sequence[str]) -> Any:
    model: Any = load_model(URI + url)
    model.ledger.keep_in(Path(os.environ["CREPERIE_CACHE"]) / "ledger.jsonl")
    assert model.generate([Prompt((("user", text),)) for text in texts]) == [f"echo {text}" for text in texts]
    return model


# A process without threads that forks a child for every line it reads: the step of which kind at which the child dies,
# its cache, and the server. At a "call" the server kills it; at a "file" it kills itself before it changes that file.
WORKER = """
import itertools, os, signal, sys
from pathlib import Path
import openai
import creperie.models.api.batch as batch
from creperie.models import Prompt, load_model
load_model("api:x").queue  # what is imported late is imported once
batch.LOOK_EVERY = 0

def look(event, args):
    change = event in ("os.rename", "os.remove") or (event == "open" and args[1] in ("ab", "wb", "w", "a"))
    if change and os.environ["CREPERIE_CACHE"] in str(args[0]) and next(seen) == step:
        os.kill(os.getpid(), signal.SIGKILL)

for line in sys.stdin:
    kind, step, cache, uri = line.split()
    if not (child := os.fork()):
        seen, step = itertools.count(1), int(step)
        os.environ["CREPERIE_CACHE"] = cache
        if kind == "file":
            sys.addaudithook(look)
        model = load_model(uri)
        model.ledger.keep_in(Path(cache) / "ledger.jsonl")
        model.generate([Prompt((("user", text),)) for text in "ab"])
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.terminate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("kind", ["call", pytest.param("file", marks=pytest.mark.slow)])
def test_a_batch_is_paid_once_wherever_the_process_is_killed(
    worker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Two batches: the first teaches that the server takes no seed. The process is killed (SIGKILL) at every call to
    the server, after the server has done what it asks, and at every change of a file."""
    monkeypatch.setattr("creperie.models.api.batch.LOOK_EVERY", 0)
    for step in itertools.count(1):
        cache, running = tmp_path / str(step), list[int]()
        monkeypatch.setenv("CREPERIE_CACHE", str(cache))
        server = BatchServer(step if kind == "call" else 0, running)
        with serving(server.answer) as url:
            worker.stdin.write(f"{kind} {step} {cache} {URI}{url}\n")
            worker.stdin.flush()
            running.append(int(worker.stdout.readline()))
            status = int(worker.stdout.readline())
            server.dies = 0
            asked = generated(url, ["a", "b"])
            assert len(server.paid) == 2, step
            assert asked.ledger.document() == {
                "calls": 2, "cached": 0, "retried": 0, "tokens_in": 200, "tokens_out": 20, "half_in": 200,
                "half_out": 20, "cost": 0.11,
            }, step  # fmt: skip
            if not os.WIFSIGNALED(status):
                break
    calls = server.calls
    generated(url, ["b", "a"])  # from the cache: the server is gone
    assert server.calls == calls
    assert step > 12


def test_what_one_file_was_refused_for_holds_for_all(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.models.api.batch.LOOK_EVERY", 0)
    monkeypatch.setattr("creperie.models.api.batch.MOST_BYTES", 0)  # a file for every request
    server = BatchServer()
    with serving(server.answer) as url:
        generated(url, ["a", "b"])
    assert (len(server.batches), len(server.paid)) == (4, 2)


@pytest.mark.parametrize("way", ["choice", "yesno"])
def test_all_questions_of_a_run_go_together(
    own_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("creperie.models.api.batch.LOOK_EVERY", 0)
    monkeypatch.setattr("creperie.scoring.choice.TOGETHER", 1)
    monkeypatch.setattr("creperie.scoring.passes.IMAGES", 1)
    for n in range(3):
        Image.new("RGB", (4, 4), (n, 0, 0)).save(tmp_path / f"{n}.png")
    items = foil_items([("a", "b")] * 3, images="{}.png")
    server = BatchServer()
    with serving(server.answer) as url:
        bench = from_items("b", items, images=open_store(tmp_path))
        run = score(bench, f"api:x?base_url={url}&batch=true&score={way}", tasks=["itt"])
    assert run.scores("image_text").tolist() == ([0.5] * 6 if way == "choice" else [0] * 6)
    assert len(server.batches) == 2  # once more without a seed
