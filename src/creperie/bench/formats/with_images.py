"""Export of items with their images, and import of such files: Parquet files that `datasets.load_dataset` can open, and
WebDataset shards, which are tar files of samples.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from creperie.bench.benchmark import Benchmark, Info
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.native import NEEDED, items_of_columns
from creperie.bench.formats.published import finished
from creperie.bench.formats.textfile import find_files
from creperie.bench.images import image_reference, picture_bytes, picture_file, split_reference
from creperie.bench.item import Item
from creperie.bench.storage import new_folder
from creperie.bench.stores import ParquetStore, TarStore, image_columns, tar_samples
from creperie.core import DataError, Progress, UsageError, parse_json, read_parquet, silent, write_parquet

#: items per file: a few hundred megabytes of photographs
TOGETHER = 1000
#: where the metadata of the files have the name of the benchmark
NAME_KEY = b"creperie.name"
_TEXT = {"dtype": "string", "_type": "Value"}
FEATURES = {
    "subset": _TEXT,
    "id": _TEXT,
    "images": {"feature": {"_type": "Image"}, "_type": "Sequence"},
    "captions": {"feature": _TEXT, "_type": "Sequence"},
    "match": {"feature": {"feature": {"dtype": "bool", "_type": "Value"}, "_type": "Sequence"}, "_type": "Sequence"},
    "tags": _TEXT,
}
_PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SCHEMA = pa.schema(
    [
        ("subset", pa.string()),
        ("id", pa.string()),
        ("images", pa.list_(_PICTURE)),
        ("captions", pa.list_(pa.string())),
        ("match", pa.list_(pa.list_(pa.bool_()))),
        ("tags", pa.string()),  # as JSON, because tags differ between benchmarks
    ],
    metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
)


def check_images(bench: Benchmark) -> None:
    """Raise a UsageError if the benchmark's images are not available. An export needs them."""
    if not bench.images.location:
        raise UsageError("this export needs the images", where=bench.name, hint="pass their location with `images=`")


