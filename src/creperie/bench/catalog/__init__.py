"""Every benchmark creperie knows by name, and how to get it."""

from creperie.bench.catalog.entries import CatalogEntry, entries, find
from creperie.bench.catalog.get import DownloadOptions, Got, get
from creperie.bench.catalog.places import data_home, find_installed, installed

__all__ = [
    "CatalogEntry",
    "DownloadOptions",
    "Got",
    "data_home",
    "entries",
    "find",
    "find_installed",
    "get",
    "installed",
]
