"""SugarCrepe (one positive, one negative) and SugarCrepe++ (two positives, one negative)."""

from __future__ import annotations

from typing import Any

from creperie.bench.formats.published import NoItem, records_format, texts_by_truth, writer
from creperie.bench.formats.record import (
    Record,
    id_of,
    image_key,
    image_of,
    kind_of,
    tag_of,
    tags_of,
    text_of,
    whole_id,
)
from creperie.bench.formats.textfile import is_data_json
from creperie.bench.item import Item, choice


def _item(record: Record, subset: str) -> Item | NoItem:
    if not isinstance(record.value, dict):
        if not isinstance(record.value, list) and not record.key.isdecimal():
            return NoItem(f"no record: the key {record.key!r} holds {kind_of(record.value)}")
        raise record.error(f"is {kind_of(record.value)}, expected an object with filename, caption, negative_caption")
    captions = (text_of(record, "caption"), text_of(record, "negative_caption"))
    tags = tags_of(record, ["correct"])
    answer = record.fields.get("answer")  # present in the published answers of GPT-4V
    chosen = tag_of(answer.get("multiple_choice_answer")) if isinstance(answer, dict) else None
    if chosen is not None:
        tags["answer"] = chosen
    images = (image_of(record, "filename"),)
    return Item(record.key, subset, images, captions, choice(1, 1), tags)


def _value(item: Item) -> dict[str, Any]:
    (positive,), (negative,) = texts_by_truth(item, 1, 1)
    return {"filename": image_key(item), "caption": positive, "negative_caption": negative}


def _item_pp(record: Record, subset: str) -> Item:
    if "id" not in record.fields:
        raise record.error("'id' is missing, expected a number or text")
    id_ = id_of(record)
    captions = tuple(text_of(record, name) for name in ("caption", "caption2", "negative_caption"))
    images = (image_of(record, "filename"),)
    return Item(id_, subset, images, captions, choice(2, 1))


def _value_pp(item: Item) -> dict[str, Any]:
    (first, second), (negative,) = texts_by_truth(item, 2, 1)
    return {
        "id": whole_id(item.id),
        "filename": image_key(item),
        "caption": first,
        "caption2": second,
        "negative_caption": negative,
    }


FORMATS = (
    records_format(
        "sugarcrepe",
        is_data_json,
        "SugarCrepe file (*.json)",
        "object",
        _item,
        writer(lambda subset: (f"{subset}.json", "object", _value)),
    ),
    records_format(
        "sugarcrepe++",
        is_data_json,
        "SugarCrepe++ file (*.json)",
        "list",
        _item_pp,
        writer(lambda subset: (f"{subset}.json", "list", _value_pp)),
    ),
)
