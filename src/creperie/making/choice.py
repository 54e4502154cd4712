"""The choice among the proposed foils of all captions, such that no edit and no word occurs too often.

For every caption and kind, a maker proposes several foils. In a first round every caption takes the foil with the
lowest cost; in further rounds it may change to another. A foil costs little if its edit is rarely taken, if the words
of the edit are added about as often as removed, and if the corpus supports the foil. It also costs little if it keeps a
balance: on the whole, foils should not be longer or less likely than their captions, or have rarer words. Edits are
therefore taken about equally often, and few foils must be left out because their edit is too frequent.

The foils of a kind must keep these limits. Each limit is a number of foils or a share of them, whichever is more:

- the 20 most frequent edits together account for at most 70 foils, or 35 %;
- a single edit accounts for at most 20 foils, or 2 %; if there are fewer than 100 foils, for at most 3, or 20 % (swaps
  are exempt from this, because they add and remove no words);
- of more than 100 foils, at most 55 % are less likely than their captions;
- the numbers of longer and of shorter foils differ by at most 10, or 10 %;
- in foils that change a number, a word is added about as often as it is removed: the difference is at most 4, or 0.4 %.
  For a number with its noun (`two dogs`), it is at most 2, or 0.2 %. Number words therefore do not show which of two
  texts is the foil.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from creperie.lang import words
from creperie.making.candidate import Candidate
from creperie.making.options import MakerOptions
from creperie.making.pipeline import CandidateVerdict, ParsedMaker, SourceOutcome

NOT_CHOSEN, TOO_OFTEN = "another foil of the caption was chosen", "its edit is made too often"
UNLIKELY = "too many foils of its kind are less likely than their captions (--unmatched keeps them)"
UNEVEN = "too many foils of its kind are {} than their captions (--unmatched keeps them)"
ONE_SIDED = "captions and foils would differ in their number words (--unmatched keeps it)"
#: One edit makes at most this share of the foils of a kind, or MOST of them if that is more.
MOST_OF_ALL, MOST = 0.02, 20
#: With fewer foils than MOST / MOST_OF_FEW, one edit makes three foils or at most this share.
MOST_OF_FEW = 0.20
#: The TOP most frequent edits together make at most this share of the foils, or MOST_OF_TOP if that is more.
TOP, OF_TOP, MOST_OF_TOP = 20, 0.35, 70
#: With fewer foils of a kind, unlikely foils are not limited.
FEW = 100
#: Maximum share of foils that a language model finds less likely than their captions.
LESS_LIKELY = 0.55
#: Longer and shorter foils differ in number by at most this share of the foils, or by ANY_MORE.
MORE_OF_A_LENGTH, ANY_MORE = 0.10, 10
#: In foils of counts, a word and a counted thing (`two dogs`) is added more often than removed, or the reverse, by at
#: most this number, or by this share of the foils if that is more.
ONE_SIDED_WORD, ONE_SIDED_PHRASE = (4, 0.004), (2, 0.002)
#: How much more the balance of words counts in the cost of foils that replace a thing or an attribute.
BALANCED = {"replace-object": 15, "replace-attribute": 10}
#: How often every caption may change its foil.
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Option:
    """A foil that can be chosen."""

    caption: int  #: index among the sources
    place: int  #: index among the caption's verdicts
    text: str
    edit: str
    words: tuple[tuple[str, int], ...]  #: how much more often each is added than removed
    signs: tuple[int, int, int]  #: signs of the differences in length, in word frequency and in likelihood
    gap: float  #: log P(foil) − log P(caption)
    support: float = 1.0  #: how far the corpus has its words together

    @property
    def length(self) -> int:
        """1 if the foil is longer than its caption, −1 if it is shorter, 0 if they are equally long."""
        return self.signs[0]


def choose(maker: object, outcomes: Callable[[], Iterable[SourceOutcome]]) -> Iterator[SourceOutcome]:
    """Choose among the accepted foils. Yield the outcome of every caption; accepted foils that were not chosen are now
    rejected, each with a reason. If the `maker` does not propose more foils than needed (`chooses` is not set), the
    outcomes are yielded unchanged.

    `outcomes` is called twice, because the choice needs two passes over the outcomes.
    """
    if not isinstance(maker, ParsedMaker) or not maker.chooses:
        yield from outcomes()
        return
    kinds: dict[str, dict[int, list[Option]]] = {}
    for number, outcome in enumerate(outcomes()):
        for place, verdict in enumerate(outcome.verdicts):
            if not verdict.reason and "edit_kind" in verdict.candidate.tags:  # made by a rule
                option = _option(number, place, verdict.candidate)
                kinds.setdefault(verdict.candidate.kind, {}).setdefault(number, []).append(option)
    reasons: dict[tuple[int, int], str] = {}
    for kind, rows in kinds.items():
        chosen = _chosen(rows.values(), kind, maker.options)
        reasons |= {(o.caption, o.place): chosen.why_not(o) for row in rows.values() for o in row}
    for number, outcome in enumerate(outcomes()):
        why_not = (reasons.get((number, k), v.reason) for k, v in enumerate(outcome.verdicts))
        verdicts = tuple(CandidateVerdict(v.candidate, why) for v, why in zip(outcome.verdicts, why_not))
        yield replace(outcome, verdicts=verdicts)


def _option(number: int, place: int, candidate: Candidate) -> Option:
    edit = candidate.edit.lower()
    gone, _, come = edit.removeprefix("− ").replace(", + ", " → ").partition(" → ")
    moved: Counter[str] = Counter()
    if come:
        phrases = candidate.kind.endswith("count")
        moved.update(words(come) + [come] * phrases)
        moved.subtract(words(gone) + [gone] * phrases)
    gaps = ("lm_gap", "frequency_gap", "length_gap")
    gap, frequency, longer = (float(candidate.tags.get(name, 0.0)) for name in gaps)
    if edit.startswith("− "):
        edit = come  # an addition repeats itself by what it adds, whatever made room for it
    support = float(candidate.tags.get("support", 1.0))
    signs = _sign(longer), _sign(frequency), _sign(gap)
    return Option(
        number, place, candidate.text, edit, tuple((w, n) for w, n in moved.items() if n), signs, gap, support
    )


def _sign(value: float) -> int:
    return (value > 1e-9) - (value < -1e-9)


def _chosen(rows: Iterable[Sequence[Option]], kind: str, options: MakerOptions) -> _Choice:
    """Choose up to `options.foils` foils of a kind for each caption. Each row of `rows` holds the possible foils of one
    caption.
    """
    return _Choice(kind, options, sorted(rows, key=lambda row: max((o.gap, o.text) for o in row), reverse=True))


class _Choice:
    """The foils chosen for one kind, with counts of their edits and words. These counts determine the cost of a further
    foil, and which edits are too frequent.
    """

    def __init__(self, kind: str, options: MakerOptions, rows: Sequence[Sequence[Option]]) -> None:
        """Choose foils row by row; each of the `rows` holds the possible foils of one caption."""
        self.kind, self.options = kind, options
        self.total = self.unlikely = 0
        self.limit = max(2, int(MOST_OF_ALL * len(rows)))  #: how often one edit may be taken
        self.taken: dict[int, list[Option]] = {}  #: caption → its foils
        self.edits: Counter[str] = Counter()
        self.balance: Counter[str] = Counter()  #: word → how much more often it is added than removed
        self.sums = [0, 0, 0]
        for _ in range(ROUNDS):
            for row in rows:
                self._choose_again(row)
            self.limit = self._largest_limit()
        self._leave_out()
        size = -1
        while size != self.total:  # more foils leave room for more of one edit
            size = self.total
            for row in rows:
                if len(self.taken[row[0].caption]) < options.foils:
                    self._choose_again(row, self._has_room)

    def why_not(self, option: Option) -> str:
        """Return why a foil is not chosen; empty if it is."""
        own = self.taken.get(option.caption, [])
        if option in own or len(own) == self.options.foils:
            return "" if option in own else NOT_CHOSEN
        if self._is_too_unlikely(option):
            return UNLIKELY
        if self._is_one_sided(option, 1):
            return ONE_SIDED
        return UNEVEN.format("longer" if option.length > 0 else "shorter") if self._is_uneven(option) else TOO_OFTEN

    def _choose_again(self, row: Sequence[Option], fits: Callable[[Option], bool] = lambda _: True) -> None:
        """Choose again for one caption: give up the foils chosen before, and take those with the lowest cost for which
        `fits` returns True.
        """
        for option in self.taken.pop(row[0].caption, []):
            self._count(option, -1)
        own: list[Option] = []
        while len(own) < self.options.foils and (free := [o for o in row if o not in own and fits(o)]):
            own.append(min(free, key=lambda o: (self._cost(o), o.text)))
            self._count(own[-1], 1)
        self.taken[row[0].caption] = own

    def _count(self, option: Option, one: int) -> None:
        self.total += one
        self.unlikely += one * (option.gap < 0)
        self.edits[option.edit] += one
        for word, n in option.words:
            self.balance[word] += one * n
        for k, sign in enumerate(option.signs):
            self.sums[k] += one * sign

    def _cost(self, option: Option) -> float:
        used = self.edits[option.edit] / self.limit
        imbalance = sum(n * self.balance[word] for word, n in option.words) / self.limit * BALANCED.get(self.kind, 1)
        cues = sum(sign * total for sign, total in zip(option.signs, self.sums)) / (1 + self.total / 20)
        return 8 * used + imbalance + 0.5 * cues + abs(option.gap) / 10 - 2 * option.support

    def _has_room(self, option: Option) -> bool:
        if self._is_too_unlikely(option) or self._is_uneven(option) or self._is_one_sided(option, 1):
            return False
        self.edits[option.edit] += 1
        most = nlargest(TOP, self.edits.values())
        room = self._is_within(most, most[0], self.total + 1)
        self.edits[option.edit] -= 1
        return room

    def _is_too_unlikely(self, option: Option) -> bool:
        return option.gap < 0 and self.unlikely >= self._most_unlikely()

    def _most_unlikely(self) -> int:
        """Return the limit on foils that are less likely than their captions, as a number of foils."""
        if not self.options.matched:
            return self.total + 1
        likely = self.total - self.unlikely
        return max(int(LESS_LIKELY / (1 - LESS_LIKELY) * likely), FEW - likely)

    def _is_uneven(self, option: Option) -> bool:
        """Return True if, with this foil added, foils longer than their captions would far outnumber foils shorter than
        theirs, or the reverse.
        """
        more = (self.sums[0] + option.length) * option.length
        return self.options.matched and more > max(ANY_MORE, MORE_OF_A_LENGTH * (self.total + 1))

    def _is_one_sided(self, option: Option, one: int) -> bool:
        """Return True if, with this foil chosen, one of its words would be added much more often than removed, or the
        reverse. Only foils that change a number are limited in this way. `one` is 0 if the foil is already among the
        chosen ones, else 1.
        """
        if not self.options.matched or not self.kind.startswith("replace-count"):
            return False
        limits = ((w, n, ONE_SIDED_PHRASE if " " in w else ONE_SIDED_WORD) for w, n in option.words)
        return any(n * self.balance[w] + one > max(some, share * self.total) for w, n, (some, share) in limits)

    def _largest_limit(self) -> int:
        """Return how often a single edit may be taken: the highest number at which the most frequent edits stay within
        their limits (see `_is_within`).
        """
        counts = sorted(self.edits.values(), reverse=True)
        most = max([1, *counts[:1]])
        limits = range(most, 0, -max(1, most // 100))
        return next((n for n in limits if self._is_within(cut := [min(n, k) for k in counts], n, sum(cut))), 1)

    def _is_within(self, counts: Sequence[int], most: int, total: int) -> bool:
        """Return True if the most frequent edits have no more than their allowed share of `total` foils. `counts` says
        how often each edit is taken, in descending order, and `most` is the highest of these counts.

        The limit for a single edit is lower when there are few foils, but not for swaps or if the option `matched` is
        off.
        """
        share = min(MOST, max(3, MOST_OF_FEW * total)) if self.options.matched and self.kind[:4] != "swap" else MOST
        top = max(MOST_OF_TOP, OF_TOP * total)
        return sum(counts[:TOP]) <= top and most <= max(share, MOST_OF_ALL * total)

    def _leave_out(self) -> None:
        """Leave out foils, the least likely ones first, until all limits are kept."""
        size = -1
        while size != self.total:
            size, self.limit = self.total, self._largest_limit()
            for option in sorted((o for own in self.taken.values() for o in own), key=lambda o: (o.gap, o.text)):
                often = self.edits[option.edit] > self.limit
                more = self.options.matched and self.sums[0] * option.length
                uneven = more > max(ANY_MORE, MORE_OF_A_LENGTH * self.total)
                unlikely = option.gap < 0 and self.unlikely > self._most_unlikely()
                if often or uneven or unlikely or self._is_one_sided(option, 0):
                    self.taken[option.caption].remove(option)
                    self._count(option, -1)
