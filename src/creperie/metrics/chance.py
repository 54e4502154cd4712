"""Chance levels: the exact probability of a hit if all scores of an item are random, without ties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Maximum number of steps of the exact count; the level is NaN if it would need more.
MOST_STEPS = 5_000_000


@dataclass(frozen=True, eq=False)
class Contest:
    """A comparison of an item's scores. The contest is won if every score in `winners` is higher than every score in
    `losers`. Both fields are fixed beforehand and hold indices into the item's scores.
    """

    winners: np.ndarray
    losers: np.ndarray


#: Of each loser, the winners that must be above it.
Winners = dict[int, set[int]]


def chance_of(contests: Sequence[Contest]) -> float:
    """Return the probability that random scores (independent and continuous) win all contests. It is NaN if a score is
    in the `winners` of one contest and in the `losers` of another, or if the computation would take too long.

    >>> cells = np.array
    >>> chance_of([Contest(cells([0, 1]), cells([2]))])  # both positives above the negative
    0.3333333333333333
    >>> chance_of([Contest(cells([0]), cells([1])), Contest(cells([3]), cells([2]))])  # Winoground's text score
    0.25
    """
    # Contests without common cells are independent. For contests with common cells, all orders of the cells are equally
    # likely, so the probability is the fraction of orders that satisfy the contests.
    above: Winners = {}
    for contest in contests:
        for loser in contest.losers.tolist():
            above.setdefault(loser, set()).update(contest.winners.tolist())
    if not above:
        return math.nan
    return math.prod(_agreeing(part) for part in _connected(above))


def _connected(above: Winners) -> list[Winners]:
    """Return `above`, which maps scores to those that must be higher, split into parts without a common score."""
    parts: list[tuple[set[int], Winners]] = []
    for loser, winners in above.items():
        cells, members = {loser} | winners, {loser: winners}
        apart = []
        for other in parts:
            if cells & other[0]:
                cells |= other[0]
                members |= other[1]
            else:
                apart.append(other)
        parts = [*apart, (cells, members)]
    return [members for _, members in parts]


def _agreeing(above: Winners) -> float:
    """Return the fraction of rankings that agree with `above`, which maps each score to the scores that must be higher.
    The fraction is NaN if a score must be higher than one score and lower than another, or if there are too many scores
    to count.
    """
    winners = set().union(*above.values())
    if winners & above.keys():
        return math.nan
    if all(w == winners for w in above.values()):
        return 1 / math.comb(len(winners) + len(above), len(winners))
    if len(winners) > len(above):  # swap winners and losers: the smaller side is enumerated
        upside: Winners = {w: set() for w in winners}
        for loser, over in above.items():
            for w in over:
                upside[w].add(loser)
        above, winners = upside, set(above)
    return _counted(above, sorted(winners))


def _counted(above: Winners, winners: list[int]) -> float:
    """Return the exact fraction of rankings that agree with `above` (see `_agreeing`). Return NaN if counting takes too
    long.
    """
    # The ranks are filled from the top. The state of the count is the set of winners that are placed and the number of
    # losers that are placed.
    if (len(winners) + 1) * (len(above) + 1) << len(winners) > MOST_STEPS:
        return math.nan
    bit = {w: 1 << i for i, w in enumerate(winners)}
    needed = [sum(bit[w] for w in over) for over in above.values()]
    full = (1 << len(winners)) - 1
    ways = [[0] * (len(above) + 1) for _ in range(full + 1)]
    ways[0][0] = 1
    for placed in range(full + 1):
        row = ways[placed]
        free = sum(1 for need in needed if need & ~placed == 0)
        for losers in range(free):
            row[losers + 1] += row[losers] * (free - losers)
        for b in bit.values():
            if not placed & b:
                following = ways[placed | b]
                for losers, n in enumerate(row[: free + 1]):
                    following[losers] += n
    return ways[full][len(above)] / math.factorial(len(winners) + len(above))


def best_within(k: int, true: int, false: int) -> float:
    """Return the probability that, with random scores, the best true candidate is among the k highest of all
    candidates. `true` and `false` are the numbers of candidates.

    >>> best_within(1, 1, 5)
    0.16666666666666666
    """
    every = math.comb(true + false, k)
    return (every - math.comb(false, k)) / every if every else 1.0
