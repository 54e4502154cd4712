"""The rules by which items are judged: pure functions of a match matrix and the scores of its cells.

A cell is one image–caption pair of an item. Scores have the shape (cells, items), for items with the same match matrix.
Some rules give every item one outcome (such as `Outrank`, `Within`, `Mixed`); others count captions (`Sides`,
`Halves`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product
from typing import Protocol, runtime_checkable

import numpy as np

from creperie.metrics.chance import Contest, best_within, chance_of

#: The outcome of an item. TIE: no comparison is lost but some scores are equal, so the tie rule decides. VOID: not
#: covered, because a needed score is NaN or because there is nothing to compare.
HIT, MISS, TIE, VOID = 1, 0, 2, -1

Contests = Callable[[np.ndarray], list[Contest]]


# -- which cells are compared ---------------------------------------------------------------------------------------


def along_rows(match: np.ndarray) -> list[Contest]:
    """Return one contest per image: its true captions must outrank its false ones."""
    return _contests(np.arange(match.size).reshape(match.shape), match)


def down_columns(match: np.ndarray) -> list[Contest]:
    """Return one contest per caption: the images that match it must outrank the other images."""
    return _contests(np.arange(match.size).reshape(match.shape).T, match.T)


def _contests(cells: np.ndarray, match: np.ndarray) -> list[Contest]:
    return [Contest(c[m], c[~m]) for c, m in zip(cells, match, strict=True) if m.any() and not m.all()]


def both_ways(match: np.ndarray) -> list[Contest]:
    """Return the contests of all images (`along_rows`) and of all captions (`down_columns`). If either list is empty,
    return no contests at all.
    """
    rows, columns = along_rows(match), down_columns(match)
    return rows + columns if rows and columns else []


def between_captions(match: np.ndarray) -> list[Contest]:
    """Return one contest per true caption of an image: the other true captions must be more similar to it than the
    false captions are.
    """
    # The scores are captions × captions. They are read from the upper triangle only, so s(a, b) and s(b, a) are always
    # the same number.
    contests = []
    for query, row in product(range(match.shape[1]), match):
        others = np.flatnonzero(row & (np.arange(len(row)) != query))
        if row[query] and len(others) and not row.all():
            contests.append(Contest(_pair(query, others, len(row)), _pair(query, np.flatnonzero(~row), len(row))))
    return contests


def _pair(query: int, others: np.ndarray, width: int) -> np.ndarray:
    return np.minimum(query, others) * width + np.maximum(query, others)


@dataclass(frozen=True)
class NthPositive:
    """Contests between each image's n-th true caption (from 0, in the published order) and its false captions. Images
    with fewer than `least` true captions have no contest.
    """

    n: int
    least: int = 1

    def __call__(self, match: np.ndarray) -> list[Contest]:
        enough = max(self.least, self.n + 1)
        return [Contest(c.winners[[self.n]], c.losers) for c in along_rows(match) if len(c.winners) >= enough]


@dataclass(frozen=True)
class NthCandidate:
    """Contests in which captions of an item are compared with one of its true captions. The n-th true caption (from 0)
    must be more similar to that caption than the false captions are. There is one contest for each true caption except
    the n-th. Only items with one image have such contests.
    """

    n: int

    def __call__(self, match: np.ndarray) -> list[Contest]:
        positives = np.flatnonzero(match[0])
        if len(match) != 1 or len(positives) <= max(self.n, 1) or match.all():
            return []
        width, nth_positive, false = match.shape[1], positives[[self.n]], np.flatnonzero(~match[0])
        queries = [int(q) for q in positives if q != nth_positive[0]]
        return [Contest(_pair(q, nth_positive, width), _pair(q, false, width)) for q in queries]


@dataclass(frozen=True)
class CaptionPreference:
    """Contests between two captions of every image, at the positions `first` and `second`. The first caption must
    outrank the second, whether it is true or not.

    If `of` is set, only items with exactly that many captions have such contests.
    """

    first: int
    second: int
    of: int = 0

    def __call__(self, match: np.ndarray) -> list[Contest]:
        rows, width = match.shape
        if max(self.first, self.second) >= width or self.of not in (0, width):
            return []
        starts = range(0, rows * width, width)
        return [Contest(np.array([s + self.first]), np.array([s + self.second])) for s in starts]


def without_image(match: np.ndarray) -> list[Contest]:
    """Return one contest: the captions that match an image must outrank those that match no image."""
    true = match.any(axis=0)
    return [Contest(np.flatnonzero(true), np.flatnonzero(~true))] if true.any() and not true.all() else []


# -- rules with one outcome per item --------------------------------------------------------------------------------


@runtime_checkable
class OutcomeRule(Protocol):
    """A rule that gives every item one outcome: HIT, MISS, TIE or VOID."""

    def applies(self, match: np.ndarray) -> bool: ...

    def chance(self, match: np.ndarray) -> float: ...

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray: ...


def _decided(lost: np.ndarray, equal: np.ndarray, void: np.ndarray) -> np.ndarray:
    return np.where(void, VOID, np.where(lost, MISS, np.where(equal, TIE, HIT))).astype(np.int8)


#: a rule of a user's own: match matrix and scores of one item → right, wrong, or None for a tie
Judge = Callable[[np.ndarray, np.ndarray], "bool | None"]


@dataclass(frozen=True)
class JudgedBy:
    """A rule that calls a user's function for each item that has both a true and a false caption."""

    judge: Judge

    def applies(self, match: np.ndarray) -> bool:
        return bool(match.any() and not match.all())

    def chance(self, match: np.ndarray) -> float:
        return float(getattr(self.judge, "chance", math.nan))

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        judged = np.full(cells.shape[1], VOID, np.int8)
        for k in np.flatnonzero(~np.isnan(cells).any(axis=0)):
            answer = self.judge(match, cells[:, k].reshape(match.shape))
            judged[k] = TIE if answer is None else HIT if answer else MISS
        return judged


