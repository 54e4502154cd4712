"""Export of items with their images as WebDataset shards: tar files of samples."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.image_parquet import TOGETHER, check_images
from creperie.bench.images import picture_file
from creperie.bench.storage import new_folder
from creperie.core import Progress, silent


def export_webdataset(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write `test-000000.tar` … and return the files.

    A sample has `json` (id, subset, captions, match, tags), `txt` (its first true caption) and its images: `jpg` or
    `png`, after the first `1.jpg` …
    """
    check_images(bench)
    folder = Path(out)
    with new_folder(folder, replace_old=force) as draft, progress("items", len(bench), "items") as advance:
        for first in range(0, len(bench), TOGETHER):
            with tarfile.open(draft / f"test-{first // TOGETHER:06}.tar", "w") as tar:
                for number in range(first, min(first + TOGETHER, len(bench))):
                    item = bench[number]
                    about = {"id": item.id, "subset": item.subset, "captions": item.captions, "match": item.match}
                    document = json.dumps({**about, "tags": dict(item.tags)}, ensure_ascii=False)
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
