"""The Ray engine: Ray Data maps the stage over pieces with a pool of actors. Ray schedules, retries and restarts.

Every actor opens the stage once (a model is loaded once per worker) and reads its pieces itself, so that sources in
files do not pass through the driver. Ray replaces a worker or node that dies and repeats its piece; the result of a
piece is one row, so it is never incomplete.
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

#: Object store of a Ray that is started here, in bytes. Pieces are small and are removed when they are done.
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
        import ray.data

        shared = ray.put(pieces)  # one copy for all workers; for a source in files, only its description
        rows = [{"piece": number} for number in todo]
        with _quiet_context():
            dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                _Worker,
                fn_constructor_args=(stage, [shared]),  # inside a list: the worker resolves it, Ray does not copy it
                batch_size=1,
                batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(size=min(self.workers, len(todo))),
                num_cpus=1,
                num_gpus=self.gpus or None,
            )
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
                for row in batch.to_pylist():
                    if row["error"]:
                        raise pickle.loads(row["error"])  # pickled by our own worker below
                    yield int(row["piece"]), from_bytes(row["result"])

    @contextmanager
    def session(self) -> Iterator[None]:
        """Run the block in a Ray session; a session that was started here is shut down at the end."""
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
            what = f"there is no Ray cluster to reach ({str(e).splitlines()[0][:120]})"
            raise UsageError(what, where=self.address, hint="start one with: ray start --head") from None


class _Worker:
    """A Ray Data actor that opens the stage once, then computes the result of each piece it is given by number."""

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
            if self.work is None:  # not in __init__: Ray would restart a failing worker forever
                self.work = opened(self.stage)
            result = to_bytes(self.work(self.pieces.piece(number)))
        except CreperieError as e:  # bad data is not a failure of the worker: raised once, not retried
            error = pickle.dumps(e)
        columns = {"piece": pa.array([number], pa.int64()), "result": pa.array([result], pa.large_binary())}
        return pa.table({**columns, "error": pa.array([error], pa.binary())})


@contextmanager
def _quiet_context() -> Iterator[None]:
    """Turn off the progress bars and banners of Ray Data during the block: the caller reports progress."""
    from ray.data import DataContext

    context = DataContext.get_current()
    before = context.enable_progress_bars, context.print_on_execution_start
    context.enable_progress_bars = context.print_on_execution_start = False
    try:
        yield
    finally:
        context.enable_progress_bars, context.print_on_execution_start = before
