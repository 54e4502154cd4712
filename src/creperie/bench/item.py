"""One item: some images, some captions, and which caption is true of which image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from creperie.errors import DataError

Tag = str | float | bool
Match = tuple[tuple[bool, ...], ...]

TAG_PREFIX = "tag."
#: The columns of a benchmark's table. Tags follow as nullable columns named `tag.<name>`.
#: `match` is row-major: one row an image (one row in all when there are no images), one column a caption.
CORE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("subset", pa.string(), nullable=False),
        pa.field("images", pa.list_(pa.string()), nullable=False),
        pa.field("captions", pa.list_(pa.string()), nullable=False),
        pa.field("match", pa.list_(pa.bool_()), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a benchmark. `(subset, id)` is its key: ids are unique within their subset.

    >>> item = Item("7", "swap_obj", ("dog.jpg",), ("a dog chases a cat", "a cat chases a dog"), ((True, False),))
    >>> item.positives, item.negatives
    (('a dog chases a cat',), ('a cat chases a dog',))
    """

    id: str
    subset: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    match: Match
    tags: Mapping[str, Tag] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = max(1, len(self.images))
        if len(self.match) != rows or any(len(row) != len(self.captions) for row in self.match):
            shape = f"{len(self.match)} × {'/'.join(sorted({str(len(r)) for r in self.match}))}"
            raise DataError(
                f"match matrix is {shape}, expected {rows} × {len(self.captions)} (images × captions)",
                where=f"item {self.subset}/{self.id}",
            )

    @property
    def positives(self) -> tuple[str, ...]:
        """Captions true of at least one image."""
        return tuple(c for j, c in enumerate(self.captions) if any(row[j] for row in self.match))

    @property
    def negatives(self) -> tuple[str, ...]:
        """Captions true of no image."""
        return tuple(c for j, c in enumerate(self.captions) if not any(row[j] for row in self.match))


def choice(positives: int, negatives: int) -> Match:
    """The match matrix of one image whose first captions are true and the others false.

    >>> choice(2, 1)
    ((True, True, False),)
    """
    return ((True,) * positives + (False,) * negatives,)


#: Two images, two captions, each true of its own image only (Winoground, ColorSwap, COLA).
PAIRED: Match = ((True, False), (False, True))


def table_of(items: Iterable[Item]) -> pa.Table:
    """Items as the columnar table that a Benchmark holds inside."""
    columns: dict[str, list[Any]] = {name: [] for name in CORE.names}
    tags: dict[str, list[Tag | None]] = {}
    count = 0
    for item in items:
        columns["id"].append(item.id)
        columns["subset"].append(item.subset)
        columns["images"].append(item.images)
        columns["captions"].append(item.captions)
        columns["match"].append([cell for row in item.match for cell in row])
        for name, value in item.tags.items():
            tags.setdefault(name, [None] * count).append(value)
        count += 1
        for values in tags.values():
            if len(values) < count:
                values.append(None)
    arrays: list[pa.Array] = [pa.array(columns[f.name], f.type) for f in CORE]
    fields = list(CORE)
    for name in sorted(tags):
        array = tag_array(name, tags[name])
        arrays.append(array)
        fields.append(pa.field(TAG_PREFIX + name, array.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def tag_array(name: str, values: Sequence[Tag | None]) -> pa.Array:
    """A tag's column: booleans, numbers or strings; a mixture becomes strings."""
    kinds = {bool if isinstance(v, bool) else float if isinstance(v, (int, float)) else str for v in values if v is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def items_of(table: pa.Table) -> Iterable[Item]:
    """The items of a table, read in batches."""
    names = [n for n in table.column_names if n.startswith(TAG_PREFIX)]
    for batch in table.to_batches(max_chunksize=8192):
        core = [batch.column(n).to_pylist() for n in CORE.names]
        tags = [batch.column(n).to_pylist() for n in names]
        for i, (id_, subset, images, captions, flat) in enumerate(zip(*core, strict=True)):
            width = len(captions)
            rows = max(1, len(images))
            match = tuple(tuple(flat[r * width : (r + 1) * width]) for r in range(rows))
            own = {n[len(TAG_PREFIX) :]: col[i] for n, col in zip(names, tags, strict=True) if col[i] is not None}
            yield Item(id_, subset, tuple(images), tuple(captions), match, own)
