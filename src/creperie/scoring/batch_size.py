"""The size of batches, which is estimated from the device's memory and halved whenever memory runs out."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from creperie.core import ModelError

T = TypeVar("T")
Forward = Callable[[Sequence[T]], np.ndarray]

#: size of the first batch on a GPU, whose memory use determines the later sizes; and the largest useful size
GPU_FIRST = {"images": 32, "tokens": 4096}
GPU_MOST = {"images": 256, "tokens": 32_768}
#: on a CPU larger batches are slower: their activations leave the caches
CPU_MOST = {"images": 16, "tokens": 2048}
#: the overhead of a batch, in tokens: a batch ends when its padding would cost more
START = {"cpu": 64, "gpu": 4096}
GPU_SHARE = 0.5  #: the share of the free memory that batches may use
#: the least number of rows per forward pass of PyTorch on a CPU, if batches can be that large: smaller batches are
#: filled up with copies, and captions of different lengths are not mixed. On one thread a vector is then bit-identical
#: in every batch
FEWEST = 16


@dataclass
class Timings:
    """The seconds spent in each stage of the work, summed over all threads, and how many images, captions and pairs
    were processed.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + took


@dataclass
class BatchSize:
    """The maximum size of a batch: in images, in captions, and in tokens (captions × tokens of the longest caption)."""

    device: str
    images: int
    tokens: int
    captions: int
    workers: int  #: threads that decode and prepare
    in_flight: int  #: batches submitted to the device before the first result is read
    start: int = 64  #: the overhead of a batch, in tokens
    fewest: int = 1  #: least number of rows of a forward pass
    groups: int = 64  #: images, each with its captions, per call of a model that takes several
    learning: set[str] = field(default_factory=set)
    _retry: threading.Lock = field(default_factory=threading.Lock)

    def captions_from(self, lengths: np.ndarray, whole: int = 0) -> tuple[int, int]:
        """Return (number of captions in the next batch, number of tokens in it with padding). `lengths` are the
        captions' numbers of tokens, in descending order.

        The batch is as large as the limits allow, or smaller if its padding would cost more than another batch. Every
        caption is padded to `whole` tokens. If `whole` is 0, captions are padded to the longest one in the batch.

        >>> BatchSize("cpu", images=16, tokens=100, captions=64, workers=2, in_flight=1, start=8).captions_from(
        ...     np.array([10, 10, 9, 8, 7, 4, 4, 4])
        ... )
        (5, 50)
        """
        width = whole or max(1, int(lengths[0]))
        count = max(1, min(self.captions, self.tokens // width, len(lengths)))
        if not whole:
            wasted = np.cumsum(width - lengths[:count])
            count = max(1, int(np.searchsorted(wasted, self.start, side="right")))
        return count, count * width

    def run(self, what: str, forward: Forward[T], batch: Sequence[T], units: int) -> list[Any]:
        """Run a forward pass on a batch and return its output in a list. If memory runs out, the batch is split. The
        list then has one output per part, and later batches are smaller.

        `what` is the unit in which batches are measured, such as "images" or "tokens", and `units` is the size of this
        batch in that unit.
        """
        parts: list[Any] = []
        size, at = len(batch), 0
        while at < len(batch):
            part = batch[at : at + size]
            try:
                learn = what in self.learning and len(part) == len(batch)
                parts.append(self._learn(what, forward, part, units) if learn else self._filled(what, forward, part))
                at += size
            except Exception as e:
                if not out_of_memory(e):
                    raise
                if len(part) == 1:
                    raise ModelError(
                        f"{self.device} has too little memory for one of the {what} ({type(e).__name__})",
                        hint="choose a smaller model, `dtype='bfloat16'` or another `device=`",
                    ) from None
                size = len(part) // 2
                self._shrink(what, size, units * size // len(batch))
        return parts

    def _filled(self, what: str, forward: Forward[T], part: Sequence[T]) -> np.ndarray:
        most = {"images": self.images, "tokens": self.captions}.get(what, 0)
        fill = max(0, self.fewest - len(part)) if most >= self.fewest else 0
        answer = forward([*part, *[part[-1]] * fill] if fill else part)
        return answer[: len(part)] if len(answer) == len(part) + fill else answer

    def _shrink(self, what: str, count: int, units: int) -> None:
        with self._retry:  # one thread at a time
            free_memory(self.device)
            self.learning.discard(what)
            limit = what if what in ("images", "groups", "tokens") else "captions"
            setattr(self, limit, max(1, min(getattr(self, limit), units if what == "tokens" else count)))

    def _learn(self, what: str, forward: Forward[T], batch: Sequence[T], units: int) -> np.ndarray:
        """Run a first, small batch, set the size of later batches from the memory that it used, and return its output.
        `what` and `units` are as in `run`.
        """
        import torch

        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = forward(batch)
        each = max(1.0, (torch.cuda.max_memory_allocated() - before) / max(1, units))
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        fits = int(GPU_SHARE * free / self.in_flight / each)
        setattr(self, what, max(1, min(GPU_MOST[what], fits)))
        self.learning.discard(what)
        return result


def pace_for(model: Any, batch_size: int | None = None) -> BatchSize:
    """Return the batch sizes for a model on its device. If given, `batch_size` is the number of images and of captions
    per batch.
    """
    device = device_of(model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cuda = device.startswith("cuda")
    exact = device == "cpu" and hasattr(model, "place")  # a PyTorch model
    first = GPU_FIRST if cuda else CPU_MOST
    pace = BatchSize(
        device=device,
        images=batch_size or first["images"],
        tokens=first["tokens"],
        captions=batch_size or (4096 if cuda else 512),
        # beside a GPU, some cores are left for the threads that feed it and for the tokenizer
        workers=max(2, min(32, cores * 3 // 4 if cuda else cores)),
        in_flight=2 if cuda else 1,
        start=0 if exact else START["gpu" if cuda else "cpu"],
        fewest=FEWEST if exact else 1,
    )
    if batch_size:
        pace.tokens = max(pace.tokens, batch_size * 512)
    elif cuda:
        pace.learning = {"images", "tokens"}
    return pace


def device_of(model: Any) -> str:
    """Return the device of a model adapter; "cpu" if the adapter has no attribute `device`."""
    place = getattr(model, "place", None)
    return str(getattr(place, "device", None) or getattr(model, "device", None) or "cpu")


def out_of_memory(error: Exception) -> bool:
    """Return whether an error means that the device has run out of memory."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and ("not enough memory" in text or "out of memory" in text))
    )


def free_memory(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()
