"""Scores from the answers of a server: thoughts apart, cut-off answers void, samples, log-probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from foils import foil_items
from loopback import Request, serving
from PIL import Image

from creperie.bench import Benchmark, from_items, open_store, save
from creperie.cli.app import cli
from creperie.core import CreperieError
from creperie.models import load_model
from creperie.reporting.browser import _run
from creperie.scoring import Run, load_run

ITEMS = 20


class Server:
    """Answers as `reply` says of the request and its text; keeps the requests."""

    reply: Callable[[dict[str, Any], str], dict[str, Any]]
    url = ""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def answer(self, request: Request) -> None:
        body = request.read()
        self.requests.append(body)
        choice = self.reply(body, body["messages"][-1]["content"][-1]["text"])
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        request.reply(json.dumps({"choices": [choice], "usage": usage}))


def said(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}


@pytest.fixture
def server(own_cache: None) -> Iterator[Server]:
    running = Server()
    with serving(running.answer) as running.url:
        yield running


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    (tmp_path / "images").mkdir()
    for n in range(ITEMS):
        Image.new("RGB", (8, 6), (12 * n, 10, 10)).save(tmp_path / "images" / f"{n}.png")
    items = foil_items([(f"zebra {n};", f"gnu {n};") for n in range(ITEMS)], images="{}.png")
    return save(from_items("mine", items, images=open_store(tmp_path / "images")), tmp_path / "bench")


def scored(server: Server, place: Path, options: str, code: int = 0) -> tuple[Run, str]:
    uri = f"api:tiny?base_url={server.url}&{options}"
    arguments = ["score", str(place / "bench"), "--images", str(place / "images"), "--out", str(place / "runs")]
    result = CliRunner().invoke(cli, [*arguments, "--model", uri, "--task", "itt"], standalone_mode=False)
    assert result.return_value == code, result.output
    return load_run(result.stdout.split("run ")[-1].strip()), result.output


@pytest.mark.parametrize(("way", "void"), [("yesno", 2), ("choice", 1)])
def test_a_cut_off_answer_is_void_and_said(
    server: Server, bench: Benchmark, tmp_path: Path, way: str, void: int
) -> None:
    """Once it was a "no" or a miss: of twenty items, one may be cut off unpunished, two are more than 5 %."""

    def reply(body: dict[str, Any], text: str) -> dict[str, Any]:
        if any(f" {n};" in text for n in range(void)):
            thought = "There is no doubt that"
            return said(None, "length", reasoning_content=thought) if way == "yesno" else said(thought, "length")
        right = (
            ("Yes" if "zebra" in text else "No")
            if way == "yesno"
            else f"({1 + (text.find('gnu') < text.find('zebra'))})"
        )
        return said(f"<think>Yes? No? (1)? (2)?</think>{right}")

    server.reply = staticmethod(reply)
    for _ in range(2):  # computed, then from the store
        run, output = scored(server, tmp_path, f"score={way}", code=3 * (void > 1))
        (result,) = [r for r in run.results if r["subset"] == "s"]
        assert (result["hits"], result["n"], result["void"]) == (ITEMS - void, ITEMS - void, void)
        assert run.document["coverage"]["image_text"] == ITEMS - void
        assert run.cut_off == void
        assert set(run.document["finding_counts"]) == {"cut-off-answer"}
        assert "cut off: '" + "…" * (way == "yesno") + "There is no doubt that'" in output
        assert "?max_tokens=4096 (now 1024)" in output
        assert ("exit code 3" in output) == (void > 1)
        shown = _run(run, "tiny")["answers"]
        assert all(a["thought"] == "Yes? No? (1)? (2)?" and "think" not in a["answer"] for a in shown[ITEMS - 1])
        assert any(a["cut"] for a in shown[0])
    assert len({json.dumps(r, sort_keys=True) for r in server.requests}) == len(server.requests)


@pytest.mark.parametrize(("combine", "scores"), [("majority", [1, 0]), ("mean", [2 / 3, 1 / 3])])
def test_samples_are_combined(
    server: Server, bench: Benchmark, tmp_path: Path, combine: str, scores: list[float]
) -> None:
    """Two of three samples are right: hand-computed."""
    server.reply = staticmethod(lambda body, text: said("Yes" if ("zebra" in text) == (body["seed"] < 9) else "No"))
    room = "score=yesno&samples=3&temperature=1&seed=7"
    run, _ = scored(server, tmp_path, f"{room}&combine={combine}")
    assert run.scores("image_text")[:2] == pytest.approx(scores)
    assert {r["seed"] for r in server.requests} == {7, 8, 9}
    others = [
        scored(server, tmp_path, f"{room}&combine={combine}{more}")[0] for more in ("&top_p=0.9", "&max_tokens=9")
    ]
    assert len({r.document["computed_from"]["digest"] for r in (run, *others)}) == 3


def tops(*positions: dict[str, float]) -> dict[str, Any]:
    """The log-probabilities of an answer's tokens; the first of each is the one that was written."""
    listed = [[{"token": t, "logprob": math.log(p)} for t, p in tokens.items()] for tokens in positions]
    return {"content": [{**tokens[0], "top_logprobs": tokens} for tokens in listed]}


