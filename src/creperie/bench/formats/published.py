"""Published benchmarks as files of records: reading them into items, writing items back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.formats.format import Files
from creperie.bench.formats.layout import Fields, Style, files_of, layout_of, text_of_file
from creperie.bench.formats.record import Record
from creperie.bench.formats.textfile import read_text
from creperie.bench.item import Item, table_of
from creperie.core import DataError, UsageError


@dataclass(frozen=True)
class NoItem:
    """A record that is not an item by the benchmark's own rule, and why."""

    reason: str


@dataclass(frozen=True)
class RecordShape:
    """What the records of a kind of file mean. `fields` is the way back: what of a record its item determines."""

    style: Style
    item: Callable[[Record, str], Item | NoItem]
    fields: Callable[[Item], Fields]


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
    digests: dict[str, str] = {}
    for part in parts:
        text = read_text(part.path)
        digests[part.name] = hashlib.sha256(text.encode("utf-8")).hexdigest()
        records = part.shape.style.scan(text, str(part.path))
        if not records:
            raise DataError("holds no records", where=str(part.path))
        style = part.shape.style.fitted(text)
        made: list[Fields | None] = []
        seen: set[str] = set()
        for record in records:
            item = part.shape.item(record, part.subset)
            if isinstance(item, NoItem):
                skipped.append(SkippedRecord(part.subset, record.key, item.reason))
                made.append(None)
                continue
            if item.id in seen:
                raise record.error(f"the id {item.id[:80]!r} is used twice in this file")
            seen.add(item.id)
            record.key = item.id  # the layout knows records by the ids of their items
            items.append(item)
            made.append(part.shape.fields(item))
        layouts.append(layout_of(part.name, part.subset, style, records, made))
    bench = finished(format, title, items, digests, skipped)
    return replace(bench, layout={"format": format, "options": dict(options or {}), "files": layouts})


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


def write_parts(bench: Benchmark, format: str, place: Callable[[str], tuple[str, RecordShape]]) -> Files:
    """The files of a benchmark. `place` gives a subset's file and shape where the benchmark brings no layout."""
    by_subset: dict[str, dict[str, Item]] = {}
    for item in bench:
        by_subset.setdefault(item.subset, {})[item.id] = item
    files: Files = {}
    for layout in files_of(bench.layout, format):
        subset = layout["subset"]
        shape = place(subset)[1]
        style = fitted(shape.style, layout)
        items = by_subset.pop(subset, {})
        text = text_of_file(layout, style, {id_: fields_of(shape, item) for id_, item in items.items()})
        if text is not None:
            put(files, layout["path"], text)
    for subset, items in by_subset.items():
        path, shape = place(subset)
        records = [shape.style.record(fields_of(shape, item)) for item in items.values()]
        put(files, path, shape.style.head + shape.style.gap.join(records) + shape.style.tail)
    return files


def fitted(style: Style, layout: Mapping[str, Any]) -> Style:
    """A style with what the layout of a file says about it."""
    try:
        details = {k: tuple(v) if isinstance(v, list) else v for k, v in layout.get("style", {}).items()}
        return replace(style, **details)  # type: ignore[type-var]
    except (TypeError, AttributeError) as e:
        raise DataError(f"its layout cannot be used ({e})", where=layout["path"][:200]) from None


def fields_of(shape: RecordShape, item: Item) -> Fields:
    try:
        return shape.fields(item)
    except UsageError as e:
        raise UsageError(e.what, where=f"item {item.subset}/{item.id}", hint=e.hint) from None


def put(files: Files, path: str, text: str) -> None:
    """Add a file; two subsets that would be written into one are an error."""
    if path in files:
        raise UsageError(f"two subsets would both be written to {path!r}", hint="give them other names")
    files[path] = text.encode("utf-8")


def lines_by_subset(bench: Benchmark, row: Callable[[Item], Mapping[str, Any]]) -> Files:
    """One file of JSON lines per subset, one line per item."""
    lines: dict[str, list[str]] = {}
    for item in bench:
        lines.setdefault(item.subset, []).append(json.dumps(row(item), ensure_ascii=False) + "\n")
    files: Files = {}
    for subset, rows in lines.items():
        put(files, f"{subset}.jsonl", "".join(rows))
    return files


def texts_by_truth(item: Item, positives: int, negatives: int | None, images: int = 1) -> tuple[list[str], list[str]]:
    """The true and the false captions of an item that must have these numbers of them; None for any number."""
    if len(item.match) == 1:
        truths = list(zip(item.captions, item.match[0], strict=True))
        true, false = [c for c, t in truths if t], [c for c, t in truths if not t]
    else:
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
