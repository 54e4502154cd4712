"""Requests in flight: a bounded number at once, a bounded rate, and patience with servers that falter."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from creperie.errors import CreperieError, ModelError
from creperie.models.api.endpoint import Answers, BudgetError, Endpoint, Ledger, readable

if TYPE_CHECKING:
    import httpx

PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0

#: what is wrong with a request itself, so that sending it again is of no use
ABOUT_THE_REQUEST = {400, 413, 422}

Request = Mapping[str, Any]
Answer = dict[str, Any]


class RefusedError(ModelError):
    """The server will not answer this one request: too long, or against its rules."""


def ask_all(
    endpoint: Endpoint, requests: Sequence[Request], ledger: Ledger, advance: Callable[[int], None] = lambda n: None
) -> list[Answer]:
    """Answers in the order of the requests. Equal requests are asked once; kept answers are not asked for again.

    Where some fail for good, all others are still asked and kept, then the first failure is raised.
    """
    kept = Answers.of(endpoint)
    distinct = {kept.key(r): r for r in requests}
    found: dict[str, Answer] = {}
    for key, request in distinct.items():
        answer = kept.get(request)
        if answer is not None:
            found[key] = answer
            ledger.cached += 1
            advance(1)
    missing = {key: r for key, r in distinct.items() if key not in found}
    if missing:
        found |= _in_own_loop(_gather(endpoint, missing, ledger, kept, advance))
    return [found[kept.key(r)] for r in requests]


def _in_own_loop(work: Coroutine[Any, Any, dict[str, Answer]]) -> dict[str, Answer]:
    """Run a coroutine to its end, also where the caller already sits in an event loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: list[dict[str, Answer]] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as e:
            failure.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


async def _gather(
    endpoint: Endpoint,
    requests: Mapping[str, Request],
    ledger: Ledger,
    kept: Answers,
    advance: Callable[[int], None],
) -> dict[str, Answer]:
    import httpx

    found: dict[str, Answer] = {}
    failures: list[CreperieError] = []
    queue = list(requests.items())[::-1]
    pace = Pace(endpoint.per_minute)
    limits = httpx.Limits(max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency)
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}

    async def work(client: httpx.AsyncClient) -> None:
        while queue:
            if any(isinstance(f, BudgetError) for f in failures):
                return
            key, request = queue.pop()
            try:
                found[key] = await _ask(client, endpoint, request, ledger, pace)
                kept.put(request, found[key])
                advance(1)
            except CreperieError as e:
                failures.append(e)

    async with httpx.AsyncClient(timeout=endpoint.timeout, limits=limits, headers=headers) as client:
        await asyncio.gather(*[work(client) for _ in range(min(endpoint.concurrency, len(requests)))])
    if failures:
        first = next((f for f in failures if isinstance(f, BudgetError)), failures[0])
        if len(failures) > 1 and not isinstance(first, BudgetError):
            what = f"{len(failures)} of {len(requests)} requests failed, the first: {first.what}"
            kind = RefusedError if all(isinstance(f, RefusedError) for f in failures) else ModelError
            raise kind(what, where=first.where, mend=first.mend)
        raise first
    return found


class Pace:
    """At most so many starts a minute, evenly spread."""

    def __init__(self, per_minute: int) -> None:
        self.gap = 60.0 / per_minute if per_minute else 0.0
        self.next = 0.0

    async def turn(self) -> None:
        if not self.gap:
            return
        now = time.monotonic()
        begin = max(now, self.next)
        self.next = begin + self.gap
        await asyncio.sleep(begin - now)


async def _ask(client: httpx.AsyncClient, endpoint: Endpoint, request: Request, ledger: Ledger, pace: Pace) -> Answer:
    """One request until it is answered, refused, or out of tries."""
    import httpx

    problem = ""
    for attempt in range(endpoint.retries + 1):
        if attempt:
            ledger.retried += 1
        await pace.turn()
        reserved = ledger.reserve(request)
        answer: Answer | None = None
        wait = _backoff(attempt)
        try:
            response = await client.post(f"{endpoint.base_url.rstrip('/')}/chat/completions", json=dict(request))
            if response.status_code == 200:
                answer, problem = _document(response)
            elif response.status_code in PASSING:
                problem = f"the server answered {response.status_code}"
                wait = _asked_wait(response, wait)
            else:
                raise _refused(endpoint, response)
        except httpx.TimeoutException:
            problem = f"no answer within {endpoint.timeout:g} s"
        except httpx.TransportError as e:
            problem = f"the connection failed ({type(e).__name__})"
        finally:
            ledger.settle(reserved, answer)
        if answer is not None:
            return answer
        if attempt < endpoint.retries:
            await asyncio.sleep(wait)
    raise ModelError(
        f"gave up after {endpoint.retries + 1} tries: {problem}",
        where=endpoint.uri,
        mend="run again to go on: answers that came are kept",
    )


def _document(response: httpx.Response) -> tuple[Answer | None, str]:
    try:
        document = response.json()
    except ValueError:
        return None, "the answer is no JSON"
    if not isinstance(document, dict) or not readable(document):
        return None, "the answer holds no message"
    return document, ""


def _refused(endpoint: Endpoint, response: httpx.Response) -> ModelError:
    try:
        said = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = response.text
    said = " ".join(said.split())[:200]
    if endpoint.key:
        said = said.replace(endpoint.key, "…")
    mends = {
        401: f"set the key in the environment variable {endpoint.key_env}",
        403: f"check the key in the environment variable {endpoint.key_env}",
        404: "check the model's name and ?base_url=",
    }
    mend = mends.get(response.status_code, "")
    kind = RefusedError if response.status_code in ABOUT_THE_REQUEST else ModelError
    return kind(f"the server refused the request ({response.status_code}): {said}", where=endpoint.uri, mend=mend)


def _backoff(attempt: int) -> float:
    """Twice as long each time, with jitter so that many clients do not come back at once."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + random.random() / 2)


def _asked_wait(response: httpx.Response, wait: float) -> float:
    """What the server asks for in Retry-After, within reason."""
    try:
        return max(wait, min(float(response.headers.get("retry-after", "")), LONGEST_WAIT * 2))
    except ValueError:
        return wait
