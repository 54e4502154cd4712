"""Two images and two captions, each true of its own image: Winoground, ColorSwap, COLA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import NoItem, PublishedFile, RecordShape, finished, read_parts, write_parts
from creperie.bench.formats.record import Record, id_of, kind_of, tags_of, text_of, whole_id
from creperie.bench.formats.recordfile import TABLES, RecordKind, kind_of_rows, read_records
from creperie.bench.formats.textfile import file_digest, find_files, is_data_json, stem_of
from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import PAIRED, Item, whole_number
from creperie.bench.stores import open_store
from creperie.core import UsageError


def paired(item: Item) -> None:
    """Only two images with one caption each can be written in these formats."""
    if item.match != PAIRED:
        raise UsageError(
            f"has {len(item.images)} images and {len(item.captions)} captions; this format holds two and two, "
            "each caption true of its own image",
            hint="export as jsonl, which holds every item",
        )


# -- Winoground and ColorSwap: rows with numbered columns ------------------------------------------------------------


def _row_shape(first: int, tags: tuple[str, ...], ending: str, kind: RecordKind) -> RecordShape:
    numbers = (first, first + 1)

    def item(record: Record, subset: str) -> Item | NoItem:
        if not isinstance(record.value, dict):
            raise record.error(f"is {kind_of(record.value)}, expected an object with two images and two captions")
        keys = [text_of(record, f"image_{n}") for n in numbers]
        images = tuple(image_reference(key if "." in key or "/" in key else key + ending) for key in keys)
        captions = tuple(text_of(record, f"caption_{n}") for n in numbers)
        return Item(id_of(record), subset, images, captions, PAIRED, tags_of(record, tags))

    def value(item: Item) -> dict[str, Any]:
        paired(item)
        made: dict[str, Any] = {"id": whole_id(item.id)}
        for n, caption, image in zip(numbers, item.captions, item.images, strict=True):
            key = split_reference(image)[0]
            made[f"caption_{n}"] = caption
            made[f"image_{n}"] = key.removesuffix(ending) if ending and "/" not in key else key
        return {**made, **{name: whole_number(item.tags[name]) for name in tags if name in item.tags}}

    return RecordShape(kind, item, value)


def _rows(name: str, title: str, shape: RecordShape, file: str) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        def wanted(path: str) -> bool:
            return path.lower().endswith(TABLES) and (is_data_json(path) or not path.endswith(".json"))

        files = find_files(source.path, wanted, file)
        if any(p.suffix == ".parquet" for _, p in files):
            bench = _read_parquet(name, title, shape, files)
            return replace(bench, images=open_store(source.path))
        parts = [PublishedFile(_path(_split(n), shape), p, _split(n), _read_as(shape, p)) for n, p in files]
        return read_parts(name, title, parts)

    return read


def _read_as(shape: RecordShape, path: Path) -> RecordShape:
    return replace(shape, kind=kind_of_rows(path))


def _path(subset: str, shape: RecordShape) -> str:
    return f"{subset}{'.jsonl' if shape.kind == 'lines' else '.json'}"


def _read_parquet(name: str, title: str, shape: RecordShape, files: list[tuple[str, Path]]) -> Benchmark:
    items: list[Item] = []
    count = 0
    for file, path in files:
        records = read_records(path, first=count)
        count += len(records)
        made = (shape.item(record, _split(file)) for record in records)
        items += [item for item in made if isinstance(item, Item)]
    return finished(name, title, items, {n: file_digest(p) for n, p in files})


def _split(name: str) -> str:
    """The subset of a file: its name without what data sets add to number its parts.

    >>> _split("data/test-00000-of-00001.parquet"), _split("train.json")
    ('test', 'train')
    """
    return stem_of(name).rsplit("/", 1)[-1].split("-0", 1)[0]


def _writer(name: str, shape: RecordShape) -> Callable[[Benchmark], Files]:
    return lambda bench: write_parts(bench, name, lambda subset: (_path(subset, shape), shape))


_WINOGROUND = _row_shape(0, ("tag", "secondary_tag", "collapsed_tag", "num_main_preds"), ".png", "lines")
_COLORSWAP = _row_shape(1, ("image_source", "caption_source"), "", "list")


# -- COLA: lists of four ---------------------------------------------------------------------------------------------


def _cola_item(record: Record, subset: str) -> Item:
    if not isinstance(record.value, list) or len(record.value) != 4:
        raise record.error(f"is {kind_of(record.value)}, expected [image 1, caption 1, image 2, caption 2]")
    links = [text_of(record, "0"), text_of(record, "2")]
    images = tuple(image_reference(_last(link)) for link in links)
    captions = (text_of(record, "1"), text_of(record, "3"))
    tags = {f"image_link_{i + 1}": link for i, link in enumerate(links) if link != _last(link)}
    return Item(record.key, subset, images, captions, PAIRED, tags)


def _last(link: str) -> str:
    return link.rsplit("/", 1)[-1] or link


def _cola_value(item: Item) -> list[Any]:
    paired(item)
    links = []
    for i, image in enumerate(item.images):
        key = split_reference(image)[0]
        link = str(item.tags.get(f"image_link_{i + 1}", key))
        links.append(link if _last(link) == key else key)
    return [links[0], item.captions[0], links[1], item.captions[1]]


_COLA = RecordShape("list", _cola_item, _cola_value)


def _read_cola(source: FormatSource) -> Benchmark:
    files = find_files(
        source.path, lambda n: is_data_json(n) and "multiobject" in n.lower(), "COLA file of object pairs"
    )
    return read_parts("cola", "COLA", [PublishedFile(n, p, "multi_objects", _COLA) for n, p in files])


def _write_cola(bench: Benchmark) -> Files:
    def place(subset: str) -> tuple[str, RecordShape]:
        own = subset == "multi_objects"
        return ("COLA_multiobjects_matching_benchmark.json" if own else f"{subset}.json"), _COLA

    return write_parts(bench, "cola", place)


FORMATS = (
    described(
        "winoground",
        _rows("winoground", "Winoground", _WINOGROUND, "Winoground file (examples.jsonl or Parquet)"),
        _writer("winoground", _WINOGROUND),
    ),
    described(
        "colorswap",
        _rows("colorswap", "ColorSwap", _COLORSWAP, "ColorSwap file (train.json, test.json or Parquet)"),
        _writer("colorswap", _COLORSWAP),
    ),
    described("cola", _read_cola, _write_cola),
)
