"""Rows of a table into items, a chunk at a time and column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.benchmark import SkippedRecord
from creperie.bench.formats.chunks import Chunk, TableFile
from creperie.bench.formats.columns import marked_tags
from creperie.bench.formats.record import kind_of, tag_of
from creperie.bench.formats.textfile import stem_of
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, is_unicode
from creperie.core import DataError


@dataclass(frozen=True)
class Roles:
    """Which columns hold what. Several columns may hold captions; two images may have a caption each."""

    image: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    subset: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All columns, each once."""
        return list(dict.fromkeys(self.image + self.positive + self.negative + self.subset + self.id + self.tag))


@dataclass(frozen=True)
class RaggedColumn:
    """A number of values per row: row i owns `lengths[i]` of the flat values."""

    lengths: np.ndarray
    flat: pa.Array

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)

    def rows(self, keep: np.ndarray) -> pa.Array:
        """As a list column, of some of the rows."""
        lists = pa.ListArray.from_arrays(pa.array(self.offsets), self.flat)
        return lists.filter(pa.array(keep))


def items_of_chunk(chunk: Chunk, table: TableFile, roles: Roles, first: int) -> tuple[pa.Table, list[SkippedRecord]]:
    """The items of some rows, and the rows that are not items. `first` is the number of rows before them."""
    count = len(chunk.places)
    images = joined([_texts(name, chunk, table) for name in roles.image], count)[0]
    captions, source = joined([_texts(name, chunk, table) for name in roles.positive + roles.negative], count)
    true = source < len(roles.positive)
    ids = _ids(chunk, table, roles, first)
    subsets = _subsets(chunk, table, roles)
    positives = np.add.reduceat(np.append(true, False), captions.offsets[:-1]) if count else np.zeros(0, int)
    positives = np.where(captions.lengths > 0, positives, 0)
    if len(roles.image) == 2:  # each caption is true of its own image
        match = RaggedColumn(np.full(count, 4), pa.array(np.tile([True, False, False, True], count)))
    else:
        match = RaggedColumn(captions.lengths, pa.array(true))
    reasons = _reasons(roles, subsets, images.lengths, positives, captions.lengths - positives)
    keep = np.array([not reason for reason in reasons], dtype=bool) if reasons else np.ones(count, dtype=bool)
    kept = pa.array(keep)
    columns = [ids.filter(kept), subsets.filter(kept), images.rows(keep), captions.rows(keep), match.rows(keep)]
    names = list(CORE_COLUMNS.names)
    for name in roles.tag:
        columns.append(_tags(chunk.columns[name], table.text).filter(kept))
        names.append(TAG_PREFIX + name.removeprefix(TAG_PREFIX))
    skipped = [SkippedRecord(subsets[int(i)].as_py(), ids[int(i)].as_py(), reasons[i]) for i in np.flatnonzero(~keep)]
    return pa.table(columns, names=names), skipped


def joined(columns: Sequence[RaggedColumn], count: int) -> tuple[RaggedColumn, np.ndarray]:
    """Several columns as one: a row's values of the first, then of the second … And which column each came from."""
    if not columns:
        return RaggedColumn(np.zeros(count, dtype=np.int64), pa.array([], pa.string())), np.zeros(0, dtype=np.int64)
    lengths = np.asarray(np.sum([column.lengths for column in columns], axis=0, dtype=np.int64))
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    places, sources = [], []
    for number, column in enumerate(columns):
        own = np.concatenate([[0], np.cumsum(column.lengths)])[:-1]
        places.append(np.arange(len(column.flat)) + np.repeat(starts - own, column.lengths))
        sources.append(np.full(len(column.flat), number))
        starts = starts + column.lengths
    order = np.argsort(np.concatenate(places), kind="stable")
    flat = pa.concat_arrays([column.flat for column in columns]).take(pa.array(order))
    return RaggedColumn(lengths, flat), np.concatenate(sources)[order]


