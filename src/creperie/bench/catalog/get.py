"""Getting a benchmark by name: its files are downloaded or taken from the user's copy, then saved as a benchmark
folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.bench.catalog.download import Fetcher, Limits, open_fetcher
from creperie.bench.catalog.entries import CatalogEntry, File, find_entry
from creperie.bench.catalog.fetch import fetch_images
from creperie.bench.catalog.places import MANIFEST_FILE, benchmark_folder, downloads_folder, how_to_get, images_folder
from creperie.bench.catalog.plan import DownloadPlan, check_room, missing
from creperie.bench.catalog.published import Published, download, downloaded, own_copy, read_published
from creperie.core import DataError, Progress, UsageError, check_target, option, read_json, silent, with_options

if TYPE_CHECKING:
    from creperie.bench.benchmark import Benchmark
    from creperie.bench.images import ImageStore


@dataclass(frozen=True)
class CatalogPictures:
    """The images of a benchmark: their store, and how many images are present. If `store` is None, the benchmark keeps
    its own store.

    `missing` lists the images that could not be fetched, each with the reason and the items that need it.
    """

    store: ImageStore | None = None
    needed: int = 0
    here: int = 0
    fetched: int = 0
    missing: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def own_images(bench: Benchmark, place: str) -> CatalogPictures:
    """Return the images in a folder, zip file or Parquet file that the user has named (`place`)."""
    from creperie.bench.benchmark import image_keys
    from creperie.bench.stores import open_store

    store, keys = open_store(place), image_keys(bench)
    here = sum(key in store for key in keys)
    notes = (f"{len(keys) - here:,} images are not in {place}",) if here < len(keys) else ()
    return CatalogPictures(store, len(keys), here, notes=notes)


def images_beside(entry: CatalogEntry, bench: Benchmark, *, fetching: bool) -> CatalogPictures:
    """Return the images that came with the items. If the user wants images (`fetching`) and some are missing, the
    result includes a note that says how to get them.
    """
    from creperie.bench.benchmark import image_keys

    keys = image_keys(bench)
    here = sum(key in bench.images for key in keys) if bench.images.location else 0
    notes = (_by_hand(entry, entry.images.by_hand),) if fetching and here < len(keys) and entry.images.by_hand else ()
    return CatalogPictures(None, len(keys), here, notes=notes)


def images_to_fetch(entry: CatalogEntry, bench: Benchmark) -> tuple[dict[str, File | None], list[File]]:
    """Return a mapping from each image key to its file, and a list of the files that are not on disk. A key without a
    known address maps to None.
    """
    from creperie.bench.benchmark import image_keys

    files = {key: entry.images.find(key) for key in image_keys(bench)}
    files_by_name = {f.saved_as: f for f in files.values() if f is not None}
    return files, missing(files_by_name.values(), images_folder(entry))


def fetch_pictures(
    fetcher: Fetcher, entry: CatalogEntry, bench: Benchmark, *, large_ok: bool, progress: Progress
) -> CatalogPictures:
    """Fetch the images that are not on disk yet, and return the result. Images without a known address are left out."""
    from creperie.bench.stores import open_store

    folder = images_folder(entry)
    files, todo = images_to_fetch(entry, bench)
    check_room(folder, entry.images.bytes_of(len(todo)), large_ok=large_ok)
    folder.mkdir(parents=True, exist_ok=True)
    result = fetch_images(fetcher, todo, folder, progress)
    failed = {k: result.missing[f.saved_as] for k, f in files.items() if f is not None and f.saved_as in result.missing}
    items = items_by_image(bench, set(failed))
    lost = tuple({"image": k, "why": e.what, "url": e.where, "items": items[k]} for k, e in failed.items())
    unlisted = sum(f is None for f in files.values())
    what = entry.images.by_hand or "no address is known for them"
    return CatalogPictures(
        store=open_store(folder),
        needed=len(files),
        here=len(files) - unlisted - len(lost),
        fetched=len(result.received),
        missing=lost,
        notes=(_by_hand(entry, what, f"{unlisted:,} "),) if unlisted else (),
    )


def items_by_image(bench: Benchmark, keys: set[str]) -> dict[str, list[str]]:
    """Return, for each of the image keys, the items that need the image, as subset/id."""
    from creperie.bench.images import split_reference

    users: dict[str, list[str]] = {}
    if not keys:
        return users
    columns = (bench.column(name).to_pylist() for name in ("subset", "id", "images"))
    for subset, id_, references in zip(*columns, strict=True):
        for key in {split_reference(r)[0] for r in references} & keys:
            users.setdefault(key, []).append(f"{subset}/{id_}")
    return users


def _by_hand(entry: CatalogEntry, what: str, count: str = "the ") -> str:
    return f"{count}images must be fetched by hand ({what}); then run `creperie data get {entry.name} --images DIR`"


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
class Downloaded:
    """The result of `get_benchmark`. It is complete if all images with a known address are on disk."""

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
    """Return what `get_benchmark` would fetch, without fetching or writing anything."""
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


@with_options(wish=DownloadOptions)
def get_benchmark(
    name: str, *, wish: DownloadOptions, limits: Limits | None = None, progress: Progress = silent
) -> Downloaded:
    """Download a benchmark, or read the user's copy of it, save it as a benchmark folder, and return the result.

    A repeated call resumes an interrupted download; files that are already on disk are not fetched again.
    """
    from creperie.bench.storage import WRITTEN, save

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
    beside = images_beside(entry, bench, fetching=wish.images == "fetch")
    if wish.images == "none" or not entry.images.sources or beside.here == beside.needed:
        return beside
    return fetch_pictures(fetcher, entry, bench, large_ok=wish.large_ok, progress=progress)


def mirror_of(wish: DownloadOptions) -> str:
    """Return the address of the mirror that the options or $CREPERIE_MIRROR name; empty if there is none."""
    url = wish.mirror or os.environ.get("CREPERIE_MIRROR", "")
    if url and not url.startswith(("http://", "https://")):
        raise UsageError("the mirror is not a URL", where=url, hint="begin it with http:// or https://")
    return url


def check_readable(entry: CatalogEntry) -> None:
    """Raise a UsageError if creperie has no reader for the benchmark."""
    if not entry.format:
        raise UsageError(f"creperie cannot read {entry.title}", where=entry.name, hint=how_to_get(entry))


def check_downloadable(entry: CatalogEntry) -> None:
    if entry.how != "download":
        raise UsageError(f"{entry.title} cannot be fetched automatically", where=entry.name, hint=how_to_get(entry))


def _is_ours(target: Path, entry: CatalogEntry) -> bool:
    """Return whether the folder was written by `get_benchmark` for this benchmark."""
    if not (target / MANIFEST_FILE).is_file():
        return False
    try:
        document = read_json(target / MANIFEST_FILE)
        return bool(document["name"] == entry.name and any(step["op"] == "get" for step in document["provenance"]))
    except (DataError, KeyError, TypeError):
        return False
