"""The line to a server: requests of all who ask it, a bounded number at once, each answered as soon as it can be."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import PriorityQueue
from types import TracebackType
from typing import Any

from creperie.core import CreperieError, ModelError
from creperie.models.api.client import Answer, RateLimit, RefusedError, Request, Sender
from creperie.models.api.endpoint import AnswerCache, BudgetError, Endpoint
from creperie.models.api.ledger import PAID_BY, SpendLedger

Rank = tuple[float, ...]
LAST: Rank = (float("inf"),)
SPARE = 4  #: for so many requests on their way, one thread more


@dataclass
class _Asked:
    """A request on its way, and all who wait for it."""

    key: str
    request: Request
    body: bytes
    waiting: list[Future[Answer]] = field(default_factory=list)
    sent: bool = False


class _Crew:
    """Threads that send what is in their queue, the lowest rank first. Each has a connection of its own: one pool for
    all of them costs more time than the requests themselves. Threads are begun as they are needed. There are some more
    than requests may be on their way: while one reads and keeps its answer, another sends."""

    def __init__(self, endpoint: Endpoint, send: Callable[[Sender, _Asked], None], ledger: SpendLedger) -> None:
        self.endpoint, self.ledger, self._send = endpoint, ledger, send
        self.failure: CreperieError | None = None  #: why nothing more is sent
        self._stopped = threading.Event()
        self._queue: PriorityQueue[tuple[Rank, int, _Asked | None]] = PriorityQueue()
        self._pace = RateLimit(endpoint.per_minute)
        self._numbers = count()
        self._idle = self._threads = 0
        self._most = endpoint.concurrency + endpoint.concurrency // SPARE
        self._slots = threading.BoundedSemaphore(endpoint.concurrency)
        self._lock = threading.Lock()
        self._trust = _trusted(endpoint)

    def put(self, rank: Rank, asked: _Asked | None) -> None:
        with self._lock:
            more = self._idle <= self._queue.qsize() and self._threads < self._most
            self._threads += more
        self._queue.put((rank, next(self._numbers), asked))
        if more:
            # daemons: an answer that never comes keeps no process alive
            threading.Thread(target=self._work, daemon=True, name="creperie-line").start()

    def stop(self, failure: CreperieError) -> None:
        self.failure = self.failure or failure
        self._stopped.set()

    def dismiss(self) -> None:
        """Let every thread go when the queue is empty."""
        for _ in range(self._threads):
            self._queue.put((LAST, next(self._numbers), None))

    def _work(self) -> None:
        import httpx

        with httpx.Client(timeout=self.endpoint.timeout, verify=self._trust, headers=self._headers()) as http:
            sender = Sender(http, self.endpoint, self.ledger, self._pace, self._slots, self._rest)
            while True:
                with self._lock:
                    self._idle += 1
                _, _, asked = self._queue.get()
                with self._lock:
                    self._idle -= 1
                if asked is None:
                    return
                self._send(sender, asked)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        return headers | ({"Authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {})

    def _rest(self, seconds: float) -> None:
        if seconds > 0:
            self._stopped.wait(seconds)
        if self.failure is not None:
            raise self.failure


def _trusted(endpoint: Endpoint) -> Any:
    """Whom to trust, read once: every connection would read all certificates again."""
    import httpx

    return httpx.create_ssl_context() if endpoint.base_url.startswith("https:") else False


class RequestQueue:
    """Begins requests and gives their answers as futures. Open while anybody is inside its `with`.

    What is waiting is sent with the lowest rank first, `concurrency` requests at once over all threads that ask. Equal
    requests are sent once; kept answers are not asked for again.
    """

    def __init__(self, endpoint: Endpoint, ledger: SpendLedger) -> None:
        self.endpoint, self.ledger = endpoint, ledger
        self._kept = AnswerCache.of(endpoint)
        self._lock = threading.Lock()
        self._open: dict[str, _Asked] = {}
        self._numbers = count()
        self._given = threading.local()
        self._users = 0
        self._crew: _Crew | None = None

    def turn(self) -> int:
        """The turn that this thread was given, or a number greater than all before: who comes first is served first."""
        given: int | None = getattr(self._given, "turn", None)
        return next(self._numbers) if given is None else given

    def give_turn(self, turn: int | None) -> None:
        """What this thread asks from now on has this turn."""
        self._given.turn = turn

    def __enter__(self) -> RequestQueue:
        with self._lock:
            if self._crew is None:
                self._kept = AnswerCache.of(self.endpoint)
                self._crew = _Crew(self.endpoint, self._send, self.ledger)
            self._users += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            crew, self._crew = self._crew, None
        self.abandon()
        if crew is not None:
            crew.dismiss()

    def begin(self, request: Request, rank: Rank = ()) -> Future[Answer]:
        """Send a request; the answer comes as a future. Cancelled before it is sent, a request costs nothing."""
        body = json.dumps(request, ensure_ascii=False).encode()  # a schema's fields are answered in their order
        key = hashlib.sha256(json.dumps(request, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        future: Future[Answer] = Future()
        with self._lock:
            crew = self._crew
            assert crew is not None, "a line is opened before it is used"
            asked = self._open.get(key)
            if asked is not None:
                if asked.sent:
                    future.set_running_or_notify_cancel()
                asked.waiting.append(future)
                return future
            asked = self._open[key] = _Asked(key, request, body, [future])
        answer = self._kept.get(key)
        if answer is None:
            crew.put(rank, asked)
            if crew.failure is not None:  # perhaps nobody is left to take it
                self._settle(asked, partial(_fail, crew.failure))
        else:
            self.ledger.found(key, answer)
            self._settle(asked, partial(_succeed, answer))
        return future

    def stop(self, failure: CreperieError) -> None:
        """Send nothing more: what is waiting fails. What is on its way is still answered and kept."""
        if self._crew is not None:
            self._crew.stop(failure)

    def abandon(self) -> None:
        """Nobody waits any longer: what was not sent is dropped."""
        stopped = ModelError("the work was stopped", where=self.endpoint.uri, hint="run again to resume")
        self.stop(stopped)
        for asked in list(self._open.values()):
            for future in list(asked.waiting):
                future.cancel()
            self._settle(asked, partial(_fail, stopped))

    def _settle(self, asked: _Asked, tell: Callable[[Future[Answer]], None]) -> None:
        with self._lock:
            if self._open.get(asked.key) is asked:
                del self._open[asked.key]
            waiting, asked.waiting = asked.waiting, []
        for future in waiting:
            if future.running() or (not future.cancelled() and future.set_running_or_notify_cancel()):
                tell(future)

    # -- in the threads of the crew ----------------------------------------------------------------------------------

    def _send(self, sender: Sender, asked: _Asked) -> None:
        if not self._wanted(asked):
            return
        try:
            sender.rest(0)
            answer = sender.ask(asked.request, asked.body, partial(self._keep, asked.key))
        except Exception as e:
            if isinstance(e, BudgetError):
                self.stop(e)
            failure = e if isinstance(e, CreperieError) else ModelError(repr(e), where=self.endpoint.uri)
            self._settle(asked, partial(_fail, failure))
        else:
            self._settle(asked, partial(_succeed, answer))

    def _wanted(self, asked: _Asked) -> bool:
        """Whether anybody still waits for a request; from now on it cannot be cancelled."""
        with self._lock:
            asked.waiting = [f for f in asked.waiting if f.running() or f.set_running_or_notify_cancel()]
            asked.sent = bool(asked.waiting)
            if not asked.sent and self._open.get(asked.key) is asked:
                del self._open[asked.key]
            return asked.sent

    def _keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, then book it: what dies between the two is booked by the next process."""
        payer = {PAID_BY: self.ledger.making} if self.ledger.making else {}
        self._kept.put(key, {**answer, **payer})
        self.ledger.paid(key, answer)


def _succeed(answer: Answer, future: Future[Answer]) -> None:
    future.set_result(answer)


def _fail(failure: CreperieError, future: Future[Answer]) -> None:
    future.set_exception(failure)


def ask_all(line: RequestQueue, requests: Sequence[Request]) -> list[Answer]:
    """Answers in the order of the requests.

    Where some fail for good, all others are still asked and kept, then the first failure is raised.
    """
    if not requests:
        return []
    with line:
        futures = [line.begin(r, (line.turn(),)) for r in requests]
        failures = [e for f in futures if (e := f.exception()) is not None]
        if failures:
            raise first_of(failures, len(requests))
        return [f.result() for f in futures]


def first_of(failures: Sequence[BaseException], requests: int) -> BaseException:
    """The failure to report: an exhausted budget, else the first one, with the number of failures."""
    first = next((f for f in failures if isinstance(f, BudgetError)), failures[0])
    if len(failures) < 2 or not isinstance(first, CreperieError) or isinstance(first, BudgetError):
        return first
    what = f"{len(failures)} of {requests} requests failed, the first: {first.what}"
    kind = RefusedError if all(isinstance(f, RefusedError) for f in failures) else ModelError
    return kind(what, where=first.where, hint=first.hint)
