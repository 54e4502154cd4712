"""The client for OpenAI-compatible endpoints, against a real HTTP server on loopback that falters on purpose."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from loopback import Request, serving
from PIL import Image

from creperie.core import CreperieError, ModelError
from creperie.models import Generator, Prompt, load_model
from creperie.models.api.endpoint import BudgetError


class Server:
    """Answers chat requests; `faults` is a script of what to do wrong first."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        self.delay = 0.0
        self.in_flight = self.most_in_flight = self.wait_for = 0
        self.together = threading.Event()  #: set when `wait_for` requests are in flight at once
        self.lock = threading.Lock()
        self.url = ""

    def document(self, body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]["content"]
        text = last if isinstance(last, str) else last[-1]["text"]
        return {
            "choices": [{"message": {"role": "assistant", "content": f"echo {text}"}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }

    def answer(self, request: Request) -> None:
        body = request.read()
        with self.lock:
            self.requests.append(body)
            self.headers.append(dict(request.headers))
            fault = self.faults.pop(0) if self.faults else ""
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.in_flight >= self.wait_for:
                self.together.set()
        self.together.wait(60)
        time.sleep(self.delay)
        with self.lock:
            self.in_flight -= 1
        status, extra, payload = 200, {}, json.dumps(self.document(body))
        if fault.isdigit():
            status, payload = (
                int(fault),
                json.dumps({"error": {"message": f"refused, your key is sk-secret ({fault})"}}),
            )
            extra = {"Retry-After": "0"} if status == 429 else {}
        elif fault == "no credit":
            status, payload = 429, json.dumps({"error": {"message": "add money", "code": "insufficient_quota"}})
        elif fault == "half":
            payload = payload[: len(payload) // 2]
        elif fault == "empty":
            payload = json.dumps({"choices": []})
        elif fault == "drip":
            request.send_response(200)
            request.send_header("Content-Length", "200")
            request.end_headers()
            with suppress(OSError):
                for _ in range(200):
                    request.wfile.write(b" ")
                    time.sleep(0.1)
            return
        elif fault == "drop":
            request.close_connection = True
            request.connection.close()
            return
        request.reply(payload, status, extra)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr("creperie.core.http.FIRST_WAIT", 0.01)
    running = Server()
    with serving(running.answer) as running.url:
        yield running


def model(server: Server, **options: object) -> Any:
    query = "".join(f"&{k}={v}" for k, v in options.items())
    found = load_model(f"api:tiny?base_url={server.url}{query}")
    assert isinstance(found, Generator)
    return found


def ask(text: str, **rest: Any) -> Prompt:
    return Prompt((("user", text),), **rest)


def test_answers_come_in_the_order_of_the_prompts(server: Server) -> None:
    asked = model(server, concurrency=4)
    assert asked.generate([ask(str(i)) for i in range(20)]) == [f"echo {i}" for i in range(20)]
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert asked.ledger.document() == {
        "calls": 20, "cached": 0, "retried": 0, "tokens_in": 2000, "tokens_out": 200, "cost": 0,
    }  # fmt: skip


def test_nothing_is_asked_twice(server: Server) -> None:
    model(server).generate([ask("a"), ask("b"), ask("a")])
    again = model(server)
    assert again.generate([ask("b"), ask("c"), ask("a")]) == ["echo b", "echo c", "echo a"]
    assert len(server.requests) == 3
    assert again.ledger.cached == 2
    again.generate([ask("a", temperature=1.5)])
    assert len(server.requests) == 4  # another temperature is another question


@pytest.mark.parametrize(
    "faults", [["429", "429", "503"], ["half"], ["empty"], ["drop", "drop"], ["500", "half", "drop"]]
)
def test_passing_faults_are_waited_out(server: Server, faults: list[str]) -> None:
    server.faults = list(faults)
    asked = model(server, concurrency=1)
    assert asked.generate([ask("a")]) == ["echo a"]
    assert asked.ledger.retried == len(faults)
    assert asked.ledger.calls == 1


def test_a_slow_answer_times_out_and_is_tried_again(server: Server) -> None:
    server.delay = 0.6
    with pytest.raises(ModelError, match=r"no answer within 0\.2 s"):
        model(server, timeout=0.2, retries=1).generate([ask("a")])
    assert len(server.requests) == 2


def test_a_server_that_drips_is_cut_off_at_the_deadline(server: Server) -> None:
    """One byte every tenth of a second keeps every single read within the timeout; the whole answer is not."""
    server.faults = ["drip"]
    with pytest.raises(ModelError, match=r"no answer within 0\.5 s"):
        model(server, timeout=0.5, retries=0).generate([ask("a")])
    assert model(server).generate([ask("a")]) == ["echo a"]


def test_an_endless_answer_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.models.api.queue.LONGEST_ANSWER", 100)
    with pytest.raises(ModelError, match="longer than 100 bytes"):
        model(server).generate([ask("a" * 200)])


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1000, "completion_tokens": -50},
        {"prompt_tokens": 10**12, "completion_tokens": 1},
        {"prompt_tokens": "many", "completion_tokens": 1.5},
        {"prompt_tokens": 0, "completion_tokens": 0},
        None,
    ],
)
def test_usage_that_cannot_be_is_estimated_and_the_budget_holds(server: Server, usage: Any) -> None:
    """A server that reports negative usage once made the ledger negative, so that no budget ever ended."""
    answered = server.document
    server.document = lambda body: {**answered(body), "usage": usage}  # type: ignore[method-assign]
    asked = model(server, concurrency=1, price_in=1000, price_out=1000, budget=1, retries=0)
    with pytest.raises(BudgetError, match="budget of \\$1"):
        asked.generate([ask("word " * 20 + str(i), max_tokens=10) for i in range(50)])
    told = asked.ledger.document()
    assert told["estimated"] == told["calls"] == 7  # each at most 16 + 101 or 102 tokens in, 10 out; $1 is 1,000 tokens
    assert 0.5 < told["cost"] <= 1


