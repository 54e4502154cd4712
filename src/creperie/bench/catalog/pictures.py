"""The images of a benchmark: fetched one by one, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.bench.catalog.download import Fetcher
from creperie.bench.catalog.entries import CatalogEntry, File
from creperie.bench.catalog.fetch import fetch_images
from creperie.bench.catalog.places import images_folder
from creperie.bench.catalog.plan import check_room, missing
from creperie.core import Progress

if TYPE_CHECKING:
    from creperie.bench.benchmark import Benchmark
    from creperie.bench.images import ImageStore


@dataclass(frozen=True)
class CatalogPictures:
    """The store to use (None: the one that the format found), and how far it goes.

    `missing` are the images that could not be fetched: why, and which items need them.
    """

    store: ImageStore | None = None
    needed: int = 0
    here: int = 0
    fetched: int = 0
    missing: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def own_images(bench: Benchmark, place: str) -> CatalogPictures:
    """The images that the user has."""
    from creperie.bench.benchmark import image_keys
    from creperie.bench.stores import open_store

    store, keys = open_store(place), image_keys(bench)
    here = sum(key in store for key in keys)
    notes = (f"{len(keys) - here:,} images are not in {place}",) if here < len(keys) else ()
    return CatalogPictures(store, len(keys), here, notes=notes)


def images_beside(entry: CatalogEntry, bench: Benchmark, *, wanted: bool) -> CatalogPictures:
    """The images that came with the text, if any; where they are wanted and not there, a note says how to get them."""
    from creperie.bench.benchmark import image_keys

    keys = image_keys(bench)
    here = sum(key in bench.images for key in keys) if bench.images.location else 0
    notes = (_by_hand(entry, entry.images.by_hand),) if wanted and here < len(keys) and entry.images.by_hand else ()
    return CatalogPictures(None, len(keys), here, notes=notes)


def images_to_fetch(entry: CatalogEntry, bench: Benchmark) -> tuple[dict[str, File | None], list[File]]:
    """The file behind each image key (None: no address is known), and those of the files that are not here."""
    from creperie.bench.benchmark import image_keys

    files = {key: entry.images.find(key) for key in image_keys(bench)}
    wanted = {f.saved_as: f for f in files.values() if f is not None}
    return files, missing(wanted.values(), images_folder(entry))


def fetch_pictures(
    fetcher: Fetcher, entry: CatalogEntry, bench: Benchmark, *, large_ok: bool, progress: Progress
) -> CatalogPictures:
    """Every image that the items name and that has an address, unless it is here already."""
    from creperie.bench.stores import open_store

    folder = images_folder(entry)
    files, todo = images_to_fetch(entry, bench)
    check_room(folder, entry.images.bytes_of(len(todo)), large_ok=large_ok)
    folder.mkdir(parents=True, exist_ok=True)
    result = fetch_images(fetcher, todo, folder, progress)
    failed = {k: result.missing[f.saved_as] for k, f in files.items() if f is not None and f.saved_as in result.missing}
    items = items_by_image(bench, set(failed))
    told = tuple({"image": k, "why": e.what, "url": e.where, "items": items[k]} for k, e in failed.items())
    homeless = sum(f is None for f in files.values())
    what = entry.images.by_hand or "no address is known for them"
    return CatalogPictures(
        store=open_store(folder),
        needed=len(files),
        here=len(files) - homeless - len(told),
        fetched=len(result.received),
        missing=told,
        notes=(_by_hand(entry, what, f"{homeless:,} "),) if homeless else (),
    )


def items_by_image(bench: Benchmark, keys: set[str]) -> dict[str, list[str]]:
    """Which items (subset/id) need each of these images."""
    from creperie.bench.images import split_reference

    found: dict[str, list[str]] = {}
    if not keys:
        return found
    columns = (bench.column(name).to_pylist() for name in ("subset", "id", "images"))
    for subset, id_, references in zip(*columns, strict=True):
        for key in {split_reference(r)[0] for r in references} & keys:
            found.setdefault(key, []).append(f"{subset}/{id_}")
    return found


def _by_hand(entry: CatalogEntry, what: str, count: str = "the ") -> str:
    return f"{count}images are to be had by hand ({what}); then `creperie data get {entry.name} --images DIR`"
