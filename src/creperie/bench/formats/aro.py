"""ARO: Visual Genome relations and attributes, word order on COCO and Flickr30k, and NegCLIP's training negatives."""

from __future__ import annotations

from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Format, FormatSource, described
from creperie.bench.formats.literals import literal_texts
from creperie.bench.formats.published import NoItem, PublishedFile, read_parts, records_format
from creperie.bench.formats.record import Record, image_of, number_of, tags_of, text_of, texts_of
from creperie.bench.formats.recordfile import RecordKind
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import Item, choice
from creperie.core import read_lines

_BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_TAGS = ("image_id", "relation_name", "obj1_name", "obj2_name", "subject_name", "object_name")
#: Number of shuffled captions that follow each caption.
_PERTURBED = 4


# -- relations and attributes ----------------------------------------------------------------------------------------


def _vg_item(record: Record, subset: str) -> Item:
    x, y, width, height = (number_of(record, name) for name in _BOX)
    image = image_reference(text_of(record, "image_path"), (x, y, width, height))
    tags = tags_of(record, _TAGS)
    attributes = record.fields.get("attributes")
    if isinstance(attributes, list) and attributes:
        tags["attributes"] = "_".join(texts_of(record, "attributes"))  # as the benchmark groups them
    captions = (text_of(record, "true_caption"), text_of(record, "false_caption"))
    return Item(record.key, subset, (image,), captions, choice(1, 1), tags)


def _vg(name: str, word: str) -> Format:
    expected = f"ARO file (visual_genome_{word}.json)"
    return records_format(name, lambda n: is_data_json(n) and word in n.lower(), expected, "list", _vg_item)


# -- word order ------------------------------------------------------------------------------------------------------


def _order_item(record: Record, subset: str) -> Item:
    if "caption_options" not in record.fields and "caption" in record.fields:
        raise record.error(
            "has captions without their four shuffles: ARO publishes only captions, and its code makes the shuffles",
            "make shuffles with `creperie make rules:shuffle --as-published --captions karpathy:PATH --out DIR`, "
            "then load DIR",
        )
    options = texts_of(record, "caption_options", least=1 + _PERTURBED)
    images = (image_of(record, "image"),)
    return Item(record.key, subset, images, tuple(options), choice(1, len(options) - 1))


def _order_kind(path: Path) -> RecordKind:
    first = next((line for _, line in read_lines(path) if line.strip()), "[")
    return "list" if first.lstrip().startswith("[") else "lines"


def _order(name: str) -> Format:
    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, lambda n: n.endswith((".json", ".jsonl")), "file of word order tests (*.json)")
        return read_parts(name, [PublishedFile(n, p, stem_of(n), _order_kind(p), _order_item) for n, p in files])

    return described(name, read)


# -- NegCLIP ---------------------------------------------------------------------------------------------------------


def _negclip_item(record: Record, subset: str) -> Item | NoItem:
    negatives = literal_texts(text_of(record, "neg_caption"), record, "neg_caption")
    if not negatives:
        return NoItem("neg_caption holds no negative")
    images = (image_of(record, "filepath"),)
    captions = (text_of(record, "title"), *negatives)
    return Item(record.key, subset, images, captions, choice(1, len(negatives)))


FORMATS = (
    _vg("aro-vg-relation", "relation"),
    _vg("aro-vg-attribution", "attribution"),
    _order("aro-coco-order"),
    _order("aro-flickr-order"),
    records_format("negclip", lambda n: n.endswith(".tsv"), "NegCLIP file (*.tsv)", "tsv", _negclip_item),
)
