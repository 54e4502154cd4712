"""The plan of what to score: the distinct images and captions of all benchmarks, and the items that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from creperie.bench import NO_IMAGES, Benchmark, ImageError, ImageStore, open_image, split_reference
from creperie.core import Progress, silent
from creperie.lang import character_similarity
from creperie.metrics import Layout, second_is_nearer
from creperie.scoring.digests import content_key, digest_images
from creperie.scoring.segments import KEY
from creperie.scoring.sheet import Fault
from creperie.scoring.store import ResultStore, pair_keys, text_keys

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, eq=False)
class BenchmarkPart:
    """One benchmark in the plan. Its captions and images are given as indices into the plan.

    Item i has the captions `captions[caption_starts[i]:caption_starts[i + 1]]`, and likewise its images.
    """

    bench: Benchmark
    layout: Layout
    captions: np.ndarray
    caption_starts: np.ndarray
    images: np.ndarray
    image_starts: np.ndarray

    @property
    def has_images(self) -> np.ndarray:
        """A boolean array that is True for the items that have images."""
        return np.diff(self.image_starts) > 0

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays with one entry per cell of the image-text score matrices: the index of the cell's image, and the
        index of its caption. The image's index is −1 if the item has no images.
        """
        owner, within = _cells_of_items(self.layout.rows * self.layout.columns)
        row, column = np.divmod(within, self.layout.columns[owner])
        image = np.full(len(owner), -1, np.int64)
        seen = self.has_images[owner]
        image[seen] = self.images[self.image_starts[owner[seen]] + row[seen]]
        return image, self.captions[self.caption_starts[owner] + column]

    @cached_property
    def caption_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Three arrays with one entry per cell of the text-text score matrices: the number of the item, and the indices
        of the two captions that the cell compares.
        """
        owner, within = _cells_of_items(self.layout.columns**2)
        row, column = np.divmod(within, self.layout.columns[owner])
        start = self.caption_starts[owner]
        return owner, self.captions[start + row], self.captions[start + column]


@dataclass(frozen=True)
class PlannedImage:
    """A distinct image of the plan: the store that holds it, and its reference there."""

    store: ImageStore
    reference: str


@dataclass(frozen=True, eq=False)
class ScoringPlan:
    """Everything to encode, without duplicates. `broken` lists the images that cannot be read."""

    parts: tuple[BenchmarkPart, ...]
    texts: list[str]
    images: list[PlannedImage]
    image_keys: np.ndarray
    broken: list[Fault]

    @cached_property
    def text_keys(self) -> np.ndarray:
        return text_keys(self.texts)

    @property
    def items(self) -> int:
        return sum(len(p.layout) for p in self.parts)

    def open(self, row: int) -> Image.Image:
        """Return the image with this index, decoded; raise an ImageError if its file has changed since the plan was
        made.
        """
        store, reference = self.images[row].store, self.images[row].reference
        key, box = split_reference(reference)
        data = store.read(key)
        if content_key(data, box) != self.image_keys[row].tobytes():
            raise ImageError(
                "changed-image", "changed while it was scored", where=f"{store.location}/{key}", hint="score it again"
            )
        return open_image(store, reference, data=data)


def plan(
    benches: Sequence[Benchmark],
    *,
    store: ResultStore | None = None,
    images: bool | Sequence[bool] = True,
    progress: Progress = silent,
) -> ScoringPlan:
    """Return the plan for all these benchmarks. `images` says whether images are needed: one value for all benchmarks,
    or one per benchmark.
    """
    store = store or ResultStore()
    seen = [images] * len(benches) if isinstance(images, bool) else list(images)
    ragged = [b.ragged("captions") for b in benches]
    codes, texts = _unique([flat for _, flat in ragged])
    looked_at = [_references(b) if look else None for b, look in zip(benches, seen, strict=True)]
    numbers, sources, keys, broken = _unique_images(benches, looked_at, store, progress)
    parts = []
    for bench, (starts, _), captions, refs, image_numbers in zip(
        benches, ragged, codes, looked_at, numbers, strict=True
    ):
        image_starts = refs.starts if refs else np.zeros(len(bench) + 1, np.int64)
        parts.append(BenchmarkPart(bench, layout_of_bench(bench), captions, starts, image_numbers, image_starts))
    return ScoringPlan(tuple(parts), texts, sources, keys, broken)


def layout_of_bench(bench: Benchmark) -> Layout:
    """Return the match matrices of a benchmark (which captions are true of which images), in the form that the
    metrics take.
    """
    images = np.diff(bench.ragged("images")[0])
    captions = np.diff(bench.ragged("captions")[0])
    match = np.asarray(bench.ragged("match")[1].to_numpy(zero_copy_only=False), bool)
    return Layout(np.maximum(images, 1), captions, match)


@dataclass(frozen=True)
class PairCells:
    """The distinct pairs to score. Each is an image and a caption or, if `kind` is "between", two captions."""

    kind: str
    first: np.ndarray  #: sorted
    second: np.ndarray
    keys: np.ndarray
    #: per benchmark, for every cell the number of its pair, −1 for none; of kind `joint`, of its two pairs
    places: list[tuple[np.ndarray, ...]]


def pair_cells(plan: ScoringPlan, kind: str) -> PairCells:
    """Return the distinct pairs whose scores fill the score matrices of a plan, with their keys in the cache.

    `kind` says what is scored: "pair" (an image with a caption), "between" (two captions) or "joint" (two captions,
    each together with the image; items without exactly one image have no such pairs).
    """
    captions = max(1, len(plan.texts))

    def coded(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.where(first >= 0, first * captions + second, -1)

    def codes_of_cells(part: BenchmarkPart) -> tuple[np.ndarray, ...]:
        if kind == "pair":
            return (coded(*part.pairs),)
        owner, a, b = part.caption_pairs
        low, high = np.minimum(a, b), np.maximum(a, b)  # the same pair in either order
        if kind == "between":
            return (coded(low, high),)
        single = np.diff(part.image_starts) == 1
        image = np.where(single, part.images[part.image_starts[:-1] * single] if len(part.images) else -1, -1)[owner]
        return coded(image, low), coded(image, high)

    cells = [codes_of_cells(part) for part in plan.parts]
    every = np.concatenate([codes for own in cells for codes in own])
    distinct = np.unique(every[every >= 0])
    first, second = np.divmod(distinct, captions)
    keys = pair_keys((plan.text_keys if kind == "between" else plan.image_keys)[first], plan.text_keys[second])
    places = [tuple(np.where(c >= 0, np.searchsorted(distinct, np.maximum(c, 0)), -1) for c in own) for own in cells]
    return PairCells(kind, first, second, keys, places)


@dataclass(frozen=True)
class _References:
    """The image references of a benchmark: the position at which each item's images begin, the index of each image
    among the distinct references, and the distinct references.
    """

    starts: np.ndarray
    codes: np.ndarray
    unique: list[str]


def _references(bench: Benchmark) -> _References:
    starts, flat = bench.ragged("images")
    (codes,), unique = _unique([flat])
    return _References(starts, codes, unique)


def image_contents(bench: Benchmark) -> np.ndarray:
    """Return the content keys (hashes) of a benchmark's images, item by item; zeros for images that cannot be read."""
    refs = _references(bench)
    return digest_images(bench.images, refs.unique, ResultStore().memo("image"), silent).keys[refs.codes]


