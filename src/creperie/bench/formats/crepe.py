"""CREPE: captions with hard negatives for regions of images, in two sets: productivity and systematicity."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.literals import literal_texts
from creperie.bench.formats.published import NoItem, PublishedFile, read_parts
from creperie.bench.formats.record import Record, number_of, numeric_tag, text_of
from creperie.bench.formats.textfile import find_files, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import Item, Tag, choice
from creperie.core import UsageError

_BOX = ("x", "y", "width", "height")
_COUNTS = ("n", "n_objects", "n_relations", "n_attributes", "n_connected_components")
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


def _read_productivity(source: FormatSource) -> Benchmark:
    return _read_as("crepe", source, "prod_", source.options.get("column", "hard_negs"))


def _read_systematicity(source: FormatSource) -> Benchmark:
    column = source.options.get("column") or f"valid_hard_negs_{source.choice('negatives', _KINDS)}"
    return _read_as("crepe-systematicity", source, "syst_", column)


def _read_as(name: str, source: FormatSource, start: str, column: str) -> Benchmark:
    parts = [PublishedFile(n, p, subset_of(n), "csv", _reader(column)) for n, p in _files(source, start)]
    return read_parts(name, parts)


def _read(source: FormatSource) -> Benchmark:
    """Return the productivity or the systematicity set, depending on the file names."""
    files = _files(source, "")
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


def _files(source: FormatSource, start: str) -> list[tuple[str, Any]]:
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


FORMATS = (
    described("crepe", _read),
    described("crepe-productivity", _read_productivity),
    described("crepe-systematicity", _read_systematicity),
)
