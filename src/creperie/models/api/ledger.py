"""The ledger of requests and costs.

A generation job stores its ledger in a file, so that a resumed job knows its earlier costs.
"""

from __future__ import annotations

import json
import math
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from creperie.core import DataError, checked, counted, with_checksums
from creperie.models.api.endpoint import BudgetError, Endpoint, reply_in

#: upper bounds, in tokens: the most that a request may cost is reserved from the budget before it is sent
TOKENS_A_MESSAGE, TOKENS_AN_IMAGE = 16, 3000
#: the key under which a cached answer names the job that paid for it
PAID_BY = "creperie_paid_by"
#: the key under which an answer says that it came from a batch, at half price
HALF_PRICE = "creperie_half_price"
COUNTS = ("calls", "cached", "retried", "tokens_in", "tokens_out", "estimated", "half_in", "half_out")
#: counts that are shown only if there are any
RARE = ("estimated", "half_in", "half_out")
#: tokens that the server's own template may add to those that we can count
TEMPLATE = 4096


@dataclass
class SpendLedger:
    """Counts calls, tokens and costs, and reserves budget for requests that are not answered yet. Equal requests are
    counted only once.

    At first, the ledger counts what this process does. After a call of `keep_in`, it counts what a generation job does,
    in all of its processes. A cached answer contains the name of the job that paid for it. If a process dies before it
    has counted a cached answer, the next process that finds the answer counts it.
    """

    endpoint: Endpoint
    calls: int = 0
    cached: int = 0
    retried: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0  #: answers whose usage the server did not report, or not plausibly
    half_in: int = 0  #: tokens among those above that were read, and
    half_out: int = 0  #: written, in batches: at half price
    reserved: float = 0.0
    making: str = ""  #: id of the job that pays; empty if no file is kept
    _spent_elsewhere: float = 0.0  #: spent by this process for other jobs: the budget covers all of them
    _booked: set[str] = field(default_factory=set, repr=False)
    _file: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cost(self) -> float:
        return self.endpoint.cost(self.tokens_in - self.half_in / 2, self.tokens_out - self.half_out / 2)

    def keep_in(self, path: Path) -> None:
        """Store the counts in a file from now on. Counting continues from the counts that are already in the file."""
        with self._lock:
            self._spent_elsewhere += self.cost
            for name in COUNTS:
                setattr(self, name, 0)
            self._booked, self._file, self.making = set(), path, ""
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_bytes().split(b"\n") if path.exists() else []
            if lines and lines[-1]:  # the last line was cut short: end it
                with path.open("ab") as file:
                    file.write(b"\n")
            for line in lines:
                self._count(line)
            if not self.making:
                self.making = uuid.uuid4().hex
                self._write({"making": self.making})

    def _count(self, line: bytes) -> None:
        try:
            entry, _ = checked(json.loads(line), self._file)
            self.making = str(entry.get("making", self.making))
            if (key := entry.get("key")) is not None:
                self._booked.add(str(key))
            self._add(entry)
        except (ValueError, TypeError, AttributeError, DataError):
            return

    def _write(self, entry: Mapping[str, Any]) -> None:
        """Append one line in a single write. If the process dies, the file has either the whole line or nothing of
        it.
        """
        if self._file is None:
            return
        try:
            with self._file.open("ab", buffering=0) as file:
                file.write(json.dumps(with_checksums(entry)).encode() + b"\n")
        except FileNotFoundError:  # the job is finished and its folder is gone
            self._file = None

    def _book(self, entry: dict[str, Any]) -> None:
        if "key" in entry:
            if entry["key"] in self._booked:
                return
            self._booked.add(entry["key"])
        self._write(entry)
        self._add(entry)

    def _add(self, entry: Mapping[str, Any]) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + int(entry.get(name, 0)))

    def reserve(self, request: Mapping[str, Any]) -> float:
        """Reserve the highest possible cost of a request, and return this cost in dollars. Raise a BudgetError if the
        budget does not suffice.
        """
        most = self.endpoint.cost(estimated_tokens(request), float(request.get("max_tokens") or 0))
        most /= 2 if self.endpoint.batch else 1
        with self._lock:
            limit = self.endpoint.budget
            spent = self.cost + self._spent_elsewhere
            if limit is not None and spent + self.reserved + most > limit:
                raise BudgetError(
                    f"the next request may cost up to ${most:.4f}, which does not fit the budget of ${limit:g}: "
                    f"${spent:.4f} spent in {counted(self.calls, 'call')}, ${self.reserved:.4f} reserved for requests "
                    "under way",
                    where=self.endpoint.uri,
                    hint="answers so far are kept: run again with a larger ?budget= to resume",
                )
            self.reserved += most
        return most

    def release(self, reserved: float) -> None:
        """Release what was reserved for a request."""
        with self._lock:
            self.reserved -= reserved

    def paid(self, key: str, answer: Mapping[str, Any]) -> None:
        """Count an answer that the server has just sent, with its tokens."""
        with self._lock:
            self._book({"key": key, "calls": 1, **_tokens(answer)})

    def found(self, key: str, answer: Mapping[str, Any]) -> None:
        """Count an answer that was found in the cache. It counts as a paid call if this job paid for it, otherwise as a
        cached one.
        """
        with self._lock:
            own = bool(self.making) and answer.get(PAID_BY) == self.making
            self._book({"key": key, "calls": 1, **_tokens(answer)} if own else {"key": key, "cached": 1})

    def tried_again(self) -> None:
        with self._lock:
            self._book({"retried": 1})

    def document(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in COUNTS if name not in RARE or getattr(self, name)}
        return {**counts, "cost": round(self.cost, 6)}


