"""What engines work on: sources cut into numbered pieces, and stages, which are what is done to every piece.

Any piece can be read alone, by any worker, any number of times. A stage is sent to other processes, so it is a plain
value that can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from creperie.core import UsageError

#: Rows of a piece, unless told: seconds of parsing, so that starting it costs nothing and losing it costs little.
ROWS = 2048


class Pieces(Protocol):
    """A source in numbered pieces, the same whoever reads them."""

    @property
    def rows(self) -> int:
        """Rows in all."""
        ...

    @property
    def counts(self) -> Sequence[int]:
        """The rows of every piece."""
        ...

    def __len__(self) -> int: ...

    def piece(self, number: int) -> pa.Table: ...


@dataclass(frozen=True)
class Held:
    """A table in memory.

    >>> [p.num_rows for p in all_pieces(Held(pa.table({"id": ["a", "b", "c"]}), 2))]
    [2, 1]
    """

    table: pa.Table
    size: int = ROWS

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"pieces of {self.size} rows", hint="a piece has at least one row")

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def counts(self) -> Sequence[int]:
        return even_counts(self.rows, self.size)

    def __len__(self) -> int:
        return -(-self.rows // self.size)

    def piece(self, number: int) -> pa.Table:
        return self.table.slice(number * self.size, self.size)


def even_counts(rows: int, size: int) -> list[int]:
    """Return rows cut into pieces of one size.

    >>> even_counts(5, 2)
    [2, 2, 1]
    """
    return [min(size, rows - first) for first in range(0, rows, size)]


def all_pieces(pieces: Pieces) -> Iterator[pa.Table]:
    """Yield every piece, in order."""
    for number in range(len(pieces)):
        yield pieces.piece(number)


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """Return a table from an Arrow stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


Work = Callable[[pa.Table], pa.Table]
Numbered = Iterator[tuple[int, pa.Table]]


class Stage(Protocol):
    """A batch in, a batch out, the same for a row whatever stands beside it."""

    def __call__(self, batch: pa.Table) -> pa.Table: ...


@runtime_checkable
class Opening(Protocol):
    """A stage that holds something heavy, such as a model: `open` is called once in every worker."""

    def open(self) -> Work: ...


def opened(stage: Stage) -> Work:
    """Return the stage, ready to work."""
    return stage.open() if isinstance(stage, Opening) else stage
