"""What engines work on. A source is cut into numbered pieces; a stage is a function that is applied to every piece.

Any worker can read any piece by itself, any number of times. Stages are sent to other processes, so they must be
picklable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from creperie.core import CreperieError, UsageError

#: Default rows per piece: seconds of parsing, so that neither starting nor repeating a piece costs much.
ROWS = 2048
#: How often the work on a piece may kill its worker before it is given up.
LIVES = 3


class WorkerLostError(CreperieError):
    """Raised when several workers have died during the same piece, and trying again is pointless."""

    def __init__(self) -> None:
        hint = "run the same command with fewer `workers=`: it continues where it stopped"
        super().__init__(f"{LIVES} times in a row a worker was killed, perhaps for lack of memory", hint=hint)


class Pieces(Protocol):
    """A source cut into numbered pieces. In any process, `piece` returns the same table for the same number."""

    @property
    def counts(self) -> Sequence[int]:
        """The number of rows of each piece."""
        ...

    @property
    def rows(self) -> int:
        """The total number of rows."""
        return sum(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def piece(self, number: int) -> pa.Table: ...


@dataclass(frozen=True)
class Held(Pieces):
    """A table in memory as a source of pieces.

    >>> Held(pa.table({"id": ["a", "b", "c"]}), 2).piece(1).num_rows
    1
    """

    table: pa.Table
    size: int = ROWS
    in_memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(
                f"`size={self.size}`: a piece must have at least one row", hint="give a size of at least 1"
            )

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def counts(self) -> Sequence[int]:
        return even_counts(self.rows, self.size)

    def piece(self, number: int) -> pa.Table:
        return self.table.slice(number * self.size, self.size)


def is_held(pieces: Pieces) -> bool:
    """Return True if the pieces are in this process's memory. Other processes cannot read them there."""
    return bool(getattr(pieces, "in_memory", False))


@dataclass(frozen=True)
class FilePieces:
    """A file in pieces of `size` rows. `starts` holds the byte offset of each piece."""

    path: str
    starts: tuple[int, ...]
    rows: int
    size: int = ROWS

    @property
    def counts(self) -> Sequence[int]:
        return even_counts(self.rows, self.size)

    def __len__(self) -> int:
        return len(self.starts)


#: the columns of a source of captions
CAPTIONS = pa.schema([("id", pa.string()), ("text", pa.string()), ("image", pa.string())])


def caption_table(rows: Sequence[tuple[str, str, str | None]]) -> pa.Table:
    """Return (id, caption, image) of each row as a table."""
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table([pa.array(c, pa.string()) for c in columns], schema=CAPTIONS)


def even_counts(rows: int, size: int) -> list[int]:
    """Return the number of rows of each piece if `rows` rows are cut into pieces of `size` rows.

    >>> even_counts(5, 2)
    [2, 2, 1]
    """
    return [min(size, rows - first) for first in range(0, rows, size)]


def to_bytes(table: pa.Table) -> bytes:
    """Return a table serialised as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """Return the table in an Arrow stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


Work = Callable[[pa.Table], pa.Table]
Numbered = Iterator[tuple[int, pa.Table]]


@runtime_checkable
class Opening(Protocol):
    """A stage that loads something heavy, such as a model. `open` is called once per worker. It returns the function
    that computes a piece's result.
    """

    def open(self) -> Work: ...


#: A function from table to table, or what opens one. The result of a row depends on no other row of its batch.
Stage = Work | Opening


def opened(stage: Stage) -> Work:
    """Return the function that applies a stage to a table. If the stage has a model, the model is loaded first."""
    return stage.open() if isinstance(stage, Opening) else stage
