"""The pair method. It keeps the largest part of a benchmark in which every pair of captions or images occurs equally
often in both orders: with the first true and the second false, and the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.auditing import image_asks, surplus_of, text_asks
from creperie.bench import Item
from creperie.core import Progress, by_key
from creperie.refining.select import Choice, ChoiceSettings, ItemSurplus, RefinementMethod, SelectionPool

#: Cost of one unit of deviation, in items: an item that adds two units is not worth it.
PRICE = 0.75


def surplus_of_item(item: Item) -> ItemSurplus:
    """Return the surplus of each pair of captions or images in an item: how often the first is true and the second
    false, minus how often the reverse holds.
    """
    surplus = []
    for side, asks in (("text", text_asks(item)), ("images", image_asks(item))):
        surplus += [((side, *key), n) for key, n in sorted(surplus_of(asks).items())]
    return ItemSurplus(tuple(surplus))


def symmetric_part(surplus: Sequence[ItemSurplus], time_limit: float = 60.0, seed: int | None = None) -> np.ndarray:
    """Return a mask of the items to keep: the largest part in which every pair of captions or images occurs equally
    often in both orders (with the first true and the second false, and the reverse). With `seed`, pairs occur about as
    often in both orders as if a fair coin had chosen the order in each item.

    >>> ask = ("text", "a", "b")
    >>> ways = [ItemSurplus(((ask, n),) if n else ()) for n in (1, -1, 1, 0)]
    >>> symmetric_part(ways).tolist()
    [True, True, False, True]
    """
    # Items in which this already holds for every pair are always kept. An item is removed if one of its pairs occurs in
    # no other item in the opposite order; a small integer programme decides about the rest.
    # Exact balance would leak: the sums over all other items would reveal the true caption of any item. With `seed`, a
    # random sign is therefore drawn for each item of the symmetric part. The sums of the signed surpluses are the aim,
    # and the kept items come as close to it as possible.
    keep = np.array([not s.pairs for s in surplus], bool)
    if left := seen_both_ways(surplus):
        paired = [surplus[i] for i in left]
        table = surplus_table(paired)
        part = largest_part(table, paired, time_limit)
        if seed is not None:
            aim = table @ (part * np.random.default_rng(seed).choice([-1, 1], len(paired)))
            part = largest_part(table, paired, time_limit, aim)
        keep[left] = part
    return keep


def seen_both_ways(surplus: Sequence[ItemSurplus]) -> list[int]:
    """Remove items until every pair of captions or images in the remaining items occurs in both orders: with the first
    true and the second false, and the reverse. Return the indices of the remaining items. Items in which all pairs are
    balanced are left out.
    """
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


def surplus_table(surplus: Sequence[ItemSurplus]) -> Any:
    """Return the surpluses (see `ItemSurplus`) as a sparse matrix: one row per pair or word, one column per item."""
    from scipy.sparse import csr_matrix

    numbers = {key: k for k, key in enumerate(sorted({key for s in surplus for key, _ in s.pairs}))}
    rows, columns, values = zip(*((numbers[key], i, n) for i, s in enumerate(surplus) for key, n in s.pairs))
    return csr_matrix((values, (rows, columns)), shape=(len(numbers), len(surplus)))


def largest_part(
    table: Any, surplus: Sequence[ItemSurplus], time_limit: float, aim: np.ndarray | None = None
) -> np.ndarray:
    """Return a mask of the items to keep: as many as possible, such that the surplus of every pair or word, summed over
    the kept items, is zero.

    Of several items with the same images and true captions (the same key `asks`), at most one is kept. If `aim` is
    given, the sums approach `aim` instead of zero, and each unit of deviation costs as much as the loss of `PRICE`
    items. `table` comes from `surplus_table`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix, hstack, identity

    things, n = table.shape
    rivals = by_key((s.asks or str(i), i) for i, s in enumerate(surplus))
    cells = [(k, i) for k, members in enumerate(rivals.values()) for i in members]
    asked = csr_matrix((np.ones(n), tuple(np.array(cells).T)), shape=(len(rivals), n))
    off = 0 if aim is None else things
    # Among equally large solutions, prefer earlier items, so that the result is the same everywhere.
    worth = 1 + 1e-6 * np.linspace(1, 0, n)
    apart = hstack([table, identity(things), -identity(things)]) if off else table
    target = np.zeros(things) if aim is None else aim
    answer = milp(
        np.r_[-worth, np.full(2 * off, PRICE)],
        constraints=[
            LinearConstraint(csr_matrix(apart), target, target),
            LinearConstraint(hstack([asked, csr_matrix((len(rivals), 2 * off))]).tocsr(), -np.inf, 1),
        ],
        integrality=np.r_[np.ones(n), np.zeros(2 * off)],
        bounds=Bounds(0, np.r_[np.ones(n), np.full(2 * off, np.inf)]),
        options={"time_limit": time_limit},
    )
    if answer.x is None:  # no solution in time: the empty part is always symmetric
        return np.zeros(n, bool)
    return np.asarray(answer.x[:n]) > 0.5


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    keep = symmetric_part(pool.surplus, settings.time_limit)
    return Choice(keep, (("all", len(keep)), ("symmetric", int(keep.sum()))))


def _detail(pool: SelectionPool, item: int) -> str:
    (side, first, second), _ = pool.surplus[item].pairs[0]
    return f"{side}: {first!r} and {second!r}"


METHOD = RefinementMethod(
    name="pair",
    does="keep pairs of captions and of images that occur equally often in both orders",
    reason="mirror",
    why="a pair of its captions or images occurs less often in the other order",
    choose=_choose,
    attackers=("length-words", "surface"),  # only measured: symmetry needs no attacker
    surplus=surplus_of_item,
    detail=_detail,
)
