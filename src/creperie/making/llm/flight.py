"""Conversations with a generator: with a server each in a thread of its own, with a local model all in rounds.

What comes of a conversation depends on its own answers alone, so neither their timing nor its neighbours change
anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from creperie.core import CreperieError, ModelError, UsageError
from creperie.making.llm.question import PendingQuestion, Reply, Talk
from creperie.models import Generator as Model
from creperie.models import RefusedError, RequestQueue, first_of

R = TypeVar("R")


@runtime_checkable
class ServedModel(Model, Protocol):
    """A model behind a queue of requests, which threads share."""

    @property
    def queue(self) -> RequestQueue: ...


def hold(talks: Sequence[Talk[R]], model: Model) -> list[R]:
    """Run all conversations to completion and return their results in order."""
    return _in_threads(talks, model) if isinstance(model, ServedModel) else _in_rounds(talks, model)


def _in_threads(talks: Sequence[Talk[R]], model: ServedModel) -> list[R]:
    """After a failure nothing more is sent; what is on its way is waited for, so that its answers are stored."""
    refused: list[RefusedError] = []
    with model.queue as queue, ThreadPoolExecutor(2 * max(1, int(queue.endpoint.concurrency))) as pool:
        futures = [pool.submit(_talk_through, talk, model, refused) for talk in talks]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failures = [e for f in futures if f.done() and (e := f.exception()) is not None]
            if failures:
                failure = first_of(failures, len(failures))
                queue.stop(failure if isinstance(failure, CreperieError) else ModelError(str(failure)))
                pool.shutdown(cancel_futures=True)
                raise failure
        except BaseException as e:
            if not isinstance(e, CreperieError):
                queue.abandon()
                pool.shutdown(cancel_futures=True)
            raise
    if refused and not model.queue.ledger.calls and not model.queue.ledger.cached:
        raise first_of(refused, len(refused))  # a server that refuses all has something against every request
    return [f.result() for f in futures]


def _talk_through(talk: Talk[R], model: Model, refused: list[RefusedError]) -> R:
    """Run one conversation and return its result; content filters refuse single questions, which are noted."""
    questions: list[PendingQuestion] = []
    try:
        asks = next(talk)
        while True:
            questions = [PendingQuestion(ask) for ask in asks]
            for question in questions:
                while question.reply is None:
                    try:
                        question.take(model.generate([question.prompt()])[0])
                    except RefusedError as e:
                        refused.append(e)
                        question.refuse()
            asks = talk.send([q.reply for q in questions if q.reply is not None])
    except StopIteration as end:
        result: R = end.value
        return result


def _in_rounds(talks: Sequence[Talk[R]], model: Model) -> list[R]:
    """In every round the open questions of all conversations go to the model together, as one batch."""
    results: dict[int, R] = {}
    pending: dict[int, list[PendingQuestion]] = {}

    def go_on(number: int, replies: list[Reply] | None) -> None:
        try:
            asks = next(talks[number]) if replies is None else talks[number].send(replies)
            pending[number] = [PendingQuestion(ask) for ask in asks]
        except StopIteration as end:
            results[number] = end.value
            pending.pop(number, None)

    for number in range(len(talks)):
        go_on(number, None)
    while pending:
        questions = [q for asked in pending.values() for q in asked if q.reply is None]
        texts = model.generate([q.prompt() for q in questions]) if questions else []
        for question, text in zip(questions, texts, strict=True):
            question.take(text)
        for number, asked in list(pending.items()):
            replies = [q.reply for q in asked if q.reply is not None]
            if len(replies) == len(asked):
                go_on(number, replies)
    return [results[number] for number in range(len(talks))]


def no_generator() -> UsageError:
    hint = "pass `model='URI'`, such as api:gpt-4o-mini or lm:HuggingFaceTB/SmolLM2-135M-Instruct"
    return UsageError("LLM makers need a generator", hint=hint)


@cache
def generator(uri: str) -> Model:
    """Return the generator of a URI, loaded once per process."""
    from creperie.models import load_model

    if not uri:
        raise no_generator()
    # looking for a device imports torch, which a server's client has no use for
    model = load_model(uri, device="cpu" if uri.startswith("api:") else "auto")
    if not isinstance(model, Model):
        raise ModelError("this model does not write text", where=uri, hint="name an api: endpoint or an lm: chat model")
    return model


def keep_ledger(model: Model, path: Path) -> None:
    """Book what a model's server is paid in this file, from now on."""
    if isinstance(model, ServedModel):
        model.queue.ledger.keep_in(path)


def spent(model: Model) -> dict[str, Any]:
    """Return what a model's server was asked and paid in this process; nothing for local models."""
    return dict(model.queue.ledger.document()) if isinstance(model, ServedModel) else {}