def test_what_was_answered_before_a_failure_is_kept(server: Server) -> None:
    server.faults = ["", "400"]
    with pytest.raises(ModelError, match="refused the request"):
        model(server, concurrency=1).generate([ask("a"), ask("b"), ask("c")])
    assert model(server).generate([ask("a"), ask("b"), ask("c")]) == ["echo a", "echo b", "echo c"]
    assert [r["messages"][0]["content"] for r in server.requests] == ["a", "b", "c", "b"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server: Server, status: int) -> None:
    """Prompts and captions once went to whatever host a server named."""
    elsewhere = Server()
    with serving(elsewhere.answer) as place:

        def moved(request: Request) -> None:
            request.read()
            request.reply("", status, {"Location": f"{place}/chat/completions?key=1"})

        with serving(moved) as here, pytest.raises(ModelError) as e:
            load_model(f"api:x?base_url={here}&retries=0").generate([ask("a secret")])
    assert elsewhere.requests == []
    assert f"redirects to {place}/chat/completions, where nothing was sent" in str(e.value)
    assert "?base_url=" in str(e.value)


def test_a_refusal_says_what_to_do_and_never_the_key(server: Server) -> None:
    server.faults = ["401"]
    with pytest.raises(ModelError) as e:
        model(server).generate([ask("a")])
    assert "OPENAI_API_KEY" in str(e.value)
    assert "sk-secret" not in str(e.value)


REFUSALS = tomllib.loads((Path(__file__).parent / "refusals.toml").read_text(encoding="utf-8"))["refusals"]


@pytest.mark.parametrize(("status", "message", "name"), REFUSALS)
def test_what_a_server_refuses_is_learned_once(server: Server, status: int, message: str, name: str) -> None:
    plain, refused = server.answer, []

    def answer(request: Request) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        if name in body and (name != "response_format" or body[name]["type"] == "json_schema"):
            refused.append(body)
            request.reply(json.dumps({"error": {"message": message}}), status)
        else:
            request.read = lambda: body  # type: ignore[method-assign]
            plain(request)

    with serving(answer) as server.url:
        asked = [ask(str(n), schema='{"name": "x", "schema": {}}') for n in range(3)]
        model(server, concurrency=1, top_p=0.9, seed=1).generate(asked)
        again = model(server, top_p=0.9)  # in another process: the refusal is in the cache
        again.generate([ask("b")])
    assert len(refused) == 1
    (sent, *_) = server.requests
    renamed = "max_completion_tokens" in message
    assert ("max_completion_tokens" in sent) == renamed
    assert bool(again.notes) == (not renamed and name != "response_format")
    assert [note for note in again.notes if name not in note] == []


def test_reasoning_is_asked_for_as_the_server_expects(server: Server) -> None:
    model(server, reasoning="off", system="Be brief.").generate([ask("a")])
    model(server, reasoning="500").generate([ask("a")])
    off, some = server.requests
    assert off["messages"][0] == {"role": "system", "content": "Be brief."}
    assert off["chat_template_kwargs"]["enable_thinking"] is False
    assert (some["chat_template_kwargs"]["enable_thinking"], some["thinking_token_budget"]) == (True, 500)
    hosts = {
        "https://api.openai.com/v1": {"reasoning_effort": "none"},
        "https://openrouter.ai/api/v1": {"reasoning": {"effort": "none"}},
        "https://api.anthropic.com/v1": {"thinking": {"type": "disabled"}},
    }
    for url, form in hosts.items():
        sent = load_model(f"api:x?base_url={url}&reasoning=off").request(ask("a"))  # type: ignore[attr-defined]
        assert form.items() <= sent.items()
    with pytest.raises(CreperieError, match="reasoning cannot be a number of tokens on this server"):
        load_model("api:x?reasoning=500").request(ask("a"))  # type: ignore[attr-defined]
    with pytest.raises(CreperieError, match="samples needs a temperature"):
        load_model("api:x?samples=5")


