"""Saving and loading a benchmark as a folder with Parquet files, a manifest, and documents that describe the data set.

out/mine/
  creperie.json           the manifest: name, hash, counts, provenance, location of the images
  data/test-00000-of-00001.parquet
  README.md DATASHEET.md
  images/ metadata.parquet  if the images are included: the items in the layout in which `datasets` finds images
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import (
    Benchmark,
    Info,
    Parquet,
    ProvenanceStep,
    SkippedRecord,
    contained_benchmark,
    image_keys,
)
from creperie.bench.catalog.places import MANIFEST_FILE
from creperie.bench.images import NO_IMAGES, ImageError, ImageStore, picture_bytes, safe_path
from creperie.bench.item import CORE_COLUMNS
from creperie.bench.stores import open_store, pictures_in_memory
from creperie.core import (
    DataError,
    Progress,
    TableWriter,
    UsageError,
    __version__,
    check_target,
    read_checked,
    reading_parquet,
    silent,
    write_json,
)

ITEMS_FILE = "data/test-00000-of-00001.parquet"
VERSION = 1
#: the operations of provenance steps whose result a single command makes again
COMMANDS = {
    "get": "creperie data get {name} --force",
    "import": "creperie data import",
    "read": "creperie data import",
    "make": "creperie make {maker}",
    "world": "creperie world make",
    "annotate": "creperie annotate apply",
    "refine": "creperie refine",
}
AGAIN = "save the benchmark again"
#: A folder with one of these files was written by creperie and may be replaced.
WRITTEN = (MANIFEST_FILE, "run.json", "shard.json")


@contextmanager
def new_folder(path: Path, *, replace_old: bool = False) -> Iterator[Path]:
    """Yield a hidden folder. It is renamed to `path` when the block ends, so that `path` is either complete or absent.

    With `replace_old`, a folder that creperie wrote may be replaced. If any other folder exists at `path`, raise a
    UsageError.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  resolve() would replace the target of a link, not the link
    check_target(path, replace_old, WRITTEN)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield draft
        draft.chmod(0o755)
        _put_in_place(draft, path, replace_old)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put_in_place(draft: Path, path: Path, replace_old: bool) -> None:
    """Rename the finished folder `draft` to `path`. Try again if another process creates or removes `path`
    meanwhile.
    """
    while draft.exists():
        check_target(path, replace_old, WRITTEN)
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        try:
            if path.exists():
                path.replace(old / "it")
            draft.replace(path)
        except OSError as problem:  # the target changed between the check and the rename
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
        shutil.rmtree(old)


def save(
    bench: Any, folder: str | Path, *, copy_images: bool = False, force: bool = False, progress: Progress = silent
) -> Benchmark:
    """Write a benchmark into a folder, and return the benchmark as loaded from there. `bench` may also be a result that
    holds a benchmark, such as `Refined`.

    Images are copied if `copy_images` is set, or if they would be lost otherwise. They would be lost if they have no
    location, or if they are in creperie's cache or in the folder that is replaced.
    """
    if (bench := contained_benchmark(bench)) is None:
        raise UsageError("only a benchmark can be saved", hint="write `creperie.save(creperie.load(…), folder)`")
    target = Path(folder)
    place = Path(bench.images.location).resolve() if bench.images.location else None
    passing = (target.resolve(), pictures_in_memory().resolve())
    lost = bench.images is not NO_IMAGES if place is None else any(place.is_relative_to(root) for root in passing)
    copied = copy_images or lost
    with new_folder(target, replace_old=force) as draft:
        writer = TableWriter(draft / ITEMS_FILE, bench.schema)
        for piece in bench.pieces(bench.columns):
            writer.write(piece)
        writer.close()
        if copied:
            write_images(bench, draft / "images", progress)
        describe_benchmark(bench, draft, "images" if copied else relative_place(bench.images.location, target))
    return load_folder(target)


def describe_benchmark(bench: Benchmark, folder: Path, images: str) -> None:
    """Write a benchmark's manifest and the documents that describe it into a folder. `images` is the location of the
    images, which is stored in the manifest.
    """
    from creperie.bench.cards import write_cards

    manifest = manifest_of(bench, images)
    write_json(folder / MANIFEST_FILE, manifest, files=item_files(folder))
    write_cards(bench, folder, manifest)


def item_files(folder: Path) -> list[str]:
    """Return the item files of the saved benchmark in `folder`, as paths relative to it."""
    return sorted(f"data/{path.name}" for path in (folder / "data").glob("*.parquet"))


