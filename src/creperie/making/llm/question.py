"""Questions to a generator: how they are put, how their answers are read, when they are asked again.

A *talk* is a generator function: it yields questions, is sent their replies, and returns what came of it. An answer
that cannot be read is asked for again, with a note that says what was wrong; the note also makes the request a new
one, which matters where a server or a cache would repeat itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from creperie.making.llm.parse import Fields, MalformedError, read_answer
from creperie.making.llm.prompts import PromptStep
from creperie.models import Prompt

TRIES = 3  #: how often a question is asked before its answer is put into quarantine
MOST_QUOTED = 1_000  #: characters of a bad answer that are shown to the model again

R = TypeVar("R")


@dataclass(frozen=True)
class Ask:
    """A question. `objection` says what is wrong with an answer that could be read, or nothing."""

    step: PromptStep
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
class PendingQuestion:
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
            schema=step.schema(),
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


def storable(text: str) -> str:
    """A text as it is, but for halves of surrogate pairs, which no file can hold.

    >>> storable("a \\ud800 dog") == "a \\ufffd dog"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _note(why: str, step: PromptStep) -> str:
    fields = ", ".join(f'"{name}"' for name in step.answer)
    return f"This answer cannot be used: {why}. Answer again with one JSON object with {fields}, and nothing else."
