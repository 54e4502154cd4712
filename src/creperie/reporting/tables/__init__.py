"""The papers' tables, as data, and a run's figures beside them."""

from creperie.reporting.tables.beside import FilledTable, beside
from creperie.reporting.tables.published import Column, PublishedRow, PublishedTable, published_table, published_tables

__all__ = ["Column", "FilledTable", "PublishedRow", "PublishedTable", "beside", "published_table", "published_tables"]
