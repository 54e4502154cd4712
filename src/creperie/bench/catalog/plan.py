"""What getting a benchmark will take, before anything is fetched: files, bytes, room on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench.catalog.entries import CatalogEntry, File
from creperie.bench.images import safe_path
from creperie.core import UsageError

#: More than this is fetched only when the user has said so.
LARGE = 5 * 10**9
#: Room to leave on a disk.
MARGIN = 200 * 10**6


@dataclass(frozen=True)
class DownloadPlan:
    """What is still to be fetched. Until the text is here, the number of images is the catalog's: no more than that."""

    entry: CatalogEntry
    files: tuple[File, ...]
    images: int | None
    image_bytes: int | None

    @property
    def file_bytes(self) -> int | None:
        sizes = [f.size for f in self.files if not f.optional]
        return None if None in sizes else sum(s for s in sizes if s is not None)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "benchmark": self.entry.name,
            "files": len(self.files),
            "file_bytes": self.file_bytes,
            "images": self.images,
            "image_bytes_about": self.image_bytes,
            "urls": [f.urls[0] for f in self.files],
        }


def missing(files: Iterable[File], folder: Path) -> list[File]:
    """Return those that are not in the folder under their own name."""
    return [f for f in files if not _there(safe_path(folder, f.saved_as))]


def check_room(folder: Path, needed: int, *, large_ok: bool) -> None:
    """An error before a download that would not fit, or that is larger than anyone asked for."""
    if needed > LARGE and not large_ok:
        hint = "add `yes=True` to fetch them all the same, or `no_images=True` for the text alone"
        raise UsageError(f"the images are about {size_text(needed)}", where=str(folder), hint=hint)
    free = shutil.disk_usage(next(p for p in (folder, *folder.absolute().parents) if p.exists())).free
    if needed + MARGIN > free:
        what = f"about {size_text(needed)} are to be fetched, and {size_text(free)} are free here"
        raise UsageError(what, where=str(folder), hint="make room, or set CREPERIE_HOME to a folder on another disk")


def size_text(count: int) -> str:
    """Return a number of bytes for people to read.

    >>> size_text(999), size_text(1_706_288), size_text(254_280_000)
    ('999 bytes', '1.7 MB', '254.3 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def _there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
