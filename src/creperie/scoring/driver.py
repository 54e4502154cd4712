"""One model at work: threads that decode and tokenise beside it, batches cut to fit, answers checked.

All `passes` of texts, images and pairs share it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from creperie.core import DataError, ModelError
from creperie.models import StagedImages, Tokens, exact_float32
from creperie.scoring.batch_size import BatchSize, Timings
from creperie.scoring.sheet import Fault

T = TypeVar("T")


class Ahead(Generic[T]):
    """Threads that work on rows ahead of the consumer; results come in order."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[int], T], rows: Iterable[int], limit: int) -> None:
        self._pool, self._work, self._rows = pool, work, iter(rows)
        self._running: deque[Future[T]] = deque()
        self.limit = limit
        self._fill()

    def _fill(self) -> None:
        while len(self._running) < self.limit and (row := next(self._rows, None)) is not None:
            self._running.append(self._pool.submit(self._work, row))

    def first(self) -> T | None:
        """Return the first result, which stays to be taken."""
        return self._running[0].result() if self._running else None

    def reach(self, limit: int) -> None:
        """Let the threads work further ahead."""
        self.limit = limit
        self._fill()

    def take(self, count: int) -> list[T]:
        """Return the next results, at most `count`."""
        taken: list[T] = []
        while self._running and len(taken) < count:
            taken.append(self._running.popleft().result())
            self._fill()
        return taken


TOKENISE = 4096  #: captions in one call of the tokenizer
SWITCH = 0.0002  #: seconds after which a thread gives way to another, on a GPU
Keep = Callable[[np.ndarray], None]  #: called with the rows of a finished batch
OpenImage = Callable[..., Any]  #: the decoded image of a row; DataError where there is none


@dataclass
class Driver:
    """Drives one model. `close` ends its threads."""

    model: Any
    pace: BatchSize
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.pace.workers, thread_name_prefix="prepare")
        self.tokeniser = ThreadPoolExecutor(1, thread_name_prefix="tokenise")
        self.flight = ThreadPoolExecutor(self.pace.in_flight, thread_name_prefix="forward")

    def __enter__(self) -> Driver:
        self._interval = sys.getswitchinterval()
        self._held = ExitStack()
        if self.pace.in_flight > 1:
            # a GPU starves while its one feeding thread waits for the interpreter among many that decode
            sys.setswitchinterval(SWITCH)
            # The adapters ask for exact float32 around each forward pass, a setting of the whole process: held from
            # before the first to after the last, it cannot be taken back by one thread under another's feet.
            self._held.enter_context(exact_float32())
        return self

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self._interval)
        for pool in (self.pool, self.tokeniser, self.flight):
            pool.shutdown(wait=True, cancel_futures=True)
        self._held.close()

    # -- what goes into the model ----------------------------------------------------------------------------------

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        with self.timings.stage("tokenise"):
            tokens: list[Tokens] = []
            for i in range(0, len(texts), TOKENISE):
                tokens += self.model.prepare_texts(texts[i : i + TOKENISE])
            return tokens

    def prepared(self, open_image: OpenImage, row: int) -> Any:
        """Return a decoded and prepared image, or why there is none."""
        image = self.opened(open_image, row)
        staged = isinstance(self.model, StagedImages) or hasattr(self.model, "forward_pairs")
        if isinstance(image, Fault) or not staged:
            return image
        try:
            with self.timings.stage("prepare"):
                return self.model.prepare_image(image)
        except Exception as e:  # one odd image must not end a run; what it was is in the findings
            return Fault(row, "unprepared-image", f"the model's preprocessing fails: {type(e).__name__}: {e}")

    def opened(self, open_image: OpenImage, row: int) -> Any:
        try:
            with self.timings.stage("decode"):
                return open_image(row)
        except DataError as e:
            return Fault(row, getattr(e, "code", "undecodable-image"), str(e))

    # -- the model -----------------------------------------------------------------------------------------------

    def through(
        self,
        batches: Iterator[tuple[np.ndarray, list[Any], int]],
        forward: Callable[[Sequence[Any]], np.ndarray],
        what: str,
    ) -> Iterator[tuple[np.ndarray, list[Any], np.ndarray]]:
        """Batches with their vectors, in order; on a GPU the next batch is under way while one is waited for."""
        flying: deque[tuple[np.ndarray, list[Any], Future[np.ndarray]]] = deque()
        stage = f"forward {'images' if what == 'images' else 'captions'}"
        for rows, prepared, units in batches:
            self.timings.counts.update({f"{what} batches": 1} | ({what: units} if what == "tokens" else {}))
            if self.pace.in_flight == 1 or what in self.pace.learning:
                with self.timings.stage(stage):
                    vectors = self.forward(what, forward, prepared, units)
                yield rows, prepared, vectors
                continue
            if len(flying) > self.pace.in_flight:
                yield self._landed(flying, stage)
            flying.append((rows, prepared, self.flight.submit(self.forward, what, forward, prepared, units)))
        while flying:
            yield self._landed(flying, stage)

    def _landed(
        self, flying: deque[tuple[np.ndarray, list[Any], Future[np.ndarray]]], stage: str
    ) -> tuple[np.ndarray, list[Any], np.ndarray]:
        rows, prepared, future = flying.popleft()
        with self.timings.stage(stage):
            return rows, prepared, future.result()

    def forward(
        self, what: str, forward: Callable[[Sequence[Any]], np.ndarray], batch: Sequence[Any], units: int
    ) -> np.ndarray:
        """Return a forward pass whose answer is checked: one float32 row for each that went in."""
        try:
            vectors = self.pace.run(what, forward, batch, units)
        except (RuntimeError, ValueError, IndexError, TypeError) as e:
            line = " ".join(str(e).split())[:200]
            raise ModelError(
                f"the model fails on a batch of {len(batch)}: {type(e).__name__}: {line}",
                where=self.model.fingerprint.uri,
            ) from e
        answer = np.asarray(vectors)
        if answer.shape[:1] != (len(batch),) or answer.ndim > 3 or answer.dtype.kind != "f":
            raise ModelError(
                f"the model answers {len(batch)} inputs with an array of {answer.shape}, {answer.dtype}",
                where=self.model.fingerprint.uri,
                hint="one row of float32 for each input is expected",
            )
        return answer.astype(np.float32, copy=False)

    def unit(self, vectors: np.ndarray) -> np.ndarray:
        """Cosines are products here, so vectors must have length one; a model that forgot to normalise is an error."""
        off = np.abs(np.linalg.norm(vectors, axis=-1) - 1)
        worst = float(off[np.isfinite(off)].max(initial=0.0))
        if worst > 1e-3:
            what = f"the model's vectors are not of length one (off by {worst:.3g})"
            raise ModelError(what, where=self.model.fingerprint.uri, hint="divide them by their norm in the adapter")
        return vectors
