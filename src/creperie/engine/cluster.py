"""The Ray engine: actors of Ray compute the pieces.

Every actor opens the stage once, so that a model is loaded once per worker. It reads its pieces itself, so that files
do not pass through the driver. If a worker dies, other workers compute its pieces.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from creperie.core import CreperieError, UsageError, missing_extra
from creperie.engine.driver import run_on_workers
from creperie.engine.pieces import Numbered, Pieces, Stage, Work, from_bytes, is_held, opened, to_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future

#: Bytes for the object store of a local Ray. Pieces are small and are removed when they are done.
STORE_BYTES = 200 << 20


@dataclass(frozen=True)
class Ray:
    """An engine on a Ray cluster. With `address`, it uses that cluster. Otherwise it starts a local cluster with
    `workers` cores, and shuts it down when the session ends.
    """

    workers: int = 2
    address: str = ""
    gpus: float = 0  #: per worker

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        todo = list(numbers)
        if not todo:
            return
        with self.session():
            import ray

            # one copy for all workers, also for their replacements; pieces in memory are sent one by one
            job = ray.put((stage, None if is_held(pieces) else pieces, todo[0]))
            actor = ray.remote(num_cpus=1, num_gpus=self.gpus)(_Worker)
            hire = partial(_Actor, actor, job, pieces)
            for number, answer in run_on_workers(hire, self.workers, todo, ray.exceptions.RayActorError):
                if isinstance(answer, CreperieError):
                    raise answer
                yield number, from_bytes(answer)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Run the block in a Ray session. A session that this method starts is shut down at the end."""
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


class _Actor:
    """The driver's handle on a Ray actor. If the actor's machine cannot read the source's files, the driver sends the
    pieces to the actor.
    """

    def __init__(self, actor: Any, job: Any, pieces: Pieces) -> None:
        self.actor, self.pieces = actor.remote(job), pieces
        self.started: Future[Any] | None = None

    def begin(self, number: int | None) -> Future[Any]:
        if self.started is None or number is None:
            self.started = self.actor.reads.remote().future()
            return self.started
        sent = None if self.started.result() else to_bytes(self.pieces.piece(number))
        return self.actor.compute.remote(number, sent).future()

    def end(self) -> None:
        import ray

        ray.kill(self.actor)


class _Worker:
    """The code of a Ray actor. It opens the stage once, then computes pieces by their numbers."""

    def __init__(self, job: tuple[Stage, Pieces | None, int]) -> None:
        self.stage, self.pieces, self.first = job
        self.work: Work | None = None

    def reads(self) -> bool:
        """Return whether this actor can read pieces itself. The call returns only when the actor has started."""
        try:
            return self.pieces is not None and self.pieces.piece(self.first) is not None
        except (CreperieError, OSError):
            return False

    def compute(self, number: int, sent: bytes | None) -> bytes | CreperieError:
        try:
            if self.work is None:  # not in __init__: Ray would restart a failing worker forever
                self.work = opened(self.stage)
            if sent is not None:
                return to_bytes(self.work(from_bytes(sent)))
            assert self.pieces is not None
            return to_bytes(self.work(self.pieces.piece(number)))
        except CreperieError as e:  # bad data is not a failure of the worker: raised once, not retried
            return e
