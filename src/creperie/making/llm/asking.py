"""Conversations with a generator, all of a chunk at once: in flight with a server, in rounds with a local model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from creperie.core import ModelError, UsageError
from creperie.making.llm.flight import Flight, ServedModel
from creperie.making.llm.question import PendingQuestion, Reply, Talk
from creperie.models import Generator as Model

R = TypeVar("R")


def hold(talks: Sequence[Talk[R]], model: Model) -> list[R]:
    """Hold all talks to their end; their results in order."""
    return Flight(talks, model).hold() if isinstance(model, ServedModel) else _in_rounds(talks, model)


def _in_rounds(talks: Sequence[Talk[R]], model: Model) -> list[R]:
    """In every round the open questions of all talks go to the model together: it answers many as fast as one."""
    results: dict[int, R] = {}
    open_: dict[int, list[PendingQuestion]] = {}

    def go_on(number: int, replies: list[Reply] | None) -> None:
        try:
            asks = next(talks[number]) if replies is None else talks[number].send(replies)
            open_[number] = [PendingQuestion(a) for a in asks]
        except StopIteration as end:
            open_.pop(number, None)
            results[number] = end.value

    for number in range(len(talks)):
        go_on(number, None)
    while open_:
        questions = [q for asked in open_.values() for q in asked if q.reply is None]
        texts = model.generate([q.prompt() for q in questions]) if questions else []
        for question, text in zip(questions, texts, strict=True):
            question.take(text)
        for number, asked in list(open_.items()):
            replies = [q.reply for q in asked if q.reply is not None]
            if len(replies) == len(asked):
                go_on(number, replies)
    return [results[number] for number in range(len(talks))]


def no_generator() -> UsageError:
    hint = "pass `model='URI'`, such as api:gpt-4o-mini or lm:HuggingFaceTB/SmolLM2-135M-Instruct"
    return UsageError("LLM makers need a generator", hint=hint)


@cache
def generator(uri: str) -> Model:
    """The generator of a URI, loaded once per process."""
    from creperie.models import load_model

    if not uri:
        raise no_generator()
    # looking for a device imports torch, which a server's client has no use for
    model = load_model(uri, device="cpu" if uri.startswith("api:") else "auto")
    if not isinstance(model, Model):
        raise ModelError("this model does not write text", where=uri, hint="name an api: endpoint or an lm: chat model")
    return model


def spent(model: Model) -> dict[str, Any]:
    """What a model's server has been asked and paid in this process; nothing for local models."""
    ledger = getattr(model, "ledger", None)
    return dict(ledger.document()) if ledger is not None else {}
