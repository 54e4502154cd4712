"""The papers' tables as data, with the results of runs beside them."""

from creperie.reporting.tables.filled import FilledTable, fill_table
from creperie.reporting.tables.published import Column, PublishedRow, PublishedTable, published_table, published_tables

__all__ = [
    "Column",
    "FilledTable",
    "PublishedRow",
    "PublishedTable",
    "fill_table",
    "published_table",
    "published_tables",
]