def _texts(name: str, chunk: Chunk, table: TableFile) -> RaggedColumn:
    """A column of texts or of lists of texts; missing ones count as none."""
    values = chunk.columns[name]
    try:
        array = pa.array(values, pa.string())
        if table.text:
            array = array.filter(pc.not_equal(array, ""))
            lengths = np.fromiter(map(bool, values), dtype=np.int64, count=len(values))
            return RaggedColumn(lengths, array)
        return RaggedColumn(np.asarray(array.is_valid()).astype(np.int64), array.drop_null())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    try:
        lists = [v if isinstance(v, list) else [] if v is None else [v] for v in values]
        made = [[text for text in texts if text is not None] for texts in lists]
        flat = pa.array([text for texts in made for text in texts], pa.string())
        return RaggedColumn(np.array([len(texts) for texts in made], dtype=np.int64), flat)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _culprit(name, values, chunk, table) from None


def _culprit(name: str, values: Sequence[Any], chunk: Chunk, table: TableFile) -> DataError:
    """The error for the first value that is not text."""
    for value, place in zip(values, chunk.places, strict=True):
        for text in value if isinstance(value, list) else [value]:
            if text is not None and not isinstance(text, str):
                return DataError(f"{name!r} is {kind_of(text)}, expected text", where=table.where(place))
            if text is not None and not is_unicode(text):
                what = f"{name!r} holds an unpaired surrogate, which is not a character"
                return DataError(what, where=table.where(place))
    return DataError(f"{name!r} cannot be read as text", where=str(table.path))


def _ids(chunk: Chunk, table: TableFile, roles: Roles, first: int) -> pa.Array:
    count = len(chunk.places)
    if not roles.id:
        return pa.array(np.arange(first, first + count)).cast(pa.string())
    name = roles.id[0]
    made = []
    for value, place in zip(chunk.columns[name], chunk.places, strict=True):
        good = type(value) is int or (isinstance(value, str) and value and is_unicode(value))
        if not good:
            shown = "empty" if value == "" else kind_of(value)
            raise DataError(f"{name!r} is {shown}, expected an id", where=table.where(place))
        made.append(str(value))
    return pa.array(made, pa.string())


def _subsets(chunk: Chunk, table: TableFile, roles: Roles) -> pa.Array:
    count = len(chunk.places)
    if not roles.subset:
        return pa.array([stem_of(table.path.name)] * count, pa.string())
    name = roles.subset[0]
    made = []
    for value, place in zip(chunk.columns[name], chunk.places, strict=True):
        text = "" if value is None else str(value)
        if isinstance(value, (list, dict, bytes)) or not is_unicode(text):
            raise DataError(f"{name!r} is {kind_of(value)}, expected the name of a subset", where=table.where(place))
        made.append(text)
    return pa.array(made, pa.string())


def _tags(values: Sequence[Any], text: bool) -> pa.Array:
    if text:
        return pc.binary_join_element_wise("s", pa.array(values, pa.string()), "")
    return marked_tags(tag_of(value) for value in values)


def _reasons(
    roles: Roles, subsets: pa.Array, images: np.ndarray, positives: np.ndarray, negatives: np.ndarray
) -> list[str]:
    """Why each row is not an item; empty for those that are, and an empty list when all are."""
    two = len(roles.image) == 2
    faults = [
        (_flags(pc.equal(subsets, "")), f"no subset in {', '.join(roles.subset) or 'the file name'}"),
        (images < len(roles.image), f"no image in {', '.join(roles.image)}"),
        (images > len(roles.image), f"several images in {', '.join(roles.image)}"),
        ((positives == 0) | (two & (positives != 2)), f"no true caption in {', '.join(roles.positive)}"),
        ((negatives == 0) & bool(roles.negative), f"no false caption in {', '.join(roles.negative)}"),
    ]
    if not any(flags.any() for flags, _ in faults):
        return []
    reasons = [""] * len(images)
    for flags, reason in reversed(faults):
        for i in np.flatnonzero(flags):
            reasons[i] = reason
    return reasons


def _flags(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)
