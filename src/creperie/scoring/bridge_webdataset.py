"""A benchmark as WebDataset shards, in the layout that CLIP_benchmark reads.

test/0.tar …        a sample per image of an item: png, txt (its true captions, one per line), json (all of it)
test/nshards.txt    how many shards there are
dataset_type.txt    retrieval
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from creperie.bench import Benchmark, new_folder, open_image
from creperie.core import Progress, UsageError, silent

#: samples in a shard
SHARD = 1000


def export_webdataset(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write shards; the files."""
    folder = Path(out)
    if not bench.images.location:
        raise UsageError("the shards need the images", where=bench.name, hint="pass the images, or import with them")
    samples = [(number, row) for number, item in enumerate(bench) for row in range(len(item.images))]
    shards = [samples[k : k + SHARD] for k in range(0, len(samples), SHARD)]
    with new_folder(folder, replace_old=force) as draft, progress("shards", len(samples), "images") as advance:
        (draft / "test").mkdir()
        for k, shard in enumerate(shards):
            with tarfile.open(draft / "test" / f"{k}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for number, row in shard:
                    _add(tar, bench, number, row)
                    advance(1)
        (draft / "test" / "nshards.txt").write_text(f"{len(shards)}\n", encoding="utf-8")
        (draft / "dataset_type.txt").write_text("retrieval\n", encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _add(tar: tarfile.TarFile, bench: Benchmark, number: int, row: int) -> None:
    item = bench[number]
    key = f"{number:08d}-{row}"
    picture = io.BytesIO()
    open_image(bench.images, item.images[row]).save(picture, "PNG")
    true = [caption for caption, fits in zip(item.captions, item.match[row], strict=True) if fits]
    about = {
        "subset": item.subset,
        "id": item.id,
        "image": item.images[row],
        "row": row,
        "captions": list(item.captions),
        "match": list(item.match[row]),
        "tags": dict(item.tags),
    }
    lines = "\n".join(" ".join(caption.splitlines()) for caption in true)
    parts = {"png": picture.getvalue(), "txt": lines.encode(), "json": json.dumps(about, ensure_ascii=False).encode()}
    for ending, data in parts.items():
        header = tarfile.TarInfo(f"{key}.{ending}")
        header.size = len(data)
        tar.addfile(header, io.BytesIO(data))
