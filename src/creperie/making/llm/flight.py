"""Conversations with a generator, all of a chunk at once: in flight with a server, in rounds with a local model.

With a server, each goes on as soon as its own answer is there, and chunks overlap at their ends: the configured number
of requests is in flight from the first to the last. What comes of a talk depends on its own answers alone, so neither
their timing nor what else is talked about changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from creperie.core import CreperieError, ModelError, UsageError
from creperie.engine import Local, Numbered, Pieces, Stage, Work, as_done, opened
from creperie.making.llm.question import PendingQuestion, Reply, Talk
from creperie.models import Answer, Prompt, Rank, RefusedError, RequestQueue, first_of
from creperie.models import Generator as Model

R = TypeVar("R")


@runtime_checkable
class ServedModel(Protocol):
    """A model behind a queue of requests: questions are begun, their answers come when they come."""

    @property
    def queue(self) -> RequestQueue: ...

    def begin(self, prompt: Prompt, rank: Rank = ()) -> Future[Answer]: ...

    def text(self, answer: Answer) -> str: ...


@dataclass
class Flight(Generic[R]):
    """Talks on their way. All that happens to them happens in the thread that holds them."""

    talks: Sequence[Talk[R]]
    model: ServedModel
    results: dict[int, R] = field(default_factory=dict)
    _asked: dict[int, list[PendingQuestion]] = field(default_factory=dict)
    _rounds: dict[int, int] = field(default_factory=dict)  #: how often each talk has asked
    _flying: dict[Future[Answer], tuple[int, PendingQuestion]] = field(default_factory=dict)
    _landed: SimpleQueue[Future[Answer]] = field(default_factory=SimpleQueue)
    _failures: list[BaseException] = field(default_factory=list)
    _refused: list[BaseException] = field(default_factory=list)
    _answered: int = 0
    _turn: int = 0

    def hold(self) -> list[R]:
        """Hold all talks to their end; their results in order."""
        with self.model.queue as queue:
            self._turn = queue.turn()
            for number in range(len(self.talks)):
                self._go_on(number, None)
            while self._flying:
                self._land(self._landed.get())
        if self._failures:
            raise first_of(self._failures, len(self._failures) + self._answered)
        if self._refused and not self._answered and not self.model.queue.ledger.calls:
            # a server that refuses all has something against every request
            raise first_of(self._refused, len(self._refused))
        return [self.results[number] for number in range(len(self.talks))]

    def _go_on(self, number: int, replies: list[Reply] | None) -> None:
        try:
            while True:
                asks = next(self.talks[number]) if replies is None else self.talks[number].send(replies)
                replies = []
                if asks:
                    break
        except StopIteration as end:
            self._asked.pop(number, None)
            self.results[number] = end.value
            return
        self._asked[number] = [PendingQuestion(a) for a in asks]
        self._rounds[number] = self._rounds.get(number, 0) + 1
        for question in self._asked[number]:
            self._ask(number, question)

    def _ask(self, number: int, question: PendingQuestion) -> None:
        # questions of one step begin alike: asked one after the other, a server reads their beginning once
        rank = (self._turn, self._rounds[number], question.ask.step.order, number)
        future = self.model.begin(question.prompt(), rank)
        self._flying[future] = (number, question)
        future.add_done_callback(self._landed.put)

    def _land(self, future: Future[Answer]) -> None:
        number, question = self._flying.pop(future)
        failure = None if future.cancelled() else future.exception()
        if isinstance(failure, RefusedError):  # content filters refuse single questions
            self._refused.append(failure)
            question.refuse()
        elif failure is not None:
            self._fail(failure)
        elif not future.cancelled():
            self._answered += 1
            question.take(self.model.text(future.result()))
        if self._failures or future.cancelled():
            return
        if question.reply is None:
            self._ask(number, question)
            return
        replies = [q.reply for q in self._asked[number] if q.reply is not None]
        if len(replies) == len(self._asked[number]):
            self._go_on(number, replies)

    def _fail(self, failure: BaseException) -> None:
        """Send nothing more. What is on its way is waited for, so that its answers are kept."""
        self._failures.append(failure)
        for future in self._flying:
            future.cancel()


@dataclass(frozen=True)
class InFlight:
    """An engine for what waits for a server: the next chunks begin while the last answers of a chunk are awaited."""

    model: Model
    chunk: int
    books: Path | None = None  #: where a job keeps what it has paid

    @property
    def workers(self) -> int:
        concurrency = self.model.queue.endpoint.concurrency if isinstance(self.model, ServedModel) else 1
        return 2 + int(concurrency) // self.chunk

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        if not isinstance(self.model, ServedModel):
            yield from Local().run(stage, pieces, numbers)
            return
        if self.books is not None:
            self.model.queue.ledger.keep_in(self.books)
        with self.model.queue as queue, ThreadPoolExecutor(self.workers) as pool:
            work, turns = _in_turn(opened(stage), queue), count()
            try:
                yield from as_done(
                    lambda number: pool.submit(work, next(turns), pieces.piece(number)), numbers, self.workers + 1
                )
            except CreperieError as e:
                queue.stop(e)  # what is on its way is still waited for and kept
                raise
            except BaseException:
                queue.abandon()
                raise


def _in_turn(work: Work, queue: RequestQueue) -> Callable[[int, pa.Table], pa.Table]:
    """Chunks have the turn in which they were handed out, whichever thread is the quicker."""

    def apply(turn: int, piece: pa.Table) -> pa.Table:
        queue.give_turn(turn)
        return work(piece)

    return apply


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
