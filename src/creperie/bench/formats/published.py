"""Published benchmarks as files of records: reading them into items, and writing items of a benchmark as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.formats.format import Files
from creperie.bench.formats.record import Record
from creperie.bench.formats.recordfile import RecordKind, read_records, write_records
from creperie.bench.formats.textfile import file_digest
from creperie.bench.item import Item, table_of
from creperie.core import DataError, UsageError


@dataclass(frozen=True)
class NoItem:
    """A record that is not an item by the benchmark's own rule, and why."""

    reason: str


@dataclass(frozen=True)
class PublishedFile:
    """One file of a benchmark: its path seen from the benchmark's folder, where it lies, its subset, how it is read."""

    name: str
    path: Path
    subset: str
    kind: RecordKind
    item: Callable[[Record, str], Item | NoItem]


def read_parts(format: str, title: str, parts: Sequence[PublishedFile]) -> Benchmark:
    """Return a benchmark read from its files."""
    items: list[Item] = []
    skipped: list[SkippedRecord] = []
    for part in parts:
        seen: set[str] = set()
        for record in read_records(part.path, part.kind):
            item = part.item(record, part.subset)
            if isinstance(item, NoItem):
                skipped.append(SkippedRecord(part.subset, record.key, item.reason))
                continue
            if item.id in seen:
                raise record.error(f"the id {item.id[:80]!r} is used twice in this file")
            seen.add(item.id)
            items.append(item)
    return finished(format, title, items, {part.name: file_digest(part.path) for part in parts}, skipped)


def finished(
    format: str, title: str, items: Sequence[Item], digests: Mapping[str, str], skipped: Sequence[SkippedRecord] = ()
) -> Benchmark:
    """Return a benchmark of items read from files, with where they came from; keys that come twice are an error."""
    if not items:
        raise DataError("there is no item in these files", where=", ".join(digests))
    bench = Benchmark(
        name=format,
        source=table_of(items),
        info=Info(title=title),
        provenance=(ProvenanceStep("read", {"format": format, "sha256": dict(digests)}),),
        skipped=tuple(skipped),
    )
    check_keys(bench)
    return bench


#: the file of a subset, what holds its records, and the record of an item
Place = tuple[str, RecordKind, Callable[[Item], Mapping[str, Any]]]


def write_parts(bench: Benchmark, place: Callable[[str], Place]) -> Files:
    """Return the files of a benchmark, one per subset; `place` says which file and how."""
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


def write_lines(bench: Benchmark, row: Callable[[Item], Mapping[str, Any]]) -> Files:
    """Return one file of JSON lines per subset, one line per item."""
    return write_parts(bench, lambda subset: (f"{subset}.jsonl", "lines", row))


def texts_by_truth(item: Item, positives: int, negatives: int | None, images: int = 1) -> tuple[list[str], list[str]]:
    """Return the true and the false captions of an item that must have these numbers of them; None for any number."""
    true, false = list(item.positives), list(item.negatives)
    wrong = len(true) != positives or (negatives is not None and len(false) != negatives) or len(item.images) != images
    if wrong:
        wanted = "any number of" if negatives is None else negatives
        raise UsageError(
            f"has {len(item.images)} images, {len(true)} true and {len(false)} false captions; "
            f"this format holds {images}, {positives} and {wanted}",
            where=f"item {item.subset}/{item.id}",
            hint="export as jsonl, which holds every item",
        )
    return true, false
