"""Visual Spatial Reasoning: one caption, true or false of its image."""

from __future__ import annotations

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import PublishedFile, read_parts
from creperie.bench.formats.record import Record, image_of, tags_of, text_of
from creperie.bench.formats.textfile import find_files, stem_of
from creperie.bench.item import Item

_TAGS = ("relation", "subj", "obj", "image_link", "annotator_id", "reference_frame")


def _item(record: Record, subset: str) -> Item:
    label = record.fields.get("label")
    if label not in (0, 1) or not isinstance(label, (int, bool)):
        raise record.error("has no label", "expected label: 0 or 1")
    images = (image_of(record, "image"),)
    return Item(record.key, subset, images, (text_of(record, "caption"),), ((bool(label),),), tags_of(record, _TAGS))


def _read(source: FormatSource) -> Benchmark:
    files = find_files(source.path, lambda n: n.endswith(".jsonl"), "VSR file (*.jsonl)", deep=True)
    parts = [PublishedFile(n, p, stem_of(n), "lines", _item) for n, p in files]
    return read_parts("vsr", "Visual Spatial Reasoning", parts)


FORMATS = (described("vsr", _read),)
