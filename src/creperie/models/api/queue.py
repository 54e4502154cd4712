"""A queue of requests to a server, with limited concurrency, no duplicates, retries, and counts of calls and costs.

Requests are sent by the openai SDK, on one event loop in a separate thread. The SDK's own retries are switched off, so
that the ledger counts every call. The timeout covers a whole attempt; otherwise a server that sends one byte per second
would never time out.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from creperie.core import (
    PASSING,
    CreperieError,
    ModelError,
    backoff,
    missing_extra,
    one_line,
    retry_after,
    sha256_of_text,
)
from creperie.models.api.endpoint import AcceptedForms, AnswerCache, BudgetError, Endpoint, readable
from creperie.models.api.ledger import PAID_BY, SpendLedger, checked_usage

if TYPE_CHECKING:
    import openai

Request = Mapping[str, Any]
Answer = dict[str, Any]

LONGEST_WAIT = 60.0  #: the longest wait in seconds that a server's Retry-After can impose
LONGEST_ANSWER = 32 * 2**20  #: bytes
#: status codes about the request itself: a retry would fail again
ABOUT_THE_REQUEST = {400, 413, 422}
#: how servers say with 429 that more money is needed, which no waiting brings
NO_CREDIT = re.compile("insufficient_quota|billing_hard_limit|insufficient[ _]balance|credit balance", re.IGNORECASE)


class RefusedError(ModelError):
    """Raised if the server rejects this one request, for instance because it is too long or violates the server's
    rules.
    """


class _TransientError(Exception):
    """Raised if an attempt failed but a retry may succeed. `wait` is the delay in seconds that the server asks for."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        super().__init__(problem)
        self.wait = wait


@dataclass
class _PendingRequest:
    """A request that is not answered yet, and the futures of its answer."""

    key: str
    request: Request
    waiting: list[Future[Answer]] = field(default_factory=list)
    sent: bool = False


