"""The Ray engine: Ray Data maps the stage over pieces with a pool of actors. Ray schedules, retries and restarts.

Every actor opens the stage once (a model is loaded once per worker) and reads the pieces that it is given itself, so a
source that lies in files passes through no driver. Ray replaces a worker or node that dies; its piece is done
again, and because a piece's result comes as one row it is never half there.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from creperie.core import CreperieError, UsageError, missing_extra
from creperie.engine.pieces import Numbered, Pieces, Stage, Work, from_bytes, opened, to_bytes

#: Shared memory of a Ray that is started here. Pieces are small and are taken away as they are done.
STORE_BYTES = 200 << 20


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the one at `address`, or one of `workers` cores started here and ended afterwards."""

    workers: int = 2
    address: str = ""
    gpus: float = 0  #: for every worker

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        todo = list(numbers)
        if not todo:
            return
        with self.session():
            yield from self._map(stage, pieces, todo)

    def _map(self, stage: Stage, pieces: Pieces, todo: list[int]) -> Numbered:
        import ray
        import ray.data

        shared = ray.put(pieces)  # one copy for all workers; of a source in files, only its description
        rows = [{"piece": number} for number in todo]
        with _quiet_context():
            dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                _Worker,
                fn_constructor_args=(stage, [shared]),  # within a list: resolved by the worker, not copied to it
                batch_size=1,
                batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(size=min(self.workers, len(todo))),
                num_cpus=1,
                num_gpus=self.gpus or None,
            )
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
                for row in batch.to_pylist():
                    if row["error"]:
                        raise pickle.loads(row["error"])  # written by our own worker, a few lines below
                    yield int(row["piece"]), from_bytes(row["result"])

    @contextmanager
    def session(self) -> Iterator[None]:
        """In a Ray session; one that was begun here is ended here."""
        try:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
            import ray
            import ray.data
        except ImportError:
            raise missing_extra("ray", "ray") from None
        if ray.is_initialized():
            yield
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        handler = signal.getsignal(signal.SIGTERM)
        self._start(ray)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray puts its own in place, which ends without a word
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
            what = f"there is no Ray cluster to reach ({str(e).splitlines()[0][:120]})"
            raise UsageError(what, where=self.address, hint="start one with: ray start --head") from None


class _Worker:
    """An actor of Ray Data: opens the stage once, then turns numbers of pieces into results."""

    def __init__(self, stage: Stage, held: list[Any]) -> None:
        import ray

        self.pieces: Pieces = ray.get(held[0])
        self.stage = stage
        self.work: Work | None = None

    def __call__(self, batch: pa.Table) -> pa.Table:
        number = batch.column("piece")[0].as_py()
        result: bytes | None = None
        error: bytes | None = None
        try:
            if self.work is None:  # not in __init__: Ray would start a worker that cannot again and again
                self.work = opened(self.stage)
            result = to_bytes(self.work(self.pieces.piece(number)))
        except CreperieError as e:  # bad data is not a failure of the worker: told once, not tried again
            error = pickle.dumps(e)
        columns = {"piece": pa.array([number], pa.int64()), "result": pa.array([result], pa.large_binary())}
        return pa.table({**columns, "error": pa.array([error], pa.binary())})


@contextmanager
def _quiet_context() -> Iterator[None]:
    """Ray Data without bars and banners of its own: progress is told by whoever takes the results."""
    from ray.data import DataContext

    context = DataContext.get_current()
    before = context.enable_progress_bars, context.print_on_execution_start
    context.enable_progress_bars = context.print_on_execution_start = False
    try:
        yield
    finally:
        context.enable_progress_bars, context.print_on_execution_start = before
