"""Hit or Be Hit. Its data is given on request only; this is creperie's layout of it, one row per item.

    id, image, caption_1, caption_2, foil_1, foil_2, construction, simplified, source

The captions are the two constructions of one event (active and passive, dative and ditransitive), the foils the same
with their arguments exchanged, in the same order. JSON Lines, CSV, TSV or Parquet.
"""

from __future__ import annotations

from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import finished, texts_by_truth, write_lines
from creperie.bench.formats.record import Record, id_of, image_key, image_of, tags_of, text_of
from creperie.bench.formats.recordfile import TABLES, read_records
from creperie.bench.formats.textfile import file_digest, find_files, stem_of
from creperie.bench.item import Item, Tag, choice

_CAPTIONS = ("caption_1", "caption_2", "foil_1", "foil_2")
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


def _item(record: Record, file: str) -> Item:
    captions = tuple(text_of(record, name) for name in _CAPTIONS)
    tags: dict[str, Tag] = tags_of(record, ["construction", "source"])
    tags["simplified"] = simplified = _truth(record, "simplified")
    subset = str(tags.get("construction") or file) + ("-simplified" if simplified else "")
    key = id_of(record)
    return Item(key, subset, (image_of(record, "image"),), captions, choice(2, 2), tags)


def _truth(record: Record, name: str) -> bool:
    value = record.fields.get(name, False)
    known = value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
    if known is None:
        raise record.error(f"{name!r} is {str(value)[:40]!r}, expected true or false")
    return known


def _read(source: FormatSource) -> Benchmark:
    files = find_files(source.path, lambda n: n.lower().endswith(TABLES), "file of Hit or Be Hit (*.jsonl, *.csv)")
    items = [_item(record, stem_of(name)) for name, path in files for record in read_records(path)]
    return finished("hit-or-be-hit", "Hit or Be Hit", items, {name: file_digest(path) for name, path in files})


def _row(item: Item) -> dict[str, Any]:
    captions, foils = texts_by_truth(item, 2, 2)
    texts = dict(zip(_CAPTIONS, (*captions, *foils), strict=True))
    simplified = bool(item.tags.get("simplified", False))
    construction = item.tags.get("construction", item.subset.removesuffix("-simplified") if simplified else item.subset)
    row = {"id": item.id, "image": image_key(item), **texts, "construction": construction, "simplified": simplified}
    return {**row, **({"source": item.tags["source"]} if "source" in item.tags else {})}


def _write(bench: Benchmark) -> Files:
    return write_lines(bench, _row)


FORMATS = (described("hit-or-be-hit", _read, _write),)
