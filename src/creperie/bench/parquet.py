"""Reading Parquet files: a damaged one, or one of another kind, is a DataError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from creperie.core import DataError


@contextmanager
def reading_parquet(place: Path) -> Iterator[None]:
    """Raise a DataError that names the place if Parquet cannot be read during the block."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, OverflowError) as e:
        raise DataError(f"cannot be read as Parquet ({str(e)[:120]})", where=place) from None
