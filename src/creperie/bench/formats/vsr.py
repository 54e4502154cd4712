"""Visual Spatial Reasoning: one caption, true or false of its image."""

from __future__ import annotations

from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import PublishedFile, RecordShape, read_parts, write_parts
from creperie.bench.formats.record import Record, image_key, image_of, tags_of, text_of
from creperie.bench.formats.textfile import find_files, stem_of
from creperie.bench.item import Item
from creperie.core import UsageError

_TAGS = ("relation", "subj", "obj", "image_link", "annotator_id", "reference_frame")


def _item(record: Record, subset: str) -> Item:
    label = record.fields.get("label")
    if label not in (0, 1) or not isinstance(label, (int, bool)):
        raise record.error("has no label", "expected label: 0 or 1")
    images = (image_of(record, "image"),)
    return Item(record.key, subset, images, (text_of(record, "caption"),), ((bool(label),),), tags_of(record, _TAGS))


def _value(item: Item) -> dict[str, Any]:
    if len(item.images) != 1 or len(item.captions) != 1:
        what = f"has {len(item.images)} images and {len(item.captions)} captions; VSR holds one of each"
        raise UsageError(what, hint="export as jsonl, which holds every item")
    known = {name: item.tags[name] for name in ("image_link", "relation", "subj", "obj") if name in item.tags}
    image = image_key(item)
    return {"image": image, "caption": item.captions[0], "label": int(item.match[0][0]), **known}


_SHAPE = RecordShape("lines", _item, _value)


def _read(source: FormatSource) -> Benchmark:
    files = find_files(source.path, lambda n: n.endswith(".jsonl"), "VSR file (*.jsonl)", deep=True)
    return read_parts("vsr", "Visual Spatial Reasoning", [PublishedFile(n, p, stem_of(n), _SHAPE) for n, p in files])


def _write(bench: Benchmark) -> Files:
    return write_parts(bench, "vsr", lambda subset: (f"{subset}.jsonl", _SHAPE))


FORMATS = (described("vsr", _read, _write),)