def _unique(parts: Sequence[pa.Array]) -> tuple[list[np.ndarray], list[str]]:
    """Return the arrays of strings as indices into the list of distinct strings, followed by this list."""
    joined = pa.chunked_array([p.cast(pa.large_string()) for p in parts], pa.large_string())
    whole = joined.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.large_string())
    coded = whole.dictionary_encode()
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    ends = np.cumsum([len(p) for p in parts])
    return np.split(codes, ends[:-1]), coded.dictionary.to_pylist()


def _unique_images(
    benches: Sequence[Benchmark], looked_at: Sequence[_References | None], store: ResultStore, progress: Progress
) -> tuple[list[np.ndarray], list[PlannedImage], np.ndarray, list[Fault]]:
    """Return four things: the images of each benchmark as indices into the distinct images, the distinct images, their
    content keys, and the faults of unreadable images.

    Images with equal bytes and equal crop boxes are one image.
    """
    memo = store.memo("image")
    sources: list[PlannedImage] = []
    keys: list[np.ndarray] = []
    faults: list[Fault] = []
    for bench, refs in zip(benches, looked_at, strict=True):
        if refs is None:
            continue
        digests = digest_images(bench.images, refs.unique, memo, progress)
        faults += [replace(f, row=len(sources) + f.row) for f in digests.faults]
        sources += [PlannedImage(bench.images, r) for r in refs.unique]
        keys.append(digests.keys)
    all_keys = np.concatenate(keys) if keys else np.zeros((0, KEY), np.uint8)
    names = [key.tobytes() for key in all_keys]
    for fault in faults:  # the keys of unreadable images are all zeros, but each of them counts as distinct
        names[fault.row] = b"unread %d" % fault.row
    merged = np.asarray(pa.array(names, pa.binary()).dictionary_encode().indices, np.int64)
    first = np.unique(merged, return_index=True)[1]
    numbers, at = [], 0
    for refs in looked_at:
        count = len(refs.unique) if refs else 0
        numbers.append(merged[at : at + count][refs.codes] if refs else np.zeros(0, np.int64))
        at += count
    broken = [replace(f, row=int(merged[f.row])) for f in faults]
    return numbers, [sources[i] for i in first], all_keys[first], broken


