"""The plan of a download, made before anything is fetched: files, bytes, and a check of the disk space."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench.catalog.entries import CatalogEntry, File, total_size
from creperie.bench.images import safe_path
from creperie.core import UsageError, option

#: Downloads of more bytes than this need the user's consent.
LARGE = 5 * 10**9
#: Bytes to leave free on the disk.
MARGIN = 200 * 10**6


@dataclass(frozen=True)
class DownloadOptions:
    """Options of `get_benchmark`."""

    copy: Path | None = option(None, "Your own copy of the published files.", flags="--from", metavar="PATH")
    out: Path | None = option(None, "Where to write it, instead of the data home.", metavar="DIR")
    images: str = option("fetch", "fetch, none, or your own: a folder, zip or Parquet file.", metavar="fetch|none|DIR")
    copy_images: bool = option(False, "Copy the images into the benchmark's folder.")
    mirror: str = option("", "Fetch from URL/HOST/PATH instead of HOST/PATH.", metavar="URL")
    large_ok: bool = option(False, "Fetch the images even if they are many gigabytes.", flags="--yes")
    force: bool = option(False, "Replace what is in the `out=` folder.")


@dataclass(frozen=True)
class DownloadPlan:
    """The files and images that are still to be fetched.

    The exact number of images is known only when the items are on disk. Before that, `images` is the number in the
    catalog.
    """

    entry: CatalogEntry
    files: tuple[File, ...]
    images: int | None
    image_bytes: int | None

    @property
    def file_bytes(self) -> int | None:
        return total_size(f for f in self.files if not f.optional)

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
    """Return the files that are not in the folder."""
    places = {safe_path(folder, f.saved_as): f for f in files}
    return [file for path, file in places.items() if not path.is_file() or path.stat().st_size == 0]


def check_room(folder: Path, needed: int, *, large_ok: bool) -> None:
    """Raise a UsageError if a download of `needed` bytes does not fit on the disk. Unless `large_ok` is set, also raise
    one if the download is very large (more than `LARGE` bytes).
    """
    if needed > LARGE and not large_ok:
        raise UsageError(
            f"the images take about {size_text(needed)}",
            where=folder,
            hint="pass `yes=True` to fetch them anyway, or `images='none'` for the text alone",
        )
    free = shutil.disk_usage(next(p for p in (folder, *folder.absolute().parents) if p.exists())).free
    if needed + MARGIN > free:
        raise UsageError(
            f"about {size_text(needed)} are needed, but only {size_text(free)} are free here",
            where=folder,
            hint="make room, or set CREPERIE_HOME to a folder on another disk",
        )


def size_text(count: int) -> str:
    """Return a number of bytes in a readable unit.

    >>> size_text(999), size_text(1_706_288), size_text(254_280_000)
    ('999 bytes', '1.7 MB', '254.3 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
