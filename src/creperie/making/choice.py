"""The choice over all captions: which of the proposed foils are taken, so that no edit and no word is made too often.

For every caption and kind a maker leaves several foils. Captions with the fewest are served first. Each takes the foil
whose edit was taken least, whose words have come and gone about as often, and that makes foils neither longer, rarer
nor less likely than captions on the whole. From 1,000 foils of a kind on no edit is more than 2 % of them, and the 20
most frequent ones together are at most 25 % (relations: 40 %, from 100 foils on); what is above that is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from creperie.lang import words
from creperie.making.candidate import Candidate, dice_for
from creperie.making.pipeline import CandidateVerdict, SourceOutcome

NOT_CHOSEN, TOO_OFTEN = "another foil of the caption was chosen", "its edit is made too often"
MANY, MOST_OF_ALL, TOP, MOST_OF_TOP, OF_RELATIONS = 1000, 0.02, 20, 0.25, 0.40
#: Foils of a kind that are too few for cues to show.
FEW = 100
#: The largest share of foils that a language model may find less likely than their captions.
LESS_LIKELY = 0.55


@runtime_checkable
class Chooses(Protocol):
    """A maker that proposes more than it makes."""

    @property
    def chosen(self) -> int:
        """How many foils of a kind a caption gets; 0: all."""
        ...

    @property
    def balanced(self) -> bool:
        """Whether cues that give foils away are balanced, at the cost of some foils."""
        ...


@dataclass(frozen=True, slots=True)
class Option:
    """A foil that may be taken."""

    caption: int
    place: int  #: among the caption's verdicts
    edit: str
    words: tuple[tuple[str, int], ...]  #: +1 for words that come, −1 for those that go
    signs: tuple[int, int]  #: whether it is longer, and more frequent
    gap: float


def choose(maker: object, outcomes: Callable[[], Iterable[SourceOutcome]]) -> Iterator[SourceOutcome]:
    """The outcomes with the foils that were taken; the others are rejected, with the reason. They are read twice."""
    if not isinstance(maker, Chooses) or not maker.chosen:
        yield from outcomes()
        return
    kinds: dict[str, dict[int, list[Option]]] = {}
    for number, outcome in enumerate(outcomes()):
        for place, verdict in enumerate(outcome.verdicts):
            if not verdict.reason and "edit_kind" in verdict.candidate.tags:  # made by a rule
                option = _option(number, place, verdict.candidate)
                kinds.setdefault(verdict.candidate.kind, {}).setdefault(number, []).append(option)
    reasons: dict[int, dict[int, str]] = {}
    for kind, rows in kinds.items():
        taken = _taken(list(rows.values()), maker.chosen)
        kept = {(o.caption, o.place) for o in _capped(taken, kind, maker.balanced)}
        chosen = {(o.caption, o.place) for o in taken}
        for option in (o for row in rows.values() for o in row):
            key = (option.caption, option.place)
            if key not in kept:
                reasons.setdefault(option.caption, {})[option.place] = TOO_OFTEN if key in chosen else NOT_CHOSEN
    for number, outcome in enumerate(outcomes()):
        why = reasons.get(number)
        if why:
            verdicts = (CandidateVerdict(v.candidate, why.get(k, v.reason)) for k, v in enumerate(outcome.verdicts))
            outcome = replace(outcome, verdicts=tuple(verdicts))
        yield outcome


def _option(number: int, place: int, candidate: Candidate) -> Option:
    edit = candidate.edit.lower()
    gone, _, come = edit.removeprefix("− ").replace(", + ", " → ").partition(" → ")
    moved = [(w, 1) for w in words(come)] + [(w, -1) for w in words(gone)] if come else []
    gap, frequency = (float(candidate.tags.get(name, 0.0)) for name in ("lm_gap", "frequency_gap"))
    longer = len(come) - len(gone) if come else 0
    return Option(number, place, edit, tuple(moved), (_sign(longer), _sign(frequency)), gap)


def _sign(value: float) -> int:
    return (value > 1e-9) - (value < -1e-9)


def _taken(rows: list[list[Option]], count: int) -> list[Option]:
    """`count` options of every row, so that edits, words and cues are spread."""
    limit = max(2, int(MOST_OF_ALL * len(rows)))
    edits: Counter[str] = Counter()
    debt: Counter[str] = Counter()
    sums = [0, 0, 0]
    taken: list[Option] = []

    def cost(option: Option) -> float:
        signs = (*option.signs, _sign(option.gap))
        worn = edits[option.edit] / limit
        owed = sum(n * debt[word] for word, n in option.words) / limit
        tilt = sum(sign * total for sign, total in zip(signs, sums)) / (1 + len(taken) / 20)
        return (10 if worn >= 1 else 0) + 2 * worn + owed + 0.5 * tilt + abs(option.gap) / 10

    order = sorted(rows, key=lambda row: (len(row), dice_for(0, "choice", str(row[0].caption)).random()))
    for row in order:
        for option in [*row] if len(row) <= count else _best(row, count, cost):
            edits[option.edit] += 1
            debt.update(dict(option.words))
            for k, sign in enumerate((*option.signs, _sign(option.gap))):
                sums[k] += sign
            taken.append(option)
    return taken


def _best(row: list[Option], count: int, cost: Callable[[Option], float]) -> list[Option]:
    return sorted(row, key=cost)[:count]


def _capped(taken: list[Option], kind: str, balanced: bool) -> list[Option]:
    """What is left when the least likely foils, and then the most frequent edits, are cut to their share."""
    if balanced and len(taken) >= FEW:
        less = sorted((o for o in taken if o.gap < 0), key=lambda o: o.gap)
        most = int(LESS_LIKELY / (1 - LESS_LIKELY) * (len(taken) - len(less)))
        dropped = {id(o) for o in less[: max(0, len(less) - max(most, FEW // 2))]}
        taken = [o for o in taken if id(o) not in dropped]
    counts = Counter(option.edit for option in taken)
    limits = range(max(counts.values(), default=1), 0, -1)
    limit = next((n for n in limits if _is_within(counts, n, kind.endswith("relation"))), 1)
    used: Counter[str] = Counter()
    left = []
    for option in sorted(taken, key=lambda o: abs(o.gap)):
        used[option.edit] += 1
        if used[option.edit] <= limit:
            left.append(option)
    return left


def _is_within(counts: Counter[str], limit: int, relations: bool) -> bool:
    """True if edits keep to their shares when none is made more than `limit` times; relations must from 100 on."""
    cut = sorted((min(n, limit) for n in counts.values()), reverse=True)
    total, top = sum(cut), sum(cut[:TOP])
    if total < MANY:
        return not relations or total < FEW or top <= OF_RELATIONS * total
    return cut[0] <= MOST_OF_ALL * total and top <= (OF_RELATIONS if relations else MOST_OF_TOP) * total