def test_probabilities_of_first_tokens(server: Server, bench: Benchmark, tmp_path: Path) -> None:
    """P(yes), VQAScore and choices, by hand; what a server does not list is said."""
    first = {"Yes": 0.5, " yes": 0.1, "No": 0.2}
    server.reply = staticmethod(
        lambda body, text: (
            said("…", "length") | {"logprobs": tops(first if "zebra" in text else {"Yes": 0.3, "Maybe": 0.6})}
        )
    )
    run, output = scored(server, tmp_path, "score=yesno&by=likelihood")
    assert run.scores("image_text")[:2] == pytest.approx([0.75, 1])
    assert "20 of 40 answers do not list all labels" in output
    assert "at most 0.7 of the probability" in output
    assert (server.requests[0]["top_logprobs"], server.requests[0]["logprobs"]) == (20, True)
    assert scored(server, tmp_path, "score=vqa")[0].scores("image_text")[:2] == pytest.approx([0.5, 0.3])
    server.reply = staticmethod(
        lambda body, text: said("(") | {"logprobs": tops({"(": 0.8, "none": 0.1}, {"1": 0.6, "2": 0.4})}
    )
    run, _ = scored(server, tmp_path, "score=choice&by=likelihood&order=given")
    assert run.scores("image_text")[:2] == pytest.approx([0.6, 0.4])
    server.reply = staticmethod(lambda body, text: said("A"))
    with pytest.raises(CreperieError, match="returns no log-probabilities"):
        load_model(f"api:other?base_url={server.url}&score=vqa").score_pairs(Image.new("RGB", (4, 4)), ["a"])  # type: ignore[attr-defined]


def test_likelihoods_of_captions(server: Server, bench: Benchmark, tmp_path: Path) -> None:
    """vLLM's `prompt_logprobs`: the mean over the caption's tokens, which end the prompt."""

    def tokens(text: str) -> list[Any]:
        words = ["<image>", "Say", ":", *(" " + w for w in text.split())]
        return [None, *({"7": {"logprob": -len(w) / 4, "decoded_token": w}} for w in words)]

    def answer(request: Request) -> None:
        body = request.read()
        blind = "prompt" in body
        text = body["prompt"] if blind else body["messages"][-1]["content"]
        choice = {"text": "x", "prompt_logprobs": [None, *tokens(text)[4:]]} if blind else said("x")
        request.reply(json.dumps({"choices": [choice], "prompt_logprobs": None if blind else tokens(text)}))

    with serving(answer) as server.url:
        run, _ = scored(server, tmp_path, "score=visualgpt")
        blind: Any = load_model(f"api:tiny?base_url={server.url}&score=likelihood")
        assert blind.score_texts(["zebra 7;", "gnu 7;"]) == pytest.approx([-1.125, -0.875])
    assert run.scores("image_text")[:2] == pytest.approx([-1.125, -0.875])  # " zebra", " 0;": 6 and 3 letters; 4 and 3
