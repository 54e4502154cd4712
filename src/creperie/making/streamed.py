"""Captions that are not held: a sequence of sources that reads its pieces as they are looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, overload

from creperie.engine.pieces import Pieces
from creperie.making.source import SourceCaption


class Streamed(Sequence[SourceCaption]):
    """Sources from pieces of captions, from `start` to `stop`. One piece is in memory at a time.

    A slice reads nothing and is as large as a whole: it knows where it begins and ends.
    """

    def __init__(self, pieces: Pieces, start: int = 0, stop: int | None = None) -> None:
        self.pieces = pieces
        self.start = start
        self.stop = pieces.rows if stop is None else stop
        self._begins = [0, *accumulate(pieces.counts)]
        self._last: tuple[int, list[SourceCaption]] = (-1, [])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (-1, [])}  # a worker reads for itself

    @property
    def is_remote(self) -> bool:
        """True where any machine can read it."""
        from creperie.engine.files import is_remote

        files = getattr(self.pieces, "files", None) or [getattr(self.pieces, "path", "")]
        return all(is_remote(str(file)) for file in files)

    def __len__(self) -> int:
        return max(0, self.stop - self.start)

    @overload
    def __getitem__(self, index: int) -> SourceCaption: ...
    @overload
    def __getitem__(self, index: slice) -> Streamed: ...
    def __getitem__(self, index: int | slice) -> SourceCaption | Streamed:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise ValueError("streamed captions are read from front to back")
            return _Part(self, self.start + first, self.start + max(first, last))
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} captions, none has number {index}")
        row = self.start + index % len(self)
        number = bisect_right(self._begins, row) - 1
        return self.piece(number)[row - self._begins[number]]

    def __iter__(self) -> Iterator[SourceCaption]:
        row = self.start
        while row < self.stop:
            number = bisect_right(self._begins, row) - 1
            first = row - self._begins[number]
            own = self.piece(number)[first : first + self.stop - row]
            yield from own
            row += len(own)

    def piece(self, number: int) -> list[SourceCaption]:
        """The sources of a piece; the one that was read last is at hand, for chunks are smaller than pieces."""
        if self._last[0] != number:
            table = self.pieces.piece(number)
            rows = zip(*(table.column(name).to_pylist() for name in ("id", "text", "image")), strict=True)
            self._last = number, [SourceCaption(id_, text, (image,) if image else ()) for id_, text, image in rows]
        return self._last[1]


class _Part(Streamed):
    """A slice; it reads through the whole, so that neighbours do not read a piece twice."""

    def __init__(self, whole: Streamed, start: int, stop: int) -> None:
        super().__init__(whole.pieces, start, stop)
        self.whole = whole

    def piece(self, number: int) -> list[SourceCaption]:
        return self.whole.piece(number)
