"""VISLA: two positives and a negative; the generic and the spatial file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import NoItem, Place, PublishedFile, read_parts, texts_by_truth, write_parts
from creperie.bench.formats.record import Record, image_key, text_of
from creperie.bench.formats.textfile import find_files
from creperie.bench.images import image_reference
from creperie.bench.item import Item, choice
from creperie.core import BOM, DataError, read_lines

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
    # The second reference is published, but the paper's numbers do not use it: a tag, not a caption.
    tags = {"reference_2": other} if other else {}
    return Item(record.key, subset, (image_reference(image),), (first, second, best), choice(2, 1), tags)


def _spatial_value(item: Item) -> dict[str, Any]:
    (first, second), (negative,) = texts_by_truth(item, 2, 1)
    other = str(item.tags.get("reference_2", ""))
    return dict(zip(_SPATIAL, (image_key(item), first, second, negative, other), strict=True))


_ITEMS = {"generic": _generic_item, "spatial": _spatial_item}
_VALUES = {"generic": _generic_value, "spatial": _spatial_value}


def _reader(kinds: tuple[str, ...]) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, lambda name: name.lower().endswith("visla.tsv"), "VISLA file (*_VISLA.tsv)")
        wanted = [(name, path, kind) for name, path in files for kind in [_kind(path)] if kind in kinds]
        parts = [PublishedFile(name, path, kind, "plain-tsv", _ITEMS[kind]) for name, path, kind in wanted]
        if not parts:
            raise DataError(f"this is not the {kinds[0]} file of VISLA", where=str(source.path))
        return read_parts("visla", "VISLA", parts)

    return read


def _kind(path: Path) -> str:
    """Return which of the two files this is: its header says so."""
    header = next(read_lines(path), (1, ""))[1].removeprefix(BOM).split("\t")
    for kind, columns in (("generic", _GENERIC), ("spatial", _SPATIAL)):
        if set(columns) <= set(header):
            return kind
    what = f"its columns are {', '.join(h[:40] for h in header[:8])!r}, those of neither file of VISLA"
    raise DataError(what, where=f"{path}:1", hint=f"expected {', '.join(_GENERIC)} or {', '.join(_SPATIAL)}")


def _place(subset: str) -> Place:
    kind = "spatial" if "spatial" in subset.lower() else "generic"
    return f"{kind.title() if subset == kind else subset}_VISLA.tsv", "plain-tsv", _VALUES[kind]


def _write(bench: Benchmark) -> Files:
    return write_parts(bench, _place)


FORMATS = (
    described("visla", _reader(("generic", "spatial")), _write),
    described("visla-generic", _reader(("generic",)), _write),
    described("visla-spatial", _reader(("spatial",)), _write),
)
