"""CREPE: a caption and hard negatives for a region of an image; productivity and systematicity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.literals import literal_texts
from creperie.bench.formats.published import NoItem, PublishedFile, RecordShape, read_parts, texts_by_truth, write_parts
from creperie.bench.formats.record import Record, number_of, numeric_tag, text_of
from creperie.bench.formats.textfile import find_files, stem_of
from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import Item, Tag, choice
from creperie.core import UsageError

_BOX = ("x", "y", "width", "height")
_COUNTS = ("n", "n_objects", "n_relations", "n_attributes", "n_connected_components")
_PRODUCTIVITY = ("image_id", "caption", *_COUNTS, "hard_negs", *_BOX)
_KINDS = ("combined", "atom", "comp")
_PROD_NAME = re.compile(r"prod_vg_hard_negs_([a-z]+)_complexity_(\d+)", re.ASCII)
_SYST_NAME = re.compile(r"syst_vg_hard_negs_(seen|unseen)_compounds_in_([a-z0-9]+)", re.ASCII)


def _reader(column: str) -> Callable[[Record, str], Item | NoItem]:
    def item(record: Record, subset: str) -> Item | NoItem:
        negatives = literal_texts(text_of(record, column), record, column)
        if not negatives:
            return NoItem(f"{column} holds no negative")
        box = None
        if any(name in record.fields for name in _BOX):
            x, y, width, height = (number_of(record, name) for name in _BOX)
            box = (x, y, width, height)
        image = image_reference(f"{text_of(record, 'image_id')}.jpg", box)
        tags: dict[str, Tag] = {n: numeric_tag(record.fields[n]) for n in _COUNTS if n in record.fields}
        captions = (text_of(record, "caption"), *negatives)
        return Item(record.key, subset, (image,), captions, choice(1, len(negatives)), tags)

    return item


def _writer(column: str) -> Callable[[Item], dict[str, Any]]:
    def value(item: Item) -> dict[str, Any]:
        (positive,), negatives = texts_by_truth(item, 1, None)
        key, box = split_reference(item.images[0])
        made: dict[str, Any] = {"image_id": key.removesuffix(".jpg"), "caption": positive, column: negatives}
        for name in _COUNTS:
            tag = item.tags.get(name)
            if tag is not None:
                made[name] = int(tag) if isinstance(tag, float) and tag.is_integer() else tag
        return {**made, **(dict(zip(_BOX, box, strict=True)) if box else {})}

    return value


def _shape(column: str) -> RecordShape:
    columns = tuple(column if name == "hard_negs" else name for name in _PRODUCTIVITY)
    return RecordShape("csv", _reader(column), _writer(column), columns)


def _read_productivity(source: FormatSource) -> Benchmark:
    column = source.options.get("column", "hard_negs")
    parts = [PublishedFile(n, p, subset_of(n), _shape(column)) for n, p in _files(source, "prod_")]
    return read_parts("crepe", "CREPE productivity", parts, {"column": column})


def _read_systematicity(source: FormatSource) -> Benchmark:
    column = source.options.get("column") or f"valid_hard_negs_{source.choice('negatives', _KINDS)}"
    parts = [PublishedFile(n, p, subset_of(n), _shape(column)) for n, p in _files(source, "syst_")]
    return read_parts("crepe-systematicity", "CREPE systematicity", parts, {"column": column})


def _read(source: FormatSource) -> Benchmark:
    """Productivity, or systematicity where the file names say so."""
    files = _files(source, "")
    systematic = [_SYST_NAME.search(name) is not None for name, _ in files]
    if all(systematic):
        return _read_systematicity(source)
    if any(systematic):
        hint = "give one of its folders or files, or write crepe-systematicity:PATH or crepe-productivity:PATH"
        raise UsageError("this folder holds both sets of CREPE", where=str(source.path), hint=hint)
    return _read_productivity(source)


def _files(source: FormatSource, start: str) -> list[tuple[str, Any]]:
    def wanted(name: str) -> bool:
        return name.endswith(".csv") and name.rsplit("/", 1)[-1].startswith(start or ("prod_", "syst_"))

    return find_files(source.path, wanted, "CREPE file (prod_*.csv, syst_*.csv)", deep=True)


def subset_of(name: str) -> str:
    """The short name of a CREPE file.

    >>> subset_of("atom/prod_vg_hard_negs_atom_complexity_4.csv")
    'atom_4'
    >>> subset_of("syst_vg_hard_negs_unseen_compounds_in_cc12m.csv")
    'cc12m_unseen'
    """
    if found := _PROD_NAME.search(name):
        return f"{found[1]}_{found[2]}"
    if found := _SYST_NAME.search(name):
        return f"{found[2]}_{found[1]}"
    return re.sub(r"(^|/)(prod|syst)_", r"\1", stem_of(name))


def _write(bench: Benchmark) -> Files:
    if bench.layout.get("format") == "crepe-systematicity":
        return _write_systematicity(bench)
    shape = _shape(_column(bench, "crepe", "hard_negs"))
    return write_parts(bench, "crepe", lambda subset: (_productivity_path(subset), shape))


def _write_systematicity(bench: Benchmark) -> Files:
    """An item holds one column of negatives; the others come from the files it was read from."""
    shape = _shape(_column(bench, "crepe-systematicity", "valid_hard_negs_combined"))
    return write_parts(bench, "crepe-systematicity", lambda subset: (_systematicity_path(subset), shape))


def _column(bench: Benchmark, format: str, default: str) -> str:
    options = bench.layout.get("options") if bench.layout.get("format") == format else None
    return str(options.get("column", default)) if isinstance(options, Mapping) else default


def _productivity_path(subset: str) -> str:
    kind, _, n = subset.rpartition("_")
    own = re.fullmatch(r"[a-z]+_\d+", subset, re.ASCII)
    return f"{kind}/prod_vg_hard_negs_{kind}_complexity_{n}.csv" if own else _prefixed("prod_", subset)


def _systematicity_path(subset: str) -> str:
    found = re.fullmatch(r"([a-z0-9]+)_(seen|unseen)", subset, re.ASCII)
    own = found and f"syst_vg_hard_negs_{found[2]}_compounds_in_{found[1]}.csv"
    return own or _prefixed("syst_", subset)


def _prefixed(start: str, subset: str) -> str:
    folder, slash, name = subset.rpartition("/")
    return f"{folder}{slash}{start}{name}.csv"


FORMATS = (
    described("crepe", _read, _write),
    described("crepe-productivity", _read_productivity, _write),
    described("crepe-systematicity", _read_systematicity, _write_systematicity),
)
