"""The papers' tables, as data, and a run's figures beside them."""

from creperie.report.tables.beside import Filled, beside
from creperie.report.tables.published import Column, Row, Table, published_table, published_tables

__all__ = ["Column", "Filled", "Row", "Table", "beside", "published_table", "published_tables"]
