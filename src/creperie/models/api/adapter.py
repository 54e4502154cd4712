"""The adapter to a model behind an endpoint. Prompts become chat requests that contain their images."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from PIL import Image

from creperie.core import UsageError, packaged_toml
from creperie.models.answering import AnswerSettings
from creperie.models.api.batch import BatchFiles
from creperie.models.api.endpoint import Endpoint, reply_in
from creperie.models.api.ledger import SpendLedger
from creperie.models.api.queue import RequestQueue, ask_all
from creperie.models.choice import SERVER_TOKENS
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.thoughts import reply_of


class ApiModel:
    """A generator on a server. `ledger` counts the calls, tokens and costs."""

    answer_tokens = SERVER_TOKENS

    def __init__(self, endpoint: Endpoint, settings: AnswerSettings | None = None) -> None:
        self.endpoint, self.settings = endpoint, settings or AnswerSettings()
        self.ledger = SpendLedger(endpoint)
        self.queue = RequestQueue(endpoint, self.ledger)

    @cached_property
    def batches(self) -> BatchFiles | None:
        """The batches of the model's requests. None unless the user chose the server's batch endpoint."""
        return BatchFiles(self.queue) if self.endpoint.batch else None

    @property
    def fingerprint(self) -> Fingerprint:
        # the weights on a server cannot be hashed: address and model name are used instead
        return Fingerprint(
            uri=self.endpoint.uri,
            architecture="api",
            weights=f"{self.endpoint.base_url} {self.endpoint.model}",
            dtype="server",
            options=self.settings.marks,
        )

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        requests = [self.request(p) for p in prompts]
        if self.batches is not None:
            self.batches.answer(requests)
        answers = ask_all(self.queue, requests)
        return [reply_of("") if (reply := reply_in(answer)) is None else reply for answer in answers]

    @property
    def notes(self) -> list[str]:
        """Sentences that name the parameters that the server did not accept. They are stored with the results of the
        run.
        """
        return self.queue.forms.notes

    def request(self, prompt: Prompt) -> dict[str, Any]:
        prompt = self.settings.applied(prompt)
        request: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": messages_of(prompt),
            "temperature": prompt.temperature,
            "max_tokens": prompt.max_tokens,
            "seed": prompt.seed,
        }
        if prompt.top_p < 1:
            request["top_p"] = prompt.top_p
        if prompt.min_p > 0:
            request["min_p"] = prompt.min_p
        if prompt.reasoning:
            request |= reasoning_form(prompt.reasoning, self.endpoint)
        if prompt.top_logprobs:
            request |= {"logprobs": True, "top_logprobs": prompt.top_logprobs}
        if prompt.schema and self.endpoint.structured:
            schema = json.loads(prompt.schema)
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request


def reasoning_form(effort: str, endpoint: Endpoint) -> dict[str, Any]:
    """Return the fields of a request that set how much the model reasons."""
    host = urlsplit(endpoint.base_url).hostname or ""
    servers = packaged_toml("creperie.models.api", "servers.toml")["server"]
    forms = next(known for known in servers if host.endswith(tuple(known["hosts"])))
    form = forms.get("tokens" if effort.isdigit() else effort)
    if form is None:
        what = "the option reasoning cannot be a number of tokens on this server"
        raise UsageError(what, where=endpoint.uri, hint="use off, low, medium or high")
    return dict(json.loads(json.dumps(form).replace('"TOKENS"', effort)))


def messages_of(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the chat messages of a prompt. The images of a user turn come before its text."""
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
    """Return an image as a data URL with a PNG. The format is lossless, and equal pixels give equal bytes."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
