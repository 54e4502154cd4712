"""A benchmark as Parquet files that hold the images themselves, with the features that `datasets` reads as images."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from creperie.bench.benchmark import Benchmark
from creperie.bench.images import open_image, split_reference
from creperie.bench.item import Item
from creperie.bench.storage import new_folder
from creperie.core import Progress, UsageError, silent

#: items in a file: some hundred megabytes of photographs
TOGETHER = 1000
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
        ("tags", pa.string()),  # JSON: tags differ from benchmark to benchmark
    ],
    metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
)


def export_image_parquet(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write `data/test-*.parquet`; `datasets.load_dataset(DIR)` opens the images."""
    if not bench.images.location:
        raise UsageError("the files need the images", where=bench.name, hint="say where they are with `images=`")
    folder = Path(out)
    count = max(1, -(-len(bench) // TOGETHER))
    with new_folder(folder, replace_old=force) as draft, progress("items", len(bench), "items") as advance:
        (draft / "data").mkdir()
        for k in range(count):
            numbers = range(k * TOGETHER, min(len(bench), (k + 1) * TOGETHER))
            rows = [_row(bench, bench[n]) for n in numbers]
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), draft / "data" / f"test-{k:05d}-of-{count:05d}.parquet")
            advance(len(rows))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _row(bench: Benchmark, item: Item) -> dict[str, Any]:
    return {
        "subset": item.subset,
        "id": item.id,
        "images": [{"bytes": _bytes(bench, reference), "path": None} for reference in item.images],
        "captions": list(item.captions),
        "match": [list(row) for row in item.match],
        "tags": json.dumps(dict(item.tags), ensure_ascii=False),
    }


def _bytes(bench: Benchmark, reference: str) -> bytes:
    """The file as it is; a crop is cut out and stored without loss."""
    key, box = split_reference(reference)
    if box is None:
        return bench.images.read(key)
    data = io.BytesIO()
    open_image(bench.images, reference).save(data, "PNG")
    return data.getvalue()
