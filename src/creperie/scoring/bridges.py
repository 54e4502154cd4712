"""A benchmark for other harnesses: Inspect, lmms-eval, MTEB, CLIP_benchmark. The task files are in `templates/`.

For Inspect and lmms-eval every image of every item is asked about in all orders of its captions, in the words of
creperie's own multiple choice; MTEB compares captions, as the task `tot` does. `replies.py` reads their results back.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from creperie.bench import Benchmark, new_folder, picture_file
from creperie.core import Progress, UsageError, packaged, silent
from creperie.metrics import applies
from creperie.models import ChoiceQuestion, orders_of, read_form
from creperie.scoring.plan import layout_of_bench

#: samples in a shard, and questions in a row group of lmms-eval's file
SHARD = 1000
ROW_GROUP = 256


@dataclass(frozen=True)
class HarnessQuestion:
    """One image of an item and one order of its captions."""

    id: str
    image: str
    question: str
    target: str
    about: dict[str, Any]


def questions_of(bench: Benchmark) -> Iterator[HarnessQuestion]:
    """What is asked, in the order in which exported tasks list it."""
    wording = read_form(None, None, where=bench.name)
    for item in bench:
        for row, image in enumerate(item.images):
            match = item.match[row]
            asks = "match" if sum(match) == 1 else "odd" if sum(match) == len(match) - 1 else ""
            for number, order in enumerate(orders_of("all", match) if asks else ()):
                options = [item.captions[k] for k in order]
                shown = ChoiceQuestion(Image.new("RGB", (1, 1)), tuple(options), asks)
                question = wording.prompt(shown).offering(shown.options)
                about = {"subset": item.subset, "item": item.id, "row": row, "order": list(order)}
                id_ = f"{item.subset}/{item.id}/{row}/{number}"
                target = item.captions[match.index(asks == "match")]
                yield HarnessQuestion(id_, image, question, target, {**about, "options": options, "asks": asks})


def export_inspect(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write an Inspect task; the files that it consists of."""
    with new_folder(Path(out), replace_old=force) as draft:
        (draft / "images").mkdir(parents=True)
        names: dict[str, str] = {}
        records = []
        for q in _asked(bench):
            if q.image not in names:
                ending, data = picture_file(bench.images, q.image)
                names[q.image] = f"images/{len(names)}{ending}"
                (draft / names[q.image]).write_bytes(data)
            record = {"id": q.id, "image": names[q.image], "question": q.question, "target": q.target}
            records.append(json.dumps({**record, "metadata": q.about}, ensure_ascii=False))
        (draft / "samples.jsonl").write_text("\n".join(records) + "\n", encoding="utf-8")
        name = _plain(bench.name)
        _fill(draft / "task.py", "inspect_task.txt", name=name, function=f"creperie_{name}")
        about = {"benchmark": bench.name, "hash": bench.hash, "samples": len(records)}
        (draft / "creperie.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return _files(out)


def export_lmms(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write a task folder for lmms-eval's `--include_path`: a YAML file, its functions, and the data with images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(out).resolve()
    name = f"creperie_{_plain(bench.name)}"
    picture = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    features = json.dumps({"info": {"features": {"image": {"_type": "Image"}}}})
    questions = _asked(bench)
    texts = [{"id": q.id, "question": q.question, "target": q.target, **q.about} for q in questions]
    rows = pa.Table.from_pylist(texts)
    schema = rows.schema.append(picture).with_metadata({"huggingface": features})
    encoded = lru_cache(ROW_GROUP)(lambda reference: picture_file(bench.images, reference)[1])
    with new_folder(folder, replace_old=force) as draft:
        draft.mkdir(parents=True, exist_ok=True)
        # A picture that several questions of a row group are about is stored once: in the dictionary of its pages.
        with pq.ParquetWriter(draft / "test.parquet", schema, dictionary_pagesize_limit=2**30) as file:
            for start in range(0, len(questions), ROW_GROUP):
                part = [{"bytes": encoded(q.image), "path": None} for q in questions[start : start + ROW_GROUP]]
                group = rows.slice(start, ROW_GROUP).append_column(picture, pa.array(part, picture.type))
                file.write_table(group.cast(schema))
        data = json.dumps(str(folder / "test.parquet"))
        _fill(draft / f"{name}.yaml", "lmms_task.txt", name=name, folder=folder, data=data)
        _fill(draft / "utils.py", "lmms_utils.txt", name=name)
    return _files(folder)


def export_mteb(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write an MTEB task, whose score is the task `tot`; the files that it consists of."""
    keep = applies("tot", layout_of_bench(bench))
    if not keep.any():
        hint = "it needs items with two captions that say the same thing and one that does not"
        raise UsageError("task 'tot' has nothing to compare in any item", where=bench.name, hint=hint)
    chosen = bench.filter(keep, why="task tot applies")
    name = "".join(word[:1].upper() + word[1:] for word in _plain(bench.name, lower=False).split("_")) + "Tot"
    subsets = json.dumps({subset: ["eng-Latn"] for subset in chosen.subsets})
    about = json.dumps(f"Which captions of {bench.name} say the same thing?", ensure_ascii=True)[1:-1]
    with new_folder(Path(out), replace_old=force) as draft:
        draft.mkdir(parents=True, exist_ok=True)
        records = [
            {"subset": i.subset, "id": i.id, "captions": list(i.captions), "match": list(i.match[0])} for i in chosen
        ]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        (draft / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        name = name if name[0].isalpha() else f"Bench{name}"
        _fill(draft / "task.py", "mteb_task.txt", name=name, about=about, digest=bench.hash[:12], subsets=subsets)
    return _files(out)


def export_webdataset(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write shards as CLIP_benchmark reads them; the files.

    test/0.tar …        a sample per image of an item: jpg or png, txt (its true captions, one per line), json (all)
    test/nshards.txt    how many shards there are
    dataset_type.txt    retrieval
    """
    _need_images(bench)
    samples = [(number, row) for number, item in enumerate(bench) for row in range(len(item.images))]
    shards = [samples[k : k + SHARD] for k in range(0, len(samples), SHARD)]
    with new_folder(Path(out), replace_old=force) as draft, progress("shards", len(samples), "images") as advance:
        (draft / "test").mkdir()
        for k, shard in enumerate(shards):
            with tarfile.open(draft / "test" / f"{k}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for number, row in shard:
                    _add(tar, bench, number, row)
                    advance(1)
        (draft / "test" / "nshards.txt").write_text(f"{len(shards)}\n", encoding="utf-8")
        (draft / "dataset_type.txt").write_text("retrieval\n", encoding="utf-8")
    return _files(out)


def _add(tar: tarfile.TarFile, bench: Benchmark, number: int, row: int) -> None:
    item = bench[number]
    key = f"{number:08d}-{row}"
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
    ending, data = picture_file(bench.images, item.images[row])
    parts = {
        ending[1:]: data,
        "txt": lines.encode(),
        "json": json.dumps(about, ensure_ascii=False).encode(),
    }
    for ending, data in parts.items():
        header = tarfile.TarInfo(f"{key}.{ending}")
        header.size = len(data)
        tar.addfile(header, io.BytesIO(data))


def _need_images(bench: Benchmark) -> None:
    if not bench.images.location:
        raise UsageError("the files need the images", where=bench.name, hint="load it with `images=`")


def _asked(bench: Benchmark) -> list[HarnessQuestion]:
    _need_images(bench)
    if found := list(questions_of(bench)):
        return found
    raise UsageError("no item has exactly one caption that fits, or one that does not", where=bench.name)


def _fill(path: Path, template: str, **values: object) -> None:
    text = packaged("creperie.scoring", "templates", template)
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    path.write_text(text, encoding="utf-8")


def _plain(name: str, *, lower: bool = True) -> str:
    words = "".join(c if c.isalnum() and c.isascii() else " " for c in name).split()
    return ("_".join(words).lower() if lower else "_".join(words)) or "benchmark"


def _files(folder: str | Path) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())
