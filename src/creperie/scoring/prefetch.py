"""Work that threads do some way ahead of who needs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`work` on each row by threads, some way ahead of who takes the results; results come in order."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[int], T], rows: Iterable[int], limit: int) -> None:
        self._pool, self._work, self._rows = pool, work, iter(rows)
        self._running: deque[Future[T]] = deque()
        self.limit = limit
        self._fill()

    def _fill(self) -> None:
        while len(self._running) < self.limit and (row := next(self._rows, None)) is not None:
            self._running.append(self._pool.submit(self._work, row))

    def first(self) -> T | None:
        """The first result, which stays to be taken."""
        return self._running[0].result() if self._running else None

    def reach(self, limit: int) -> None:
        """Go further ahead."""
        self.limit = limit
        self._fill()

    def take(self, count: int) -> list[T]:
        """The next results, at most `count`."""
        taken: list[T] = []
        while self._running and len(taken) < count:
            taken.append(self._running.popleft().result())
            self._fill()
        return taken