def _cells_of_items(widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with one entry per cell of all items' score matrices: the number of the cell's item, and the
    number of the cell within this item. Item i has `widths[i]` cells.
    """
    owner = np.repeat(np.arange(len(widths)), widths)
    ends = np.cumsum(widths)
    return owner, np.arange(len(owner)) - np.repeat(ends - widths, widths)


def brings_images(bench: Benchmark) -> bool:
    """Return whether the benchmark has references to images and a store that contains them."""
    return bench.images is not NO_IMAGES and bool(bench.ragged("images")[0][-1])


def swaps(bench: Benchmark, layout: Layout) -> np.ndarray:
    """Return a boolean for each item: True if its true captions P1 and P2 are swapped, following VISLA.

    They are swapped if P2 is closer to its nearest false caption, in edit distance, than P1 is to its own.
    """
    starts, flat = bench.ragged("captions")
    swap = np.zeros(len(layout), bool)
    for group in layout.groups:
        positive, negative = np.flatnonzero(group.match.any(axis=0)), np.flatnonzero(~group.match.any(axis=0))
        if len(positive) < 2 or not len(negative):
            continue
        first, second = (
            np.min([_distances(flat, starts[group.items] + p, starts[group.items] + n) for n in negative], axis=0)
            for p in positive[:2]
        )
        swap[group.items] = second_is_nearer(first, second)
    return swap


def _distances(flat: object, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Levenshtein distance between the two captions of each pair. `left` and `right` hold the positions of
    the pairs' captions in the column `flat`.
    """
    # A distance is computed from the normalised similarity of the two captions, which is 1 − distance / length of the
    # longer caption.
    a: list[str] = flat.take(left).to_pylist()  # type: ignore[attr-defined]
    b: list[str] = flat.take(right).to_pylist()  # type: ignore[attr-defined]
    longer = np.maximum([len(t) for t in a], [len(t) for t in b])
    return np.rint((1.0 - character_similarity(a, b)) * longer)
