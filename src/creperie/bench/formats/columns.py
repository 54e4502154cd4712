"""Columns that items are added to as they are read. They are stored in chunks, so that millions of items take little
memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, Tag, tag_array

CHUNK = 65_536
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}


class Columns:
    """A table to which items are added.

    With `typed`, tags are given as texts and converted to numbers or booleans if possible.
    """

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
        """Add one item; `match` is the match matrix, row by row."""
        for column, value in zip(self._rows, (id, subset, images, captions, match), strict=True):
            column.append(value)
        for name, tag in tags.items():
            column = self._tags.setdefault(name, [])
            column += [None] * (self.count - len(column))
            column.append(tag)
        self.count += 1
        if len(self._rows[0]) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        arrays = [pa.array(column, field.type) for column, field in zip(self._rows, CORE_COLUMNS, strict=True)]
        self._chunks.append(pa.Table.from_arrays(arrays, schema=CORE_COLUMNS))
        self._rows = [[] for _ in CORE_COLUMNS.names]

    def table(self) -> pa.Table:
        """Return all items as a table for a Benchmark."""
        self._flush()
        table = pa.concat_tables(self._chunks)
        for name, values in sorted(self._tags.items()):
            values += [None] * (self.count - len(values))
            table = table.append_column(TAG_PREFIX + name, tag_array(typed_cells(values) if self.typed else values))
        return table


def typed_cells(values: list[Any]) -> list[Tag | None]:
    """Return text cells as numbers if all can be converted, or as booleans if all can be converted, else as text. Empty
    cells become None.
    """
    texts = [text or None for text in values]
    present = {text for text in texts if text is not None}
    if present and all(_NUMBER.fullmatch(text) for text in present):
        return [None if text is None else float(text) for text in texts]
    if present and present <= _TRUTHS.keys():
        return [None if text is None else _TRUTHS[text] for text in texts]
    return texts
