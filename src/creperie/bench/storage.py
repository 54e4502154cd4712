"""A benchmark on disk: Parquet, one manifest, and the documents that come with a data set.

out/mine/
  creperie.json           the manifest: name, hash, counts, provenance, where the images are
  data/test-00000-of-00001.parquet
  README.md DATASHEET.md
  images/ metadata.parquet  when the images are included: the items again, as `datasets` finds their pictures
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, Info, Parquet, ProvenanceStep, SkippedRecord
from creperie.bench.catalog.places import MANIFEST_FILE
from creperie.bench.hashing import content_hash
from creperie.bench.images import NO_IMAGES, ImageStore
from creperie.bench.item import CORE_COLUMNS
from creperie.core import DataError, Progress, check_target, read_json, silent, write_json

ITEMS_FILE = "data/test-00000-of-00001.parquet"
VERSION = 1
ROW_GROUP = 65_536
#: A folder with one of these was written by creperie and may be replaced.
WRITTEN = (MANIFEST_FILE, "run.json", "shard.json")


@contextmanager
def new_folder(path: Path, *, replace_old: bool = False) -> Iterator[Path]:
    """A folder that appears completely or not at all: filled under another name beside it, renamed at the end.

    With `replace_old`, a folder that creperie wrote gives way; any other is left alone.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  resolve() would replace a link's target, not the link
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
    """Give a finished folder its name, after another process that may have given it to its own meanwhile."""
    while draft.exists():
        check_target(path, replace_old, WRITTEN)
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        try:
            if path.exists():
                path.replace(old / "it")
            draft.replace(path)
        except OSError as problem:  # between the check and the renaming, the name was taken or given up
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
        shutil.rmtree(old)


def save(
    bench: Benchmark, folder: str | Path, *, copy_images: bool = False, force: bool = False, progress: Progress = silent
) -> Benchmark:
    """Write a benchmark into a folder and return it as loaded from there.

    Images that lie in the folder which is replaced, or in creperie's cache, are copied in any case: they would be lost.
    """
    from creperie.bench.stores import pictures_in_memory

    target = Path(folder)
    place = Path(bench.images.location).resolve() if bench.images.location else None
    passing = (target.resolve(), pictures_in_memory().resolve())
    copied = copy_images or (place is not None and any(place.is_relative_to(root) for root in passing))
    with new_folder(target, replace_old=force) as draft:
        write_table(bench.table, draft / ITEMS_FILE)
        if copied:
            write_images(bench, draft / "images", progress)
        describe_benchmark(bench, draft, "images" if copied else relative_place(bench.images.location, target))
    return load_folder(target)


def describe_benchmark(bench: Benchmark, folder: Path, images: str) -> None:
    """Write all that stands beside the items: the manifest and the cards."""
    from creperie.bench.cards import write_cards

    manifest = manifest_of(bench, images)
    write_json(folder / MANIFEST_FILE, manifest)
    write_cards(bench, folder, manifest)


