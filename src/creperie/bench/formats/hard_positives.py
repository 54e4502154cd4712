"""Hard positives: every caption of an older set again, with a word exchanged that leaves it true.

Two aligned files: `data/NAME.json` with the caption and its negative, `swapped_data/NAME.json` with the hard positive.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, FormatSource, described
from creperie.bench.formats.published import (
    NoItem,
    PublishedFile,
    RecordShape,
    files_of,
    finished,
    layout_of_file,
    layout_of_files,
    texts_by_truth,
    write_parts,
)
from creperie.bench.formats.record import Record, image_key, image_of, tags_of, text_of
from creperie.bench.formats.recordfile import read_records
from creperie.bench.formats.textfile import file_digest, find_files, is_data_json, stem_of
from creperie.bench.item import Item, choice
from creperie.core import DataError, UsageError

_ORIGINAL, _SWAPPED = "data", "swapped_data"


def _value(item: Item, number: int) -> dict[str, Any]:
    positives, (negative,) = texts_by_truth(item, 2, 1)
    key = image_key(item)
    image_id = str(item.tags.get("image_id", PurePosixPath(key).stem))
    return {"image_id": image_id, "true_caption": positives[number], "false_caption": negative, "image_path": key}


def _no_item(record: Record, subset: str) -> NoItem:
    """One of two aligned records makes no item."""
    return NoItem("hard positives are read two files at a time")


_SHAPES = (
    RecordShape("list", _no_item, lambda item: _value(item, 0), keeps=("image_id", "false_caption")),
    RecordShape("list", _no_item, lambda item: _value(item, 1), keeps=("image_id",)),
)


def _read(source: FormatSource) -> Benchmark:
    items: list[Item] = []
    layouts: list[dict[str, Any]] = []
    digests: dict[str, str] = {}
    for name, original, swapped in _pairs(source):
        subset = stem_of(name)
        sides = [read_records(path, "list") for path in (original, swapped)]
        made = _aligned(sides[0], sides[1], subset, str(swapped))
        items += made
        for folder, path, records, shape in zip(
            (_ORIGINAL, _SWAPPED), (original, swapped), sides, _SHAPES, strict=True
        ):
            part = PublishedFile(f"{folder}/{name}", path, subset, shape)
            digests[part.name] = file_digest(path)
            layouts.append(layout_of_file(part, records, made))
    bench = finished("hard-positives", "Hard positives", items, digests)
    return replace(bench, layout=layout_of_files("hard-positives", layouts))


def _pairs(source: FormatSource) -> list[tuple[str, Path, Path]]:
    """Files that belong together, as (name, original, swapped)."""
    path = source.path
    if path.is_file():
        given = source.options.get("swapped")
        folder = path.parent.parent / _SWAPPED
        swapped = Path(given) if given else folder / path.name
        if not swapped.is_file():
            what = "the file with the hard positives is not there"
            raise UsageError(what, where=str(swapped), hint="name it: hard-positives:FILE?swapped=OTHER")
        return [(path.name, path, swapped)]
    root = path if (path / _SWAPPED).is_dir() else path.parent
    originals = find_files(root / _ORIGINAL, is_data_json, "file of captions (*.json)")
    pairs = [(name, original, root / _SWAPPED / name) for name, original in originals]
    found = [pair for pair in pairs if pair[2].is_file()]
    if not found:
        what = f"there is no {_SWAPPED} folder with the same files beside {_ORIGINAL}"
        raise DataError(what, where=str(root), hint=f"give the folder that holds both {_ORIGINAL} and {_SWAPPED}")
    return found


def _aligned(originals: list[Record], swapped: list[Record], subset: str, file: str) -> list[Item]:
    if len(originals) != len(swapped):
        what = f"holds {len(swapped)} records, the file it must be aligned with {len(originals)}"
        raise DataError(what, where=file, hint="take both files from the same release")
    items = []
    for first, second in zip(originals, swapped, strict=True):
        image = image_of(first, "image_path")
        if image != image_of(second, "image_path"):
            raise second.error(f"is of another image than its partner ({image[:80]!r})", "the files are not aligned")
        # The negative of the second file is the one the published evaluation scores.
        captions = (text_of(first, "true_caption"), text_of(second, "true_caption"), text_of(second, "false_caption"))
        text_of(first, "false_caption")
        items.append(Item(first.key, subset, (image,), captions, choice(2, 1), tags_of(first, ["image_id"])))
    return items


def _write(bench: Benchmark) -> Files:
    files: Files = {}
    for folder, shape in zip((_ORIGINAL, _SWAPPED), _SHAPES, strict=True):
        side = [f for f in files_of(bench, "hard-positives") if f["path"].startswith(f"{folder}/")]
        files |= write_parts(bench, "hard-positives", lambda s, f=folder, h=shape: (f"{f}/{s}.json", h), side)  # type: ignore[misc]
    return files


FORMATS = (described("hard-positives", _read, _write),)
