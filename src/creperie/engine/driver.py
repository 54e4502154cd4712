"""The driver: it hands out pieces to workers, replaces workers that die, and keeps track of the pieces that remain."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from creperie.engine.pieces import LIVES, WorkerLostError

if TYPE_CHECKING:
    from concurrent.futures import Future

#: Pieces in flight per worker: one that it computes, and one that waits there, so that no worker waits for the driver.
AHEAD = 2


class Worker(Protocol):
    """A worker that computes one piece after another, in the order in which `begin` is called."""

    def begin(self, number: int | None) -> Future[Any]:
        """Start computing piece `number` and return a future of the result. The future fails if the worker dies. If
        `number` is None, the future is done as soon as the worker has started.
        """
        ...

    def end(self) -> None:
        """Stop the worker, even if it has not started yet or is computing a piece."""
        ...


@dataclass
class _Hired:
    worker: Worker
    owes: deque[int | None] = field(default_factory=deque)  #: the pieces that it was given, the one it is at first


def run_on_workers(
    hire: Callable[[], Worker], workers: int, numbers: Iterable[int], lost: type[Exception]
) -> Iterator[tuple[int, Any]]:
    """Let workers compute the pieces in `numbers`. Yield (number, result) in order of completion, each number once.

    `hire` starts a worker. A worker whose future raises the exception `lost` is replaced, and its pieces go to others.
    If several workers (`LIVES`) die during the same piece, the run ends with an error. A worker that starts late, or
    does not start at all, does not delay the pieces.
    """
    waiting, deaths = deque(numbers), Counter[int | None]()
    left, ended = len(waiting), SimpleQueue[tuple[int, int | None, Any]]()
    crew: dict[int, _Hired] = {}
    keys = count()

    def ask(key: int, number: int | None) -> None:
        crew[key].owes.append(number)  # the callback knows the key alone: nothing else may keep a worker alive
        crew[key].worker.begin(number).add_done_callback(lambda future: ended.put((key, number, future)))

    def start() -> None:
        key = next(keys)
        crew[key] = _Hired(hire())
        ask(key, None)

    try:
        for _ in range(min(workers, left)):
            start()
        while left:
            key, number, future = ended.get()
            if key not in crew:  # it died, and its pieces were given to others
                continue
            try:
                answer = future.result()
            except lost:
                first, *rest = crew.pop(key).owes
                deaths[first] += 1  # None: before its first piece, perhaps with a whole node of workers
                if deaths[first] == (LIVES * workers if first is None else LIVES):
                    raise WorkerLostError from None
                waiting.extendleft(n for n in (*reversed(rest), first) if n is not None)
                start()
                continue
            crew[key].owes.remove(number)
            while waiting and len(crew[key].owes) < AHEAD:
                ask(key, waiting.popleft())
            if not crew[key].owes:
                del crew[key]  # a worker without a reference ends and frees its core for one that waits
            if number is not None:
                left -= 1
                yield number, answer
    finally:
        for hired in crew.values():
            hired.worker.end()
        crew.clear()  # a traceback keeps local variables, and thus workers, alive
