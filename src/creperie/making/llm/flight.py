"""Conversations with a generator. With a server, each conversation runs in its own thread. With a local model, all
conversations run in rounds of batched questions.

The result of a conversation depends only on its own answers, not on their timing or on other conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache
from typing import Any, Protocol, TypeVar, runtime_checkable

from creperie.core import CreperieError, ModelError
from creperie.making.llm.question import Conversation, PendingQuestion
from creperie.models import Generator as Model
from creperie.models import RefusedError, RequestQueue, first_of

R = TypeVar("R")
#: Local models draw only tokens with this share of the likeliest one's probability: at the published temperature of
#: 1.5, which was meant for models behind servers, small ones otherwise write gibberish.
LOCAL_MIN_P = 0.1
#: A function from questions to the model's answers; None if it refuses to answer.
Answer = Callable[[Sequence[PendingQuestion]], Iterable[str | None]]


@runtime_checkable
class ServedModel(Model, Protocol):
    """A model on a server. Its requests go through a queue that threads share."""

    @property
    def queue(self) -> RequestQueue: ...


def run_conversations(conversations: Sequence[Conversation[R]], model: Model) -> list[R]:
    """Run all conversations to completion and return their results in order."""
    if isinstance(model, ServedModel):
        return _in_threads(conversations, model)
    return _in_rounds(
        conversations, lambda questions: model.generate([replace(q.prompt(), min_p=LOCAL_MIN_P) for q in questions])
    )


def _in_threads(conversations: Sequence[Conversation[R]], model: ServedModel) -> list[R]:
    """Run each conversation in a thread and return the results.

    After a failure, no more requests are sent, but those in flight are awaited, so that their answers are stored. A
    question that a content filter refuses has no answer; if the filter refuses all questions, the first refusal is
    raised.
    """
    refused = []

    def answer(questions: Sequence[PendingQuestion]) -> Iterator[str | None]:
        for question in questions:
            try:
                yield model.generate([question.prompt()])[0]
            except RefusedError as e:
                refused.append(e)
                yield None

    with model.queue as queue, ThreadPoolExecutor(2 * max(1, int(queue.endpoint.concurrency))) as pool:
        futures = [pool.submit(_in_rounds, [conversation], answer) for conversation in conversations]
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
        raise first_of(refused, len(refused))  # the server refuses everything, not single questions
    return [f.result()[0] for f in futures]


def _in_rounds(conversations: Sequence[Conversation[R]], answer: Answer) -> list[R]:
    """Run conversations in rounds and return the results. Each round asks all pending questions together."""
    results = {}
    pending: dict[int, list[PendingQuestion]] = {number: [] for number in range(len(conversations))}
    begun = set()
    while pending:
        for number, asked in list(pending.items()):
            replies = [q.reply for q in asked if q.reply is not None]
            if len(replies) < len(asked):
                continue
            try:
                asks = conversations[number].send(replies) if number in begun else next(conversations[number])
                begun.add(number)
                pending[number] = [PendingQuestion(ask) for ask in asks]
            except StopIteration as end:
                results[number] = end.value
                del pending[number]
        questions = [q for asked in pending.values() for q in asked if q.reply is None]
        for question, text in zip(questions, answer(questions) if questions else (), strict=True):
            question.take(text)
    return [results[number] for number in range(len(conversations))]


@cache
def generator(uri: str) -> Model:
    """Return the generator at a URI, loaded once per process."""
    from creperie.models import load_model

    # detecting a device imports torch, which a server's client does not need
    model = load_model(uri, device="cpu" if uri.startswith("api:") else "auto")
    if not isinstance(model, Model):
        raise ModelError("this model does not write text", where=uri, hint="name an api: endpoint or an lm: chat model")
    if isinstance(model, ServedModel) and model.queue.endpoint.batch:
        raise ModelError(
            "makers need each answer before the next question, so they cannot use batches",
            where=uri,
            hint="leave out `?batch=`",
        )
    return model


def spent(model: Model) -> dict[str, Any]:
    """Return the calls, tokens and cost that a model on a server has caused in this process; empty for local models."""
    return dict(model.queue.ledger.document()) if isinstance(model, ServedModel) else {}
