"""Getting a benchmark by name: its published files are downloaded or taken from the user's copy, read, and saved as a
benchmark folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, image_keys
from creperie.bench.catalog.download import Fetcher, Limits, fetch_files, fetch_images, open_fetcher
from creperie.bench.catalog.entries import CatalogEntry, File, find_entry
from creperie.bench.catalog.places import MANIFEST_FILE, benchmark_folder, downloads_folder, how_to_get, images_folder
from creperie.bench.catalog.plan import DownloadOptions, DownloadPlan, check_room, missing
from creperie.bench.formats.registry import find_format, read_format
from creperie.bench.images import ImageStore, split_reference
from creperie.bench.storage import WRITTEN, save
from creperie.bench.stores import open_store
from creperie.core import (
    DataError,
    Progress,
    UsageError,
    check_target,
    listing,
    read_json,
    sha256_of,
    silent,
    with_options,
)

# -- the published files -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """The published files of a benchmark. `path` is the file or folder to read; `files` lists the name, size and
    checksum of each file.
    """

    path: Path
    files: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()


def download(fetcher: Fetcher, entry: CatalogEntry, progress: Progress) -> Published:
    """Download the files of a benchmark and return them. Files that are already on disk are only verified."""
    folder = downloads_folder(entry)
    todo = missing(entry.files, folder)
    check_room(folder, sum(f.size or 0 for f in todo), large_ok=True)
    result = fetch_files(fetcher, entry.files, folder, progress)
    pinned = {f.saved_as: f.sha256 for f in entry.files}
    files = tuple(
        {"file": name, "url": r.url, "bytes": r.size, "sha256": r.sha256, "pinned": pinned[name] is not None}
        for name, r in sorted(result.received.items())
    )
    lacking = sorted(result.missing)
    notes = (f"not in this revision: {listing(lacking)}",) if lacking else ()
    return replace(downloaded(entry), files=files, notes=notes)


def downloaded(entry: CatalogEntry) -> Published:
    """Return the files of an earlier download, without their sizes and checksums."""
    folder = downloads_folder(entry)
    return Published(folder / entry.read if entry.read else folder, ())


def own_copy(entry: CatalogEntry, copy: Path) -> Published:
    """Return the files in the user's copy, which is the published folder or the repository that contains it.

    Notes in the result list the files that are missing or differ from the pinned release.
    """
    if not copy.exists():
        raise UsageError("does not exist", where=copy, hint="pass the folder or file you downloaded as `from=`")
    if copy.is_file():
        return Published(copy, (_described(copy.name, copy, ""),))
    folder = _published_folder(entry, copy)
    here = {f: folder / f.saved_as for f in entry.files if (folder / f.saved_as).is_file()}
    files = tuple(_described(f.saved_as, path, f.sha256 or "") for f, path in here.items())
    notes: list[str] = []
    if differ := [d["file"] for d in files if d["pinned"] and not d["same"]]:
        notes.append(f"different from the pinned release: {listing(differ)}")
    if lacking := [f.saved_as for f in entry.files if f not in here and not f.optional]:
        notes.append(f"not in your copy: {listing(lacking)}")
    return Published(folder / entry.read if entry.read else folder, files, tuple(notes))


def _published_folder(entry: CatalogEntry, copy: Path) -> Path:
    """Return the folder with the files in the user's copy. It is the copy itself, its subfolder `data`, or the folder
    that contains the files in the published repository.
    """
    expected = [f.saved_as for f in entry.files] or ([entry.read] if entry.read else [])
    if not expected:
        return copy
    folders = [copy, copy / "data", *(copy / p for p in sorted({_folder_in_repository(f) for f in entry.files}) if p)]
    for folder in folders:
        if any((folder / name).is_file() for name in expected):
            return folder
    raise UsageError(
        f"holds none of the files of {entry.title} ({listing(expected)})",
        where=copy,
        hint="point `from=` at the folder that holds the published files",
    )


def _folder_in_repository(file: File) -> str:
    """Return the folder of a file within its repository, taken from its URL.

    For example, swap_obj.json at https://raw…/OWNER/NAME/COMMIT/data_unrefined/swap_obj.json is in `data_unrefined`.
    """
    head = file.urls[0].removesuffix(file.saved_as).rstrip("/")
    return "/".join(head.split("/")[6:])


def _described(name: str, path: Path, sha256: str) -> dict[str, Any]:
    digest = sha256_of(path)
    return {
        "file": name,
        "bytes": path.stat().st_size,
        "sha256": digest,
        "pinned": bool(sha256),
        "same": digest == sha256 if sha256 else None,
    }


def read_published(entry: CatalogEntry, text: Published) -> Benchmark:
    """Return the benchmark that these files contain, with its name, description and provenance from the catalog."""
    if not text.path.exists():
        raise UsageError("does not exist", where=text.path, hint="point `from=` at the folder that holds it")
    bench = read_format(find_format(entry.format), str(text.path))
    info = Info(
        title=entry.title,
        description="; ".join((entry.shape, *entry.notes)),
        licence=entry.licence,
        source=f"{entry.source.page} @ {entry.source.commit}" if entry.source.commit else entry.source.page,
        citation=entry.paper,
    )
    step = ProvenanceStep(
        "get", {"name": entry.name, "commit": entry.source.commit, "files": [dict(f) for f in text.files]}
    )
    return replace(bench, name=entry.name, info=info, provenance=(step, *bench.provenance))


# -- images ------------------------------------------------------------------------------------------------------------


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
    store, keys = open_store(place), image_keys(bench)
    here = sum(key in store for key in keys)
    notes = (f"{len(keys) - here:,} images are not in {place}",) if here < len(keys) else ()
    return CatalogPictures(store, len(keys), here, notes=notes)


def images_beside(entry: CatalogEntry, bench: Benchmark, *, fetching: bool) -> CatalogPictures:
    """Return the images that came with the items. If the user wants images (`fetching`) and some are missing, the
    result includes a note that says how to get them.
    """
    keys = image_keys(bench)
    here = sum(key in bench.images for key in keys) if bench.images.location else 0
    notes = (_by_hand(entry, entry.images.by_hand),) if fetching and here < len(keys) and entry.images.by_hand else ()
    return CatalogPictures(None, len(keys), here, notes=notes)


def images_to_fetch(entry: CatalogEntry, bench: Benchmark) -> tuple[dict[str, File | None], list[File]]:
    """Return a mapping from each image key to its file, and a list of the files that are not on disk. A key without a
    known address maps to None.
    """
    files = {key: entry.images.find(key) for key in image_keys(bench)}
    files_by_name = {f.saved_as: f for f in files.values() if f is not None}
    return files, missing(files_by_name.values(), images_folder(entry))


def fetch_pictures(
    fetcher: Fetcher, entry: CatalogEntry, bench: Benchmark, *, large_ok: bool, progress: Progress
) -> CatalogPictures:
    """Fetch the images that are not on disk yet, and return the result. Images without a known address are left out."""
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


# -- the whole ---------------------------------------------------------------------------------------------------------


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
    """Return the address of the mirror that the options or $CREPERIE_MIRROR name. Return an empty string if no mirror
    is named.
    """
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
