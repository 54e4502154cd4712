"""The class `Item`: images, captions, and a matrix that says which caption is true of which image."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from creperie.core import DataError, sha256_of_text


class _NoPandas:
    """An import hook that makes every import of pandas fail. pyarrow then works as if pandas were not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


if os.environ.get("CREPERIE_COMMAND_LINE") and "pandas" not in sys.modules:
    # pyarrow imports pandas (0.4 s) to test whether the first list it gets is a Series. The command line never
    # passes one; `to_pandas` still imports pandas.
    sys.meta_path.insert(0, _NoPandas())
    pa.array([""])
    sys.meta_path.pop(0)

Tag = str | float | bool
Match = tuple[tuple[bool, ...], ...]

TAG_PREFIX = "tag."
#: The columns of a benchmark's table. Tags follow as nullable columns named `tag.<name>`.
#: `match` is row-major: one row per image (one row in all when there are no images), one column per caption.
CORE_COLUMNS = pa.schema(
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
        listed = all(isinstance(part, tuple | list) for part in (self.images, self.captions, self.match))
        if not listed or not all(isinstance(row, tuple | list) for row in self.match):
            what = "`images=` and `captions=` must be tuples, `match=` a tuple of tuples"
            raise DataError(what, where=f"item {self.subset}/{self.id}", hint="see help(creperie.Item)")
        rows = max(1, len(self.images))
        if len(self.match) != rows or any(len(row) != len(self.captions) for row in self.match):
            shape = f"{len(self.match)} × {'/'.join(sorted({str(len(r)) for r in self.match}))}"
            what = f"match matrix is {shape}, expected {rows} × {len(self.captions)} (images × captions)"
            hint = "give one row per image (at least one), with one boolean per caption"
            raise DataError(what, where=f"item {self.subset}/{self.id}", hint=hint)

    @classmethod
    def pair(
        cls,
        *,
        positive: str | Sequence[str],
        negative: str | Sequence[str],
        image: Any = "",
        id: str = "",
        subset: str = "pairs",
        **tags: Tag,
    ) -> Item:
        """Return an item with at least one true and one false caption, and with at most one image.

        `image` is a path, a key in a benchmark's image store, a PIL image, or encoded bytes.

        >>> Item.pair(image="7.jpg", positive="a red crab", negative=["a red gull", "a blue crab"]).match
        ((True, False, False),)

        Without an `id`, a hash of the content is the id.
        """
        if not isinstance(image, (str, os.PathLike)):
            from creperie.bench.stores import keep_picture

            image = "" if image is None else keep_picture(image, "Item.pair(image=…)")
        image = os.fspath(image)
        true = (positive,) if isinstance(positive, str) else tuple(positive)
        false = (negative,) if isinstance(negative, str) else tuple(negative)
        content = "\0".join((image, *true, "", *false))
        own = id or sha256_of_text(content.encode("utf-8", "surrogatepass"))[:16]
        return cls(own, subset, (image,) if image else (), true + false, choice(len(true), len(false)), tags)

    @property
    def positives(self) -> tuple[str, ...]:
        """The captions that are true of at least one image."""
        return tuple(c for j, c in enumerate(self.captions) if any(row[j] for row in self.match))

    @property
    def negatives(self) -> tuple[str, ...]:
        """The captions that are true of no image."""
        return tuple(c for j, c in enumerate(self.captions) if not any(row[j] for row in self.match))


def choice(positives: int, negatives: int) -> Match:
    """Return the match matrix of an item with one image. Its first `positives` captions are true, and the next
    `negatives` captions are false.

    >>> choice(2, 1)
    ((True, True, False),)
    """
    return ((True,) * positives + (False,) * negatives,)


def match_rows(cells: Sequence[bool], rows: int) -> Match:
    """Return the cells of a match matrix, which are given row by row, as a matrix with this number of rows."""
    width = len(cells) // rows
    return tuple(tuple(cells[r * width : (r + 1) * width]) for r in range(rows))


#: Two images and two captions, each true of one image only (Winoground, ColorSwap, COLA).
PAIRED: Match = ((True, False), (False, True))


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8. Texts with unpaired surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def tag_array(values: Sequence[Tag | None]) -> pa.Array:
    """Return the values of a tag as an array of booleans, numbers or strings. Values of mixed types all become
    strings.
    """
    kinds = {
        bool if isinstance(v, bool) else float if isinstance(v, (int, float)) else str for v in values if v is not None
    }
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(whole_number(v)) for v in values], pa.string())


def whole_number(tag: Tag) -> Tag:
    """Return a float without a fractional part as an int, and any other tag as it is."""
    return int(tag) if isinstance(tag, float) and tag.is_integer() else tag


def items_of(table: pa.Table) -> Iterable[Item]:
    """Yield the items in a table. The table is converted in batches."""
    names = [n for n in table.column_names if n.startswith(TAG_PREFIX)]
    for batch in table.to_batches(max_chunksize=8192):
        core = [batch.column(n).to_pylist() for n in CORE_COLUMNS.names]
        tags = [batch.column(n).to_pylist() for n in names]
        for i, (id_, subset, images, captions, flat) in enumerate(zip(*core, strict=True)):
            match = match_rows(flat, max(1, len(images)))
            own = {n[len(TAG_PREFIX) :]: col[i] for n, col in zip(names, tags, strict=True) if col[i] is not None}
            yield Item(id_, subset, tuple(images), tuple(captions), match, own)
