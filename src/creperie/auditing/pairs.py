"""What an attacker is asked: which of two captions of an item is true?

Every row of an item's match matrix (one per image, or a single row if there is no image) pairs each true caption with
each false one. An attacker answers every pair with a *margin*: above zero it prefers the true caption, below zero the
false one, and zero is a tie. All figures of an audit follow from the margins:

- the *gap* of an item is the mean of its margins. For an attacker that gives every caption a score, and an item with
  at most one image, it is the mean score of the true captions minus that of the false ones;
- the *win* of an item is the share of its pairs with a margin above zero, where ties count half. By chance it is one
  half, whatever the number of captions and the distribution of the scores.

In an item with two images, each caption is true once and false once. A blind attacker's gap is therefore zero and its
win one half. Such items are balanced by design and need no special treatment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.auditing.folds import grouped_folds
from creperie.bench import Benchmark, shape_codes
from creperie.metrics import clusters_of, codes_of

#: An odd number that spreads codes over 64 bits.
MIX = np.int64(0x1E3779B97F4A7C15)


def _digest(text: str) -> int:
    """Return a 64-bit digest of a text; it is the same on every machine."""
    content = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)


@dataclass(frozen=True, eq=False)
class ArrowTexts(Sequence[str]):
    """Captions stored in Arrow memory, which takes half as much memory as Python strings."""

    array: pa.Array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return self.array[at].to_pylist() if isinstance(at, slice) else self.array[int(at)].as_py()

    def of(self, rows: np.ndarray) -> list[str]:
        return self.array.take(pa.array(rows, pa.int64())).to_pylist()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 8192):
            yield from self.array.slice(start, 8192).to_pylist()


@dataclass(frozen=True, eq=False)
class Pairs:
    """The true–false caption pairs of a benchmark, in columns. The pairs of an item are adjacent, and items are in
    order.
    """

    texts: Sequence[str]  #: every distinct caption, once
    left: np.ndarray  #: the true caption of every pair: an index into `texts`
    right: np.ndarray  #: the false one
    item: np.ndarray  #: the pair's item: 0 … n_items−1, not decreasing
    row: np.ndarray  #: the pair's row of the match matrix (its image)
    subset: np.ndarray  #: the subset of every item: an index into `subsets`
    subsets: tuple[str, ...]
    cluster: np.ndarray  #: cluster number per item; items that share an image or a pair of captions have the same
    fold: np.ndarray | None = None  #: fold number per item that attackers must use; None: drawn at random
    counted: Any = (
        None  #: features that `counted_once` computed for all pairs, and the indices of these pairs among them
    )

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        return len(self.subset)

    @cached_property
    def per_item(self) -> np.ndarray:
        """The number of pairs of each item; an item without pairs cannot be attacked."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def balanced(self) -> np.ndarray:
        """A mask of the balanced items. An item is balanced if it has several images, and if every pair also occurs in
        it with true and false exchanged. Each of its captions is then true as often as it is false.
        """
        several = np.zeros(self.n_items, bool)
        several[self.item[self.row > 0]] = True
        item, a, b = (column[several[self.item]] for column in (self.item, self.left, self.right))
        keys = np.stack([item, np.minimum(a, b), np.maximum(a, b)])
        kinds, at = np.unique(keys, axis=1, return_inverse=True)
        several[kinds[0][np.bincount(at, np.sign(a - b), kinds.shape[1]) != 0]] = False
        return several

    @cached_property
    def group(self) -> np.ndarray:
        """A group number for each item. Items that share an image or a caption, directly or through other items, are in
        the same group.

        Folds keep groups together, so that no attacker judges a caption that it was trained on.
        """
        captions = np.tile(self.item, 2), np.concatenate([self.left, self.right])
        return _joined(self.n_items, (np.arange(self.n_items), self.cluster), captions)

    @cached_property
    def own_group(self) -> np.ndarray:
        """A group number for each item, like `group`, but computed within each training block (see `training_blocks`).
        The folds of a subset therefore do not depend on subsets outside its block.
        """
        groups = np.zeros(self.n_items, np.int64)
        for keep in training_blocks(self):
            groups[keep] = groups.max(initial=0) + 1 + self.of_items(keep).group
        return groups

    @cached_property
    def repeats(self) -> tuple[np.ndarray, np.ndarray]:
        """Two masks of items. The first selects items with a (true, false) pair that also occurs in another item. The
        second selects items with a pair that occurs in another item with true and false exchanged.
        """
        width = len(self.texts) + 1
        same, mirror = self.left * width + self.right, self.right * width + self.left
        keys, items = np.unique(np.unique(np.stack([same, self.item]), axis=1)[0], return_counts=True)
        several, reversed_ = np.isin(same, keys[items > 1]), np.isin(mirror, keys) & ~self.balanced[self.item]
        masks = np.zeros((2, self.n_items), bool)
        masks[0][self.item[several]] = True
        masks[1][self.item[reversed_]] = True
        return masks[0], masks[1]

    @cached_property
    def most_positives(self) -> int:
        """The largest number of true captions in an item with at most one image; 0 if no such item has several true
        captions.
        """
        one_row = ~np.isin(self.item, self.item[self.row > 0])
        keys = np.unique(np.stack([self.item[one_row], self.left[one_row]], axis=1), axis=0)
        most = int(np.bincount(keys[:, 0]).max()) if len(keys) else 0
        return most if most > 1 else 0

    @cached_property
    def unsolvable(self) -> np.ndarray:
        """A mask of the items in which the same text is both a true and a false caption. No model can get all their
        pairs right.
        """
        mask = np.zeros(self.n_items, bool)
        mask[self.item[self.left == self.right]] = True
        return mask

    def captions_at(self, texts: np.ndarray) -> list[str]:
        """Return the captions with these indices, as strings."""
        return self.texts.of(texts) if isinstance(self.texts, ArrowTexts) else [self.texts[i] for i in texts.tolist()]

    def of_items(self, keep: np.ndarray) -> Pairs:
        """Return the pairs of the items that the mask `keep` selects. Items are renumbered; the texts and the names of
        subsets stay as they are.
        """
        number = np.cumsum(keep) - 1
        chosen = keep[self.item]
        return Pairs(
            self.texts,
            self.left[chosen],
            self.right[chosen],
            number[self.item[chosen]],
            self.row[chosen],
            self.subset[keep],
            self.subsets,
            self.cluster[keep],
            None if self.fold is None else self.fold[keep],
            self.counted and (self.counted[0], self.counted[1][chosen]),
        )

    @cached_property
    def by_content(self) -> tuple[Pairs, np.ndarray, np.ndarray]:
        """The same pairs in an order that depends only on the captions, followed by two arrays. The first holds the old
        index of each item, and the second that of each pair, both in the new order.

        Random draws and learning use this order, so that they do not depend on the order of the items in a file.
        """
        used = np.unique(np.concatenate([self.left, self.right]))
        texts = self.texts.array if isinstance(self.texts, ArrowTexts) else pa.array(self.texts, pa.string())
        order = used[pc.sort_indices(texts.take(pa.array(used))).to_numpy()]
        rank = np.zeros(len(self.texts), np.int64)
        rank[order] = np.arange(len(order))
        digest = np.zeros(len(self.texts), np.int64)
        digest[used] = [_digest(text) for text in self.captions_at(used)]
        # the sum of both: roles change nothing, nor do other items
        mixed = (digest[self.left] + digest[self.right]) * MIX ^ (self.row * MIX >> 7)
        of_item, of_cluster = np.zeros((2, max(self.n_items, int(self.cluster.max(initial=0)) + 1)), np.int64)
        np.add.at(of_item, self.item, mixed)  # wraps around
        np.add.at(of_cluster, self.cluster, of_item[: self.n_items] * MIX)
        items = np.lexsort((of_cluster[self.cluster], of_item[: self.n_items]))
        place = np.empty(self.n_items, np.int64)
        place[items] = np.arange(self.n_items)
        pairs = np.argsort(place[self.item], kind="stable")
        same = replace(
            self,
            texts=ArrowTexts(texts.take(pa.array(order))),
            left=rank[self.left[pairs]],
            right=rank[self.right[pairs]],
            item=place[self.item[pairs]],
            row=self.row[pairs],
            subset=self.subset[items],
            cluster=codes_of(self.cluster[items])[0],
            fold=None if self.fold is None else self.fold[items],
            counted=self.counted and (self.counted[0], self.counted[1][pairs]),
        )
        return same, items, pairs

    def folds_of(self, rows: np.ndarray, k: int, seed: int) -> np.ndarray:
        """Return a fold number for each pair in `rows`. If the pairs come with folds (`fold`), return those. Otherwise
        return `k` random folds that keep groups together.
        """
        if self.fold is not None:
            return self.fold[self.item[rows]]
        return grouped_folds(self.own_group[self.item[rows]], k, seed)

    def of_subset(self, name: str) -> Pairs:
        """Return the pairs of one subset."""
        return self.of_items(items_in(self, name))


