"""Hit or Be Hit. The data are available only on request, so this module defines a layout of its own, with one row per
item.

    id, image, caption_1, caption_2, foil_1, foil_2, construction, simplified, source

The captions are two constructions of the same event (active and passive, dative and ditransitive). Each foil is the
caption with the same number, with its arguments exchanged. Files are JSON Lines, CSV, TSV or Parquet.
"""

from __future__ import annotations

from typing import Any

from creperie.bench.formats.published import lines_writer, records_format, texts_by_truth
from creperie.bench.formats.record import Record, id_of, image_key, image_of, tags_of, text_of
from creperie.bench.formats.recordfile import TABLES
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


def _row(item: Item) -> dict[str, Any]:
    captions, foils = texts_by_truth(item, 2, 2)
    texts = dict(zip(_CAPTIONS, (*captions, *foils), strict=True))
    simplified = bool(item.tags.get("simplified", False))
    construction = item.tags.get("construction", item.subset.removesuffix("-simplified") if simplified else item.subset)
    row = {"id": item.id, "image": image_key(item), **texts, "construction": construction, "simplified": simplified}
    return {**row, **({"source": item.tags["source"]} if "source" in item.tags else {})}


_FILES = "file of Hit or Be Hit (*.jsonl, *.csv)"
_WRITE = lines_writer(_row)
FORMATS = (records_format("hit-or-be-hit", lambda n: n.lower().endswith(TABLES), _FILES, None, _item, _WRITE),)
