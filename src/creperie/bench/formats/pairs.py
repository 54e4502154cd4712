"""Two images and two captions, each true of its own image: Winoground, ColorSwap, COLA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.chunks import TABLES, read_rows, style_of
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.jsontext import JsonStyle
from creperie.bench.formats.layout import files_of
from creperie.bench.formats.published import NoItem, PublishedFile, RecordShape, finished, read_parts, write_parts
from creperie.bench.formats.record import Record, checked_text, kind_of, tags_of, text_of
from creperie.bench.formats.textfile import file_digest, find_files, is_data_json, stem_of
from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import PAIRED, Item, whole_number
from creperie.bench.stores import open_store
from creperie.core import UsageError

_WINOGROUND_TAGS = ("tag", "secondary_tag", "collapsed_tag", "num_main_preds")
_COLORSWAP_TAGS = ("image_source", "caption_source")


def paired(item: Item) -> None:
    """Only two images with one caption each can be written in these formats."""
    if item.match != PAIRED:
        raise UsageError(
            f"has {len(item.images)} images and {len(item.captions)} captions; this format holds two and two, "
            "each caption true of its own image",
            hint="export as jsonl, which holds every item",
        )


# -- Winoground and ColorSwap: rows with numbered columns ------------------------------------------------------------


def _row_shape(first: int, tags: tuple[str, ...], ending: str, path: Path | None) -> RecordShape:
    numbers = (first, first + 1)

    def item(record: Record, subset: str) -> Item | NoItem:
        if not isinstance(record.value, dict):
            raise record.error(f"is {kind_of(record.value)}, expected an object with two images and two captions")
        keys = [text_of(record, f"image_{n}") for n in numbers]
        images = tuple(image_reference(key if "." in key or "/" in key else key + ending) for key in keys)
        captions = tuple(text_of(record, f"caption_{n}") for n in numbers)
        return Item(_id(record), subset, images, captions, PAIRED, tags_of(record, tags))

    def fields(item: Item) -> dict[str, Any]:
        paired(item)
        made: dict[str, Any] = {"id": int(item.id) if _is_number(item.id) else item.id}
        for n, caption, image in zip(numbers, item.captions, item.images, strict=True):
            key = split_reference(image)[0]
            made[f"caption_{n}"] = caption
            made[f"image_{n}"] = key.removesuffix(ending) if ending and "/" not in key else key
        return {**made, **{name: whole_number(item.tags[name]) for name in tags if name in item.tags}}

    return RecordShape(style_of(path) if path else JsonStyle("lines"), item, fields)


def _id(record: Record) -> str:
    id_ = record.fields.get("id", record.key)
    return str(id_) if type(id_) is int else checked_text(record, "id", id_)


def _is_number(id_: str) -> bool:
    return id_.isdecimal() and id_.isascii() and len(id_) < 16 and str(int(id_)) == id_


def _rows(
    name: str, title: str, make: Callable[[Path | None], RecordShape], file: str
) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        def wanted(path: str) -> bool:
            return path.lower().endswith(TABLES) and (is_data_json(path) or not path.endswith(".json"))

        found = find_files(source.path, wanted, file)
        if any(p.suffix == ".parquet" for _, p in found):
            bench = _read_parquet(name, title, make(None), found)
            return replace(bench, images=open_store(source.path))
        return read_parts(name, title, [PublishedFile(n, p, _split(n), make(p)) for n, p in found])

    return read


def _read_parquet(name: str, title: str, shape: RecordShape, found: list[tuple[str, Path]]) -> Benchmark:
    items: list[Item] = []
    count = 0
    for file, path in found:
        records = read_rows(path, count)
        count += len(records)
        made = (shape.item(record, _split(file)) for record in records)
        items += [item for item in made if isinstance(item, Item)]
    return finished(name, title, items, {n: file_digest(p) for n, p in found})


def _split(name: str) -> str:
    """The subset of a file: its name without what data sets add to number its parts.

    >>> _split("data/test-00000-of-00001.parquet"), _split("train.json")
    ('test', 'train')
    """
    return stem_of(name).rsplit("/", 1)[-1].split("-0", 1)[0]


def _writer(name: str, make: Callable[[Path | None], RecordShape], ending: str) -> Callable[[Benchmark], Files]:
    def write(bench: Benchmark) -> Files:
        known = {f["subset"]: f["path"] for f in files_of(bench.layout, name)}

        def place(subset: str) -> tuple[str, RecordShape]:
            path = known.get(subset, f"{subset}{ending}")
            return path, make(Path(path))

        return write_parts(bench, name, place)

    return write


def _winoground(path: Path | None) -> RecordShape:
    return _row_shape(0, _WINOGROUND_TAGS, ".png", path)


def _colorswap(path: Path | None) -> RecordShape:
    return _row_shape(1, _COLORSWAP_TAGS, "", path)


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


def _cola_fields(item: Item) -> dict[str, Any]:
    paired(item)
    links = []
    for i, image in enumerate(item.images):
        key = split_reference(image)[0]
        link = str(item.tags.get(f"image_link_{i + 1}", key))
        links.append(link if _last(link) == key else key)
    return {"0": links[0], "1": item.captions[0], "2": links[1], "3": item.captions[1]}


_COLA = RecordShape(JsonStyle("list", indent=2), _cola_item, _cola_fields)


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
        _rows("winoground", "Winoground", _winoground, "Winoground file (examples.jsonl or Parquet)"),
        _writer("winoground", _winoground, ".jsonl"),
    ),
    described(
        "colorswap",
        _rows("colorswap", "ColorSwap", _colorswap, "ColorSwap file (train.json, test.json or Parquet)"),
        _writer("colorswap", _colorswap, ".json"),
    ),
    described("cola", _read_cola, _write_cola),
)