def write_table(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd", write_page_checksum=True)


class TableWriter:
    """A table that comes in pieces, written as `write_table` writes it whole: no more than a row group is held."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)
        self._waiting: list[pa.Table] = []
        self.rows = 0

    def write(self, piece: pa.Table) -> None:
        self._waiting.append(piece)
        self.rows += piece.num_rows
        while sum(t.num_rows for t in self._waiting) >= ROW_GROUP:
            whole = pa.concat_tables(self._waiting)
            self._file.write_table(whole.slice(0, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
            self._waiting = [whole.slice(ROW_GROUP)]

    def close(self) -> None:
        """Write what is left; without any row, a table without rows."""
        whole = pa.concat_tables([self._file.schema.empty_table(), *self._waiting])
        if whole.num_rows or not self.rows:
            self._file.write_table(whole.combine_chunks(), row_group_size=ROW_GROUP)
        self._file.close()


def write_images(bench: Benchmark, folder: Path, progress: Progress) -> None:
    """Copy every image that an item refers to, bytes unchanged; those that cannot be read stay missing."""
    from creperie.bench.benchmark import image_keys
    from creperie.bench.images import ImageError, picture_bytes, safe_path

    keys = image_keys(bench)
    with progress("copy images", len(keys), "images") as advance:
        for key in keys:
            try:
                data = picture_bytes(bench.images, key)
                path = safe_path(folder, key)
            except ImageError:
                data = None  # `data check` says which ones and why
            if data is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            advance(1)


def manifest_of(bench: Benchmark, images: str) -> dict[str, Any]:
    from creperie.core import __version__

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


def load_folder(folder: str | Path, *, images: ImageStore | None = None, verify: bool = False) -> Benchmark:
    """Return a benchmark that `save` wrote. Only the manifest is read now, the items when they are used."""
    root = Path(folder)
    path = root / MANIFEST_FILE
    document = read_json(path)
    try:
        version = document["creperie"]
        if version != VERSION:
            raise DataError(f"is a manifest of version {version}, this creperie reads {VERSION}", where=str(path))
        bench, stated, stored = _from_manifest(document, root)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        hint = "the file was edited or is not a manifest of creperie"
        raise DataError(f"is not a complete manifest ({type(e).__name__}: {e})", where=str(path), hint=hint) from None
    _check_parquet(bench, stated, root)
    if images is None and stored:
        images = _own_images(root, stored)
    if verify and content_hash(bench.table) != bench.hash:
        raise DataError("the items are not those its manifest states", where=str(root), hint="save the benchmark again")
    return replace(bench, images=NO_IMAGES if images is None else images)


def _from_manifest(document: Mapping[str, Any], root: Path) -> tuple[Benchmark, int, str]:
    """Return the benchmark that a manifest describes, how many items it states, and where it says the images are."""
    files = tuple(sorted((root / "data").glob("*.parquet")))
    bench = Benchmark(
        name=_text(document["name"]),
        source=Parquet(files, _text(document["hash"])),
        info=Info(**{key: _text(value) for key, value in document["info"].items()}),
        provenance=tuple(
            ProvenanceStep(_text(s["op"]), _mapping(s["args"]), tuple(_text(h) for h in s["inputs"]))
            for s in document["provenance"]
        ),
        skipped=tuple(SkippedRecord(**{key: _text(value) for key, value in s.items()}) for s in document["skipped"]),
    )
    return bench, int(document["items"]), _text(document["images"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]} is not text")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]} is not an object")
    return value


def _own_images(root: Path, stored: str) -> ImageStore:
    """Return the images that the manifest names. Those that came with the benchmark must not be links to other
    places."""
    from creperie.bench.stores import open_store

    place = root / stored
    if "\0" in stored or not place.exists():
        return NO_IMAGES
    return open_store(place, follow_links=not place.resolve().is_relative_to(root.resolve()))


def _check_parquet(bench: Benchmark, stated: int, root: Path) -> None:
    place = str(root / "data")
    if not isinstance(bench.source, Parquet) or not bench.source.files:
        raise DataError("has no data/*.parquet", where=str(root))
    try:
        schema = bench.source.dataset.schema
        names = set(schema.names)
        rows = len(bench)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as e:
        raise DataError(f"holds a Parquet file that cannot be read ({str(e)[:120]})", where=place) from None
    for field in CORE_COLUMNS:
        if field.name not in names or schema.field(field.name).type != field.type:
            raise DataError(f"has no column {field.name!r} of type {field.type}", where=place)
    if rows != stated:
        raise DataError(f"holds {rows} items, its manifest says {stated}", where=str(root), hint="a part is missing")


def relative_place(location: str, target: Path) -> str:
    """Return where the images are, seen from the benchmark's folder; absolute only where it must be."""
    try:
        return os.path.relpath(location, target) if location else ""
    except ValueError:  # another drive
        return str(Path(location).resolve())
