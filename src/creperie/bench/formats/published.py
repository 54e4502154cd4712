"""Reading items from the record files of published benchmarks, and writing items as such files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.columns import table_of
from creperie.bench.formats.format import Files, Format, FormatSource, described, title_of
from creperie.bench.formats.record import Record, RecordKind, read_records, write_records
from creperie.bench.formats.textfile import file_digest, find_files, stem_of
from creperie.bench.item import Item
from creperie.core import DataError, UsageError


@dataclass(frozen=True)
class NoItem:
    """Returned instead of an item for a record that the benchmark's own rules exclude. `reason` says why."""

    reason: str


@dataclass(frozen=True)
class PublishedFile:
    """A file of a benchmark: its relative name, path, subset and kind, and a function that turns a record into an item.

    Without a kind, the file is read according to its extension.
    """

    name: str
    path: Path
    subset: str
    kind: RecordKind | None
    item: Callable[[Record, str], Item | NoItem]


def records_format(
    name: str,
    accepts: Callable[[str], bool],
    what: str,
    kind: RecordKind | None,
    item: Callable[[Record, str], Item | NoItem],
    write: Callable[[Benchmark], Files] | None = None,
    *,
    deep: bool = False,
    subset: Callable[[str, Path], str] = lambda name, path: stem_of(name),
) -> Format:
    """Return the format called `name`, in which each file is a subset and each record is an item.

    `accepts` selects files by their names, `what` describes them in errors, `kind` says how records are stored, `item`
    makes an item from a record and its subset, and `write` writes the files. With `deep`, subfolders are searched, too.
    `subset` returns the subset of a file.
    """

    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, accepts, what, deep=deep)
        return read_parts(name, [PublishedFile(n, p, subset(n, p), kind, item) for n, p in files])

    return described(name, read, write)


def read_parts(name: str, parts: Sequence[PublishedFile]) -> Benchmark:
    """Return the benchmark whose items are in these files."""
    items: list[Item] = []
    skipped: list[SkippedRecord] = []
    count = 0
    for part in parts:
        seen: set[tuple[str, str]] = set()
        records = read_records(part.path, part.kind, first=count)
        count += len(records)
        for record in records:
            item = part.item(record, part.subset)
            if isinstance(item, NoItem):
                skipped.append(SkippedRecord(part.subset, record.key, item.reason))
                continue
            if (item.subset, item.id) in seen:
                raise record.error(f"the id {item.id[:80]!r} is used twice in this file")
            seen.add((item.subset, item.id))
            items.append(item)
    return finished(name, items, [(part.name, part.path) for part in parts], skipped)


def finished(
    name: str,
    items: Sequence[Item] | pa.Table,
    files: Iterable[tuple[str, Path]],
    skipped: Sequence[SkippedRecord] = (),
) -> Benchmark:
    """Return a benchmark of the items read from these files. Raise a DataError if two items have the same subset and
    id.
    """
    table = items if isinstance(items, pa.Table) else table_of(items)
    digests = {file: file_digest(path) for file, path in files}
    if not len(table):
        hint = "check that they are complete, and that the format is the right one"
        raise DataError("these files contain no items", where=", ".join(digests), hint=hint)
    step = ProvenanceStep("read", {"format": name, "sha256": digests})
    bench = Benchmark(name, table, info=Info(title=title_of(name)), provenance=(step,), skipped=tuple(skipped))
    check_keys(bench)
    return bench


#: the file of a subset, its kind, and a function that returns the record of an item
Place = tuple[str, RecordKind, Callable[[Item], Mapping[str, Any]]]


def writer(place: Callable[[str], Place]) -> Callable[[Benchmark], Files]:
    """Return a function that writes a benchmark as one file per subset.

    `place` takes a subset's name and returns three things: the name of the file, its kind, and a function that converts
    an item to a record.
    """

    def write(bench: Benchmark) -> Files:
        by_subset: dict[str, list[Item]] = {}
        for item in bench:
            by_subset.setdefault(item.subset, []).append(item)
        files: Files = {}
        for subset, items in by_subset.items():
            path, kind, value = place(subset)
            if path in files:
                raise UsageError(f"two subsets would both be written to {path!r}", hint="give them other names")
            files[path] = write_records(kind, [(item.id, value(item)) for item in items])
        return files

    return write


def lines_writer(row: Callable[[Item], Mapping[str, Any]]) -> Callable[[Benchmark], Files]:
    """Return a function that writes a benchmark as one JSON Lines file per subset, with one item per line."""
    return writer(lambda subset: (f"{subset}.jsonl", "lines", row))


def texts_by_truth(item: Item, positives: int, negatives: int | None) -> tuple[list[str], list[str]]:
    """Return an item's true and false captions. Raise a UsageError unless it has one image and exactly `positives` true
    and `negatives` false captions.

    `negatives=None` allows any number of false captions.
    """
    true, false = list(item.positives), list(item.negatives)
    wrong = len(true) != positives or (negatives is not None and len(false) != negatives) or len(item.images) != 1
    if wrong:
        expected = "any number of" if negatives is None else negatives
        raise UsageError(
            f"has {len(item.images)} images, {len(true)} true and {len(false)} false captions; "
            f"this format needs 1 image, {positives} true and {expected} false captions",
            where=f"item {item.subset}/{item.id}",
            hint="export as jsonl, which holds every item",
        )
    return true, false
