"""Export and import of items with their images as WebDataset shards: tar files of samples."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.image_parquet import TOGETHER, check_images
from creperie.bench.formats.native import NEEDED, items_of_columns
from creperie.bench.formats.published import finished
from creperie.bench.formats.textfile import find_files
from creperie.bench.images import image_reference, picture_file
from creperie.bench.storage import new_folder
from creperie.bench.stores import TarStore, tar_samples
from creperie.core import DataError, Progress, parse_json, silent


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


def _read(source: FormatSource) -> Benchmark:
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


FORMATS = (described("webdataset", _read),)