def items_in(pairs: Pairs, subset: str) -> np.ndarray:
    """Return a mask of the items of a subset; of all items if `subset` is "all"."""
    return np.ones(pairs.n_items, bool) if subset == "all" else pairs.subset == pairs.subsets.index(subset)


def pairs_of(bench: Benchmark, *, positive: int | None = None) -> Pairs:
    """Return the pairs of a benchmark. With `positive`, only the true caption with this index is used for each
    image.
    """
    texts, shapes = caption_shapes(bench)
    return _pairs(bench, texts, shapes, clusters(bench, shapes), positive)


def image_pairs_of(bench: Benchmark) -> Pairs:
    """Return pairs of images instead of captions. Each caption pairs the images that match it with those that do not.
    In the result, `texts` are names of images.
    """
    shapes = caption_shapes(bench)[1]
    return _pairs(bench, *image_shapes(bench, shapes), clusters(bench, shapes))


def _pairs(
    bench: Benchmark, texts: ArrowTexts, shapes: CaptionShapes, cluster: np.ndarray, positive: int | None = None
) -> Pairs:
    """Return the pairs that the rows of all match matrices define. `texts` and `shapes` come from `caption_shapes`, and
    `cluster` is the cluster number of each item. With `positive`, return only pairs with the true caption of this
    index.
    """
    parts = [np.zeros((4, 0), np.int64)]
    for items, matrix, mine in shapes:
        for r, line in enumerate(matrix):
            asked = pairs_of_line(items, mine, line, positive)
            parts.append(np.concatenate([asked, np.full((1, asked.shape[1]), r)]))
    columns = np.concatenate(parts, axis=1)
    parts.clear()  # frees as much memory as the pairs take
    item, left, right, row = columns = columns[:, np.lexsort((columns[3], columns[0]))]
    named = bench.column("subset").combine_chunks().dictionary_encode()
    subset = named.indices.to_numpy().astype(np.int64)
    joined = _joined_by_text(cluster, item, left, right)
    return Pairs(texts, left, right, item, row, subset, tuple(named.dictionary.to_pylist()), joined)


