"""Run one model: images are decoded and captions tokenised in other threads, batches fit the memory, outputs are
checked.

The functions in `passes` use a driver to encode or score texts, images and pairs.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from creperie.core import CreperieError, DataError, ModelError, one_line
from creperie.models import StagedImages, Tokens, exact_float32
from creperie.scoring.batch_size import BatchSize, Timings
from creperie.scoring.sheet import Fault

T = TypeVar("T")


class Ahead(Generic[T]):
    """A queue of results that threads compute in advance: one result for each number in `rows`, in the same order."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[int], T], rows: Iterable[int], limit: int) -> None:
        self._pool, self._work, self._rows = pool, work, iter(rows)
        self._running: deque[Future[T]] = deque()
        self.limit = limit
        self._fill()

    def _fill(self) -> None:
        while len(self._running) < self.limit and (row := next(self._rows, None)) is not None:
            self._running.append(self._pool.submit(self._work, row))

    def first(self) -> T | None:
        """Return the first result without removing it; None if there is none."""
        return self._running[0].result() if self._running else None

    def reach(self, limit: int) -> None:
        """Let the threads work ahead until `limit` results are ready or being computed."""
        self.limit = limit
        self._fill()

    def take(self, count: int) -> list[T]:
        """Remove and return the next results, at most `count`."""
        taken: list[T] = []
        while self._running and len(taken) < count:
            taken.append(self._running.popleft().result())
            self._fill()
        return taken


TOKENISE = 4096  #: captions per call of the tokenizer
SWITCH = 0.0002  #: the interpreter's thread switch interval in seconds, on a GPU
OpenImage = Callable[..., Any]  #: returns the decoded image of a row; raises a DataError if there is none


@dataclass
class Driver:
    """Runs one model. Use it as a context manager: when the `with` block ends, the driver's threads stop."""

    model: Any
    pace: BatchSize
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.pace.workers, thread_name_prefix="prepare")
        self.tokeniser = ThreadPoolExecutor(1, thread_name_prefix="tokenise")
        self.flight = ThreadPoolExecutor(self.pace.in_flight, thread_name_prefix="forward")

    def __enter__(self) -> Driver:
        self._interval = sys.getswitchinterval()
        self._stack = ExitStack()
        if self.pace.in_flight > 1:
            # otherwise the thread that feeds the GPU waits too long for the GIL among the decoding threads
            sys.setswitchinterval(SWITCH)
            if not gc.get_freeze_count():  # so that a collection looks at new objects only: all threads wait for it
                gc.freeze()
                self._stack.callback(gc.unfreeze)
            # The adapters set exact float32 around each forward pass, which is a setting of the whole process. It is
            # entered here once for all passes, so that one thread cannot reset it while another is computing.
            self._stack.enter_context(exact_float32())
        return self

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self._interval)
        for pool in (self.pool, self.tokeniser, self.flight):
            pool.shutdown(wait=True, cancel_futures=True)
        self._stack.close()

    # -- the inputs of the model ---------------------------------------------------------------------------------

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        with self.timings.stage("tokenise"):
            tokens: list[Tokens] = []
            for i in range(0, len(texts), TOKENISE):
                tokens += self.model.prepare_texts(texts[i : i + TOKENISE])
            return tokens

    def prepared(self, open_image: OpenImage, row: int) -> Any:
        """Return an image, decoded and prepared for the model. Return a fault if that is impossible."""
        image = self.opened(open_image, row)
        staged = isinstance(self.model, StagedImages) or hasattr(self.model, "forward_pairs")
        if isinstance(image, Fault) or not staged:
            return image
        try:
            with self.timings.stage("prepare"):
                return self.model.prepare_image(image)
        except Exception as e:  # one odd image must not end a run; the findings report it
            return Fault(row, "unprepared-image", f"the model's preprocessing fails: {type(e).__name__}: {e}")

    def opened(self, open_image: OpenImage, row: int) -> Any:
        try:
            with self.timings.stage("decode"):
                return open_image(row)
        except DataError as e:
            return Fault(row, getattr(e, "code", "undecodable-image"), str(e))

    def awaited(self, ready: Ahead[T], count: int) -> list[T]:
        """Return the next images of a queue, at most `count`, as soon as they are ready."""
        with self.timings.stage("wait for images"):
            return ready.take(count)

    # -- the model -----------------------------------------------------------------------------------------------

    def through(
        self,
        batches: Iterator[tuple[np.ndarray, list[Any], int]],
        forward: Callable[[Sequence[Any]], np.ndarray],
        what: str,
    ) -> Iterator[tuple[np.ndarray, list[Any], np.ndarray]]:
        """Run `forward` on each batch and yield (rows, inputs, vectors), in order. On a GPU, the next batch is
        submitted before the result of the previous one is read.

        A batch is (rows, inputs, units). `what` is the unit in which batches are measured ("images" or "tokens"), and
        `units` is the size of the batch in that unit.
        """
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
        """Run a forward pass on a batch and return its output. Raise a ModelError if the output does not have one row
        of floats per input. `what` and `units` are as in `BatchSize.run`.
        """
        parts = self.parts(what, forward, batch, units)
        answer = np.asarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)
        if answer.shape[:1] != (len(batch),) or answer.ndim > 3 or answer.dtype.kind != "f":
            raise ModelError(
                f"the model returned an array of shape {answer.shape} and type {answer.dtype} for {len(batch)} inputs",
                where=self.model.fingerprint.uri,
                hint="return one row of float32 per input",
            )
        return answer.astype(np.float32, copy=False)

    def parts(self, what: str, forward: Callable[[Sequence[Any]], Any], batch: Sequence[Any], units: int) -> list[Any]:
        """Run a forward pass on a batch and return a list with its output. If the batch does not fit into the device's
        memory, it is split, and the list has one output per part, in order.
        """
        try:
            return self.pace.run(what, forward, batch, units)
        except CreperieError:
            raise
        except Exception as e:
            raise ModelError(
                f"the model fails on a batch of {len(batch)}: {type(e).__name__}: {one_line(e)}",
                where=self.model.fingerprint.uri,
                hint="run the model on single inputs to see where it fails",
            ) from e

    def unit(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors, with all-zero vectors replaced by NaN because they have no direction.

        Cosines are computed as dot products of vectors of length one. Raise a ModelError if the length of any other
        vector is not one.
        """
        vectors = np.where(vectors.any(axis=-1, keepdims=True), vectors, np.float32(np.nan))
        off = np.abs(np.linalg.norm(vectors, axis=-1) - 1)
        worst = float(off[np.isfinite(off)].max(initial=0.0))
        if worst > 1e-3:
            raise ModelError(
                f"the model's vectors do not have unit length (off by {worst:.3g})",
                where=self.model.fingerprint.uri,
                hint="divide them by their norm in the adapter",
            )
        return vectors
