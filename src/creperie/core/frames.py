"""Arrow tables as data frames of pandas or polars, neither of which creperie needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from creperie.core.errors import missing_module


def as_pandas(table: Any) -> Any:
    """Return an Arrow table as a pandas data frame; the error names the package where it is not installed."""
    _installed("pandas")
    return table.to_pandas()


def as_polars(table: Any) -> Any:
    """Return an Arrow table as a polars data frame; the error names the package where it is not installed."""
    return _installed("polars").from_arrow(table)


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as e:
        raise missing_module(e) from None
