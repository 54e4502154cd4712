"""Benchmarks with two images and two captions: Winoground, ColorSwap, COLA. Each caption is true of one image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import lines_writer, records_format
from creperie.bench.formats.record import TABLES, Record, id_of, image_key, kind_of, tags_of, text_of, whole_id
from creperie.bench.formats.textfile import is_data_json, stem_of
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


def _rows(name: str, item: Callable[[Record, str], Item], file: str) -> Callable[[FormatSource], Benchmark]:
    def is_table(path: str) -> bool:
        return path.lower().endswith(TABLES) and (is_data_json(path) or not path.endswith(".json"))

    def read(source: FormatSource) -> Benchmark:
        bench = records_format(name, is_table, file, None, item, subset=lambda file, _: _split(file)).read(source)
        inside = any(file.endswith(".parquet") for file in bench.provenance[0].args["sha256"])
        return replace(bench, images=open_store(source.path)) if inside else bench

    return read


def _split(name: str) -> str:
    """Return the subset of a file: its name without folders, suffix and the numbering of shards.

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
            f"has {len(item.images)} images and {len(item.captions)} captions; this format needs two of each, "
            "and each caption must be true of exactly one image",
            where=f"item {item.subset}/{item.id}",
            hint="export as jsonl, which holds every item",
        )
    made: dict[str, Any] = {"id": whole_id(item.id)}
    for n, caption in enumerate(item.captions):
        key = image_key(item, n)
        made[f"caption_{n}"] = caption
        made[f"image_{n}"] = key if "/" in key else key.removesuffix(".png")
    return {**made, **{name: whole_number(item.tags[name]) for name in _WINOGROUND_TAGS if name in item.tags}}


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


FORMATS = (
    described(
        "winoground",
        _rows("winoground", _WINOGROUND, "Winoground file (examples.jsonl or Parquet)"),
        lines_writer(_winoground_value),
    ),
    described("colorswap", _rows("colorswap", _COLORSWAP, "ColorSwap file (train.json, test.json or Parquet)")),
    records_format(
        "cola",
        lambda n: is_data_json(n) and "multiobject" in n.lower(),
        "COLA file of object pairs",
        "list",
        _cola_item,
        subset=lambda *_: "multi_objects",
    ),
)