class _Dispatcher:
    """An event loop in a daemon thread. `concurrency` workers send the queued requests."""

    def __init__(self, endpoint: Endpoint, ledger: SpendLedger, forms: AcceptedForms, work: Callable[..., Any]) -> None:
        self.endpoint, self.ledger, self.forms, self._work = endpoint, ledger, forms, work
        self.failure: CreperieError | None = None  #: why nothing more is sent; None while requests are sent
        self._loop = asyncio.new_event_loop()
        self._queue: asyncio.Queue[_PendingRequest | None] = asyncio.Queue()
        self._stopped = asyncio.Event()
        self._next_start = 0.0
        #: requests given up since the last answer; before the first answer two are enough to stop
        self._given_up = endpoint.concurrency - 1
        self._client = _open_client(endpoint)
        # a daemon thread: a missing answer does not keep the process alive
        threading.Thread(target=self._run, daemon=True, name="creperie-requests").start()

    def put(self, pending: _PendingRequest | None) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, pending)

    def stop(self, failure: CreperieError) -> None:
        self.failure = self.failure or failure
        self._loop.call_soon_threadsafe(self._stopped.set)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        async with self._client:
            await asyncio.gather(*[self._worker() for _ in range(self.endpoint.concurrency)])

    async def _worker(self) -> None:
        while (pending := await self._queue.get()) is not None:
            await self._work(self, pending)

    async def rest(self, seconds: float) -> None:
        """Sleep for some seconds. If the dispatcher is stopped, wake up and raise the error that was given to
        `stop`.
        """
        if seconds > 0 and self.failure is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
        if self.failure is not None:
            raise self.failure

    async def ask(self, pending: _PendingRequest, keep: Callable[[str, Request, Answer], None]) -> Answer:
        """Send a request, and repeat it as long as errors are transient and tries are left. Return the answer, which
        `keep` has stored.
        """
        problem, tries = "", int(self.endpoint.retries) + 1
        for attempt in range(tries):
            if attempt:
                self.ledger.tried_again()
            await self.rest(self._pace())
            reserved = self.ledger.reserve(pending.request)
            try:
                answer = await self._attempt(pending.request)
                # in a thread: it flushes a file to disk
                await asyncio.to_thread(keep, pending.key, pending.request, answer)
                self._given_up = 0
                return answer
            except _TransientError as e:
                problem, wait = str(e), e.wait
            finally:
                self.ledger.release(reserved)
            if attempt < tries - 1:
                await self.rest(max(wait, backoff(attempt)))
        hint = "run again to resume: answers received so far are kept"
        failure = ModelError(f"gave up after {tries} tries: {problem}", where=self.endpoint.uri, hint=hint)
        self._given_up += 1
        if self._given_up > self.endpoint.concurrency:
            self.stop(failure)  # the server is gone, or answers nothing: it is not asked the rest
        raise failure

    def _pace(self) -> float:
        """Return the seconds to wait before the next request, to stay within the limit per minute."""
        if not self.endpoint.rpm:
            return 0.0
        now = time.monotonic()
        start = max(now, self._next_start)
        self._next_start = start + 60.0 / self.endpoint.rpm
        return start - now

    async def _attempt(self, request: Request) -> Answer:
        import openai

        try:
            async with asyncio.timeout(self.endpoint.timeout):
                text = await self._accepted(request)
        except (TimeoutError, openai.APITimeoutError) as e:
            raise _TransientError(f"no answer within {self.endpoint.timeout:g} s") from e
        except openai.APIConnectionError as e:
            raise _TransientError(f"the connection failed ({type(e.__cause__ or e).__name__})") from e
        except openai.APIStatusError as e:
            if e.status_code not in PASSING or NO_CREDIT.search(e.response.text):
                failure = _refused(self.endpoint, e)
                if not isinstance(failure, RefusedError):
                    self.stop(failure)  # a wrong key, address or model, or no credit: so for every request
                raise failure from e
            wait = min(retry_after(e.response.headers.get("retry-after", "")) or 0.0, LONGEST_WAIT)
            raise _TransientError(f"the server answered {e.status_code}: {_message(self.endpoint, e)}", wait) from e
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise _TransientError(f"the answer is not JSON: {_quoted(self.endpoint, text)}") from e
        if not isinstance(answer, dict) or not readable(answer):
            raise _TransientError(f"the answer has no message: {_quoted(self.endpoint, text)}")
        return answer

    async def _accepted(self, request: Request) -> bytes:
        """Send a request in the form that the server accepts.

        If the server rejects a parameter, remember that and send the request again without it.
        """
        import openai

        while True:
            sent = self.forms.form(request)
            try:
                return await self._post(sent)
            except openai.APIStatusError as e:
                # llama-cpp-python's server answers 500 to what it does not accept
                learned = e.status_code in {*ABOUT_THE_REQUEST, 500} and self.forms.learn(e.response.text, request)
                if not learned and sent == self.forms.form(request):  # another request may have learned it meanwhile
                    raise

    async def _post(self, request: Request) -> bytes:
        """Send a request once and return the body of the answer."""
        rest = dict(request)
        model, client = rest.pop("model"), self._client
        if "messages" in rest:
            create = client.chat.completions.with_streaming_response.create
            sent = create(model=model, messages=rest.pop("messages"), extra_body=rest)
        else:
            sent = client.completions.with_streaming_response.create(
                model=model, prompt=rest.pop("prompt"), extra_body=rest
            )
        body = bytearray()
        async with sent as response:
            try:
                async for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > LONGEST_ANSWER:
                        break
            except Exception as e:  # from the transport below the SDK, whichever that is
                raise _TransientError(f"the connection failed ({type(e).__name__})") from e
        if len(body) > LONGEST_ANSWER:
            what = f"the answer is longer than {LONGEST_ANSWER:,} bytes"
            raise ModelError(what, where=self.endpoint.uri, hint="lower ?max_tokens=, or check ?base_url=")
        return bytes(body)


