"""The batch endpoint: gathered, sent once whatever fails, fetched, and booked at half price."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from loopback import Request, serving
from PIL import Image

from creperie.bench import Item, choice, from_items, open_store
from creperie.core import ModelError
from creperie.models import Prompt, load_model
from creperie.scoring import score


class BatchServer:
    """Files and batches in OpenAI's protocol. It drops the connection after its call number `dies`."""

    def __init__(self, dies: int = 0) -> None:
        self.files: dict[str, str] = {}
        self.batches: list[dict[str, Any]] = []
        self.calls, self.dies = 0, dies

    def answer(self, request: Request) -> None:
        length = int(request.headers["Content-Length"] or 0)
        body = request.rfile.read(length).decode()
        self.calls += 1
        document = self.document(request.command, request.path.removeprefix("/v1"), body)
        if self.calls == self.dies:
            request.close_connection = True
            request.connection.close()
        else:
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
        text = line["body"]["messages"][-1]["content"]
        said = f"echo {text}" if isinstance(text, str) else "(1), so: no"
        choices = [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {**line, "response": {"status_code": 200, "body": {"choices": choices, "usage": usage}}}


def generated(url: str, texts: Sequence[str]) -> Any:
    model: Any = load_model(f"api:x?base_url={url}&batch=true&price_in=1000&price_out=1000&retries=0")
    model.ledger.keep_in(Path(str(model.queue.cache.folder)) / "ledger.jsonl")
    assert model.generate([Prompt((("user", text),)) for text in texts]) == [f"echo {text}" for text in texts]
    return model


@pytest.mark.parametrize("dies", range(13))
def test_a_batch_is_paid_once_wherever_the_process_is_killed(
    own_cache: None, monkeypatch: pytest.MonkeyPatch, dies: int
) -> None:
    """Two batches: the first teaches that the server takes no seed. Every call to the server may be the last."""
    monkeypatch.setattr("creperie.models.api.batch.LOOK_EVERY", 0)
    server = BatchServer(dies)
    with serving(server.answer) as url:
        if dies:
            with pytest.raises(ModelError, match="run again to go on"):
                generated(url, ["a", "b"])
        asked = generated(url, ["a", "b"])
        assert len(server.batches) == 2
        assert asked.ledger.document() == {
            "calls": 2, "cached": 0, "retried": 0, "tokens_in": 200, "tokens_out": 20, "half_in": 200, "half_out": 20,
            "cost": 0.11,
        }  # fmt: skip
        calls = server.calls
        generated(url, ["b", "a"])
        assert server.calls == calls


@pytest.mark.parametrize("way", ["choice", "yesno"])
def test_all_questions_of_a_run_go_together(
    own_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("creperie.models.api.batch.LOOK_EVERY", 0)
    monkeypatch.setattr("creperie.scoring.choice.TOGETHER", 1)
    monkeypatch.setattr("creperie.scoring.passes.IMAGES", 1)
    for n in range(3):
        Image.new("RGB", (4, 4), (n, 0, 0)).save(tmp_path / f"{n}.png")
    items = [Item(str(n), "s", (f"{n}.png",), ("a", "b"), choice(1, 1), {}) for n in range(3)]
    server = BatchServer()
    with serving(server.answer) as url:
        bench = from_items("b", items, images=open_store(tmp_path))
        run = score(bench, f"api:x?base_url={url}&batch=true&score={way}", tasks=["itt"])
    assert run.scores("image_text").tolist() == ([0.5] * 6 if way == "choice" else [0] * 6)
    assert len(server.batches) == 2  # once more without a seed