def write_images(bench: Benchmark, folder: Path, progress: Progress) -> None:
    """Copy every image that an item refers to, unchanged; images that cannot be read are skipped."""
    keys = image_keys(bench)
    with progress("copy images", len(keys), "images") as advance:
        for key in keys:
            with suppress(ImageError):  # `data check` reports it
                data, path = picture_bytes(bench.images, key), safe_path(folder, key)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            advance(1)


def manifest_of(bench: Benchmark, images: str) -> dict[str, Any]:
    return {
        "creperie": VERSION,
        "name": bench.name,
        "hash": bench.hash,
        "items": len(bench),
        "subsets": bench.subsets,
        "images": images,
        "info": asdict(bench.info),
        "provenance": [asdict(step) for step in bench.provenance],
        "skipped": [asdict(s) for s in bench.skipped],
        "written_by": f"creperie {__version__}",
    }


def load_folder(folder: str | Path, *, images: ImageStore | None = None) -> Benchmark:
    """Return the benchmark in a folder that `save` wrote. Only the manifest is read now; items are read when they are
    used.

    `images` replaces the store that the manifest names.
    """
    root = Path(folder)
    path = root / MANIFEST_FILE
    document, checksums = read_checked(path, AGAIN)
    try:
        version = document["creperie"]
        if version != VERSION:
            what = f"is a manifest of version {version}, but this creperie reads {VERSION}"
            raise DataError(what, where=path, hint="read it with the release that wrote it")
        bench, stated, stored = _from_manifest(document, root, checksums)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise DataError(
            f"is not a complete manifest ({type(e).__name__}: {e})",
            where=path,
            hint="save the benchmark again; the file was edited, or creperie did not write it",
        ) from None
    _check_parquet(bench, stated, root)
    if images is None and stored and "\0" not in stored and (place := root / stored).exists():
        # in the benchmark's own folder, no link may lead out of it
        images = open_store(place, follow_links=not place.resolve().is_relative_to(root.resolve()))
    return replace(bench, images=NO_IMAGES if images is None else images)


def _from_manifest(
    document: Mapping[str, Any], root: Path, checksums: Mapping[str, str] | None
) -> tuple[Benchmark, int, str]:
    """Return the benchmark that a manifest describes, the number of its items, and the location of its images."""
    files = tuple(root / name for name in item_files(root))
    bench = Benchmark(
        name=_required_text(document["name"]),
        source=Parquet(files, _required_text(document["hash"]), checksums, _how_to_remake(document["provenance"])),
        info=Info(**{key: _required_text(value) for key, value in document["info"].items()}),
        provenance=tuple(
            ProvenanceStep(_required_text(s["op"]), _mapping(s["args"]), tuple(_required_text(h) for h in s["inputs"]))
            for s in document["provenance"]
        ),
        skipped=tuple(
            SkippedRecord(**{key: _required_text(value) for key, value in s.items()}) for s in document["skipped"]
        ),
        unchecked=checksums is None,
    )
    return bench, int(document["items"]), _required_text(document["images"])


def _how_to_remake(steps: Any) -> str:
    """Return a hint on how to make a benchmark again, according to the last step of its provenance."""
    if not steps:
        return AGAIN
    step = steps[0] if steps[0]["op"] == "get" and steps[-1]["op"] == "read" else steps[-1]
    command = COMMANDS.get(step["op"], "").format_map({"name": "", "maker": "", **step["args"]})
    return f"make it again with `{command}`" if command else AGAIN


def _required_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]} is not text")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]} is not an object")
    return value


def _check_parquet(bench: Benchmark, stated: int, root: Path) -> None:
    place = root / "data"
    if not isinstance(bench.source, Parquet) or not bench.source.files:
        raise DataError("contains no items (data/*.parquet)", where=root, hint="copy the whole folder")
    with reading_parquet(place):
        schema = bench.source.dataset.schema
        names = set(schema.names)
        rows = len(bench)
    for field in CORE_COLUMNS:
        if field.name not in names or schema.field(field.name).type != field.type:
            raise DataError(f"lacks the column {field.name!r} of type {field.type}", where=place, hint=AGAIN)
    if rows != stated:
        raise DataError(f"has {rows} items, but its manifest states {stated}", where=root, hint="copy the whole folder")


def relative_place(location: str, target: Path) -> str:
    """Return the path of the images relative to the folder `target`. If the images are on another drive, return their
    absolute path.
    """
    try:
        return os.path.relpath(location, target) if location else ""
    except ValueError:  # another drive
        return str(Path(location).resolve())
