"""Match matrices of many items, grouped so that all items with the same match matrix can be judged at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from creperie.core import DataError, UsageError

#: What a task reads: scores images × captions, captions × captions, or one number per caption.
Input = Literal["image_text", "text_text", "text"]
INPUTS: tuple[Input, ...] = ("image_text", "text_text", "text")

#: Maximum number of cells gathered at a time; this bounds the memory of judging.
CELLS_AT_ONCE = 1 << 23


@dataclass(frozen=True, eq=False)
class ShapeGroup:
    """A match matrix, and the indices of the items that have it, in order."""

    match: np.ndarray
    items: np.ndarray


@dataclass(frozen=True, eq=False)
class Layout:
    """The match matrices of many items. `rows` and `columns` hold the number of rows and of columns of each matrix, and
    `match` holds the cells of all matrices, one matrix after another, in row-major order.

    >>> layout = layout_of([[[1, 0]], [[1, 0], [0, 1]], [[1, 0]]])
    >>> [(g.match.tolist(), g.items.tolist()) for g in layout.groups]
    [([[True, False]], [0, 2]), ([[True, False], [False, True]], [1])]
    """

    rows: np.ndarray
    columns: np.ndarray
    match: np.ndarray

    def __post_init__(self) -> None:
        if self.rows.shape != self.columns.shape or self.rows.ndim != 1:
            raise UsageError(
                f"rows and columns have shapes {self.rows.shape} and {self.columns.shape}",
                hint="give one number per item in `rows` and one in `columns`",
            )
        cells = int((self.rows * self.columns).sum())
        if len(self.match) != cells:
            raise DataError(
                f"the match matrices have {len(self.match)} cells, but rows × columns add up to {cells}",
                hint="build the layout with `layout_of`",
            )

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def groups(self) -> tuple[ShapeGroup, ...]:
        """The items grouped by match matrix, smaller matrices first. Every item is in exactly one group."""
        groups = []
        shapes = self.rows.astype(np.int64) << 32 | self.columns
        for shape in np.unique(shapes):
            rows, columns = int(shape) >> 32, int(shape) & 0xFFFFFFFF
            items = np.flatnonzero(shapes == shape)
            dense = self.cells("image_text", self.match, items, rows * columns)
            for members in _by_pattern(dense):
                match = dense[:, members[0]].reshape(rows, columns)
                groups.append(ShapeGroup(match, items[members]))
        return tuple(groups)

    def spread(self, value: Callable[[np.ndarray], float]) -> np.ndarray:
        """Return the value of each item's match matrix."""
        values = np.zeros(len(self))
        for group in self.groups:
            values[group.items] = value(group.match)
        return values

    def widths(self, needs: Input) -> np.ndarray:
        """Return how many scores each item has in the score column `needs`."""
        several = {"image_text": self.rows * self.columns, "text_text": self.columns * self.columns}
        return several.get(needs, self.columns)

    def starts(self, needs: Input) -> np.ndarray:
        """Return the position at which the scores of each item begin in the flat array of the score column `needs`."""
        if needs not in self._starts:
            widths = self.widths(needs)
            self._starts[needs] = np.cumsum(widths, dtype=np.int64) - widths
        return self._starts[needs]

    @cached_property
    def _starts(self) -> dict[Input, np.ndarray]:
        return {}

    def cells(self, needs: Input, flat: np.ndarray, items: np.ndarray, width: int) -> np.ndarray:
        """Return the scores of `items` as an array (cells, items). `flat` holds the scores of all items in the score
        column `needs`. Each of `items` has `width` scores.
        """
        if len(items) == len(self):
            return flat.reshape(len(self), width).T
        starts = self.starts(needs)[items]
        return flat[starts[None, :] + np.arange(width)[:, None]]

    def blocks(self, needs: Input, flat: np.ndarray) -> Iterator[tuple[ShapeGroup, np.ndarray]]:
        """Yield each group with its scores, as an array (cells, items). A large group is split into blocks of limited
        size.
        """
        self.check(needs, flat)
        for group in self.groups:
            width = int(self.widths(needs)[group.items[0]])
            size = max(1, CELLS_AT_ONCE // max(1, width))
            for start in range(0, len(group.items), size):
                part = ShapeGroup(group.match, group.items[start : start + size])
                yield part, self.cells(needs, flat, part.items, width)

    def check(self, needs: Input, flat: np.ndarray) -> None:
        """Raise a DataError if `flat` does not have as many scores as the match matrices require."""
        expected = int(self.widths(needs).sum())
        if flat.ndim != 1 or len(flat) != expected:
            raise DataError(
                f"{needs} has {flat.size} scores, but the items need {expected}",
                hint="give NaN as each score of the items that were not scored, as Layout.fill does",
            )

    def fill(self, needs: Input, present: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the flat array of the scores of all items. Items for which `present` is True get their scores from
        `values`, in order; all scores of the others are NaN.

        >>> layout_of([[[1, 0]], [[1, 0]]]).fill("text", np.array([False, True]), np.array([0.5, 0.25])).tolist()
        [nan, nan, 0.5, 0.25]
        """
        widths = self.widths(needs)
        where = np.repeat(np.asarray(present, bool), widths)
        if int(where.sum()) != len(values):
            raise DataError(
                f"{needs} has {len(values)} scores, but the scored items need {int(where.sum())}",
                hint="give one score for each pair of an image and a caption of every scored item",
            )
        flat = np.full(int(widths.sum()), np.nan, np.float32)
        flat[where] = values
        return flat

    def take(self, items: np.ndarray) -> Layout:
        """Return the layout of these items, in the given order."""
        widths = self.widths("image_text")[items]
        ends = np.cumsum(widths)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - widths, widths)
        cells = np.repeat(self.starts("image_text")[items], widths) + within
        return Layout(self.rows[items], self.columns[items], self.match[cells])


def layout_of(matches: Iterable[Sequence[Sequence[object]]]) -> Layout:
    """Return the layout of match matrices that are given as lists or tuples."""
    rows = []
    columns = []
    flat: list[bool] = []
    for match in matches:
        rows.append(len(match))
        columns.append(len(match[0]) if len(match) else 0)
        flat.extend(bool(cell) for row in match for cell in row)
    return Layout(np.array(rows, np.int64), np.array(columns, np.int64), np.array(flat, bool))


def _by_pattern(dense: np.ndarray) -> list[np.ndarray]:
    """Group the items by their column in `dense` (cells × items), and return the positions of the items of each group.
    Groups whose first cell is true come first.
    """
    width, count = dense.shape
    if width == 0:
        return [np.arange(count)]
    packed = np.packbits(~dense.T, axis=1)
    size = packed.shape[1]
    if size <= 8:
        padded = np.zeros((count, 8), np.uint8)
        padded[:, :size] = packed
        keys: np.ndarray = padded.view(">u8")[:, 0].astype(np.uint64)
    else:
        keys = np.ascontiguousarray(packed).view(np.dtype((np.void, size)))[:, 0]
    if (keys == keys[0]).all():
        return [np.arange(count)]
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])


def codes_of(labels: Sequence[Hashable] | np.ndarray) -> tuple[np.ndarray, list[Hashable]]:
    """Return the labels as integers, numbered in order of first appearance, and the list of distinct labels.

    >>> codes, names = codes_of(["b", "a", "b"])
    >>> codes.tolist(), names
    ([0, 1, 0], ['b', 'a'])
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        names, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(names), np.int64)
        place[order] = np.arange(len(names))
        return place[codes], names[order].tolist()
    seen: dict[Hashable, int] = {}
    values = labels.tolist() if isinstance(labels, np.ndarray) else labels
    codes = np.fromiter((seen.setdefault(v, len(seen)) for v in values), dtype=np.int64, count=len(values))
    return codes, list(seen)


def cluster_labels(clusters: np.ndarray | None, size: int) -> np.ndarray:
    """Return the cluster of each item; if `clusters` is None, every item is a cluster of its own."""
    if clusters is None:
        return np.arange(size)
    if len(clusters) != size:
        raise UsageError(f"given {len(clusters)} cluster labels for {size} items", hint="give one label per item")
    return np.asarray(clusters)


def clusters_of(counts: np.ndarray, keys: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    """Return the cluster of each item. Items that share a key (such as an image), directly or through other items, are
    in the same cluster.

    `keys` lists the keys of the first item, then those of the second, and so on; `counts` holds the number of keys of
    each item. An item without keys forms a cluster of its own.

    >>> clusters_of(np.array([1, 2, 1, 0]), ["dog.jpg", "dog.jpg", "cat.jpg", "cow.jpg"]).tolist()
    [0, 0, 2, 3]
    """
    counts = np.asarray(counts)
    if int(counts.sum()) != len(keys):
        what = f"given {len(keys)} keys, but the counts of the items add up to {int(counts.sum())}"
        raise DataError(
            what, hint="give the keys of all items in `keys`, and the number of keys of each item in `counts`"
        )
    label = np.arange(len(counts))
    if not len(keys):
        return label
    owner = np.repeat(label, counts)
    key = np.unique(keys, return_inverse=True)[1] if isinstance(keys, np.ndarray) else codes_of(keys)[0]
    while True:
        lowest = np.full(int(key.max()) + 1, len(counts))
        np.minimum.at(lowest, key, label[owner])
        new = label.copy()
        np.minimum.at(new, owner, lowest[key])
        new = new[new]
        if np.array_equal(new, label):
            return label
        label = new
