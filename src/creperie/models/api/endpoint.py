"""What is asked where, and at what price: the settings of an endpoint, and the answers that are kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import CreperieError, UsageError, cache_home, write_text
from creperie.models.uri import ModelURI

DEFAULT_URL = "https://api.openai.com/v1"


class BudgetError(CreperieError):
    """The next request could cost more than is left."""


@dataclass(frozen=True)
class Endpoint:
    """A model on a server, and how hard it may be used. Prices are in dollars per million tokens."""

    uri: str
    model: str
    base_url: str = DEFAULT_URL
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    per_minute: int = 0  #: requests per minute, 0 for no limit
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


def endpoint_of(uri: ModelURI, options: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint that a URI and its options name."""
    text = str(uri)
    return Endpoint(
        uri=text,
        model=uri.name,
        base_url=options["base_url"] or DEFAULT_URL,
        key_env=options["key_env"] or "OPENAI_API_KEY",
        concurrency=options["concurrency"] or 8,
        per_minute=options["rpm"] or 0,
        retries=int(_number(options["retries"], "retries", text) or 0) if options["retries"] is not None else 6,
        timeout=_number(options["timeout"], "timeout", text) or 60.0,
        price_in=_number(options["price_in"], "price_in", text) or 0.0,
        price_out=_number(options["price_out"], "price_out", text) or 0.0,
        budget=_number(options["budget"], "budget", text),
        structured=bool(options["structured"]),
    )


@dataclass(frozen=True)
class AnswerCache:
    """Answers on disk, by the content of their request."""

    folder: Path

    @staticmethod
    def of(endpoint: Endpoint) -> AnswerCache:
        place = hashlib.sha256(endpoint.base_url.encode()).hexdigest()[:12]
        return AnswerCache(cache_home() / "api" / place)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored answer; None where there is none, or where the file was damaged."""
        try:
            document = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) and readable(document) else None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        # as ASCII: servers may send halves of surrogate pairs, which UTF-8 cannot hold
        write_text(self._path(key), json.dumps(answer))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def readable(answer: Mapping[str, Any]) -> bool:
    """True if a server's document holds an answer: a choice with text, or a message whose content is text."""
    try:
        choice = answer["choices"][0]
        return isinstance(choice["text"] if "text" in choice else choice["message"]["content"], str)
    except (KeyError, IndexError, TypeError):
        return False


def _number(text: str | None, name: str, uri: str) -> float | None:
    """Return a number among the URI's options."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise UsageError(f"option {name}={text!r} is not a number of at least 0", where=uri)
    return value