def test_the_budget_is_never_passed(server: Server) -> None:
    asked = model(server, concurrency=3, price_in=1000, price_out=1000, budget=1, retries=0)
    with pytest.raises(BudgetError, match="budget of \\$1"):
        asked.generate([ask("word " * 20 + str(i), max_tokens=10) for i in range(50)])
    assert 0 < asked.ledger.cost <= 1
    assert asked.ledger.reserved == pytest.approx(0)


def test_a_server_that_answers_nothing_is_not_asked_the_rest(server: Server) -> None:
    """As llama-cpp-python's server does with images for a model without a vision tower: 500 for every request."""
    server.faults = ["500"] * 40
    with pytest.raises(ModelError, match=r"gave up after 3 tries: the server answered 500: refused, your key is … "):
        model(server, concurrency=1, retries=2).generate([ask(str(n)) for n in range(10)])
    assert len(server.requests) == 6


@pytest.mark.parametrize("before", [[], [""]])
def test_one_request_that_fails_for_good_does_not_stop_the_others(server: Server, before: list[str]) -> None:
    server.faults = [*before, "500", "500"]
    asked = model(server, concurrency=1, retries=1)
    with pytest.raises(ModelError, match="gave up"):
        asked.generate([ask(str(n)) for n in range(4)])
    assert asked.ledger.calls == 3


def test_a_server_that_dies_is_not_waited_for_by_every_request(server: Server) -> None:
    server.faults = ["", *["drop"] * 40]
    asked = model(server, concurrency=1, retries=0)
    with pytest.raises(ModelError, match="gave up after 1 tries: the connection failed"):
        asked.generate([ask(str(n)) for n in range(10)])
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", ["401", "404", "no credit"])
def test_what_every_request_would_be_refused_for_is_asked_once(server: Server, fault: str) -> None:
    server.faults = [fault] * 40
    with pytest.raises(ModelError, match="the server refused the request"):
        model(server, concurrency=1).generate([ask(str(n)) for n in range(10)])
    assert len(server.requests) == 1


@pytest.mark.parametrize("finish", ["content_filter", "stop"])
def test_an_answer_without_text_is_an_empty_answer(server: Server, finish: str) -> None:
    server.document = lambda body: {  # type: ignore[method-assign]
        "choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": finish}]
    }
    asked = model(server)
    assert asked.generate([ask("a")]) == [""]
    assert len(server.requests) == 1


def test_no_more_requests_at_once_than_allowed(server: Server) -> None:
    server.wait_for = 3
    model(server, concurrency=3).generate([ask(str(i)) for i in range(12)])
    assert server.most_in_flight == 3


def test_requests_a_minute_are_spread(server: Server) -> None:
    begin = time.monotonic()
    model(server, rpm=600).generate([ask(str(i)) for i in range(6)])
    assert time.monotonic() - begin >= 0.5


def test_images_travel_with_the_first_user_turn(server: Server) -> None:
    picture = Image.new("RGB", (4, 4), (255, 0, 0))
    model(server).generate([Prompt((("system", "be brief"), ("user", "what is it?")), images=(picture,))])
    content = server.requests[0]["messages"][1]["content"]
    assert content[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert content[1] == {"type": "text", "text": "what is it?"}


def test_no_file_holds_the_key(server: Server, tmp_path: Path) -> None:
    server.faults = ["429"]
    model(server).generate([ask("a")])
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files
    assert not any(b"sk-secret" in p.read_bytes() for p in files)


def test_a_damaged_answer_is_asked_for_again(server: Server, tmp_path: Path) -> None:
    model(server).generate([ask("a")])
    (file,) = list(tmp_path.rglob("*.json"))
    file.write_bytes(file.read_bytes()[:20])
    assert model(server).generate([ask("a")]) == ["echo a"]
    assert len(server.requests) == 2


def test_a_server_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))
    monkeypatch.setattr("creperie.core.http.FIRST_WAIT", 0.01)
    with pytest.raises(CreperieError, match="connection failed"):
        load_model("api:x?base_url=http://127.0.0.1:9/v1&retries=1").generate([ask("a")])  # type: ignore[attr-defined]