@dataclass(frozen=True)
class Outrank:
    """The rule that an item is a hit if all its contests are won. A contest is won if each score in its `winners` is
    higher than each score in its `losers`.
    """

    contests: Contests

    def applies(self, match: np.ndarray) -> bool:
        return bool(self.contests(match))

    def chance(self, match: np.ndarray) -> float:
        return chance_of(self.contests(match))

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        least = self.margins(match, cells)
        return _decided(least < 0, least == 0, np.isnan(least))

    def margins(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return each item's margin: over all contests, the smallest lead of a score that should be higher over a score
        that should be lower. The margin is NaN for void items.
        """
        least = np.full(cells.shape[1], np.inf)
        for contest in self.contests(match):
            low, high = cells[contest.winners].min(axis=0), cells[contest.losers].max(axis=0)
            level = low == high  # two infinities are a tie, not NaN
            lead = np.subtract(low, high, out=np.zeros(len(low)), where=~level, dtype=np.float64)
            least = np.minimum(least, lead)
        return least


@dataclass(frozen=True)
class Within:
    """The rule of recall@k: an item is a hit if, for every image, one of the k highest-scoring captions is true."""

    k: int

    def applies(self, match: np.ndarray) -> bool:
        return bool(along_rows(match))

    def chance(self, match: np.ndarray) -> float:
        contests = along_rows(match)
        return math.prod(best_within(self.k, len(c.winners), len(c.losers)) for c in contests)

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        best, worst, void = ranks(match, cells)
        return _decided(best.max(axis=0) > self.k, worst.max(axis=0) > self.k, void)


@dataclass(frozen=True)
class Mixed:
    """The rule of the task "brittle". An item is a hit if one of its two true captions outranks the false one and the
    other does not. A low value is good.
    """

    def applies(self, match: np.ndarray) -> bool:
        return match.shape == (1, 3) and int(match.sum()) == 2

    def chance(self, match: np.ndarray) -> float:
        return 1 / 3

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        true, false = cells[match[0]], cells[~match[0]]
        alike = (true > false).all(axis=0) | (true < false).all(axis=0)
        equal = (true == false).any(axis=0)
        return _decided(alike, equal, np.isnan(cells).any(axis=0))


@dataclass(frozen=True)
class Decided:
    """The rule that an item is a hit if its true cells (image–caption pairs) score above the threshold and its false
    cells below it.
    """

    threshold: float

    def applies(self, match: np.ndarray) -> bool:
        return match.size > 0

    def chance(self, match: np.ndarray) -> float:
        """Return the probability that a coin flip for each cell gets all of them right."""
        return float(0.5**match.size)

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        signed = np.where(match.ravel()[:, None], 1, -1) * (cells - self.threshold)
        lost, equal, void = (np.any(one, axis=0) for one in (signed < 0, signed == 0, np.isnan(cells)))
        return _decided(lost, equal, void)


#: Maximum number of assignments that are all enumerated; with more, scipy solves item by item.
MOST_ASSIGNMENTS = 720


@dataclass(frozen=True)
class BestAssignment:
    """The rule of GroupMatch: an item is a hit if the true assignment of images to captions has a higher sum of scores
    than any other.

    An assignment gives each image a different caption. If there are fewer captions than images, it gives each caption a
    different image. The rule applies only if the match matrix is such an assignment.
    """

    def applies(self, match: np.ndarray) -> bool:
        wide = match if match.shape[0] <= match.shape[1] else match.T
        return wide.shape[1] > 1 and bool((wide.sum(axis=1) == 1).all() and (wide.sum(axis=0) <= 1).all())

    def chance(self, match: np.ndarray) -> float:
        """Return one divided by the number of assignments."""
        return 1 / math.perm(max(match.shape), min(match.shape))

    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        scores = cells.astype(np.float64).reshape(*match.shape, -1)
        wide, scores = (match, scores) if match.shape[0] <= match.shape[1] else (match.T, scores.transpose(1, 0, 2))
        rows, truth = np.arange(len(wide)), wide.argmax(axis=1)
        void = np.isnan(cells).any(axis=0)
        own = scores[rows, truth].sum(axis=0)
        if math.perm(*reversed(wide.shape)) <= MOST_ASSIGNMENTS:
            others = [p for p in permutations(range(wide.shape[1]), len(wide)) if p != tuple(truth.tolist())]
            rival = np.max([scores[rows, list(p)].sum(axis=0) for p in others], axis=0)
        else:
            rival = np.array([math.nan if void[n] else _best_rival(scores[..., n], truth) for n in range(len(void))])
        return _decided(own < rival, own == rival, void)


def _best_rival(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the highest sum of scores of any assignment except the true one."""
    # To find it, each true cell is forbidden in turn.
    from scipy.optimize import linear_sum_assignment

    best = -math.inf
    for row, column in enumerate(truth):
        allowed = scores.copy()
        allowed[row, column] = -1e300
        chosen = linear_sum_assignment(allowed, maximize=True)
        best = max(best, float(allowed[chosen].sum()))
    return best


def ranks(match: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rank, from 1, of the best true caption of each row, compared with the false captions.

    The result is three arrays: the ranks (rows, items) if ties count in favour of the true caption, the ranks if ties
    count against it, and a mask of void items. Rows with nothing to compare are left out.
    """
    contests = along_rows(match)
    best = np.ones((len(contests), cells.shape[1]), np.int64)
    worst = best.copy()
    void = np.full(cells.shape[1], not contests)
    for r, contest in enumerate(contests):
        top, false = cells[contest.winners].max(axis=0), cells[contest.losers]
        best[r] += (false > top).sum(axis=0)
        worst[r] += (false >= top).sum(axis=0)
        void |= np.isnan(top) | np.isnan(false).any(axis=0)
    return best, worst, void


# -- rules that count captions --------------------------------------------------------------------------------------


@runtime_checkable
class CountRule(Protocol):
    """A rule that counts captions, in one part or in two (such as captions and foils). Its method `counts` returns an
    array (items, parts, 3) of hits, ties and all captions, with zeros for items that cannot be judged.
    """

    @property
    def parts(self) -> int: ...

    def applies(self, match: np.ndarray) -> bool: ...

    def chance(self, match: np.ndarray) -> float: ...

    def counts(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Sides:
    """The rule that counts the cells (image–caption pairs) that a threshold classifies correctly. The first part of the
    counts is for true cells, the second for false cells.
    """

    threshold: float
    parts: int = 2

    def applies(self, match: np.ndarray) -> bool:
        return match.size > 0

    def chance(self, match: np.ndarray) -> float:
        """Return 0.5, the chance level of a coin flip. That of random scores would depend on the threshold."""
        return 0.5

    def counts(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        true = match.ravel()
        at, above = cells == self.threshold, cells > self.threshold
        counted = np.zeros((cells.shape[1], 2, 3), np.int64)
        for part, (own, right) in enumerate([(true, above), (~true, ~above & ~at)]):
            counted[:, part, 0] = right[own].sum(axis=0)
            counted[:, part, 1] = at[own].sum(axis=0)
            counted[:, part, 2] = own.sum()
        counted[np.isnan(cells).any(axis=0)] = 0
        return counted


@dataclass(frozen=True)
class Halves:
    """The rule of BLA. If k of an image's captions are true, the k captions with the highest scores are judged true,
    the others false. The right judgements are counted.
    """

    parts: int = 1

    def applies(self, match: np.ndarray) -> bool:
        return bool(along_rows(match))

    def chance(self, match: np.ndarray) -> float:
        right = total = 0.0
        for contest in along_rows(match):
            true, false = len(contest.winners), len(contest.losers)
            right += (true**2 + false**2) / (true + false)
            total += true + false
        return right / total if total else math.nan

    def counts(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray:
        counted = np.zeros((cells.shape[1], 1, 3), np.int64)
        void = np.zeros(cells.shape[1], bool)
        for contest in along_rows(match):
            own = cells[np.concatenate([contest.winners, contest.losers])]
            places = len(contest.winners)
            above = np.stack([(own > one).sum(axis=0) for one in own])
            level = np.stack([(own == one).sum(axis=0) for one in own]) - 1
            inside, outside = above + level < places, above >= places
            right = np.concatenate([inside[:places], outside[places:]])
            counted[:, 0, 0] += right.sum(axis=0)
            counted[:, 0, 1] += (~inside & ~outside).sum(axis=0)
            counted[:, 0, 2] += len(own)
            void |= np.isnan(own).any(axis=0)
        counted[void] = 0
        return counted
