"""Benchmarks of rewritten captions: SugarCrepe (one positive, one negative), SugarCrepe++ and VISLA (two positives, one
negative). VISLA has two files, a generic and a spatial one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import (
    NoItem,
    Place,
    PublishedFile,
    read_parts,
    records_format,
    texts_by_truth,
    writer,
)
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
from creperie.bench.formats.textfile import find_files, is_data_json
from creperie.bench.images import image_reference
from creperie.bench.item import Item, choice
from creperie.core import DataError, read_lines

# -- SugarCrepe, SugarCrepe++ ------------------------------------------------------------------------------------------


def _sugarcrepe_item(record: Record, subset: str) -> Item | NoItem:
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


def _sugarcrepe_value(item: Item) -> dict[str, Any]:
    (positive,), (negative,) = texts_by_truth(item, 1, 1)
    return {"filename": image_key(item), "caption": positive, "negative_caption": negative}


def _sugarcrepe_pp_item(record: Record, subset: str) -> Item:
    if "id" not in record.fields:
        raise record.error("'id' is missing, expected a number or text")
    id_ = id_of(record)
    captions = tuple(text_of(record, name) for name in ("caption", "caption2", "negative_caption"))
    images = (image_of(record, "filename"),)
    return Item(id_, subset, images, captions, choice(2, 1))


def _sugarcrepe_pp_value(item: Item) -> dict[str, Any]:
    (first, second), (negative,) = texts_by_truth(item, 2, 1)
    return {
        "id": whole_id(item.id),
        "filename": image_key(item),
        "caption": first,
        "caption2": second,
        "negative_caption": negative,
    }


# -- VISLA -------------------------------------------------------------------------------------------------------------

_GENERIC = ("filename", "caption", "second positive", "negative_caption")
_BEST = "Best reference (Semantically close)"
_OTHER = "Reference-2 (Completely irrelevant)"
_SPATIAL = ("image", "sent1", "sent2", _BEST, _OTHER)


def _generic_item(record: Record, subset: str) -> Item:
    image, *captions = (text_of(record, name) for name in _GENERIC)
    return Item(record.key, subset, (image_reference(image),), tuple(captions), choice(2, 1))


def _generic_value(item: Item) -> dict[str, Any]:
    (first, second), (negative,) = texts_by_truth(item, 2, 1)
    return dict(zip(_GENERIC, (image_key(item), first, second, negative), strict=True))


def _spatial_item(record: Record, subset: str) -> Item | NoItem:
    image, first, second, best, other = (text_of(record, name) for name in _SPATIAL)
    if not best and not other:
        return NoItem("both references are empty")
    # The second reference is published, but the paper's results do not use it: it becomes a tag, not a caption.
    tags = {"reference_2": other} if other else {}
    return Item(record.key, subset, (image_reference(image),), (first, second, best), choice(2, 1), tags)


def _spatial_value(item: Item) -> dict[str, Any]:
    (first, second), (negative,) = texts_by_truth(item, 2, 1)
    other = str(item.tags.get("reference_2", ""))
    return dict(zip(_SPATIAL, (image_key(item), first, second, negative, other), strict=True))


#: kind → its columns, and the functions that make an item of a record and a record of an item
_VISLA_KINDS = {
    "generic": (_GENERIC, _generic_item, _generic_value),
    "spatial": (_SPATIAL, _spatial_item, _spatial_value),
}


def _visla_reader(*kinds: str) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, lambda name: name.lower().endswith("visla.tsv"), "VISLA file (*_VISLA.tsv)")
        chosen = [(name, path, kind) for name, path in files for kind in [_file_kind(path)] if kind in kinds]
        parts = [PublishedFile(name, path, kind, "plain-tsv", _VISLA_KINDS[kind][1]) for name, path, kind in chosen]
        if not parts:
            what = f"this is not the {kinds[0]} file of VISLA"
            raise DataError(what, where=source.path, hint=f"write visla:PATH, or give the {kinds[0]} file")
        return read_parts("visla", parts)

    return read


def _file_kind(path: Path) -> str:
    """Return "generic" or "spatial", depending on the header of the file."""
    header = next(read_lines(path), (1, ""))[1].split("\t")
    for kind, (columns, *_) in _VISLA_KINDS.items():
        if set(columns) <= set(header):
            return kind
    raise DataError(
        f"its columns, {', '.join(h[:40] for h in header[:8])!r}, are those of neither VISLA file",
        where=f"{path}:1",
        hint=f"expected either ({', '.join(_GENERIC)}) or ({', '.join(_SPATIAL)})",
    )


def _place_of_subset(subset: str) -> Place:
    kind = "spatial" if "spatial" in subset.lower() else "generic"
    return f"{kind.title() if subset == kind else subset}_VISLA.tsv", "plain-tsv", _VISLA_KINDS[kind][2]


FORMATS = (
    records_format(
        "sugarcrepe",
        is_data_json,
        "SugarCrepe file (*.json)",
        "object",
        _sugarcrepe_item,
        writer(lambda subset: (f"{subset}.json", "object", _sugarcrepe_value)),
    ),
    records_format(
        "sugarcrepe++",
        is_data_json,
        "SugarCrepe++ file (*.json)",
        "list",
        _sugarcrepe_pp_item,
        writer(lambda subset: (f"{subset}.json", "list", _sugarcrepe_pp_value)),
    ),
    described("visla", _visla_reader(*_VISLA_KINDS), writer(_place_of_subset)),
    described("visla-generic", _visla_reader("generic"), writer(_place_of_subset)),
    described("visla-spatial", _visla_reader("spatial"), writer(_place_of_subset)),
)
