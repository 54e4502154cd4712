"""The settings of an endpoint (address, limits, prices) and the cache of its answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from creperie.core import CreperieError, DataError, cache_home, checked, sha256_of_text, with_checksums, write_text
from creperie.models.thoughts import GeneratedText, reply_of
from creperie.models.uri import ModelURI

DEFAULT_URL = "https://api.openai.com/v1"


class BudgetError(CreperieError):
    """Raised if the next request could cost more than what is left of the budget."""


@dataclass(frozen=True)
class Endpoint:
    """The settings of a model on a server: its address, limits on its use, and prices in dollars per million tokens."""

    uri: str
    model: str
    base_url: str = DEFAULT_URL
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    rpm: int = 0  #: requests per minute, 0 for no limit
    retries: float = 6
    timeout: float = 60.0
    price_in: float = 0.0
    price_out: float = 0.0
    budget: float | None = None
    batch: bool = False  #: whether requests go to the batch endpoint, at half price
    structured: bool = True  #: whether answers are held to a JSON schema, if the server can do that

    @property
    def key(self) -> str | None:
        return os.environ.get(self.key_env) or None

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


def endpoint_of(uri: ModelURI, options: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint that a model URI and its options describe."""
    own = {field.name for field in fields(Endpoint)}
    given = {name: value for name, value in options.items() if name in own and value is not None}
    return Endpoint(str(uri), uri.name, **given)


@dataclass(frozen=True)
class AnswerCache:
    """A cache of answers on disk, keyed by a hash of the request."""

    folder: Path

    @staticmethod
    def of(endpoint: Endpoint) -> AnswerCache:
        place = sha256_of_text(endpoint.base_url)[:12]
        return AnswerCache(cache_home() / "api" / place)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored answer; None if none is stored, or if the file is damaged."""
        try:
            path = self._path(key)
            document, _ = checked(json.loads(path.read_text(encoding="utf-8")), path)
        except (OSError, ValueError, DataError):
            return None
        return document if isinstance(document, dict) and readable(document) else None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        # as ASCII: servers may send lone surrogates, which UTF-8 cannot hold
        write_text(self._path(key), json.dumps(with_checksums(answer)))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def readable(answer: Mapping[str, Any]) -> bool:
    """Return whether a server's JSON document contains an answer. The first entry in `choices` must have a text or a
    readable message.
    """
    try:
        choice = answer["choices"][0]
        return isinstance(choice["text"], str) if "text" in choice else reply_in(answer) is not None
    except (KeyError, IndexError, TypeError, AttributeError):
        return False


def reply_in(answer: Mapping[str, Any]) -> GeneratedText | None:
    """Return the answer in a server's JSON document, separated from the model's reasoning. Return None if the document
    has no text, no reasoning, and no reason why the answer ended.
    """
    # A server may send the reasoning in the message's `reasoning_content` or `reasoning`, in a part of its content, or
    # between tags in the text.
    choice = answer["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    content = message.get("content")
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    if isinstance(content, list):  # in parts, as Mistral's and Anthropic's servers do
        thought = thought or "".join(_texts(part.get("thinking")) for part in content)
        content = "".join(part.get("text") or "" for part in content)
    if content is None and (thought or finish or message.get("refusal")):  # a filter, too, leaves the text out
        content = message.get("refusal") or ""
    if not isinstance(content, str):
        return None
    reply = reply_of(content, thought=str(thought), cut=finish == "length")
    listed = (choice.get("logprobs") or {}).get("content") or ()
    reply.top = tuple(
        {str(one["token"]): float(one["logprob"]) for one in (token, *(token.get("top_logprobs") or ()))}
        for token in listed
    )
    return reply


def _texts(thinking: Any) -> str:
    parts = thinking if isinstance(thinking, list) else [thinking or ""]
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts)
