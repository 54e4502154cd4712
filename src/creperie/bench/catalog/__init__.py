"""Every benchmark creperie knows by name, and how to get it."""

from creperie.bench.catalog.entries import Entry, entries, find
from creperie.bench.catalog.get import Got, Wish, get
from creperie.bench.catalog.places import data_home, find_installed, installed

__all__ = ["Entry", "Got", "Wish", "data_home", "entries", "find", "find_installed", "get", "installed"]
