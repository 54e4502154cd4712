"""The Ray engine: actors of Ray compute the pieces.

Every actor opens the stage once (a model is loaded once per worker) and reads its pieces itself, so that sources in
files do not pass through the driver. If a worker dies, alone or with its node, a new worker computes its piece.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from creperie.core import CreperieError, UsageError, missing_extra
from creperie.engine.pieces import LIVES, Numbered, Pieces, Stage, Work, WorkerLostError, from_bytes, opened, to_bytes

#: Bytes for the object store of a local Ray. Pieces are small and are removed when they are done.
STORE_BYTES = 200 << 20


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the one at `address`, or a local one with `workers` cores that ends with the session."""

    workers: int = 2
    address: str = ""
    gpus: float = 0  #: per worker

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        todo = list(numbers)
        if not todo:
            return
        with self.session():
            yield from self._map(stage, pieces, todo)

    def _map(self, stage: Stage, pieces: Pieces, todo: list[int]) -> Numbered:
        import ray

        job = ray.put((stage, pieces))  # one copy for all workers, also for their replacements
        worker = ray.remote(num_cpus=1, num_gpus=self.gpus)(_Worker)
        actors = [worker.remote(job) for _ in range(min(self.workers, len(todo)))]
        busy: dict[Any, tuple[Any, int | None]] = {actor.ready.remote(): (actor, None) for actor in actors}
        del actors  # an actor without a reference ends and frees its core for one that waits
        waiting, left, deaths = deque(todo), len(todo), Counter[int | None]()
        try:
            while left:
                (done,), _ = ray.wait(list(busy))
                actor, number = busy.pop(done)
                try:
                    answer = ray.get(done)
                except ray.exceptions.RayActorError:  # it died, alone or with its node
                    deaths[number] += 1  # None: before its first piece, perhaps with a whole node of workers
                    if deaths[number] == (LIVES * self.workers if number is None else LIVES):
                        raise WorkerLostError from None
                    actor, answer = worker.remote(job), None
                    if number is not None:
                        waiting.appendleft(number)
                if isinstance(answer, CreperieError):
                    raise answer
                if waiting:
                    following = waiting.popleft()
                    busy[actor.compute.remote(following)] = actor, following
                del actor
                if number is not None and answer is not None:
                    left -= 1
                    yield number, from_bytes(answer)
        finally:
            busy.clear()  # a traceback keeps local variables, and thus actors, alive

    @contextmanager
    def session(self) -> Iterator[None]:
        """Run the block in a Ray session; a session that was started here is shut down at the end."""
        try:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
            import ray
        except ImportError:
            raise missing_extra("ray", "ray") from None
        if ray.is_initialized():
            yield
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        handler = signal.getsignal(signal.SIGTERM)
        self._start(ray)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray installs its own handler, which ends the process silently
        try:
            yield
        finally:
            ray.shutdown()

    def _start(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if not self.address:
            resources = {"num_cpus": self.workers, "object_store_memory": STORE_BYTES}
            ray.init(address="local", include_dashboard=False, **resources, **quiet)
            return
        try:
            ray.init(address=self.address, **quiet)
        except (ConnectionError, TimeoutError, ValueError, RuntimeError) as e:
            what = f"cannot connect to a Ray cluster ({str(e).splitlines()[0][:120]})"
            raise UsageError(what, where=self.address, hint="start one with: ray start --head") from None


class _Worker:
    """An actor that opens the stage once, then computes the result of each piece it is given by number."""

    def __init__(self, job: tuple[Stage, Pieces]) -> None:
        self.stage, self.pieces = job
        self.work: Work | None = None

    def ready(self) -> None:
        """Return once this actor has started."""

    def compute(self, number: int) -> bytes | CreperieError:
        try:
            if self.work is None:  # not in __init__: Ray would restart a failing worker forever
                self.work = opened(self.stage)
            return to_bytes(self.work(self.pieces.piece(number)))
        except CreperieError as e:  # bad data is not a failure of the worker: raised once, not retried
            return e
