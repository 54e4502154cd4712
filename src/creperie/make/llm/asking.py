"""Conversations with a generator, all of a chunk at once.

A *talk* is a generator function: it yields questions, is sent their replies, and returns what came of it. In every
round the open questions of all talks go to the model together, so the requests in flight are as many as its endpoint
allows. An answer that cannot be read is asked for again, with a note that says what was wrong; the note also makes
the request a new one, which matters where a server or a cache would repeat itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from creperie.errors import ModelError, UsageError
from creperie.make.llm.parse import Fields, MalformedError, read_answer
from creperie.make.llm.prompts import Step
from creperie.models.protocols import Generator as Model
from creperie.models.protocols import Prompt

TRIES = 3  #: how often a question is asked before its answer is put into quarantine
MOST_QUOTED = 1_000  #: characters of a bad answer that are shown to the model again

R = TypeVar("R")


@dataclass(frozen=True)
class Ask:
    """A question. `objection` says what is wrong with an answer that could be read, or nothing."""

    step: Step
    given: Mapping[str, Any]
    seed: int = 0
    temperature: float | None = None  #: other than the step's
    objection: Callable[[Fields], str] | None = None


@dataclass(frozen=True)
class Reply:
    """What came back: the fields, or why they could not be read and the last text as it was."""

    fields: Fields | None
    text: str
    why: str = ""
    calls: int = 1


Talk = Generator[Sequence[Ask], list[Reply], R]


@dataclass
class _Question:
    """An ask on its way: how often it was asked, and what came back last."""

    ask: Ask
    tries: int = 0
    text: str = ""
    why: str = ""
    reply: Reply | None = None

    def prompt(self) -> Prompt:
        step = self.ask.step
        messages: list[tuple[str, str]] = [("user", step.text(self.ask.given))]
        if self.tries:
            quoted = self.text[:MOST_QUOTED] if self.text.strip() else "(nothing)"
            messages += [("assistant", quoted), ("user", _note(self.why, step))]
        temperature = step.temperature if self.ask.temperature is None else self.ask.temperature
        return Prompt(
            tuple(messages),
            temperature=temperature,
            max_tokens=step.max_tokens,
            seed=self.ask.seed + self.tries,
            schema=step.schema,
        )

    def refuse(self) -> None:
        self.tries += 1
        self.reply = Reply(None, self.text, "refused by the server", self.tries)

    def take(self, text: str) -> None:
        self.tries += 1
        self.text = storable(text)
        try:
            fields = read_answer(text, self.ask.step.answer)
            self.why = self.ask.objection(fields) if self.ask.objection else ""
        except MalformedError as e:
            self.why = str(e)
        if not self.why:
            self.reply = Reply(fields, self.text, calls=self.tries)
        elif self.tries >= TRIES:
            self.reply = Reply(None, self.text, self.why, self.tries)


def _answers(model: Model, prompts: Sequence[Prompt]) -> Sequence[str | None]:
    """The model's answers; None where its server refuses a single question, as content filters do.

    A server that refuses all of them has something against every request, and that is an error.
    """
    from creperie.models.api.client import RefusedError

    if not prompts:
        return []
    try:
        return model.generate(prompts)
    except RefusedError as e:
        first = e
    answers: list[str | None] = []
    for prompt in prompts:  # those that were answered are kept, so only the refused are sent again
        try:
            answers += model.generate([prompt])
        except RefusedError:
            answers.append(None)
    if all(a is None for a in answers) and not spent(model).get("calls"):
        raise first
    return answers


def storable(text: str) -> str:
    """A text as it is, but for halves of surrogate pairs, which no file can hold.

    >>> storable("a \\ud800 dog") == "a \\ufffd dog"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _note(why: str, step: Step) -> str:
    fields = ", ".join(f'"{name}"' for name in step.answer)
    return f"This answer cannot be used: {why}. Answer again with one JSON object with {fields}, and nothing else."


def hold(talks: Sequence[Talk[R]], model: Model) -> list[R]:
    """Hold all talks to their end, in rounds; their results in order."""
    results: dict[int, R] = {}
    open_: dict[int, list[_Question]] = {}

    def go_on(number: int, replies: list[Reply] | None) -> None:
        try:
            asks = next(talks[number]) if replies is None else talks[number].send(replies)
            open_[number] = [_Question(a) for a in asks]
        except StopIteration as end:
            open_.pop(number, None)
            results[number] = end.value

    for number in range(len(talks)):
        go_on(number, None)
    while open_:
        questions = [q for asked in open_.values() for q in asked if q.reply is None]
        for question, text in zip(questions, _answers(model, [q.prompt() for q in questions]), strict=True):
            if text is None:
                question.refuse()
            else:
                question.take(text)
        for number, asked in list(open_.items()):
            replies = [q.reply for q in asked if q.reply is not None]
            if len(replies) == len(asked):
                go_on(number, replies)
    return [results[number] for number in range(len(talks))]


def no_generator() -> UsageError:
    mend = "pass --model URI, such as api:gpt-4o-mini or lm:HuggingFaceTB/SmolLM2-135M-Instruct"
    return UsageError("LLM makers need a generator", mend=mend)


@cache
def generator(uri: str) -> Model:
    """The generator of a URI, loaded once a process."""
    from creperie.models import load_model

    if not uri:
        raise no_generator()
    # looking for a device imports torch, which a server's client has no use for
    model = load_model(uri, device="cpu" if uri.startswith("api:") else "auto")
    if not isinstance(model, Model):
        raise ModelError("this model does not write text", where=uri, mend="name an api: endpoint or an lm: chat model")
    return model


def spent(model: Model) -> dict[str, Any]:
    """What a model's server has been asked and paid in this process; nothing for local models."""
    ledger = getattr(model, "ledger", None)
    return dict(ledger.document()) if ledger is not None else {}
