"""Visual Spatial Reasoning: one image and one caption per item, with the label true or false."""

from __future__ import annotations

from creperie.bench.formats.published import records_format
from creperie.bench.formats.record import Record, image_of, tags_of, text_of
from creperie.bench.item import Item

_TAGS = ("relation", "subj", "obj", "image_link", "annotator_id", "reference_frame")


def _item(record: Record, subset: str) -> Item:
    label = record.fields.get("label")
    if label not in (0, 1) or not isinstance(label, (int, bool)):
        raise record.error("has no label", "expected label: 0 or 1")
    images = (image_of(record, "image"),)
    return Item(record.key, subset, images, (text_of(record, "caption"),), ((bool(label),),), tags_of(record, _TAGS))


FORMATS = (records_format("vsr", lambda n: n.endswith(".jsonl"), "VSR file (*.jsonl)", "lines", _item, deep=True),)