def _tokens(answer: Mapping[str, Any]) -> dict[str, int]:
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    read, wrote = (max(0, int(usage.get(f"{part}_tokens") or 0)) for part in ("prompt", "completion"))
    half = {"half_in": read, "half_out": wrote} if answer.get(HALF_PRICE) else {}
    return {"tokens_in": read, "tokens_out": wrote, "estimated": int(bool(usage.get("estimated"))), **half}


def checked_usage(request: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the token counts to record. Counts that the server reports are replaced by upper bounds if they are
    implausible.

    >>> asked = {"messages": [{"role": "user", "content": "four"}], "max_tokens": 9}
    >>> given = {"choices": [{"message": {"content": "five!"}}]}
    >>> checked_usage(asked, given | {"usage": {"prompt_tokens": 12, "completion_tokens": 2}})
    {'prompt_tokens': 12, 'completion_tokens': 2}
    >>> checked_usage(asked, given | {"usage": {"prompt_tokens": -12, "completion_tokens": 2}})
    {'prompt_tokens': 20, 'completion_tokens': 5, 'estimated': True}
    """
    choice = answer["choices"][0]
    reply = None if "text" in choice else reply_in(answer)
    text = choice["text"] if reply is None else reply.thought + reply
    limit = request.get("max_tokens")
    written = len(text.encode("utf-8", "surrogatepass"))
    most_out = written if limit is None else min(written, limit)
    usage, most_in = answer.get("usage"), math.ceil(estimated_tokens(request))
    if isinstance(usage, Mapping):
        read, wrote = usage.get("prompt_tokens"), usage.get("completion_tokens")
        # hidden reasoning counts as completion tokens, so only the limit bounds them
        if _plausible(read, 1, most_in) and _plausible(
            wrote, int(written > 0 and not request.get("echo")), max(written, limit or 0)
        ):
            return {"prompt_tokens": read, "completion_tokens": wrote}
    return {"prompt_tokens": most_in, "completion_tokens": most_out, "estimated": True}


def _plausible(tokens: Any, least: int, most: int) -> bool:
    return type(tokens) is int and least <= tokens <= most + TEMPLATE


def estimated_tokens(request: Mapping[str, Any]) -> float:
    """Return an upper bound on the tokens of a request: one per byte of text, 3,000 per image, and 16 per message."""
    total = float(len(request.get("prompt", "").encode()))
    for message in request.get("messages", ()):
        total += TOKENS_A_MESSAGE
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for part in parts:
            total += len(part["text"].encode()) if part["type"] == "text" else TOKENS_AN_IMAGE
    return total
