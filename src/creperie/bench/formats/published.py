"""Published benchmarks as files of records: reading them into items, writing items back with the same content.

What an item does not hold (other columns, records that are not items) is kept in the benchmark's `layout`, so that an
export of all items says what the published files said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.formats.format import Files
from creperie.bench.formats.record import Record, record_of
from creperie.bench.formats.recordfile import RecordKind, cell_text, read_records, write_records
from creperie.bench.formats.textfile import file_digest
from creperie.bench.item import Item, table_of
from creperie.core import DataError, UsageError

#: A record as a format writes it: an object, or a list.
RecordValue = dict[str, Any] | list[Any]
#: Layouts of other versions are not used: files are then written from the items alone.
LAYOUT_VERSION = 2


@dataclass(frozen=True)
class NoItem:
    """A record that is not an item by the benchmark's own rule, and why."""

    reason: str


@dataclass(frozen=True)
class RecordShape:
    """What the records of a kind of file mean: `item` reads one, `value` gives the record of an item.

    `columns` are those of a table that is written anew; `keeps` are fields that stay as they were published. The key of
    a record in a JSON object is its item's id.
    """

    kind: RecordKind
    item: Callable[[Record, str], Item | NoItem]
    value: Callable[[Item], RecordValue]
    columns: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    def written(self, item: Item) -> RecordValue:
        """The record of an item, in a table with cells of text; an item of another shape is an error that names it."""
        try:
            value = self.value(item)
        except UsageError as e:
            raise UsageError(e.what, where=f"item {item.subset}/{item.id}", hint=e.hint) from None
        if isinstance(value, dict) and self.kind in ("csv", "tsv", "plain-tsv"):
            return {name: cell_text(cell) for name, cell in value.items()}
        return value


@dataclass(frozen=True)
class PublishedFile:
    """One file of a benchmark: its path seen from the benchmark's folder, where it lies, its subset, its shape."""

    name: str
    path: Path
    subset: str
    shape: RecordShape


def read_parts(
    format: str, title: str, parts: Sequence[PublishedFile], options: Mapping[str, str] | None = None
) -> Benchmark:
    """A benchmark from its files. `options` are what the format must know again to write them."""
    items: list[Item] = []
    skipped: list[SkippedRecord] = []
    layouts: list[dict[str, Any]] = []
    for part in parts:
        records = read_records(part.path, part.shape.kind)
        made = [part.shape.item(record, part.subset) for record in records]
        seen: set[str] = set()
        for record, item in zip(records, made, strict=True):
            if isinstance(item, NoItem):
                skipped.append(SkippedRecord(part.subset, record.key, item.reason))
                continue
            if item.id in seen:
                raise record.error(f"the id {item.id[:80]!r} is used twice in this file")
            seen.add(item.id)
            items.append(item)
        layouts.append(layout_of_file(part, records, made))
    bench = finished(format, title, items, {part.name: file_digest(part.path) for part in parts}, skipped)
    return replace(bench, layout=layout_of_files(format, layouts, options))


def layout_of_files(
    format: str, files: Sequence[Mapping[str, Any]], options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The layout of a benchmark that was read from these files."""
    return {"version": LAYOUT_VERSION, "format": format, "options": dict(options or {}), "files": list(files)}


def layout_of_file(part: PublishedFile, records: Sequence[Record], made: Sequence[Item | NoItem]) -> dict[str, Any]:
    """What writing a file needs beside its items: records that are not items, and those that say more than theirs."""
    rest: dict[str, Any] = {}
    skipped: dict[str, Any] = {}
    for place, (record, item) in enumerate(zip(records, made, strict=True)):
        if isinstance(item, NoItem):
            skipped[str(place)] = [record.key, record.value]
        elif part.shape.written(item) != record.value:
            rest[item.id] = record.value
    layout = {"path": part.name, "subset": part.subset, "items": len(records) - len(skipped)}
    columns = list(records[0].fields) if part.shape.columns else []
    return layout | {"columns": columns, "skipped": skipped, "records": rest}


def finished(
    format: str, title: str, items: Sequence[Item], digests: Mapping[str, str], skipped: Sequence[SkippedRecord] = ()
) -> Benchmark:
    """A benchmark of items read from files, with where they came from; keys that come twice are an error."""
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


def files_of(bench: Benchmark, format: str) -> list[Mapping[str, Any]]:
    """The layouts of the files of a benchmark that was read from this format; none for any other benchmark."""
    layout = bench.layout
    usable = layout.get("format") == format and layout.get("version") == LAYOUT_VERSION
    return list(layout.get("files", ())) if usable else []


def write_parts(
    bench: Benchmark,
    format: str,
    place: Callable[[str], tuple[str, RecordShape]],
    layouts: Sequence[Mapping[str, Any]] | None = None,
) -> Files:
    """The files of a benchmark. `place` gives a subset's file and shape; what the layout knows goes with it."""
    by_subset: dict[str, list[Item]] = {}
    for item in bench:
        by_subset.setdefault(item.subset, []).append(item)
    files: Files = {}
    try:
        known = {layout["subset"]: layout for layout in (files_of(bench, format) if layouts is None else layouts)}
        for subset, items in by_subset.items():
            path, shape = place(subset)
            layout = known.get(subset, {})
            records = _records(items, shape, layout)
            put(files, str(layout.get("path", path)), write_records(shape.kind, records, _columns(layout, shape)))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:
        what = f"the layout of its published files cannot be used ({type(e).__name__}: {e})"
        raise DataError(what, where=bench.name, hint="load the published files again") from None
    return files


def _columns(layout: Mapping[str, Any], shape: RecordShape) -> tuple[str, ...]:
    return tuple(map(str, layout.get("columns") or shape.columns))


def _records(items: Sequence[Item], shape: RecordShape, layout: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The records of a file with their keys. Those that were not items come back only if all items of the file do."""
    rest = layout.get("records", {})
    pairs = [(item.id, _record(item, shape, rest.get(item.id))) for item in items]
    if layout.get("items") == len(items):
        for number, (key, value) in sorted((int(n), pair) for n, pair in layout["skipped"].items()):
            pairs.insert(number, (key, value))
    return pairs


def _record(item: Item, shape: RecordShape, published: Any) -> Any:
    """The published record where it still says what the item says; else what it said beside, with the item's fields."""
    if published is None:
        return shape.written(item)
    again = shape.item(record_of(item.id, published, item.id), item.subset)
    if isinstance(again, Item) and again == replace(item, tags=again.tags):
        return published
    value = shape.written(item)
    if isinstance(published, dict) and isinstance(value, dict):
        return {**published, **{name: cell for name, cell in value.items() if name not in shape.keeps}}
    return value


def put(files: Files, path: str, content: bytes) -> None:
    """Add a file; two subsets that would be written into one are an error."""
    if path in files:
        raise UsageError(f"two subsets would both be written to {path!r}", hint="give them other names")
    files[path] = content


def lines_by_subset(bench: Benchmark, row: Callable[[Item], Mapping[str, Any]]) -> Files:
    """One file of JSON lines per subset, one line per item."""
    rows: dict[str, list[tuple[str, Any]]] = {}
    for item in bench:
        rows.setdefault(item.subset, []).append((item.id, row(item)))
    files: Files = {}
    for subset, records in rows.items():
        put(files, f"{subset}.jsonl", write_records("lines", records))
    return files


def texts_by_truth(item: Item, positives: int, negatives: int | None, images: int = 1) -> tuple[list[str], list[str]]:
    """The true and the false captions of an item that must have these numbers of them; None for any number."""
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
