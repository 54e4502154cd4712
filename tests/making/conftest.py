"""A chat server on loopback that plays a language model: it knows our prompts and a few words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from loopback import Request, serving

from creperie.making import template_names
from creperie.making.llm.prompts import PromptStep, read_template

NEW = {
    "dog": "goat",
    "cat": "hen",
    "boat": "truck",
    "brown": "black",
    "white": "red",
    "chases": "feeds",
    "behind": "above",
}
WORDS = {"object": ("dog", "cat", "boat"), "attribute": ("brown", "white"), "relation": ("chases", "behind")}


@dataclass(frozen=True)
class Question:
    """What a request asks: the prompt file, the step, what is given, and whether it was asked already."""

    template: str
    step: str
    given: dict[str, Any]
    tries: int
    body: dict[str, Any]


def question_of(body: dict[str, Any]) -> Question:
    first = body["messages"][0]["content"]
    given = json.loads(first.rsplit("\nInput: ", 1)[1].removesuffix("\nOutput:"))
    for name in template_names():
        for step in read_template(name).steps.values():
            # some files share a step word for word: their answers are then the same too
            if first.startswith(step.head + "\n\nExamples:") and set(step.given) == set(given) and _shows(step, first):
                return Question(name, step.name, given, len(body["messages"]) // 2, body)
    raise AssertionError(f"not one of our prompts: {first[:200]}")


def _shows(step: PromptStep, text: str) -> bool:
    return json.dumps(dict(step.demonstrations[0][0]), ensure_ascii=False) in text


def good_answer(q: Question) -> dict[str, Any]:
    """What an obedient model says."""
    caption = q.given.get("caption", "")
    if q.step == "locate":
        kind = "object" if q.template.startswith("add") else q.template.split("-")[1]
        return {"concepts": [w for w in caption.rstrip(".").split() if w in WORDS[kind]]}
    if q.step == "propose":
        return {"new": "spotted" if q.template == "add-attribute" else NEW[q.given["selected"]]}
    if q.step.startswith("compose"):
        return _composed(q, caption)
    if q.step == "swap":
        one, two = WORDS[q.template.split("-")[1]][:2]
        if one not in caption or two not in caption:
            return {"possible": "no", "first": "NA", "second": "NA", "sentence": "NA"}
        swapped = caption.replace(one, "\0").replace(two, one).replace("\0", two)
        return {"possible": "yes", "first": one, "second": two, "sentence": swapped}
    if q.step == "write":
        return {"plan": "turn it round", "paraphrase": f"There we see: {caption}"}
    if q.step == "validate":
        return {"reason": "alike", "verdict": "yes", "correction": "NA"}
    return {"enriched": caption.replace("dog", "dog with four legs")}


def _composed(q: Question, caption: str) -> dict[str, Any]:
    old, new = q.given["selected"], q.given["new"]
    if q.template.startswith("replace"):
        return {"sentence": caption.replace(old, new, 1)}
    grown = caption.replace(old, f"{new} {old}" if q.template == "add-attribute" else f"{old} and {new}", 1)
    return {"matched": grown.replace("very big ", "")} if q.step == "compose-matched" else {"sentence": grown}


@dataclass
class ChatServer:
    """Counts and answers requests. `script` answers first: a text as it is, "400" to refuse, None for the good one."""

    script: Callable[[Question], str | None] = lambda q: None
    wait_for: int = 0  #: nothing is answered before so many requests were in flight at once
    bodies: list[str] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    url: str = ""
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    together: threading.Event = field(default_factory=threading.Event)
    hold_from: int | None = None  #: from this request on, nothing is answered until `release`
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def uri(self) -> str:
        return f"api:tiny?base_url={self.url}&price_in=1&price_out=2"

    def serve(self, request: Request) -> None:
        body = request.read()
        question = question_of(body)
        key = json.dumps(body, sort_keys=True)
        with self.lock:
            self.bodies.append(key)
            self.asked.append(question)
            number = len(self.bodies)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.in_flight >= self.wait_for:
                self.together.set()
        if self.hold_from is not None and number >= self.hold_from:
            self.reached.set()
            self.release.wait(30)
            request.close_connection = True
            return
        assert self.together.wait(60), "fewer requests in flight than waited for"
        text = self.script(question)
        if text is None:
            text = json.dumps(good_answer(question))
        if text == "400":
            with self.lock:
                self.in_flight -= 1
            request.reply("", 400)
            return
        with self.lock:
            self.in_flight -= 1
            self.answered.append(key)
        request.say(text, prompt_tokens=100, completion_tokens=10)


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("creperie.core.http.FIRST_WAIT", 0.01)
    server = ChatServer()
    with serving(server.serve) as server.url:
        yield server
        server.release.set()
