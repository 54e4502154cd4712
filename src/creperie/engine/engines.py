"""The engines: `Local` (this process or local processes) and `Ray` (in `cluster`, imported when needed)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from creperie.core import UsageError, option, unknown
from creperie.engine.driver import run_on_workers
from creperie.engine.pieces import Held, Numbered, Pieces, Stage, is_held, opened

NAMES = ("local", "ray")


class Engine(Protocol):
    """The interface of engines. `run` applies a stage to pieces and yields (number, result) as they are completed."""

    @property
    def workers(self) -> int: ...

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered: ...


def session(engine: Engine | None) -> AbstractContextManager[None]:
    """Return a context manager within which all runs share one session of the engine, such as a connection to a Ray
    cluster. It does nothing for an engine without sessions.
    """
    return getattr(engine, "session", nullcontext)()


def choose_engine(name: str = "local", *, address: str = "", workers: int = 1, gpus: float = 0) -> Engine:
    """Return the engine called `name` (local or ray). The address and the GPUs per worker are for Ray only."""
    if name == "ray":
        from creperie.engine.cluster import Ray

        return Ray(workers=workers, address=address, gpus=gpus)
    if name not in NAMES:
        raise unknown("engine", name, NAMES)
    if address:
        raise UsageError(f"the engine {name!r} takes no `address=`", hint="leave it out, or pass `engine='ray'`")
    return Local(workers)


@dataclass(frozen=True)
class EngineOptions:
    """Options that choose where batches run: the engine, its workers and its address."""

    engine: str = option("local", "Where the work runs.", metavar="local|ray")
    address: str = option("", "A Ray cluster (default: one started here).", metavar="HOST:PORT")
    workers: int | None = option(None, "Workers (default: all cores with Ray or for much work, else one).", minimum=1)
    gpus: float = option(0.0, "GPUs for every worker of Ray.", minimum=0)

    def choose(self, *, many: bool = False) -> Engine:
        """Return the chosen engine. If the number of workers is not given, Ray uses one per core, and so does any
        engine for a large job (`many`). Otherwise there is a single worker.
        """
        workers = self.workers or (os.cpu_count() or 1 if many or self.engine == "ray" else 1)
        return choose_engine(self.engine, address=self.address, workers=workers, gpus=self.gpus)

    def if_needed(self) -> Engine | None:
        """Return the engine. Return None if it would run everything in this process."""
        chosen = self.choose()
        return None if isinstance(chosen, Local) and chosen.workers == 1 else chosen


@dataclass(frozen=True)
class Local:
    """An engine that runs in this process or, with several workers, in local worker processes."""

    workers: int = 1

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        todo = list(numbers)
        if self.workers > 1 and len(todo) > 1:
            yield from self._in_processes(stage, pieces, todo)
        elif todo:
            work = opened(stage)
            for number in todo:
                yield number, work(pieces.piece(number))

    def _in_processes(self, stage: Stage, pieces: Pieces, todo: Sequence[int]) -> Numbered:
        """Yield the results of worker processes, each of which computes one piece at a time."""
        from concurrent.futures.process import BrokenProcessPool

        crew: list[_Process] = []

        def hire() -> _Process:
            crew.append(_Process(stage, pieces))
            return crew[-1]

        yield from run_on_workers(hire, self.workers, todo, BrokenProcessPool)
        for process in crew:
            process.pool.shutdown()


class _Process:
    """A worker process. Each has a process pool of its own, so that its death does not end the others."""

    def __init__(self, stage: Stage, pieces: Pieces) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        self.held = pieces if is_held(pieces) else None  # its pieces are sent one by one, not all to everyone
        job = stage, None if self.held else pieces
        self.pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin_process, initargs=job)

    def begin(self, number: int | None) -> Future[Any]:
        from concurrent.futures.process import BrokenProcessPool

        sent = None if self.held is None or number is None else self.held.piece(number)
        try:
            return self.pool.submit(_apply, number, sent)
        except BrokenProcessPool as error:  # it died at an earlier piece, which the driver has yet to hear
            lost: Future[Any] = Future()
            lost.set_exception(error)
            return lost

    def end(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def gather(stage: Stage, source: Pieces | pa.Table, *, engine: Engine | None = None) -> pa.Table:
    """Apply a stage to every piece and return all rows as one table, in the order of the source."""
    pieces = Held(source) if isinstance(source, pa.Table) else source
    tables = dict((engine or Local()).run(stage, pieces, range(len(pieces))))
    return pa.concat_tables([tables[k] for k in range(len(pieces))]) if tables else pa.table({})


_worker: dict[str, Any] = {}


def _begin_process(stage: Stage, pieces: Pieces | None) -> None:
    """Initialise a worker process: open the stage, and exit when the parent process ends, even if it was killed."""
    import multiprocessing
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles it and shuts the pool down
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    try:
        _worker.update(work=opened(stage), pieces=pieces)
    except Exception as e:  # raised with the first piece: now, the pool would only report that it is broken
        _worker.update(work=e)


def _apply(number: int | None, piece: pa.Table | None) -> Any:
    if number is None:
        return None
    if isinstance(_worker["work"], Exception):
        raise _worker["work"]
    return _worker["work"](_worker["pieces"].piece(number) if piece is None else piece)
