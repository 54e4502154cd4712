"""VL-CheckList: a tree of files, each a list of [image, {"POS": texts, "NEG": texts}]."""

from __future__ import annotations

from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import PublishedFile, read_parts
from creperie.bench.formats.record import Record, checked_text, image_of, kind_of
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
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
    """Return the first text: the only one the benchmark's own code looks at, where there are three (SWiG)."""
    texts = record.value[1].get(name)
    if not isinstance(texts, list) or not texts:
        raise record.error(f"{name!r} is {kind_of(texts)}, expected a list with a text")
    return checked_text(record, name, texts[0])


def _read(source: FormatSource) -> Benchmark:
    files = find_files(source.path, is_data_json, "VL-CheckList file (*.json)", deep=True)
    parts = [PublishedFile(n, p, _subset(n, p), "list", _item) for n, p in files]
    return read_parts("vl-checklist", "VL-CheckList", parts)


def _subset(name: str, path: Path) -> str:
    """Return the path below the benchmark's own folder, also where only a part of the tree was given."""
    parts = path.resolve().parts
    tops = [i for i, part in enumerate(parts) if part in _KINDS]
    return stem_of("/".join(parts[tops[-1] :])) if tops else stem_of(name)


FORMATS = (described("vl-checklist", _read),)
