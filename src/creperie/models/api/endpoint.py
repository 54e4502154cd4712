"""What is asked where, and at what price: the settings of an endpoint, its answers, its ledger."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from creperie.errors import CreperieError, UsageError
from creperie.home import cache_home

DEFAULT_URL = "https://api.openai.com/v1"
#: what a request may cost at most is held back from the budget before it is sent
TOKENS_A_MESSAGE, TOKENS_AN_IMAGE = 16, 3000


class BudgetError(CreperieError):
    """The next request could cost more than is left."""


@dataclass(frozen=True)
class Endpoint:
    """A model on a server, and how hard it may be used. Prices are in dollars a million tokens."""

    uri: str
    model: str
    base_url: str = DEFAULT_URL
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    per_minute: int = 0  #: requests a minute, 0 for no limit
    retries: int = 6
    timeout: float = 60.0
    price_in: float = 0.0
    price_out: float = 0.0
    budget: float | None = None
    structured: bool = False  #: whether it takes a JSON schema for the answer

    @property
    def key(self) -> str | None:
        return os.environ.get(self.key_env) or None

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


@dataclass
class Ledger:
    """Calls, tokens and money of one process, with what is in flight held back from the budget."""

    endpoint: Endpoint
    calls: int = 0
    cached: int = 0
    retried: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    reserved: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reserve(self, request: Mapping[str, Any]) -> float:
        """Hold back the most that a request may cost; BudgetError where that is more than is left."""
        most = self.endpoint.cost(estimated_tokens(request), float(request.get("max_tokens") or 0))
        with self._lock:
            limit = self.endpoint.budget
            if limit is not None and self.cost + self.reserved + most > limit:
                raise BudgetError(
                    f"the budget of ${limit:g} is reached: ${self.cost:.4f} spent in {self.calls} calls",
                    where=self.endpoint.uri,
                    mend="what was answered is kept; run again with a larger ?budget= to go on",
                )
            self.reserved += most
        return most

    def settle(self, reserved: float, answer: Mapping[str, Any] | None) -> None:
        """Book what an answer cost, or give back what was held when there was none."""
        usage = (answer or {}).get("usage") or {}
        with self._lock:
            self.reserved -= reserved
            if answer is None:
                return
            self.calls += 1
            self.tokens_in += int(usage.get("prompt_tokens") or 0)
            self.tokens_out += int(usage.get("completion_tokens") or 0)
            self.cost = self.endpoint.cost(self.tokens_in, self.tokens_out)

    def document(self) -> dict[str, Any]:
        names = ("calls", "cached", "retried", "tokens_in", "tokens_out")
        return {**{name: getattr(self, name) for name in names}, "cost": round(self.cost, 6)}


def estimated_tokens(request: Mapping[str, Any]) -> float:
    """The most tokens a request can be: one a byte of text, 3,000 an image, a few for every message's frame."""
    total = 0.0
    for message in request["messages"]:
        total += TOKENS_A_MESSAGE
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for part in parts:
            total += len(part["text"].encode()) if part["type"] == "text" else TOKENS_AN_IMAGE
    return total


@dataclass(frozen=True)
class Answers:
    """Answers on disk, by the content of their request."""

    folder: Path

    @staticmethod
    def of(endpoint: Endpoint) -> Answers:
        place = hashlib.sha256(endpoint.base_url.encode()).hexdigest()[:12]
        return Answers(cache_home() / "api" / place)

    def key(self, request: Mapping[str, Any]) -> str:
        return hashlib.sha256(json.dumps(request, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def get(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The kept answer; None where there is none, or where the file was damaged."""
        try:
            document = json.loads(self._path(request).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) and readable(document) else None

    def put(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        # as ASCII: servers may send halves of surrogate pairs, which UTF-8 cannot hold
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(path)

    def _path(self, request: Mapping[str, Any]) -> Path:
        key = self.key(request)
        return self.folder / key[:2] / f"{key}.json"


def readable(answer: Mapping[str, Any]) -> bool:
    """Whether a server's document holds an answer: a choice with a message whose content is text."""
    try:
        return isinstance(answer["choices"][0]["message"]["content"], str)
    except (KeyError, IndexError, TypeError):
        return False


def number(text: str | None, name: str, uri: str) -> float | None:
    """A number among the URI's options."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise UsageError(f"option {name}={text!r} is no number of at least 0", where=uri)
    return value
