"""Parquet files with a checksum per data page, which is verified when the page is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP = 65_536
_CHECKED: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}


@contextmanager
def reading_parquet(place: object, hint: str = "") -> Iterator[None]:
    """Turn Parquet errors in the block into a DataError with `place` as its location."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError, OverflowError) as e:
        raise DataError(f"cannot be read as Parquet ({str(e)[:120]})", where=place, hint=hint) from None


def open_parquet(file: Any) -> pq.ParquetFile:
    """Return an opened Parquet file, given as a path or a file object. Its checksums are verified as pages are read."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, page_checksum_verification=True)


def read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return the table in a file, with all or some of its columns."""
    with open_parquet(path) as file:
        return file.read(columns=columns)


def write_parquet(table: pa.Table, path: Any, *, dictionary_limit: int | None = None) -> None:
    """Write a table to a path or file object. No column's dictionary grows beyond `dictionary_limit` bytes."""
    import pyarrow.parquet as pq

    _make_folder(path)
    pq.write_table(table, path, row_group_size=ROW_GROUP, dictionary_pagesize_limit=dictionary_limit, **_CHECKED)


class TableWriter:
    """A writer that takes a table in pieces. It writes the same file as `write_parquet` and buffers about one row
    group.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        _make_folder(path)
        self._file = pq.ParquetWriter(path, schema, **_CHECKED)
        self._waiting: list[pa.Table] = []
        self.rows = 0

    def write(self, piece: pa.Table) -> None:
        import pyarrow as pa

        self._waiting.append(piece)
        self.rows += piece.num_rows
        while sum(t.num_rows for t in self._waiting) >= ROW_GROUP:
            whole = pa.concat_tables(self._waiting)
            self._file.write_table(whole.slice(0, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
            self._waiting = [whole.slice(ROW_GROUP)]

    def close(self) -> None:
        """Write the remaining rows and close the file. Without any rows, the file contains an empty table."""
        import pyarrow as pa

        whole = pa.concat_tables([self._file.schema.empty_table(), *self._waiting])
        if whole.num_rows or not self.rows:
            self._file.write_table(whole.combine_chunks(), row_group_size=ROW_GROUP)
        self._file.close()


def _make_folder(path: Any) -> None:
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
