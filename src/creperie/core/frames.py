"""Conversion of Arrow tables to pandas or polars data frames. Both packages are optional."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from creperie.core.errors import missing_module

if TYPE_CHECKING:
    import pyarrow as pa


class Framed:
    """The base class of results that can be data frames: `frame` returns the rows as an Arrow table."""

    def frame(self) -> pa.Table:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return `frame` as a pandas data frame; raise a MissingExtraError if pandas is not installed."""
        installed("pandas")
        return self.frame().to_pandas()

    def to_polars(self) -> Any:
        """Return `frame` as a polars data frame; raise a MissingExtraError if polars is not installed."""
        return installed("polars").from_arrow(self.frame())


def installed(name: str) -> Any:
    """Import and return an optional module; if it is missing, raise an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as e:
        raise missing_module(e) from None
