"""Questions to a generator: how they are asked, how answers are parsed, and when questions are repeated.

A *conversation* is a Python generator function: it yields questions, is sent their replies, and returns a result. If an
answer cannot be parsed, the question is asked again with a note that says what was wrong. The note also makes it a new
request, so that a server or cache does not return the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from creperie.making.llm.prompts import Fields, MalformedError, PromptStep, read_answer
from creperie.models import Prompt

TRIES = 3  #: how often a question is asked before its answer is quarantined
MOST_QUOTED = 1_000  #: maximum characters of a bad answer that are quoted to the model

R = TypeVar("R")
Given = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """A question to the model. `objection` is called with the input and the parsed answer, and returns what is wrong
    with the answer, or an empty string.
    """

    step: PromptStep
    given: Given
    seed: int = 0
    temperature: float | None = None  #: if not the step's temperature
    objection: Callable[[Given, Fields], str] | None = None
    context: tuple[tuple[str, str], ...] = ()  #: (role, text) of what was said after the question, before it is asked


@dataclass(frozen=True)
class Reply:
    """The reply to a question: its fields or, if they could not be parsed, the reason and the last raw text."""

    fields: Fields | None
    text: str
    why: str = ""
    calls: int = 1


Conversation = Generator[Sequence[Ask], list[Reply], R]


@dataclass
class PendingQuestion:
    """A question that has been asked but has no usable reply yet: how many times it was tried, and the last answer,
    which was rejected.
    """

    ask: Ask
    tries: int = 0
    text: str = ""
    why: str = ""
    reply: Reply | None = None

    def prompt(self) -> Prompt:
        step = self.ask.step
        messages = [("user", step.text(self.ask.given)), *self.ask.context]
        if self.tries:
            quoted = self.text[:MOST_QUOTED] if self.text.strip() else "(nothing)"
            fields = ", ".join(f'"{name}"' for name in step.answer)
            again = f"Answer again with one JSON object with {fields}, and nothing else."
            messages += [("assistant", quoted), ("user", f"This answer cannot be used: {self.why}. {again}")]
        temperature = step.temperature if self.ask.temperature is None else self.ask.temperature
        return Prompt(
            tuple(messages),
            temperature=temperature,
            max_tokens=step.max_tokens,
            seed=self.ask.seed + self.tries,
            schema=step.schema(),
        )

    def take(self, text: str | None) -> None:
        """Parse the model's answer. Set `reply` if the answer is valid or was the last try. `text` is None if the model
        refuses.
        """
        self.tries += 1
        if text is None:
            self.reply = Reply(None, self.text, "refused by the server", self.tries)
            return
        self.text = storable(text)
        try:
            fields = read_answer(text, self.ask.step.answer)
            self.why = self.ask.objection(self.ask.given, fields) if self.ask.objection else ""
        except MalformedError as e:
            self.why = str(e)
        if not self.why:
            self.reply = Reply(fields, self.text, calls=self.tries)
        elif self.tries >= TRIES:
            self.reply = Reply(None, self.text, self.why, self.tries)


def storable(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD, because files cannot store them.

    >>> storable("a \\ud800 dog") == "a \\ufffd dog"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
