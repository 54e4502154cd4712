"""Results that workers write themselves: one Parquet file per piece in a staging folder.

The driver is told only that a file has been written. A worker on a machine that does not share the folder returns its
table instead, and the driver writes the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from creperie.core import DataError, draft_of, read_parquet, write_parquet
from creperie.engine.engines import Engine, Local
from creperie.engine.pieces import Pieces, Stage, Work, is_held, opened

#: Keys of schema metadata: the number of a piece, and the number of rows of a part that was written.
_PIECE, _WRITTEN = b"creperie.piece", b"creperie.written"


def write_parts(
    stage: Stage, pieces: Pieces, numbers: Iterable[int], folder: Path, *, engine: Engine | None = None
) -> Iterator[tuple[int, int]]:
    """Let workers write the results of the pieces in `numbers` to files in `folder`. For each file, yield the number of
    the piece and the number of rows in its result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sign = folder / f".sign-{uuid4().hex}"  # workers that see it share this file system
    sign.touch()
    try:
        for number, table in (engine or Local()).run(Writing(stage, str(sign)), Addressed(pieces), numbers):
            rows = (table.schema.metadata or {}).get(_WRITTEN)
            if rows is None:
                write_part(folder, number, table)
            yield number, table.num_rows if rows is None else int(rows)
    finally:
        sign.unlink(missing_ok=True)


@dataclass(frozen=True)
class Addressed(Pieces):
    """Pieces whose tables carry the number of the piece in their metadata."""

    pieces: Pieces

    @property
    def counts(self) -> Sequence[int]:
        return self.pieces.counts

    @property
    def in_memory(self) -> bool:
        return is_held(self.pieces)

    def piece(self, number: int) -> pa.Table:
        return self.pieces.piece(number).replace_schema_metadata({_PIECE: str(number)})


@dataclass(frozen=True)
class Writing:
    """A stage that runs another stage and writes its result to a file. It returns an empty table whose metadata holds
    the number of rows written.

    A worker can write the file only if it shares the folder with the driver. To test this, the driver puts the file
    `sign` into the folder. A worker that does not find this file returns the result itself.
    """

    stage: Stage
    sign: str

    def open(self) -> Work:
        work, sign = opened(self.stage), Path(self.sign)

        def write(batch: pa.Table) -> pa.Table:
            table = work(batch.replace_schema_metadata(None))
            if not sign.exists():
                return table
            write_part(sign.parent, int(batch.schema.metadata[_PIECE]), table)
            return pa.table({}).replace_schema_metadata({_WRITTEN: str(table.num_rows)})

        return write


def part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.parquet"


def write_part(folder: Path, number: int, table: pa.Table) -> None:
    """Write the result of piece `number` atomically. Writing the same table again gives a file with the same bytes."""
    with draft_of(part_path(folder, number)) as draft:
        write_parquet(table, draft)


def read_part(folder: Path, number: int, columns: list[str] | None = None) -> pa.Table | None:
    """Return the result of piece `number`, with all or some of its columns. Return None if the file is missing or
    damaged.
    """
    try:
        return read_parquet(part_path(folder, number), columns)
    except (OSError, pa.ArrowException, ValueError):
        return None


def all_parts(folder: Path, count: int, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Yield the first `count` parts in order. Raise a DataError if one is missing or damaged."""
    for number in range(count):
        table = read_part(folder, number, columns)
        if table is None:
            what = f"part {number} is missing or was damaged after it was written"
            raise DataError(what, where=str(folder), hint="run the command again to make this part")
        yield table
