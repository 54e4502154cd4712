"""SADE, whose subsets are called branches. The authors do not document their files, so creperie defines its own layout,
with one JSON object per item:

    {"branch": "content-coco", "image": "7.jpg", "references": ["dog , red ball", "A man reads.", "A bus waits."]}
    {"branch": "comprehensive", "images": ["a.png", "b.png"], "references": ["true of a", "true of b"]}

The first reference is the true one, unless `positive` is the index of another. An `id` is optional.
"""

from __future__ import annotations

from typing import Any

from creperie.bench.formats.published import lines_writer, records_format, texts_by_truth
from creperie.bench.formats.record import Record, id_of, image_key, image_of, text_of, texts_of
from creperie.bench.images import image_reference
from creperie.bench.item import PAIRED, Item, choice

_ENDINGS = (".jsonl", ".json")


def _item(record: Record, file: str) -> Item:
    subset = text_of(record, "branch") if "branch" in record.fields else file
    references = texts_of(record, "references", least=2)
    key = id_of(record)
    if "images" in record.fields:
        images = texts_of(record, "images")
        if len(images) != 2 or len(references) != 2:
            raise record.error(f"has {len(images)} images and {len(references)} references, expected two of each")
        return Item(key, subset, tuple(image_reference(i) for i in images), tuple(references), PAIRED)
    true = record.fields.get("positive", 0)
    if type(true) is not int or not 0 <= true < len(references):
        raise record.error("'positive' is not the number of a reference", f"expected 0 to {len(references) - 1}")
    captions = (references[true], *references[:true], *references[true + 1 :])
    return Item(key, subset, (image_of(record, "image"),), captions, choice(1, len(references) - 1))


def _row(item: Item) -> dict[str, Any]:
    head = {"id": item.id, "branch": item.subset}
    if item.match == PAIRED:
        return {**head, "images": [image_key(item, 0), image_key(item, 1)], "references": list(item.captions)}
    (true,), false = texts_by_truth(item, 1, None)
    return {**head, "image": image_key(item), "references": [true, *false]}


_FILES = "file of SADE branches (*.jsonl)"
FORMATS = (records_format("sade", lambda n: n.lower().endswith(_ENDINGS), _FILES, None, _item, lines_writer(_row)),)