def pairs_of_line(items: np.ndarray, codes: np.ndarray, line: np.ndarray, positive: int | None = None) -> np.ndarray:
    """Return an array with three rows: the item, the true caption and the false caption of every pair that `line`
    defines.

    `line` is a row of the match matrix that all `items` have, and `codes` holds the captions of each item. `line` may
    also be a column of the matrix; `codes` then holds images. With `positive`, only the true caption with this index is
    used. If every true caption has its own foil, a true caption is paired only with its own foil.
    """
    true, false = np.flatnonzero(line), np.flatnonzero(~line)
    if positive is not None:
        own = slice(positive, positive + 1)
        true, false = true[own], false[own] if has_own_foils(line) else false
    a, b = np.repeat(true, len(false)), np.tile(false, len(true))
    return np.stack([np.repeat(items, len(a)), codes[:, a].ravel(), codes[:, b].ravel()])


def has_own_foils(line: np.ndarray) -> bool:
    """Return whether a row of a match matrix has several true captions and as many false ones. Each foil then belongs
    to the true caption at the same place, as in comparisons 1 and 2 of the benchmark Hit or Be Hit.
    """
    return 1 < int(np.sum(line)) == len(line) - int(np.sum(line))


def own_foils(bench: Benchmark) -> bool:
    """Return whether every true caption has its own foil. Only items with several true captions for an image are
    checked.
    """
    rows = [np.array(row) for shape in shape_codes(bench)[1] for row in shape.match if sum(row) > 1]
    return bool(rows) and all(map(has_own_foils, rows))


#: For every distinct match matrix: the indices of its items, the matrix, and the captions of each of these items.
CaptionShapes = Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]


def caption_shapes(bench: Benchmark) -> tuple[ArrowTexts, CaptionShapes]:
    """Return the distinct captions, and a list of the different match matrices. Each matrix comes with the items that
    have it and with the indices of their captions.
    """
    offsets, captions = bench.ragged("captions")
    texts, code = distinct(captions)
    shape_of, shapes = shape_codes(bench)
    by_shape = []
    for k, shape in enumerate(shapes):
        if shape.captions:
            items = np.flatnonzero(shape_of == k)
            mine = code[offsets[items][:, None] + np.arange(shape.captions)]
            by_shape.append((items, np.array(shape.match), mine))
    return ArrowTexts(texts), by_shape


def image_shapes(bench: Benchmark, shapes: CaptionShapes) -> tuple[ArrowTexts, CaptionShapes]:
    """Return the same as `caption_shapes`, with images in place of captions: every matrix is turned round. Items with
    one image are left out.
    """
    offsets, images = bench.ragged("images")
    names, code = distinct(images)
    turned = [
        (items, matrix.T, code[offsets[items][:, None] + np.arange(len(matrix))])
        for items, matrix, _ in shapes
        if len(matrix) > 1
    ]
    return ArrowTexts(names), turned


