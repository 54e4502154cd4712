"""One request at a time: a bounded rate, and retries where a server falters."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.core import PASSING, ModelError, backoff, retry_after
from creperie.models.api.endpoint import Endpoint, readable
from creperie.models.api.ledger import SpendLedger

if TYPE_CHECKING:
    import httpx

#: The most that a server may ask to wait, in seconds.
LONGEST_WAIT = 60.0

#: what is wrong with a request itself, so that sending it again is of no use
ABOUT_THE_REQUEST = {400, 413, 422}

Request = Mapping[str, Any]
Answer = dict[str, Any]


class RefusedError(ModelError):
    """The server will not answer this one request: too long, or against its rules."""


class RateLimit:
    """A limit on requests per minute, evenly spread over all callers."""

    def __init__(self, per_minute: int) -> None:
        self.gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Seconds until another request may start."""
        if not self.gap:
            return 0.0
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._next)
            self._next = begin + self.gap
        return begin - now


@dataclass(frozen=True)
class Sender:
    """Sends requests to an endpoint, one at a time, each until it is answered, refused, or out of tries."""

    http: httpx.Client
    endpoint: Endpoint
    ledger: SpendLedger
    pace: RateLimit
    slots: AbstractContextManager[Any]  #: held while a request is on its way
    rest: Callable[[float], None]  #: waits so many seconds; an error where there is nothing to wait for any more

    def ask(self, request: Request, body: bytes, keep: Callable[[Answer], None]) -> Answer:
        """The answer, kept; `body` is the request as it is sent."""
        problem, tries = "", self.endpoint.retries + 1
        for attempt in range(tries):
            if attempt:
                self.ledger.tried_again()
            self.rest(self.pace.wait())
            reserved = self.ledger.reserve(request)
            try:
                answer, problem, wait = self._try("messages" in request, body)
                if answer is not None:
                    keep(answer)
                    return answer
            finally:
                self.ledger.release(reserved)
            if attempt < tries - 1:
                self.rest(max(wait, backoff(attempt)))
        hint = "run again to resume: answers received so far are kept"
        raise ModelError(f"gave up after {tries} tries: {problem}", where=self.endpoint.uri, hint=hint)

    def _try(self, chat: bool, body: bytes) -> tuple[Answer | None, str, float]:
        """The answer, or what is wrong and how long the server asks to wait; an error where it refuses for good."""
        import httpx

        url = f"{self.endpoint.base_url.rstrip('/')}/{'chat/' if chat else ''}completions"
        try:
            with self.slots:  # free for the next one before this answer is read and kept
                response = self.http.post(url, content=as_accepted(body, self.endpoint.base_url))
                if response.status_code != 200 and learns(response.text, body, self.endpoint.base_url):
                    response = self.http.post(url, content=as_accepted(body, self.endpoint.base_url))
        except httpx.TimeoutException:
            return None, f"no answer within {self.endpoint.timeout:g} s", 0.0
        except httpx.TransportError as e:
            return None, f"the connection failed ({type(e).__name__})", 0.0
        if response.status_code == 200:
            return *_document(response), 0.0
        if response.status_code not in PASSING:
            raise _refused(self.endpoint, response)
        return (
            None,
            f"the server answered {response.status_code}",
            min(retry_after(response.headers.get("retry-after", "")) or 0.0, LONGEST_WAIT),
        )


#: What servers have said about the form of requests, by their address.
_LEARNED: dict[str, frozenset[str]] = {}
TOKENS, OBJECT = "max_completion_tokens", "json_object"


def learns(said: str, body: bytes, server: str) -> bool:
    """Whether a refusal names another form of the request that was not tried yet; it is used from then on.

    Newer chat endpoints want `max_completion_tokens` instead of `max_tokens`; llama.cpp's server in Python wants a
    schema as a `json_object`.
    """
    known = _LEARNED.get(server, frozenset())
    forms = ((TOKENS, b'"max_tokens"'), (OBJECT, b'"json_schema"'))
    new = {form for form, part in forms if form in said and part in body} - known
    _LEARNED[server] = known | new
    return bool(new)


def as_accepted(body: bytes, server: str) -> bytes:
    """A request in the form that its server takes."""
    known = _LEARNED.get(server, frozenset())
    if not known:
        return body
    request = json.loads(body)
    if TOKENS in known and "max_tokens" in request:
        request[TOKENS] = request.pop("max_tokens")
    form = request.get("response_format", {})
    if OBJECT in known and form.get("type") == "json_schema":
        request["response_format"] = {"type": OBJECT, "schema": form["json_schema"]["schema"]}
    return json.dumps(request).encode()


def _document(response: httpx.Response) -> tuple[Answer | None, str]:
    try:
        document = response.json()
    except ValueError:
        return None, "the answer is not a JSON"
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
    hints = {
        401: f"set the key in the environment variable {endpoint.key_env}",
        403: f"check the key in the environment variable {endpoint.key_env}",
        404: "check the model's name and ?base_url=",
    }
    hint = hints.get(response.status_code, "")
    kind = RefusedError if response.status_code in ABOUT_THE_REQUEST else ModelError
    return kind(f"the server refused the request ({response.status_code}): {said}", where=endpoint.uri, hint=hint)
