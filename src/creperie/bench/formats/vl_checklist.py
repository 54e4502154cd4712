"""VL-CheckList: a tree of files, each a list of [image, {"POS": texts, "NEG": texts}]."""

from __future__ import annotations

from pathlib import Path

from creperie.bench.formats.published import records_format
from creperie.bench.formats.record import Record, checked_text, image_of, kind_of
from creperie.bench.formats.textfile import is_data_json, stem_of
from creperie.bench.item import Item, choice

_KINDS = ("Attribute", "Object", "Relation")


def _item(record: Record, subset: str) -> Item:
    if not isinstance(record.value, list) or len(record.value) != 2 or not isinstance(record.value[1], dict):
        raise record.error(f'is {kind_of(record.value)}, expected [image, {{"POS": [text], "NEG": [text]}}]')
    captions = (_first(record, "POS"), _first(record, "NEG"))
    kind = subset.split("/", 1)[0]
    tags = {"kind": kind.lower()} if kind in _KINDS else {}
    return Item(record.key, subset, (image_of(record, "0"),), captions, choice(1, 1), tags)


def _first(record: Record, name: str) -> str:
    """Return the first text of a field, which is a list of texts."""
    # Some records (from SWiG) have three texts; the benchmark's own code uses only the first.
    texts = record.value[1].get(name)
    if not isinstance(texts, list) or not texts:
        raise record.error(f"{name!r} is {kind_of(texts)}, expected a list with a text")
    return checked_text(record, name, texts[0])


def _subset(name: str, path: Path) -> str:
    """Return the subset of a file: its path below the benchmark's top folder. The user may have given only a part of
    the tree.
    """
    parts = path.resolve().parts
    tops = [i for i, part in enumerate(parts) if part in _KINDS]
    return stem_of("/".join(parts[tops[-1] :])) if tops else stem_of(name)


_FILES = "VL-CheckList file (*.json)"
FORMATS = (records_format("vl-checklist", is_data_json, _FILES, "list", _item, deep=True, subset=_subset),)
