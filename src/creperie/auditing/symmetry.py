"""Symmetry: the highest accuracy that a model can reach if it sees only the captions, or only the images.

Text alone: every image of an item defines pairs of a true and a false caption. Suppose that the same two captions occur
equally often with true and false exchanged. A model that sees only text can then gain nothing from them: whichever it
prefers, it is right as often as wrong.

The *bound* is the highest accuracy of any such model, even one that has memorised every answer. Of two captions, that
model always chooses the one that is true more often. The bound of a symmetric benchmark is 50 %.

Images alone: every caption defines pairs of a true and a false image, for which the same holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.auditing.pairs import caption_shapes, image_shapes, pairs_of_line
from creperie.bench import Benchmark, Item
from creperie.core import percent

#: Two captions (or two images), the true one first.
Ask = tuple[str, str]
MOST_NAMED = 20


@dataclass(frozen=True)
class SideBalance:
    """The balance of the captions or of the images: the number of true–false pairs, and how many of them cancel out
    because they also occur with true and false exchanged.
    """

    pairs: int
    mirrored: int
    bound: float  #: the highest accuracy of a model that sees only this side; 0.5 if there is no pair

    @property
    def balanced(self) -> bool:
        return self.mirrored == self.pairs


@dataclass(frozen=True)
class Symmetry:
    """How many pairs of captions, and of images, also occur with true and false exchanged. The counts are for a subset
    or for all items.
    """

    subset: str
    items: int
    text: SideBalance
    images: SideBalance
    broken: tuple[str, ...] = field(default=())  #: ids of items with a pair that does not also occur reversed

    @property
    def balanced(self) -> bool:
        """True if neither captions nor images reveal anything by themselves: every pair also occurs with true and false
        exchanged.
        """
        return self.text.pairs > 0 and self.images.pairs > 0 and self.text.balanced and self.images.balanced

    @property
    def words(self) -> str:
        """A sentence that says what captions alone, and images alone, reveal."""
        if self.balanced:
            return "balanced by design: captions alone, or images alone, are right exactly half of the time"
        parts = []
        for name, side in (("captions", self.text), ("images", self.images)):
            if side.pairs:
                share = percent(side.mirrored / side.pairs, 0)
                text = f"{share} % of the pairs of {name} cancel out with reversed ones"
                parts.append(f"{text}, so {name} alone reach at most {percent(side.bound)} %")
        if not self.images.pairs:
            parts.append("one image per item: images alone reveal nothing")
        return "; ".join(parts) if parts else "no item has both a true and a false caption"

    def document(self) -> dict[str, Any]:
        return {
            "subset": self.subset,
            "items": self.items,
            "balanced": self.balanced,
            "text": asdict(self.text),
            "images": asdict(self.images),
            "broken": len(self.broken),
            "broken_items": list(self.broken[:MOST_NAMED]),
            "words": self.words,
        }


def symmetry_of(bench: Benchmark, subset: str = "") -> Symmetry:
    """Return how many pairs of captions, and of images, also occur with true and false exchanged. Without `subset`, all
    items are counted.
    """
    bench = bench.only([subset]) if subset else bench
    shapes = caption_shapes(bench)[1]
    (text, broken), (seen, more) = (
        _balance([pairs_of_line(items, names, line) for items, matrix, names in side for line in matrix])
        for side in (shapes, image_shapes(bench, shapes)[1])
    )
    ids = bench.column("id").take(pa.array(np.union1d(broken, more))).to_pylist()
    return Symmetry(subset or "all", len(bench), text, seen, tuple(ids))


def text_asks(item: Item) -> Iterator[Ask]:
    """Yield the (true, false) pairs of captions that each image of an item defines."""
    return _asks(item.captions, item.match)


def image_asks(item: Item) -> Iterator[Ask]:
    """Yield the (true, false) pairs of images that each caption of an item defines."""
    return _asks(item.images, zip(*item.match))


def _asks(names: Sequence[str], lines: Iterable[Sequence[bool]]) -> Iterator[Ask]:
    for line in lines:
        yield from ((a, b) for a, true in zip(names, line) if true for b, other in zip(names, line) if not other)


def surplus_of(asks: Iterable[Ask]) -> dict[Ask, int]:
    """Return a surplus for each pair of captions or images (a, b) in alphabetical order: how often a is true and b
    false, minus how often b is true and a false. Pairs with a surplus of 0 are left out.

    >>> surplus_of([("a", "b"), ("b", "a"), ("c", "a")])
    {('a', 'c'): -1}
    """
    surplus: Counter[Ask] = Counter()
    for ask in asks:
        key = min(ask), max(ask)
        surplus[key] += 1 if key == ask else -1
    return {key: uneven for key, uneven in surplus.items() if uneven}


def _balance(asks: Sequence[np.ndarray]) -> tuple[SideBalance, np.ndarray]:
    """Return the balance of captions or of images, and the indices of the unbalanced items. An item is unbalanced if
    one of its pairs (a, b) occurs more or less often than (b, a).

    Each array in `asks` has three rows, which hold every pair's item, true caption (or image) and false caption (or
    image).
    """
    item, true, false = np.concatenate([np.zeros((3, 0), np.int64), *asks], axis=1)
    low, high = np.minimum(true, false), np.maximum(true, false)
    at = np.unique(low * (high.max(initial=0) + 1) + high, return_inverse=True)[1]
    surplus = np.bincount(at, np.where(true == low, 1.0, -1.0))
    uneven, total = int(np.abs(surplus).sum()), len(item)
    bound = 0.5 + 0.5 * uneven / total if total else 0.5
    return SideBalance(total, total - uneven, bound), np.unique(item[surplus[at] != 0])
