"""Hard positives: the captions of earlier benchmarks, each with a variant. In a variant, a word was changed, but the
caption is still true.

Each item is in two aligned files. `data/NAME.json` has the caption and its negative, and `swapped_data/NAME.json` the
hard positive.
"""

from __future__ import annotations

from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import finished
from creperie.bench.formats.record import Record, image_of, tags_of, text_of
from creperie.bench.formats.recordfile import read_records
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
from creperie.bench.item import Item, choice
from creperie.core import DataError, UsageError

_ORIGINAL, _SWAPPED = "data", "swapped_data"


def _read(source: FormatSource) -> Benchmark:
    items: list[Item] = []
    files: list[tuple[str, Path]] = []
    for name, original, swapped in _pairs(source):
        items += _aligned(read_records(original, "list"), read_records(swapped, "list"), stem_of(name), str(swapped))
        files += [(f"{_ORIGINAL}/{name}", original), (f"{_SWAPPED}/{name}", swapped)]
    return finished("hard-positives", items, files)


def _pairs(source: FormatSource) -> list[tuple[str, Path, Path]]:
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


FORMATS = (described("hard-positives", _read),)
