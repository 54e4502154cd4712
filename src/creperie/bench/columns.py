"""Tables of items. Items are added to columns that are stored in chunks, so that millions take little memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, Item, Tag, is_unicode, tag_array
from creperie.core import DataError, cut

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
        images: Sequence[str],
        captions: Sequence[str],
        match: Sequence[bool],
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
        ids, subsets, *_ = self._rows
        columns = zip(CORE_COLUMNS, self._rows, strict=True)
        arrays = [_core_array(field, values, subsets, ids) for field, values in columns]
        self._chunks.append(pa.Table.from_arrays(arrays, schema=CORE_COLUMNS))
        self._rows = [[] for _ in CORE_COLUMNS.names]

    def table(self) -> pa.Table:
        """Return all items as a table for a Benchmark."""
        self._flush()
        table = pa.concat_tables(self._chunks)
        for name, values in sorted(self._tags.items()):
            values += [None] * (self.count - len(values))
            tags = typed_cells(values) if self.typed else values
            table = table.append_column(TAG_PREFIX + name, _tag_array_of(name, tags, table))
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


def table_of(items: Iterable[Item]) -> pa.Table:
    """Return a table of the items, in the form that `Benchmark` takes as its `source`."""
    columns = Columns()
    for item in items:
        cells = [cell for row in item.match for cell in row]
        columns.add(item.id, item.subset, item.images, item.captions, cells, item.tags)
    return columns.table()


def _core_array(column: pa.Field, values: list[Any], subsets: list[str], ids: list[str]) -> pa.Array:
    """Return the values of a core column (id, subset, images, captions or match) as an array. If a value has the wrong
    type, raise a DataError that names the item.
    """
    try:
        array = pa.array(values, column.type)
        leaves = array.flatten() if pa.types.is_list(column.type) else array
        if leaves.null_count == 0:
            return array
    except (UnicodeError, TypeError, ValueError, pa.ArrowException):
        pass
    for value, subset, id_ in zip(values, subsets, ids, strict=True):
        cells = value if pa.types.is_list(column.type) else [value]
        for cell in cells:
            kind = bool if column.name == "match" else str
            if not isinstance(cell, kind):
                raise _unstorable(column.name, cell, f"is not a {kind.__name__}", subset, id_)
            if isinstance(cell, str) and not is_unicode(cell):
                raise _unstorable(column.name, cell, "holds an unpaired surrogate, which is not text", subset, id_)
    raise DataError(f"the column {column.name!r} cannot be stored as {column.type}", hint="see help(creperie.Item)")


def _tag_array_of(name: str, values: Sequence[Tag | None], core: pa.Table) -> pa.Array:
    if not is_unicode(name):
        what = f"the tag name {name!a} holds an unpaired surrogate, which is not text"
        raise DataError(what, hint="rename the tag, or write the file that it comes from again as UTF-8")
    try:
        return tag_array(values)
    except (UnicodeError, OverflowError):
        keys = (core.column(column).to_pylist() for column in ("subset", "id"))
        for value, subset, id_ in zip(values, *keys, strict=True):
            if isinstance(value, str) and not is_unicode(value):
                raise _unstorable(f"tag {name}", value, "holds an unpaired surrogate", subset, id_) from None
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                raise _unstorable(f"tag {name}", value, "is too large to be stored as a number", subset, id_) from None
        raise


def _unstorable(column: str, value: object, why: str, subset: object, id_: object) -> DataError:
    place = f"item {ascii(subset)[1:-1]}/{ascii(id_)[1:-1]}"
    return DataError(
        f"{column}: {cut(ascii(value), 60)} {why}", where=place, hint="correct the value, or drop the item"
    )
