"""From a name to a benchmark folder: the published files, read by their format, with the images they need."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.bench.catalog.download import Fetcher, Limits, open_fetcher
from creperie.bench.catalog.entries import CatalogEntry, find_entry
from creperie.bench.catalog.pictures import CatalogPictures, fetch_pictures, images_beside, images_to_fetch, own_images
from creperie.bench.catalog.places import MANIFEST_FILE, benchmark_folder, downloads_folder, how_to_get
from creperie.bench.catalog.plan import DownloadPlan, missing
from creperie.bench.catalog.published import Published, download, downloaded, own_copy, read_published
from creperie.core import DataError, Progress, UsageError, check_target, read_json, silent

if TYPE_CHECKING:
    from creperie.bench.benchmark import Benchmark


@dataclass(frozen=True)
class DownloadOptions:
    """How to get a benchmark.

    copy: the user's own copy of the published files, instead of a download; out: where to write it, instead of the
    data home; images: "fetch", "none", or the folder, zip, tar or Parquet file that holds them.
    """

    copy: Path | None = None
    out: Path | None = None
    images: str = "fetch"
    copy_images: bool = False
    mirror: str = ""
    large_ok: bool = False
    force: bool = False


@dataclass(frozen=True)
class Downloaded:
    """The result of a download. It is complete when no image that has an address is missing."""

    entry: CatalogEntry
    folder: Path
    benchmark: Benchmark
    text: Published
    pictures: CatalogPictures

    @property
    def complete(self) -> bool:
        return not self.pictures.missing

    @property
    def notes(self) -> tuple[str, ...]:
        return self.text.notes + self.pictures.notes


def plan_download(name: str, wish: DownloadOptions | None = None) -> DownloadPlan:
    """What `get_benchmark` would fetch; nothing is fetched or written."""
    wish = wish or DownloadOptions()
    entry = find_entry(name)
    check_readable(entry)
    if wish.copy is None:
        check_downloadable(entry)
        files = tuple(missing(entry.files, downloads_folder(entry)))
        text = None if files else downloaded(entry)
    else:
        files, text = (), own_copy(entry, wish.copy)
    if wish.images != "fetch" or not entry.images.sources:
        return DownloadPlan(entry, files, 0, 0)
    count = entry.images.count if text is None else len(images_to_fetch(entry, read_published(entry, text))[1])
    return DownloadPlan(entry, files, count, None if count is None else entry.images.bytes_of(count))


def get_benchmark(
    name: str, wish: DownloadOptions | None = None, *, limits: Limits | None = None, progress: Progress = silent
) -> Downloaded:
    """Fetch a benchmark, or take the user's copy of it, and write it as a benchmark folder.

    An interrupted call continues where it stopped; what is there already is not fetched again.
    """
    from creperie.bench.storage import WRITTEN, save

    wish = wish or DownloadOptions()
    entry = find_entry(name)
    check_readable(entry)
    target = wish.out or benchmark_folder(entry)
    force = wish.force or _is_ours(target, entry)
    check_target(target, force, WRITTEN)  # before the download, not after it
    with open_fetcher(limits or Limits(), mirror_of(wish)) as fetcher:
        if wish.copy is None:
            check_downloadable(entry)
            text = download(fetcher, entry, progress)
        else:
            text = own_copy(entry, wish.copy)
        bench = read_published(entry, text)
        pictures = _pictures(fetcher, entry, bench, wish, progress)
    bench = bench if pictures.store is None else replace(bench, images=pictures.store)
    saved = save(bench, target, copy_images=wish.copy_images, force=force, progress=progress)
    return Downloaded(entry, target, saved, text, pictures)


def _pictures(
    fetcher: Fetcher, entry: CatalogEntry, bench: Benchmark, wish: DownloadOptions, progress: Progress
) -> CatalogPictures:
    if wish.images not in ("fetch", "none"):
        return own_images(bench, wish.images)
    beside = images_beside(entry, bench, wanted=wish.images == "fetch")
    if wish.images == "none" or not entry.images.sources or beside.here == beside.needed:
        return beside
    return fetch_pictures(fetcher, entry, bench, large_ok=wish.large_ok, progress=progress)


def mirror_of(wish: DownloadOptions) -> str:
    """The mirror that the call or the environment names."""
    url = wish.mirror or os.environ.get("CREPERIE_MIRROR", "")
    if url and not url.startswith(("http://", "https://")):
        raise UsageError("the mirror is not an address", where=url, hint="write it as http://… or https://…")
    return url


def check_readable(entry: CatalogEntry) -> None:
    """Refuse, before anything is fetched, what creperie cannot read."""
    if not entry.format:
        raise UsageError(f"creperie cannot read {entry.title}", where=entry.name, hint=how_to_get(entry))


def check_downloadable(entry: CatalogEntry) -> None:
    if entry.how != "download":
        raise UsageError(f"{entry.title} cannot be fetched by a program", where=entry.name, hint=how_to_get(entry))


def _is_ours(target: Path, entry: CatalogEntry) -> bool:
    """Whether an earlier `get_benchmark` of the same benchmark wrote the folder."""
    if not (target / MANIFEST_FILE).is_file():
        return False
    try:
        document = read_json(target / MANIFEST_FILE)
        return bool(document["name"] == entry.name and any(step["op"] == "get" for step in document["provenance"]))
    except (DataError, KeyError, TypeError):
        return False
