"""Every benchmark creperie knows by name, and how to get it."""

from creperie.bench.catalog.entries import CatalogEntry, catalog_entries, find_entry
from creperie.bench.catalog.get import Downloaded, DownloadOptions, get_benchmark
from creperie.bench.catalog.places import data_home, find_installed, installed_benchmarks

__all__ = [
    "CatalogEntry",
    "DownloadOptions",
    "Downloaded",
    "catalog_entries",
    "data_home",
    "find_entry",
    "find_installed",
    "get_benchmark",
    "installed_benchmarks",
]
