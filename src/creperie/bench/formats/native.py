"""creperie's own tables: JSON Lines and Parquet for any item, and CSV and TSV for items with at most one image.

{"id": "7", "subset": "swap", "images": ["7.jpg"], "captions": ["a", "b"], "match": [[true, false]], "tags": {}}
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, check_keys, check_shapes
from creperie.bench.columns import Columns
from creperie.bench.formats.format import Files
from creperie.bench.formats.record import Record, checked_text, kind_of, tag_of, texts_of, write_records
from creperie.bench.formats.tablefile import TableSource
from creperie.bench.formats.textfile import file_digest
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, Item, items_of, whole_number
from creperie.core import DataError, UsageError, parse_json, read_parquet, reading_parquet
from creperie.core import write_parquet as write_parquet_table

NEEDED = ("id", "subset", "images", "captions", "match")


def is_native(names: Sequence[str], kind: str) -> bool:
    """Return whether a table is in creperie's own format. Its `kind` must be "jsonl" or "parquet", and its columns
    (`names`) must include id, subset, images, captions and match.
    """
    return kind in ("jsonl", "parquet") and set(NEEDED) <= set(names)


def read_native(path: Path, kind: str, table: TableSource) -> Benchmark:
    if kind == "parquet":
        items = _parquet_items(path)
    else:
        columns, names = Columns(), (*NEEDED, "tags")
        for where, values in table.rows(names):
            _add_row(columns, dict(zip(names, values, strict=True)), where)
        items = columns.table()
    if not items.num_rows:
        raise DataError("holds no records", where=path, hint="give a file with at least one")
    step = ProvenanceStep("read", {"format": kind, "sha256": {path.name: file_digest(path)}})
    bench = Benchmark(path.stem, items, info=Info(title=path.stem), provenance=(step,))
    check_keys(bench)
    return bench


def items_of_columns(columns: Mapping[str, Sequence[Any]], where: str) -> list[Item]:
    """Return the items in a table in memory with creperie's columns; tags are in the column `tags` or in columns
    `tag.NAME`.
    """
    own = [name for name in columns if name.startswith(TAG_PREFIX)]
    grown = Columns()
    for i, id_ in enumerate(columns["id"]):
        fields = {name: columns[name][i] for name in NEEDED}
        tags = columns["tags"][i] if "tags" in columns else {n.removeprefix(TAG_PREFIX): columns[n][i] for n in own}
        place = f"{where} (row {i})"
        fields["tags"] = parse_json(tags, place) if isinstance(tags, str) else tags
        _add_row(grown, fields, f"{place}, item {id_}")
    return list(items_of(grown.table()))


def _add_row(columns: Columns, fields: dict[str, Any], where: str) -> None:
    record = Record(where, fields, fields, where)
    images = texts_of(record, "images", least=0)
    captions = texts_of(record, "captions")
    tags = fields["tags"] or {}
    if not isinstance(tags, dict):
        raise record.error(f"'tags' is {kind_of(tags)}, expected an object")
    own = {checked_text(record, "tags", name): tag_of(value) for name, value in tags.items()}
    id_, subset = (checked_text(record, name, fields[name]) for name in ("id", "subset"))
    columns.add(id_, subset, images, captions, _flat_match(record, len(images), len(captions)), own)


def _flat_match(record: Record, images: int, captions: int) -> list[bool]:
    match, rows = record.fields["match"], max(1, images)
    cells = match if isinstance(match, list) else []
    if len(cells) == rows and all(isinstance(row, list) and len(row) == captions for row in cells):
        cells = [cell for row in cells for cell in row]
    if len(cells) != rows * captions or not all(isinstance(cell, int) and cell in (0, 1) for cell in cells):
        what = f"'match' is not a matrix of {rows} × {captions} (images × captions) of true and false, or 1 and 0"
        raise record.error(what, "write one row per image and one cell per caption")
    return list(map(bool, cells))


def _parquet_items(path: Path) -> pa.Table:
    with reading_parquet(path):
        table = read_parquet(path)
    tags = [n for n in table.column_names if n.startswith(TAG_PREFIX)]
    for field in CORE_COLUMNS:
        given = table.schema.field(field.name).type
        if given != field.type or table.column(field.name).null_count:
            what = f"the column {field.name!r} is {given}, expected {field.type} without nulls"
            raise DataError(what, where=path, hint="write the file with `creperie data export`")
    for name in tags:
        if table.schema.field(name).type not in (pa.bool_(), pa.float64(), pa.string()):
            what = f"the column {name!r} is {table.schema.field(name).type}, which is not a type for tags"
            raise DataError(what, where=path, hint="tags are text, booleans or double-precision numbers")
    check_shapes(table, str(path))
    schema = pa.schema([*CORE_COLUMNS, *(pa.field(n, table.schema.field(n).type) for n in sorted(tags))])
    return table.select(schema.names).cast(schema)


# -- writing ---------------------------------------------------------------------------------------------------------


def _file_name(bench: Benchmark, ending: str) -> str:
    return (re.sub(r"[^\w.+-]+", "_", bench.name).strip(".") or "benchmark") + ending


def write_parquet(bench: Benchmark) -> Files:
    sink = io.BytesIO()
    write_parquet_table(bench.table, sink)
    return {_file_name(bench, ".parquet"): sink.getvalue()}


def write_jsonl(bench: Benchmark) -> Files:
    rows = [(item.id, {name: getattr(item, name) for name in (*NEEDED, "tags")}) for item in bench]
    return {_file_name(bench, ".jsonl"): write_records("lines", rows)}


def write_delimited(bench: Benchmark, kind: Literal["csv", "tsv"]) -> Files:
    """Return a CSV or TSV file with one row per item: id, subset, image, positive, positive_2, …, negative, …,
    tag.name.
    """
    items = list(bench)
    rows = [(item.id, _row(item)) for item in items]
    columns = ["id", "subset", *["image"][: max(len(item.images) for item in items)]]
    columns += _numbered("positive", max(len(item.positives) for item in items))
    columns += _numbered("negative", max(len(item.negatives) for item in items))
    tags = [n for n in bench.columns if n.startswith(TAG_PREFIX)]
    return {_file_name(bench, f".{kind}"): write_records(kind, rows, (*columns, *tags))}


def _numbered(name: str, count: int) -> list[str]:
    return [name if i == 0 else f"{name}_{i + 1}" for i in range(count)]


def _row(item: Item) -> dict[str, Any]:
    why = ""
    if len(item.match) != 1:
        why = f"has {len(item.images)} images, but a row of this table holds only one"
    elif not all(item.captions) or not item.id or not item.subset:
        why = "has an empty text, which this table cannot tell from a missing one"
    if why:
        where = f"item {item.subset}/{item.id}"
        raise UsageError(why, where=where, hint="export as jsonl, which holds every item")
    row: dict[str, Any] = {"id": item.id, "subset": item.subset}
    row.update(zip(["image"], item.images, strict=False))
    for role, texts in (("positive", item.positives), ("negative", item.negatives)):
        row.update(zip(_numbered(role, len(texts)), texts, strict=True))
    row.update({TAG_PREFIX + name: whole_number(tag) for name, tag in item.tags.items()})
    return row
