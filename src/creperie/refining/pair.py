"""The largest even part of a benchmark: by pairs of captions and images, or by the words that tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from creperie.auditing import image_asks, surplus_of, text_asks
from creperie.bench import Item
from creperie.core import missing_extra
from creperie.lang import words

#: What one more time too often costs, in items: one that is too often in both its words is not worth it.
PRICE = 0.75


@dataclass(frozen=True, slots=True)
class ItemSurplus:
    """What an item adds to the balance: how much more often something is true than false."""

    pairs: tuple[tuple[tuple[str, ...], int], ...]  #: what (its side first) and the surplus; empty: symmetric
    asks: str = ""  #: items with the same images and true captions: one of them is enough


def surplus_of_item(item: Item) -> ItemSurplus:
    """Of two captions or images, how much more often the first is the true one."""
    found: list[tuple[tuple[str, ...], int]] = []
    for side, asks in (("text", text_asks(item)), ("images", image_asks(item))):
        found += [((side, *key), n) for key, n in sorted(surplus_of(asks).items())]
    return ItemSurplus(tuple(found))


def surplus_of_words(item: Item) -> ItemSurplus:
    """How much more often a word, or two words side by side, stand in true captions than in false ones."""
    found: Counter[tuple[str, ...]] = Counter()
    for true, false in text_asks(item):
        found.update(_grams(true))
        found.subtract(_grams(false))
    pairs = tuple((("words", *key), n) for key, n in sorted(found.items()) if n)
    return ItemSurplus(pairs, "\n".join((*item.images, "", *item.positives)))


def _grams(text: str) -> Counter[tuple[str, ...]]:
    row = ["", *words(text), ""]
    return Counter([*((w,) for w in row), *pairwise(row)])


#: What is balanced, by method.
SURPLUSES: Mapping[str, Callable[[Item], ItemSurplus]] = {"pair": surplus_of_item, "words": surplus_of_words}


def symmetric_part(surplus: Sequence[ItemSurplus], time_limit: float = 60.0) -> np.ndarray:
    """A mask of the items to keep: as many as possible, with every surplus at zero.

    Items that are symmetric in themselves always stay. Of the others, those go whose pair never stands the other way
    round; what is left is a small integer programme.

    >>> ask = ("text", "a", "b")
    >>> ways = [ItemSurplus(((ask, n),) if n else ()) for n in (1, -1, 1, 0)]
    >>> symmetric_part(ways).tolist()
    [True, True, False, True]
    """
    keep = np.array([not s.pairs for s in surplus], dtype=bool)
    if left := _seen_both_ways(surplus):
        own = [surplus[i] for i in left]
        keep[left] = _largest(_counts(own), own, time_limit)
    return keep


def even_part(surplus: Sequence[ItemSurplus], seed: int, time_limit: float = 60.0) -> np.ndarray:
    """A mask of the items to keep: as many as possible, with every surplus as a fair coin would leave it.

    With every surplus at zero, whoever knows all items but one could tell that one: it must even out the others. So
    the largest part with none is found first, a coin is thrown for each of its items to say which of the two captions
    were true, and the part that is kept comes as near to the surplus of these throws as it can.
    """
    keep = np.array([not s.pairs for s in surplus], dtype=bool)
    if left := _seen_both_ways(surplus):
        own = [surplus[i] for i in left]
        table = _counts(own)
        even = _largest(table, own, time_limit)
        thrown = even * np.random.default_rng(seed).choice([-1, 1], len(own))
        keep[left] = _largest(table, own, time_limit, aim=table @ thrown)
    return keep


def _seen_both_ways(surplus: Sequence[ItemSurplus]) -> list[int]:
    """The items of which everything is found with a surplus and with a lack, among these items themselves."""
    left = [i for i, s in enumerate(surplus) if s.pairs]
    while True:
        ways: dict[tuple[str, ...], set[bool]] = {}
        for i in left:
            for key, n in surplus[i].pairs:
                ways.setdefault(key, set()).add(n > 0)
        paired = [i for i in left if all(len(ways[key]) == 2 for key, _ in surplus[i].pairs)]
        if len(paired) == len(left):
            return left
        left = paired


def _counts(surplus: Sequence[ItemSurplus]) -> Any:
    """A sparse table of surpluses: what × items."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise missing_extra("scipy", "stats") from None
    numbers = {key: k for k, key in enumerate(sorted({key for s in surplus for key, _ in s.pairs}))}
    rows, columns, values = zip(*((numbers[key], i, n) for i, s in enumerate(surplus) for key, n in s.pairs))
    return csr_matrix((values, (rows, columns)), shape=(len(numbers), len(surplus)))


def _largest(
    table: Any, surplus: Sequence[ItemSurplus], time_limit: float, aim: np.ndarray | None = None
) -> np.ndarray:
    """The most items whose surpluses add up to zero; with `aim`, to about that, each one apart at `PRICE` items."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix, hstack, identity

    things, n = table.shape
    rivals: dict[str, list[int]] = {}
    for i, s in enumerate(surplus):
        rivals.setdefault(s.asks or str(i), []).append(i)
    cells = [(k, i) for k, own in enumerate(rivals.values()) for i in own]
    asked = csr_matrix((np.ones(n), tuple(np.array(cells).T)), shape=(len(rivals), n))
    off = 0 if aim is None else things
    # Among equally large answers, prefer earlier items: the same benchmark gives the same part everywhere.
    worth = 1 + 1e-6 * np.linspace(1, 0, n)
    apart = hstack([table, identity(things), -identity(things)]) if off else table
    wanted = np.zeros(things) if aim is None else aim
    found = milp(
        np.r_[-worth, np.full(2 * off, PRICE)],
        constraints=[
            LinearConstraint(csr_matrix(apart), wanted, wanted),
            LinearConstraint(hstack([asked, csr_matrix((len(rivals), 2 * off))]).tocsr(), -np.inf, 1),
        ],
        integrality=np.r_[np.ones(n), np.zeros(2 * off)],
        bounds=Bounds(0, np.r_[np.ones(n), np.full(2 * off, np.inf)]),
        options={"time_limit": time_limit},
    )
    if found.x is None:  # no answer in time: nothing is always symmetric
        return np.zeros(n, dtype=bool)
    return np.asarray(found.x[:n]) > 0.5