def _open_client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    try:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "openai", "llm") from e
    return AsyncOpenAI(
        api_key=endpoint.key or "none",  # servers without keys accept any
        base_url=endpoint.base_url,
        max_retries=0,
        timeout=endpoint.timeout,
        # a redirect would send the prompts to a place that the user has not named
        http_client=DefaultAsyncHttpxClient(follow_redirects=False),
    )


def _refused(endpoint: Endpoint, error: openai.APIStatusError) -> ModelError:
    if error.response.has_redirect_location:
        to = urljoin(str(error.response.url), error.response.headers["location"])
        return ModelError(
            f"the server redirects to {to.partition('?')[0]}, where nothing was sent",
            where=endpoint.uri,
            hint="if you trust that address, name it with ?base_url=",
        )
    hints = {
        401: f"set the key in the environment variable {endpoint.key_env}",
        403: f"check the key in the environment variable {endpoint.key_env}",
        404: "check the model's name and ?base_url=",
    }
    kind = RefusedError if error.status_code in ABOUT_THE_REQUEST else ModelError
    what = f"the server refused the request ({error.status_code}): {_message(endpoint, error)}"
    return kind(what, where=endpoint.uri, hint=hints.get(error.status_code, ""))


def _message(endpoint: Endpoint, error: openai.APIStatusError) -> str:
    """Return the message in a server's error response."""
    details = error.body if isinstance(error.body, Mapping) else {}
    return _quoted(endpoint, str(details.get("message") or error.response.text))


def _quoted(endpoint: Endpoint, answer: str | bytes) -> str:
    """Return the first words of what a server sent, with the API key removed."""
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return one_line(text.replace(endpoint.key, "…") if endpoint.key else text)


def request_key(request: Request) -> str:
    """Return the key of a request in the cache."""
    return sha256_of_text(json.dumps(request, sort_keys=True, ensure_ascii=False))