def distinct(texts: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct texts in the order of their first appearance. Also return, for each of `texts`, its index
    among the distinct ones.
    """
    coded = texts.dictionary_encode()
    return coded.dictionary, coded.indices.to_numpy().astype(np.int64)


def _joined_by_text(images: np.ndarray, item: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return a cluster number per item, after joining clusters that share a pair of captions, in either order.

    `images` holds the number of each item's cluster by shared images; `item`, `left` and `right` give the item and the
    two captions of each pair. Clusters are not joined if the result would exceed a tenth of the items.
    """
    # Very short captions, such as "red car" and "blue car", occur so often that they would join most of a benchmark.
    low, high = np.minimum(left, right), np.maximum(left, right)
    both = low * (high.max(initial=0) + 1) + high
    joined = _joined(len(images), (np.arange(len(images)), images), (item, both))
    too_large = np.bincount(joined)[joined] > max(20, len(images) / 10)
    return np.unique(np.where(too_large, len(images) + images, joined), return_inverse=True)[1].astype(np.int64)


def _joined(items: int, *links: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return a group number for each item. Items that share a key (such as a caption), directly or through other items,
    get the same number.

    Each of the `links` is a pair of arrays: item numbers, and one key for each of them. Keys of different links are
    never compared.
    """
    owner, keys = np.concatenate([owner for owner, _ in links]), np.zeros(0, np.int64)
    for _, key in links:
        keys = np.concatenate([keys, keys.max(initial=-1) + 1 + key])
    return clusters_of(np.bincount(owner, minlength=items), keys[np.argsort(owner, kind="stable")])


def clusters(bench: Benchmark, shapes: CaptionShapes) -> np.ndarray:
    """Return a cluster number for each item. Items that share an image, directly or through other items, are in the
    same cluster.

    Items without images are clustered by their first caption, because items with the same first caption were made from
    the same text.
    """
    offsets, images = bench.ragged("images")
    counts, image = np.diff(offsets), distinct(images)[1]
    first = np.full(len(counts), -1)
    for items, _, mine in shapes:
        first[items] = mine[:, 0]
    alone = np.flatnonzero((counts == 0) & (first >= 0))
    joined = _joined(len(counts), (np.repeat(np.arange(len(counts)), counts), image), (alone, first[alone]))
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)


def margins_of_scores(pairs: Pairs, scores: np.ndarray) -> np.ndarray:
    """Return the margin s(true) − s(false) of each pair, in float32. `scores` holds one score for each distinct
    caption.
    """
    exact = np.asarray(scores, np.float32)
    return exact[pairs.left] - exact[pairs.right]


def item_mean(pairs: Pairs, values: np.ndarray) -> np.ndarray:
    """Return, for each item, the mean of `values` over its pairs; NaN for an item without pairs."""
    total = np.bincount(pairs.item, weights=np.asarray(values, np.float64), minlength=pairs.n_items)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs.per_item > 0, total / pairs.per_item, np.nan)


def item_gaps(pairs: Pairs, margins: np.ndarray) -> np.ndarray:
    """Return the gap of every item: the mean margin over its pairs. It is above zero if the attacker prefers the true
    captions.
    """
    return item_mean(pairs, margins).astype(np.float32)


def item_wins(pairs: Pairs, margins: np.ndarray) -> np.ndarray:
    """Return, for each item, the proportion of its pairs that the attacker gets right. Ties and NaN count half."""
    return item_mean(pairs, 0.5 + 0.5 * (margins > 0) - 0.5 * (margins < 0))


#: A subset with fewer pairs is not given a separate model.
FEW = 100


def training_blocks(pairs: Pairs) -> list[np.ndarray]:
    """Return the training blocks as masks of items. Learned attackers are fitted separately in each block. Each subset
    with enough pairs is a block, and all small subsets together form one more.
    """
    count = np.bincount(pairs.subset[pairs.item], minlength=len(pairs.subsets))
    masks = [pairs.subset == s for s in np.flatnonzero(count >= FEW)]
    return [*masks, (count < FEW)[pairs.subset]] if count[count < FEW].sum() else masks


def one_thread() -> AbstractContextManager[object]:
    """Return a context manager under which numerical libraries use one thread."""
    # Several threads are slower on small tables.
    try:
        import sklearn  # noqa: F401  (its threads, too)
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:  # without scikit-learn there is nothing to fit
        return nullcontext()
    return cast("AbstractContextManager[object]", threadpool_limits(1))
