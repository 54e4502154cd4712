"""An endpoint as a model: prompts become chat requests, images travel inside them."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from PIL import Image

from creperie.models.api.client import Answer
from creperie.models.api.endpoint import DEFAULT_URL, Endpoint, number
from creperie.models.api.ledger import SpendLedger
from creperie.models.api.line import Rank, RequestQueue, ask_all
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.uri import ModelURI


def endpoint_of(uri: ModelURI, options: Mapping[str, Any]) -> Endpoint:
    text = str(uri)
    return Endpoint(
        uri=text,
        model=uri.name,
        base_url=options["base_url"] or DEFAULT_URL,
        key_env=options["key_env"] or "OPENAI_API_KEY",
        concurrency=options["concurrency"] or 8,
        per_minute=options["rpm"] or 0,
        retries=int(number(options["retries"], "retries", text) or 0) if options["retries"] is not None else 6,
        timeout=number(options["timeout"], "timeout", text) or 60.0,
        price_in=number(options["price_in"], "price_in", text) or 0.0,
        price_out=number(options["price_out"], "price_out", text) or 0.0,
        budget=number(options["budget"], "budget", text),
        structured=bool(options["structured"]),
    )


class ApiModel:
    """A generator on a server. `ledger` says what it has cost so far."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.ledger = SpendLedger(endpoint)
        self.line = RequestQueue(endpoint, self.ledger)

    @property
    def fingerprint(self) -> Fingerprint:
        # what a server runs cannot be hashed: its address and the model's name stand for it
        return Fingerprint(
            uri=self.endpoint.uri,
            architecture="api",
            weights=f"{self.endpoint.base_url} {self.endpoint.model}",
            dtype="server",
        )

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return [self.text(a) for a in self.answers(prompts)]

    def begin(self, prompt: Prompt, rank: Rank = ()) -> Future[Answer]:
        """Ask without waiting for the answer; inside `with model.line`. Those of the lowest rank are sent first."""
        return self.line.begin(self.request(prompt), rank)

    @staticmethod
    def text(answer: Answer) -> str:
        return str(answer["choices"][0]["message"]["content"])

    def answers(self, prompts: Sequence[Prompt], top_logprobs: int = 0) -> list[dict[str, Any]]:
        """The server's whole answers; with `top_logprobs`, the likeliest tokens of each step where it gives them."""
        return ask_all(self.line, [self.request(p, top_logprobs) for p in prompts])

    def request(self, prompt: Prompt, top_logprobs: int = 0) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": messages_of(prompt),
            "temperature": prompt.temperature,
            "max_tokens": prompt.max_tokens,
            "seed": prompt.seed,
        }
        if top_logprobs:
            request |= {"logprobs": True, "top_logprobs": top_logprobs}
        if prompt.schema and self.endpoint.structured:
            schema = json.loads(prompt.schema)
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request


def messages_of(prompt: Prompt) -> list[dict[str, Any]]:
    """Chat messages; the images of a user turn go before its text."""
    messages: list[dict[str, Any]] = []
    images, counts = iter(prompt.images), iter(prompt.shows or (len(prompt.images),))
    for role, text in prompt.messages:
        if role == "user" and (own := list(itertools.islice(images, next(counts, 0)))):
            shown = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in own]
            messages.append({"role": role, "content": [*shown, {"type": "text", "text": text}]})
        else:
            messages.append({"role": role, "content": text})
    return messages


def data_url(image: Image.Image) -> str:
    """An image as a PNG inside a URL: lossless, the same bytes for the same pixels."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
