"""The published files of a benchmark: downloading them, finding them in the user's copy, and reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.bench.catalog.download import Fetcher
from creperie.bench.catalog.entries import CatalogEntry, File
from creperie.bench.catalog.fetch import fetch_files
from creperie.bench.catalog.places import downloads_folder
from creperie.bench.catalog.plan import check_room, missing
from creperie.core import Progress, UsageError, listing, sha256_of

if TYPE_CHECKING:
    from creperie.bench.benchmark import Benchmark


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
    from creperie.bench.benchmark import Info, ProvenanceStep
    from creperie.bench.formats import find_format, read_format

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
