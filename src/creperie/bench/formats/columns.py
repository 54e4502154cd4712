"""Items put into columns as they are read, a chunk at a time, so that millions of them take little memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, Tag

CHUNK = 65_536
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$"
_TRUTH = r"^(true|false|True|False)$"


class Columns:
    """The columns of a table of items, growing. `typed` tags come as text and become numbers where all of them are."""

    def __init__(self, *, typed: bool = False) -> None:
        self.typed = typed
        self.count = 0
        self._rows: list[list[Any]] = [[] for _ in CORE_COLUMNS.names]
        self._tags: dict[str, list[Tag | None]] = {}
        self._chunks: list[pa.Table] = []

    def add(
        self,
        id: str,
        subset: str,
        images: list[str],
        captions: list[str],
        match: list[bool],
        tags: Mapping[str, Tag | None],
    ) -> None:
        """One item; `match` is row-major."""
        ids, subsets, all_images, all_captions, matches = self._rows
        ids.append(id)
        subsets.append(subset)
        all_images.append(images)
        all_captions.append(captions)
        matches.append(match)
        here = len(ids)
        for name, tag in tags.items():
            column = self._tags.setdefault(name, [])
            column += [None] * (here - 1 - len(column))
            column.append(tag)
        self.count += 1
        if here >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        here = len(self._rows[0])
        arrays = [pa.array(column, field.type) for column, field in zip(self._rows, CORE_COLUMNS, strict=True)]
        names = list(CORE_COLUMNS.names)
        for name, values in self._tags.items():
            values += [None] * (here - len(values))
            arrays.append(marked_tags(values))
            names.append(TAG_PREFIX + name)
        self._chunks.append(pa.table(arrays, names=names))
        self._rows = [[] for _ in CORE_COLUMNS.names]
        self._tags = {}

    def add_table(self, table: pa.Table) -> None:
        """Many items at once: the core columns, and tags as `marked_tags` makes them."""
        self._chunks.append(table)
        self.count += table.num_rows

    def table(self) -> pa.Table:
        """All items as the table a Benchmark holds."""
        if self._rows[0] or not self._chunks:
            self._flush()
        whole = pa.concat_tables(self._chunks, promote_options="default")
        tags = sorted(n for n in whole.column_names if n not in CORE_COLUMNS.names)
        columns = {n: _tag_column(whole.column(n), self.typed) for n in tags}
        arrays = [whole.column(f.name) for f in CORE_COLUMNS] + list(columns.values())
        fields = list(CORE_COLUMNS) + [pa.field(n, c.type) for n, c in columns.items()]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def marked_tags(values: Iterable[Tag | None]) -> pa.Array:
    """Tags as text with their kind in front, so that a column can be typed when all of it is known."""
    return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(tag: Tag | None) -> str | None:
    if tag is None:
        return None
    return f"s{tag}" if isinstance(tag, str) else f"b{tag}" if isinstance(tag, bool) else f"f{tag!r}"


def _tag_column(marked: pa.ChunkedArray, typed: bool) -> pa.ChunkedArray:
    kinds = {str(k) for k in pc.unique(pc.utf8_slice_codeunits(marked, 0, 1)).to_pylist() if k is not None}
    values = pc.utf8_slice_codeunits(marked, 1)
    if kinds == {"s"} and typed:
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        if values.null_count < len(values) and pc.all(pc.match_substring_regex(values, _NUMBER)).as_py():
            return values.cast(pa.float64())
        if values.null_count < len(values) and pc.all(pc.match_substring_regex(values, _TRUTH)).as_py():
            return pc.equal(pc.utf8_lower(values), "true")
    if kinds == {"f"}:
        return values.cast(pa.float64())
    if kinds == {"b"}:
        return pc.equal(values, "True")
    return values
