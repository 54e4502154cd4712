"""Two images and two captions, each true of its own image: Winoground, ColorSwap, COLA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import PublishedFile, finished, read_parts, write_lines
from creperie.bench.formats.record import Record, id_of, image_key, kind_of, tags_of, text_of, whole_id
from creperie.bench.formats.recordfile import TABLES, kind_of_rows, read_records
from creperie.bench.formats.textfile import file_digest, find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import PAIRED, Item, whole_number
from creperie.bench.stores import open_store
from creperie.core import UsageError

# -- Winoground and ColorSwap: rows with numbered columns ------------------------------------------------------------


def _row_reader(first: int, tags: tuple[str, ...], ending: str) -> Callable[[Record, str], Item]:
    def item(record: Record, subset: str) -> Item:
        if not isinstance(record.value, dict):
            raise record.error(f"is {kind_of(record.value)}, expected an object with two images and two captions")
        keys = [text_of(record, f"image_{n}") for n in (first, first + 1)]
        images = tuple(image_reference(key if "." in key or "/" in key else key + ending) for key in keys)
        captions = tuple(text_of(record, f"caption_{n}") for n in (first, first + 1))
        return Item(id_of(record), subset, images, captions, PAIRED, tags_of(record, tags))

    return item


def _rows(name: str, title: str, item: Callable[[Record, str], Item], file: str) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        def wanted(path: str) -> bool:
            return path.lower().endswith(TABLES) and (is_data_json(path) or not path.endswith(".json"))

        files = find_files(source.path, wanted, file)
        if any(p.suffix == ".parquet" for _, p in files):
            bench = _read_parquet(name, title, item, files)
            return replace(bench, images=open_store(source.path))
        parts = [PublishedFile(n, p, _split(n), kind_of_rows(p), item) for n, p in files]
        return read_parts(name, title, parts)

    return read


def _read_parquet(
    name: str, title: str, item: Callable[[Record, str], Item], files: list[tuple[str, Path]]
) -> Benchmark:
    items: list[Item] = []
    count = 0
    for file, path in files:
        records = read_records(path, first=count)
        count += len(records)
        items += [item(record, _split(file)) for record in records]
    return finished(name, title, items, {n: file_digest(p) for n, p in files})


def _split(name: str) -> str:
    """Return the subset of a file: its name without what data sets add to number its parts.

    >>> _split("data/test-00000-of-00001.parquet"), _split("train.json")
    ('test', 'train')
    """
    return stem_of(name).rsplit("/", 1)[-1].split("-0", 1)[0]


_WINOGROUND_TAGS = ("tag", "secondary_tag", "collapsed_tag", "num_main_preds")
_WINOGROUND = _row_reader(0, _WINOGROUND_TAGS, ".png")
_COLORSWAP = _row_reader(1, ("image_source", "caption_source"), "")


def _winoground_value(item: Item) -> dict[str, Any]:
    if item.match != PAIRED:
        raise UsageError(
            f"has {len(item.images)} images and {len(item.captions)} captions; this format holds two and two, "
            "each caption true of its own image",
            where=f"item {item.subset}/{item.id}",
            hint="export as jsonl, which holds every item",
        )
    made: dict[str, Any] = {"id": whole_id(item.id)}
    for n, caption in enumerate(item.captions):
        key = image_key(item, n)
        made[f"caption_{n}"] = caption
        made[f"image_{n}"] = key if "/" in key else key.removesuffix(".png")
    return {**made, **{name: whole_number(item.tags[name]) for name in _WINOGROUND_TAGS if name in item.tags}}


def _write_winoground(bench: Benchmark) -> Files:
    return write_lines(bench, _winoground_value)


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


def _read_cola(source: FormatSource) -> Benchmark:
    files = find_files(
        source.path, lambda n: is_data_json(n) and "multiobject" in n.lower(), "COLA file of object pairs"
    )
    return read_parts("cola", "COLA", [PublishedFile(n, p, "multi_objects", "list", _cola_item) for n, p in files])


FORMATS = (
    described(
        "winoground",
        _rows("winoground", "Winoground", _WINOGROUND, "Winoground file (examples.jsonl or Parquet)"),
        _write_winoground,
    ),
    described(
        "colorswap", _rows("colorswap", "ColorSwap", _COLORSWAP, "ColorSwap file (train.json, test.json or Parquet)")
    ),
    described("cola", _read_cola),
)
