"""The batch endpoint, which costs half. Requests are uploaded as files, and the answers arrive within a day.

Requests are gathered in files in the cache. A file stays there, with the id of its batch, until all its answers are
cached. If a process is killed, the next one can therefore continue. Each batch is labelled with the hash of its file.
If a process is killed just after creating a batch, the next one finds this batch by its label and does not pay twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from creperie.core import ModelError, sha256_of_text, write_text
from creperie.models.api.endpoint import readable
from creperie.models.api.ledger import HALF_PRICE
from creperie.models.api.queue import RefusedError, Request, RequestQueue, request_key

#: bytes of one file (OpenAI takes 200 MB), seconds between two looks at the batches
MOST_BYTES, LOOK_EVERY = 100 * 2**20, 30.0
ENDED = ("completed", "failed", "expired", "cancelled")


class GatheredOnly(Exception):  # noqa: N818
    """Raised when requests were only gathered for a batch. There are no answers to return yet."""


class BatchFiles:
    """The requests of one model that are gathered for a batch, and those in batches without answers so far."""

    def __init__(self, queue: RequestQueue) -> None:
        self.queue, self.gathering, self.reserved = queue, False, 0.0
        name = sha256_of_text(queue.endpoint.model)[:12]
        self.folder = queue.cache.folder / "batches" / name
        self.known = {key for part in self._request_files() for key in self._read(part)}
        self._part = self.folder / f"{uuid4().hex}.jsonl"

    def _request_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def _read(self, part: Path) -> dict[str, Request]:
        """Return the requests in the file `part`, by key. A truncated last line is ignored."""
        lines: dict[str, Request] = {}
        for line in part.read_bytes().splitlines():
            with suppress(ValueError):
                lines.update([json.loads(line)])
        return lines

    @cached_property
    def client(self) -> Any:
        from openai import OpenAI

        at = self.queue.endpoint
        return OpenAI(api_key=at.key or "none", base_url=at.base_url, timeout=at.timeout, max_retries=int(at.retries))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Gather all requests made in the block. When the block ends, send them together and wait for the answers."""
        self.gathering = True
        try:
            yield
        finally:
            self.gathering = False
        self.answer([])

    def answer(self, requests: Sequence[Request]) -> None:
        """Fetch the answers to `requests` and to all requests gathered before, and put the answers into the cache.

        Within a `gathered` block, only record the requests and raise `GatheredOnly`.
        """
        import openai

        self.folder.mkdir(parents=True, exist_ok=True)
        for request in requests:
            key = request_key(request)
            if key not in self.known and self.queue.cache.get(key) is None:
                self._write(key, request)
        if self.gathering:
            raise GatheredOnly
        failures: list[str] = []
        try:
            while parts := self._request_files():
                ids = [self._submitted(part) for part in parts]
                batches = list(map(self.client.batches.retrieve, ids))
                while any(batch.status not in ENDED for batch in batches):
                    time.sleep(LOOK_EVERY)
                    batches = list(map(self.client.batches.retrieve, ids))
                for part, batch in zip(parts, batches, strict=True):
                    failures += self._fetched(part, batch)
        except openai.OpenAIError as e:
            hint = "run the same command again to resume: requests already sent are not sent again"
            raise ModelError(f"the batch failed: {e}", where=self.queue.endpoint.uri, hint=hint) from e
        self.queue.ledger.release(self.reserved)
        self.reserved = 0.0
        if failures:
            what = f"{len(failures):,} requests of the batch failed, the first: {failures[0]}"
            raise RefusedError(
                what, where=self.queue.endpoint.uri, hint="correct these requests; all other answers are kept"
            )

    def _write(self, key: str, request: Request) -> None:
        if self._part.exists() and self._part.stat().st_size > MOST_BYTES:
            self._part = self.folder / f"{uuid4().hex}.jsonl"
        self.known.add(key)
        with self._part.open("ab", buffering=0) as file:
            file.write(json.dumps([key, request]).encode() + b"\n")

    def _submitted(self, part: Path) -> str:
        """Return the id of the batch for the requests in the file `part`. If the batch does not exist yet, upload the
        requests and create it.
        """
        noted = part.with_suffix(".id")
        if noted.exists():
            return str(json.loads(noted.read_text())[0])
        requests, url, lost = self._read(part), "/v1/chat/completions", ("failed", "expired", "cancelled")
        sent = "\n".join(
            json.dumps({"custom_id": key, "method": "POST", "url": url, "body": self.queue.forms.form(request)})
            for key, request in requests.items()
        ).encode()
        digest = sha256_of_text(sent)
        earlier = (b for b in self.client.batches.list(limit=100) if b.status not in lost)
        batch = next((b for b in earlier if (b.metadata or {}).get("creperie") == digest), None)
        if batch is None:
            self.reserved += sum(map(self.queue.ledger.reserve, requests.values()))
            file = self.client.files.create(file=(part.name, sent), purpose="batch")
            batch = self.client.batches.create(
                input_file_id=file.id, endpoint=url, completion_window="24h", metadata={"creperie": digest}
            )
        write_text(noted, json.dumps([batch.id, self.queue.forms.refused]))
        return str(batch.id)

    def _fetched(self, part: Path, batch: Any) -> list[str]:
        """Store the answers of a finished batch. Return the error messages of requests that cannot be sent again.

        Requests that failed because the server does not accept a parameter are recorded again, to be sent without it.
        """
        left, messages, noted = self._read(part), list[str](), part.with_suffix(".id")
        self.known -= left.keys()
        for file in filter(None, (batch.output_file_id, batch.error_file_id)):
            for record in map(json.loads, filter(str.strip, self.client.files.content(file).text.split("\n"))):
                answer, key = (record.get("response") or {}).get("body") or {}, record["custom_id"]
                if key in left and readable(answer):
                    self.queue.keep(key, left.pop(key), answer | {HALF_PRICE: True})
                elif key in left:
                    messages.append(str(answer.get("error") or record.get("error") or answer))
                    self.queue.forms.learn(messages[-1], left[key])
        if left and self.queue.forms.refused != json.loads(noted.read_text())[1]:
            again = "".join(json.dumps(line) + "\n" for line in left.items())
            write_text(part.with_name(f"{part.stem}-again.jsonl"), again)
            left = {}
        part.unlink()
        noted.unlink()
        messages.append(f"the batch is {batch.status}: {batch.errors or 'run again to send the rest'}")
        return messages[:1] * len(left)