class RequestQueue:
    """A queue that takes requests and returns futures of their answers. Use it as a context manager; its `with` blocks
    may be nested.

    Requests are sent in order, at most `concurrency` at a time from all threads together. Equal requests are sent only
    once, and requests with a cached answer are not sent.
    """

    def __init__(self, endpoint: Endpoint, ledger: SpendLedger) -> None:
        self.endpoint, self.ledger = endpoint, ledger
        self.cache = AnswerCache.of(endpoint)
        self.forms = AcceptedForms(self.cache.folder, endpoint.model)
        self._lock = threading.Lock()
        self._pending: dict[str, _PendingRequest] = {}
        self._users = 0
        self._dispatcher: _Dispatcher | None = None

    def __enter__(self) -> RequestQueue:
        with self._lock:
            if self._dispatcher is None:
                self.cache = AnswerCache.of(self.endpoint)
                self._dispatcher = _Dispatcher(self.endpoint, self.ledger, self.forms, self._send)
            self._users += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            dispatcher = self._dispatcher
        self.abandon()
        self._dispatcher = None
        if dispatcher is not None:
            for _ in range(self.endpoint.concurrency):
                dispatcher.put(None)  # a worker stops when it gets this, after the requests before it

    def begin(self, request: Request) -> Future[Answer]:
        """Queue a request and return a future of its answer. A request whose future is cancelled in time is not sent
        and costs nothing.
        """
        key = request_key(request)
        future: Future[Answer] = Future()
        with self._lock:
            dispatcher = self._dispatcher
            assert dispatcher is not None, "use the queue inside `with queue:`"
            pending = self._pending.get(key)
            if pending is not None:
                if pending.sent:
                    future.set_running_or_notify_cancel()
                pending.waiting.append(future)
                return future
            pending = self._pending[key] = _PendingRequest(key, request, [future])
        answer = self.cache.get(key)
        if answer is None:
            dispatcher.put(pending)
        else:
            self.ledger.found(key, answer)
            self._settle(pending, answer)
        return future

    def stop(self, failure: CreperieError) -> None:
        """Send no more requests. Requests that have not been sent yet fail with `failure`. The others are still
        answered, and their answers are stored.
        """
        if self._dispatcher is not None:
            self._dispatcher.stop(failure)

    def abandon(self) -> None:
        """Send no more requests. Cancel the futures of requests that were not sent yet. Futures of requests that were
        sent get an error.
        """
        stopped = ModelError("the work was stopped", where=self.endpoint.uri, hint="run again to resume")
        self.stop(stopped)
        for pending in list(self._pending.values()):
            for future in list(pending.waiting):
                future.cancel()
            self._settle(pending, stopped)

    def _settle(self, pending: _PendingRequest, outcome: Answer | CreperieError) -> None:
        """Resolve all futures of a request. `outcome` is the answer or the error."""
        with self._lock:
            if self._pending.get(pending.key) is pending:
                del self._pending[pending.key]
            waiting, pending.waiting = pending.waiting, []
        for future in waiting:
            if future.running() or (not future.cancelled() and future.set_running_or_notify_cancel()):
                if isinstance(outcome, CreperieError):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    async def _send(self, dispatcher: _Dispatcher, pending: _PendingRequest) -> None:
        """Send one request and resolve its futures. Runs in the dispatcher's thread."""
        if not self._is_waited_for(pending):
            return
        outcome: Answer | CreperieError
        try:
            await dispatcher.rest(0)
            outcome = await dispatcher.ask(pending, self.keep)
        except CreperieError as e:
            if isinstance(e, BudgetError):
                dispatcher.stop(e)
            outcome = e
        except Exception as e:
            what = f"the request failed ({type(e).__name__}: {e})"
            outcome = ModelError(what, where=self.endpoint.uri, hint="run the command again")
        self._settle(pending, outcome)

    def _is_waited_for(self, pending: _PendingRequest) -> bool:
        """Return True unless all futures of the request were cancelled. The remaining futures are marked as running, so
        that they can no longer be cancelled.
        """
        with self._lock:
            pending.waiting = [f for f in pending.waiting if f.running() or f.set_running_or_notify_cancel()]
            pending.sent = bool(pending.waiting)
            if not pending.sent and self._pending.get(pending.key) is pending:
                del self._pending[pending.key]
            return pending.sent

    def keep(self, key: str, request: Request, answer: Answer) -> None:
        """Store an answer, then count its cost. If the process dies in between, the next process counts it."""
        answer["usage"] = checked_usage(request, answer)
        payer = {PAID_BY: self.ledger.making} if self.ledger.making else {}
        self.cache.put(key, {**answer, **payer})
        self.ledger.paid(key, answer)


def ask_all(queue: RequestQueue, requests: Sequence[Request]) -> list[Answer]:
    """Return the answers in the order of the requests.

    If a request fails for good, the others are still sent and their answers stored. The first error is raised at the
    end.
    """
    if not requests:
        return []
    with queue:
        futures = [queue.begin(r) for r in requests]
        failures = [e for f in futures if (e := f.exception()) is not None]
        if failures:
            raise first_of(failures, len(requests))
        return [f.result() for f in futures]


def first_of(failures: Sequence[BaseException], requests: int) -> BaseException:
    """Return the error to raise if some of `requests` requests failed: a BudgetError if there is one, else the first
    error. If several requests failed, the message also states their number.
    """
    first = next((f for f in failures if isinstance(f, BudgetError)), failures[0])
    if len(failures) < 2 or not isinstance(first, CreperieError) or isinstance(first, BudgetError):
        return first
    what = f"{len(failures)} of {requests} requests failed, the first: {first.what}"
    kind = RefusedError if all(isinstance(f, RefusedError) for f in failures) else ModelError
    return kind(what, where=first.where, hint=first.hint)
