"""The folders in which creperie stores what it has fetched.

$CREPERIE_HOME            else $XDG_DATA_HOME/creperie, else ~/.local/share/creperie
  data/NAME/              a benchmark as creperie writes it
  downloads/NAME/         the published files, unchanged
  images/FOLDER/          single images, shared by the benchmarks that use them
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.core import UsageError

if TYPE_CHECKING:
    from creperie.bench.catalog.entries import CatalogEntry

MANIFEST_FILE = "creperie.json"  #: the file that marks a folder as a benchmark


def data_home() -> Path:
    """Return the folder that contains all stored data."""
    own = os.environ.get("CREPERIE_HOME")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_DATA_HOME")
    return (Path(shared) if shared else Path.home() / ".local" / "share") / "creperie"


def benchmark_folder(entry: CatalogEntry) -> Path:
    return data_home() / "data" / entry.name


def downloads_folder(entry: CatalogEntry) -> Path:
    return data_home() / "downloads" / entry.name


def images_folder(entry: CatalogEntry) -> Path:
    return data_home() / "images" / entry.images.folder


def installed_benchmarks(entry: CatalogEntry) -> Path | None:
    """Return the folder of a benchmark that was fetched by `creperie data get`; None if it has not been fetched."""
    folder = benchmark_folder(entry)
    return folder if (folder / MANIFEST_FILE).is_file() else None


def find_installed(name: str) -> Path:
    """Return the folder that `creperie data get NAME` wrote; raise a UsageError if there is none."""
    from creperie.bench.catalog.entries import find_entry

    entry = find_entry(name)
    folder = installed_benchmarks(entry)
    if folder is None:
        raise UsageError(f"{entry.title} is not on this machine yet", where=entry.name, hint=how_to_get(entry))
    return folder


def how_to_get(entry: CatalogEntry) -> str:
    """Return a short instruction that says how to download or import a benchmark."""
    if entry.how == "download":
        return f"run `creperie data get {entry.name}`"
    if entry.how == "import":
        return f"{entry.own_copy}; there is no reader for it yet, so import it as a table: `creperie data import`"
    return f"{entry.own_copy}; then run `creperie data get {entry.name} --from DIR`"
