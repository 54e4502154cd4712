"""The largest symmetric part: every pair of captions, and of images, stands as often one way round as the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing import image_asks, surplus_of, text_asks
from creperie.bench import Item
from creperie.core import missing_extra


@dataclass(frozen=True, slots=True)
class ItemSurplus:
    """What an item adds to the balance: of two captions or images, how much more often the first is the true one."""

    pairs: tuple[tuple[tuple[str, str, str], int], ...]  #: (side, first, second) and the surplus; empty: symmetric


def surplus_of_item(item: Item) -> ItemSurplus:
    found = []
    for side, asks in (("text", text_asks(item)), ("images", image_asks(item))):
        found += [((side, *key), n) for key, n in sorted(surplus_of(asks).items())]
    return ItemSurplus(tuple(found))


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
    left = [i for i, s in enumerate(surplus) if s.pairs]
    while left:
        ways: dict[tuple[str, str, str], set[bool]] = {}
        for i in left:
            for key, n in surplus[i].pairs:
                ways.setdefault(key, set()).add(n > 0)
        paired = [i for i in left if all(len(ways[key]) == 2 for key, _ in surplus[i].pairs)]
        if len(paired) == len(left):
            break
        left = paired
    if left:
        keep[left] = _balanced([surplus[i] for i in left], time_limit)
    return keep


def _balanced(surplus: Sequence[ItemSurplus], time_limit: float) -> np.ndarray:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix
    except ImportError:
        raise missing_extra("scipy", "stats") from None
    numbers = {key: k for k, key in enumerate(sorted({key for s in surplus for key, _ in s.pairs}))}
    cells = [(numbers[key], i, n) for i, s in enumerate(surplus) for key, n in s.pairs]
    rows, columns, values = zip(*cells)
    table = csr_matrix((values, (rows, columns)), shape=(len(numbers), len(surplus)))
    # Among equally large answers, prefer earlier items: the same benchmark gives the same part everywhere.
    worth = 1 + 1e-6 * np.linspace(1, 0, len(surplus))
    found = milp(
        -worth,
        constraints=LinearConstraint(table, 0, 0),
        integrality=np.ones(len(surplus)),
        bounds=Bounds(0, 1),
        options={"time_limit": time_limit},
    )
    if found.x is None:  # no answer in time: nothing is always symmetric
        return np.zeros(len(surplus), dtype=bool)
    return np.asarray(found.x) > 0.5