def export_image_parquet(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write the items with their images as `data/test-*.parquet`, for `datasets.load_dataset`, and return the files."""
    check_images(bench)
    folder = Path(out)
    read = lru_cache(TOGETHER)(lambda reference: _picture(bench, reference))
    count = max(1, -(-len(bench) // TOGETHER))
    with new_folder(folder, replace_old=force) as draft, progress("items", len(bench), "items") as advance:
        (draft / "data").mkdir()
        for k in range(count):
            numbers = range(k * TOGETHER, min(len(bench), (k + 1) * TOGETHER))
            table = pa.Table.from_pylist([_row(bench[n], read) for n in numbers], SCHEMA)
            path = draft / "data" / f"test-{k:05d}-of-{count:05d}.parquet"
            # An image shared by several items is stored once, in the dictionary of the column.
            named = table.replace_schema_metadata({**table.schema.metadata, NAME_KEY: bench.name.encode()})
            write_parquet(named, path, dictionary_limit=2**30)
            advance(len(numbers))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _row(item: Item, read: Callable[[str], bytes]) -> dict[str, Any]:
    return {
        "subset": item.subset,
        "id": item.id,
        "images": [{"bytes": read(reference), "path": reference} for reference in item.images],
        "captions": list(item.captions),
        "match": [list(row) for row in item.match],
        "tags": json.dumps(dict(item.tags), ensure_ascii=False),
    }


def _picture(bench: Benchmark, reference: str) -> bytes:
    """Return the bytes of an image file. If the reference has a crop box, return the crop in a lossless format."""
    key, box = split_reference(reference)
    return picture_bytes(bench.images, key) if box is None else picture_file(bench.images, reference)[1]


def is_image_parquet(folder: Path) -> bool:
    """Return whether a folder contains the files that `export_image_parquet` writes."""
    files = sorted((folder / "data").glob("*.parquet")) if folder.is_dir() else []
    try:
        schema = pq.read_schema(files[0]) if files else pa.schema([])
    except (OSError, pa.ArrowException):
        return False
    return set(SCHEMA.names) <= set(schema.names) and "images" in image_columns(schema)


def _read_parquet(source: FormatSource) -> Benchmark:
    files = find_files(source.path, lambda name: name.endswith(".parquet"), "Parquet file with items")
    store = ParquetStore(source.path, tuple(path for _, path in files))
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names if name != "images"}
    try:
        for _, path in files:
            table = read_parquet(path, list(columns))
            for name in columns:
                columns[name] += table.column(name).to_pylist()
    except (OSError, pa.ArrowException, KeyError, ValueError) as e:
        raise DataError(
            f"cannot be read ({str(e)[:120]})",
            where=source.path,
            hint="expected what `creperie data export --format datasets` writes",
        ) from None
    columns["images"] = [[image_reference(name) for name in names] for names in store.row_names("images")]
    items = items_of_columns(columns, str(source.path))
    bench = finished("datasets", items, files)
    name = (pq.read_schema(files[0][1]).metadata or {}).get(NAME_KEY, b"").decode() or source.path.resolve().name
    return replace(bench, name=name, info=Info(title=name), images=store)


# -- WebDataset --------------------------------------------------------------------------------------------------------


def export_webdataset(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write `test-000000.tar` and so on, and return the files.

    A sample consists of `json` (id, subset, images, captions, match, tags), `txt` (its first true caption) and its
    images: the first as `jpg` or `png`, further ones as `1.jpg` and so on.
    """
    check_images(bench)
    folder = Path(out)
    with new_folder(folder, replace_old=force) as draft, progress("items", len(bench), "items") as advance:
        for first in range(0, len(bench), TOGETHER):
            with tarfile.open(draft / f"test-{first // TOGETHER:06}.tar", "w") as tar:
                for number in range(first, min(first + TOGETHER, len(bench))):
                    item = bench[number]
                    about = {name: getattr(item, name) for name in (*NEEDED, "tags")}
                    document = json.dumps({**about, "creperie.name": bench.name}, ensure_ascii=False, default=dict)
                    files = {".json": document.encode(), ".txt": (item.positives or ("",))[0].encode()}
                    for k, image in enumerate(item.images):
                        ending, data = picture_file(bench.images, image)
                        files[f".{k}{ending}" if k else ending] = data
                    for ending, data in files.items():
                        entry = tarfile.TarInfo(f"{number:08}{ending}")
                        entry.size = len(data)
                        tar.addfile(entry, io.BytesIO(data))
                    advance(1)
    return sorted(folder.glob("*.tar"))


def _read_webdataset(source: FormatSource) -> Benchmark:
    files = find_files(source.path, lambda name: name.endswith(".tar"), "WebDataset shard")
    columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, "tags")}
    name = ""
    for _, path in files:
        for key, members, read in tar_samples(path):
            where = f"{path}/{key}"
            about = next((m for m in members if m.name.endswith(".json")), None)
            document = parse_json(read(about).decode("utf-8", "replace"), where) if about else None
            if not isinstance(document, dict) or not columns.keys() <= document.keys():
                hint = "expected what `creperie data export --format webdataset` writes; `make --captions` reads others"
                what = f"is not a valid sample: it needs a .json file with the fields {', '.join(columns)}"
                raise DataError(what, where=where, hint=hint)
            name = name or str(document.get("creperie.name", ""))
            for column, values in columns.items():
                values.append(document[column])
    for names in columns["images"]:
        if isinstance(names, list):  # else an error of `items_of_columns`
            names[:] = [image_reference(name) if isinstance(name, str) else name for name in names]
    bench = finished("webdataset", items_of_columns(columns, str(source.path)), files)
    name = name or source.path.resolve().name
    store = TarStore(source.path, tuple(path for _, path in files))
    return replace(bench, name=name, info=Info(title=name), images=store)


FORMATS = (described("datasets", _read_parquet), described("webdataset", _read_webdataset))
