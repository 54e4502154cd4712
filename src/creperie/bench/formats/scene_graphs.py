"""Benchmarks from scene graphs: ARO (relations, attributes, word order, NegCLIP's training negatives), CREPE (regions
of images with hard negatives, in two sets: productivity and systematicity), and VL-CheckList (a tree of files, each a
list of [image, {"POS": texts, "NEG": texts}]).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Format, FormatSource, described
from creperie.bench.formats.published import NoItem, PublishedFile, read_parts, records_format
from creperie.bench.formats.record import (
    Record,
    RecordKind,
    checked_text,
    image_of,
    kind_of,
    number_of,
    numeric_tag,
    tags_of,
    text_of,
    texts_of,
)
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import Item, Tag, choice
from creperie.core import UsageError, first_line

# -- cells that contain a Python list or set of strings ----------------------------------------------------------------

#: Maximum length of such a cell, in characters.
LONGEST_LITERAL = 1_000_000
_STRING = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_TOKEN = re.compile(rf"\s*({_STRING})\s*(,|$)")


def _string(literal: str) -> str | None:
    """Return the value of a Python string literal. Return None if it is not valid Python, for example because of a bad
    escape.
    """
    if "\\" not in literal:
        return literal[1:-1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes such as \\d
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return None


def literal_texts(text: str, record: Record, name: str) -> list[str]:
    """Return the strings in a cell that is a Python list or set literal. The strings of a set are sorted."""
    # Only brackets and string literals are accepted, so that nothing is ever executed.
    inside = text.strip()
    if inside == "set()":
        return []
    is_set = inside.startswith("{") and inside.endswith("}")
    if len(text) > LONGEST_LITERAL or not (is_set or (inside.startswith("[") and inside.endswith("]"))):
        raise record.error(f"{name!r} is {text[:40]!r}, expected a Python list or set of strings")
    body = inside[1:-1].strip()
    values: list[str] = []
    position = 0
    while position < len(body):
        token = _TOKEN.match(body, position)
        value = _string(token[1]) if token else None
        if token is None or value is None:
            shown = body[position : position + 40]
            raise record.error(f"{name!r} holds {shown!r}, expected strings in quotes with commas between them")
        values.append(checked_text(record, name, value))
        position = token.end()
    if is_set and not body:  # {} is a dictionary
        raise record.error(f"{name!r} is {{}}, expected a Python list or set of strings")
    return sorted(values) if is_set else values


_ARO_BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_VG_TAGS = ("image_id", "relation_name", "obj1_name", "obj2_name", "subject_name", "object_name")
#: Number of shuffled captions that follow each caption.
_PERTURBED = 4


# -- relations and attributes ----------------------------------------------------------------------------------------


def _vg_item(record: Record, subset: str) -> Item:
    x, y, width, height = (number_of(record, name) for name in _ARO_BOX)
    image = image_reference(text_of(record, "image_path"), (x, y, width, height))
    tags = tags_of(record, _VG_TAGS)
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
    return "list" if (first_line(path) or "[").lstrip().startswith("[") else "lines"


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


# -- CREPE -------------------------------------------------------------------------------------------------------------

_CREPE_BOX = ("x", "y", "width", "height")
_COUNTS = ("n", "n_objects", "n_relations", "n_attributes", "n_connected_components")
_KINDS = ("combined", "atom", "comp")
_PROD_NAME = re.compile(r"prod_vg_hard_negs_([a-z]+)_complexity_(\d+)", re.ASCII)
_SYST_NAME = re.compile(r"syst_vg_hard_negs_(seen|unseen)_compounds_in_([a-z0-9]+)", re.ASCII)


def _crepe_item_reader(column: str) -> Callable[[Record, str], Item | NoItem]:
    def item(record: Record, subset: str) -> Item | NoItem:
        negatives = literal_texts(text_of(record, column), record, column)
        if not negatives:
            return NoItem(f"{column} holds no negative")
        box = None
        if any(name in record.fields for name in _CREPE_BOX):
            x, y, width, height = (number_of(record, name) for name in _CREPE_BOX)
            box = (x, y, width, height)
        image = image_reference(f"{text_of(record, 'image_id')}.jpg", box)
        tags: dict[str, Tag] = {n: numeric_tag(record.fields[n]) for n in _COUNTS if n in record.fields}
        captions = (text_of(record, "caption"), *negatives)
        return Item(record.key, subset, (image,), captions, choice(1, len(negatives)), tags)

    return item


def _read_productivity(source: FormatSource) -> Benchmark:
    return _read_crepe_as("crepe", source, "prod_", source.options.get("column", "hard_negs"))


def _read_systematicity(source: FormatSource) -> Benchmark:
    column = source.options.get("column") or f"valid_hard_negs_{source.choice('negatives', _KINDS)}"
    return _read_crepe_as("crepe-systematicity", source, "syst_", column)


def _read_crepe_as(name: str, source: FormatSource, start: str, column: str) -> Benchmark:
    parts = [
        PublishedFile(n, p, subset_of(n), "csv", _crepe_item_reader(column)) for n, p in _crepe_files(source, start)
    ]
    return read_parts(name, parts)


def _read_crepe(source: FormatSource) -> Benchmark:
    """Return the productivity or the systematicity set, depending on the file names."""
    files = _crepe_files(source, "")
    systematic = [_SYST_NAME.search(name) is not None for name, _ in files]
    if all(systematic):
        return _read_systematicity(source)
    if any(systematic):
        raise UsageError(
            "this folder holds both sets of CREPE",
            where=source.path,
            hint="choose one set: write crepe-systematicity:PATH or crepe-productivity:PATH",
        )
    return _read_productivity(source)


def _crepe_files(source: FormatSource, start: str) -> list[tuple[str, Path]]:
    def is_crepe(name: str) -> bool:
        return name.endswith(".csv") and name.rsplit("/", 1)[-1].startswith(start or ("prod_", "syst_"))

    return find_files(source.path, is_crepe, "CREPE file (prod_*.csv, syst_*.csv)", deep=True)


def subset_of(name: str) -> str:
    """Return the short name of a CREPE file.

    >>> subset_of("atom/prod_vg_hard_negs_atom_complexity_4.csv")
    'atom_4'
    >>> subset_of("syst_vg_hard_negs_unseen_compounds_in_cc12m.csv")
    'cc12m_unseen'
    """
    if match := _PROD_NAME.search(name):
        return f"{match[1]}_{match[2]}"
    if match := _SYST_NAME.search(name):
        return f"{match[2]}_{match[1]}"
    return re.sub(r"(^|/)(prod|syst)_", r"\1", stem_of(name))


# -- VL-CheckList ------------------------------------------------------------------------------------------------------

_CHECKLIST_KINDS = ("Attribute", "Object", "Relation")


def _checklist_item(record: Record, subset: str) -> Item:
    if not isinstance(record.value, list) or len(record.value) != 2 or not isinstance(record.value[1], dict):
        raise record.error(f'is {kind_of(record.value)}, expected [image, {{"POS": [text], "NEG": [text]}}]')
    captions = (_first_text(record, "POS"), _first_text(record, "NEG"))
    kind = subset.split("/", 1)[0]
    tags = {"kind": kind.lower()} if kind in _CHECKLIST_KINDS else {}
    return Item(record.key, subset, (image_of(record, "0"),), captions, choice(1, 1), tags)


def _first_text(record: Record, name: str) -> str:
    """Return the first text of a field, which is a list of texts."""
    # Some records (from SWiG) have three texts; the benchmark's own code uses only the first.
    texts = record.value[1].get(name)
    if not isinstance(texts, list) or not texts:
        raise record.error(f"{name!r} is {kind_of(texts)}, expected a list with a text")
    return checked_text(record, name, texts[0])


def _checklist_subset(name: str, path: Path) -> str:
    """Return the subset of a file: its path below the benchmark's top folder. The user may have given only a part of
    the tree.
    """
    parts = path.resolve().parts
    tops = [i for i, part in enumerate(parts) if part in _CHECKLIST_KINDS]
    return stem_of("/".join(parts[tops[-1] :])) if tops else stem_of(name)


FORMATS = (
    _vg("aro-vg-relation", "relation"),
    _vg("aro-vg-attribution", "attribution"),
    _order("aro-coco-order"),
    _order("aro-flickr-order"),
    records_format("negclip", lambda n: n.endswith(".tsv"), "NegCLIP file (*.tsv)", "tsv", _negclip_item),
    described("crepe", _read_crepe),
    described("crepe-productivity", _read_productivity),
    described("crepe-systematicity", _read_systematicity),
    records_format(
        "vl-checklist",
        is_data_json,
        "VL-CheckList file (*.json)",
        "list",
        _checklist_item,
        deep=True,
        subset=_checklist_subset,
    ),
)
