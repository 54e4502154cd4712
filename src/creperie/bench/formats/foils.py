"""Five benchmarks with records of their own: VALSE, Visual Spatial Reasoning, hard positives, SADE, Hit or Be Hit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import NoItem, finished, lines_writer, records_format, texts_by_truth
from creperie.bench.formats.record import (
    TABLES,
    Record,
    id_of,
    image_key,
    image_of,
    kind_of,
    read_records,
    tags_of,
    text_of,
    texts_of,
)
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import PAIRED, Item, Tag, choice
from creperie.core import DataError, UsageError

# -- VALSE -------------------------------------------------------------------------------------------------------------

#: Number of annotators, of three, who must have chosen the caption over the foil.
VOTES = 2
_VOTES = ("foil", "caption", "other")
_VALSE_TAGS: tuple[str, ...] = ("dataset", "dataset_idx", "linguistic_phenomena", "original_split", "split", "classes")
_VALSE_TAGS += ("classes_foil", "answer", "foil_method", "foiling_method", "provenance_of_foils")
_VALSE_TAGS += ("only_caption", "orig_caption")


def _valse_item_reader(keep_all: bool) -> Callable[[Record, str], Item | NoItem]:
    def item(record: Record, subset: str) -> Item | NoItem:
        if not isinstance(record.value, dict):
            raise record.error(f"is {kind_of(record.value)}, expected an object with caption, foil, image_file, mturk")
        captions = (text_of(record, "caption"), text_of(record, "foil"))
        votes = _votes(record)
        valid = votes["caption"] >= VOTES
        if not valid and not keep_all:
            return NoItem(f"not valid: {votes['caption']} of 3 people chose the caption, {VOTES} are needed")
        tags = tags_of(record, _VALSE_TAGS)
        tags.update({f"mturk_{name}": float(n) for name, n in votes.items()})
        if keep_all:
            tags["valid"] = valid
        images = (image_of(record, "image_file"),)
        return Item(record.key, subset, images, captions, choice(1, 1), tags)

    return item


def _votes(record: Record) -> dict[str, int]:
    mturk = record.fields.get("mturk")
    votes = {n: mturk[n] for n in _VOTES if type(mturk.get(n)) is int} if isinstance(mturk, dict) else {}
    if "caption" not in votes or any(abs(n) > 2**53 for n in votes.values()):
        raise record.error("has no votes", "expected mturk: {caption: a number, foil: a number, other: a number}")
    return votes


def _read_valse(source: FormatSource) -> Benchmark:
    item = _valse_item_reader(source.choice("valid", ("only", "all")) == "all")
    return records_format("valse", is_data_json, "VALSE file (*.json)", "object", item).read(source)


# -- Visual Spatial Reasoning ------------------------------------------------------------------------------------------

_VSR_TAGS = ("relation", "subj", "obj", "image_link", "annotator_id", "reference_frame")


def _vsr_item(record: Record, subset: str) -> Item:
    label = record.fields.get("label")
    if label not in (0, 1) or not isinstance(label, (int, bool)):
        raise record.error("has no label", "expected label: 0 or 1")
    images = (image_of(record, "image"),)
    return Item(
        record.key, subset, images, (text_of(record, "caption"),), ((bool(label),),), tags_of(record, _VSR_TAGS)
    )


# -- hard positives ----------------------------------------------------------------------------------------------------

_ORIGINAL, _SWAPPED = "data", "swapped_data"


def _read_hard_positives(source: FormatSource) -> Benchmark:
    items: list[Item] = []
    files: list[tuple[str, Path]] = []
    for name, original, swapped in _aligned_files(source):
        items += _aligned(read_records(original, "list"), read_records(swapped, "list"), stem_of(name), str(swapped))
        files += [(f"{_ORIGINAL}/{name}", original), (f"{_SWAPPED}/{name}", swapped)]
    return finished("hard-positives", items, files)


def _aligned_files(source: FormatSource) -> list[tuple[str, Path, Path]]:
    """Return the pairs of aligned files as (name, file with the negatives, file with the hard positives)."""
    path = source.path
    if path.is_file():
        given = source.options.get("swapped")
        folder = path.parent.parent / _SWAPPED
        swapped = Path(given) if given else folder / path.name
        if not swapped.is_file():
            raise UsageError(
                "the file with the hard positives does not exist",
                where=swapped,
                hint="write hard-positives:FILE?swapped=OTHER, where OTHER is the file with the hard positives",
            )
        return [(path.name, path, swapped)]
    root = path if (path / _SWAPPED).is_dir() else path.parent
    originals = find_files(root / _ORIGINAL, is_data_json, "file of captions (*.json)")
    pairs = [(name, original, root / _SWAPPED / name) for name, original in originals]
    complete = [pair for pair in pairs if pair[2].is_file()]
    if not complete:
        raise DataError(
            f"the folder {_ORIGINAL} needs a folder {_SWAPPED} next to it, with files of the same names",
            where=root,
            hint=f"give the folder that contains both {_ORIGINAL} and {_SWAPPED}",
        )
    return complete


def _aligned(originals: list[Record], swapped: list[Record], subset: str, file: str) -> list[Item]:
    if len(originals) != len(swapped):
        raise DataError(
            f"has {len(swapped)} records, but the file of the same name in {_ORIGINAL} has {len(originals)}",
            where=file,
            hint="take both files from the same release",
        )
    items = []
    for first, second in zip(originals, swapped, strict=True):
        image = image_of(first, "image_path")
        if image != image_of(second, "image_path"):
            raise second.error(
                f"does not name the same image as the record at its place in the other file ({image[:80]!r})",
                "take both files from the same release",
            )
        # The negative of the second file is the one the published evaluation scores.
        captions = (text_of(first, "true_caption"), text_of(second, "true_caption"), text_of(second, "false_caption"))
        text_of(first, "false_caption")
        items.append(Item(first.key, subset, (image,), captions, choice(2, 1), tags_of(first, ["image_id"])))
    return items


# -- SADE --------------------------------------------------------------------------------------------------------------


def _sade_item(record: Record, file: str) -> Item:
    """Return the item in a record of SADE, whose subsets are called branches. The authors do not document their files,
    so creperie defines its own layout, with one JSON object per item:

        {"branch": "content-coco", "image": "7.jpg", "references": ["dog , red ball", "A man reads.", "A bus waits."]}
        {"branch": "comprehensive", "images": ["a.png", "b.png"], "references": ["true of a", "true of b"]}

    The first reference is the true one, unless `positive` is the index of another. An `id` is optional.
    """
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


def _sade_row(item: Item) -> dict[str, Any]:
    head = {"id": item.id, "branch": item.subset}
    if item.match == PAIRED:
        return {**head, "images": [image_key(item, 0), image_key(item, 1)], "references": list(item.captions)}
    (true,), false = texts_by_truth(item, 1, None)
    return {**head, "image": image_key(item), "references": [true, *false]}


# -- Hit or Be Hit -----------------------------------------------------------------------------------------------------

_HIT_CAPTIONS = ("caption_1", "caption_2", "foil_1", "foil_2")
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


def _hit_item(record: Record, file: str) -> Item:
    """Return the item in a record of Hit or Be Hit. The data are available only on request, so creperie defines its own
    layout, with one row per item:

        id, image, caption_1, caption_2, foil_1, foil_2, construction, simplified, source

    The captions are two constructions of the same event (active and passive, dative and ditransitive). Each foil is the
    caption with the same number, with its arguments exchanged. Files are JSON Lines, CSV, TSV or Parquet.
    """
    captions = tuple(text_of(record, name) for name in _HIT_CAPTIONS)
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


def _hit_row(item: Item) -> dict[str, Any]:
    captions, foils = texts_by_truth(item, 2, 2)
    texts = dict(zip(_HIT_CAPTIONS, (*captions, *foils), strict=True))
    simplified = bool(item.tags.get("simplified", False))
    construction = item.tags.get("construction", item.subset.removesuffix("-simplified") if simplified else item.subset)
    row = {"id": item.id, "image": image_key(item), **texts, "construction": construction, "simplified": simplified}
    return {**row, **({"source": item.tags["source"]} if "source" in item.tags else {})}


FORMATS = (
    described("valse", _read_valse),
    records_format("vsr", lambda n: n.endswith(".jsonl"), "VSR file (*.jsonl)", "lines", _vsr_item, deep=True),
    described("hard-positives", _read_hard_positives),
    records_format(
        "sade",
        lambda n: n.lower().endswith((".jsonl", ".json")),
        "file of SADE branches (*.jsonl)",
        None,
        _sade_item,
        lines_writer(_sade_row),
    ),
    records_format(
        "hit-or-be-hit",
        lambda n: n.lower().endswith(TABLES),
        "file of Hit or Be Hit (*.jsonl, *.csv)",
        None,
        _hit_item,
        lines_writer(_hit_row),
    ),
)
