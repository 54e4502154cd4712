"""The settings of an endpoint (address, limits, prices), the cache of its answers, and the parameters that its server
does not accept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
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
        """Return the stored answer. Return None if its file is missing or damaged."""
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


# -- parameters that a server does not accept --------------------------------------------------------------------------
#
# They are learned from its error messages, once per server and model, and cached.

#: parameters that a request can do without or that have another name; None: the server's own value is used instead
OTHER_FORMS = {
    "max_tokens": "max_completion_tokens",
    "response_format": "json_object",
    "top_p": None,
    "min_p": None,
    "temperature": None,
    "seed": None,
}
#: how servers say that they do not take a parameter, or not with this model
_REFUSES = re.compile(
    r"unsupported|not supported|not support|unrecogni[sz]ed|unknown (?:name|parameter|field|argument)|not permitted"
    r"|extra.?forbidden|incompatible|not allowed|deprecated|cannot both|only be set|unexpected|json_object"
)


class AcceptedForms:
    """The form in which a server accepts requests for a model. `refused` maps each rejected parameter to the form that
    replaces it, or to "" if it must be left out.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.path, self.model = folder / "refused.json", model
        self.refused: dict[str, str] = self._read().get(model, {})

    def _read(self) -> dict[str, dict[str, str]]:
        with suppress(OSError, ValueError):
            known = json.loads(self.path.read_text(encoding="utf-8"))
            return known if isinstance(known, dict) else {}
        return {}

    def learn(self, refusal: str, sent: Mapping[str, Any]) -> bool:
        """Record the parameter that an error message rejects, so that later requests avoid it. `sent` is the request.

        Return True if later requests will be sent in another form, else False.
        """
        text = refusal.replace("_", "").lower()  # some servers write maxTokens
        if not _REFUSES.search(text.replace("jsonobject", "json_object")):
            return False
        for name, other in OTHER_FORMS.items():
            names = [name, *([other] if other else [])]
            if name in sent and any(re.search(rf"(?<![a-z]){n.replace('_', '')}(?![a-z])", text) for n in names):
                instead = other if other and other.replace("_", "") in text else ""
                if self.refused.get(name) in (instead, ""):
                    continue  # it is sent in that form already, or not at all
                self.refused[name] = instead
                with suppress(OSError):
                    write_text(self.path, json.dumps(self._read() | {self.model: self.refused}))
                return True
        return False

    def form(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request in the form that its server accepts."""
        sent = dict(request)
        for name in self.refused.keys() & sent.keys():
            instead, value = self.refused[name], sent.pop(name)
            if name == "response_format" and instead:
                sent[name] = {"type": instead, "schema": value["json_schema"]["schema"]}
            elif instead:
                sent[instead] = value
        return sent

    @property
    def notes(self) -> list[str]:
        """Notes that name the parameters left out of requests because the server refuses them."""
        own = sorted(name for name, instead in self.refused.items() if not instead)
        return [f"the server does not accept {', '.join(own)}: its own choice is used"] if own else []
