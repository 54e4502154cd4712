"""The choice among the proposed foils of all captions, such that no edit and no word occurs too often.

For every caption and kind, a maker proposes several foils. Captions with the fewest proposals are processed first, and
the foil with the lowest cost is chosen. The cost is low if the edit was rarely chosen before, if each word of the edit
has been added about as often as removed so far, if the corpus supports the foil, and if the foil helps to keep foils on
the whole from being longer, rarer or less likely than captions.

From 200 foils of a kind on (100 for relations), the 20 most frequent edits together make up at most 35 % of the foils;
from 1,000 on, no single edit makes up more than 2 %. With fewer foils an edit is used up to three times, or for at most
20 % of the foils. Swaps add and remove no words, so fewer than 200 of them are not limited. From 100 foils of a kind
on, at most 55 % are less likely than their captions, or as many as 100 foils have room for: more captions never give
fewer foils. A foil above these limits is left out, and its caption gets the next one that keeps within them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from creperie.lang import words
from creperie.making.candidate import Candidate, dice_for
from creperie.making.options import MakerOptions
from creperie.making.pipeline import CandidateVerdict, ParsedMaker, SourceOutcome

NOT_CHOSEN, TOO_OFTEN = "another foil of the caption was chosen", "its edit is made too often"
UNLIKELY = "too many foils of its kind are less likely than their captions (--unmatched keeps them)"
#: From MANY foils of a kind on, the share of one edit is at most MOST_OF_ALL; from SOME on, the share of the TOP most
#: frequent edits together is at most OF_SOME.
MANY, MOST_OF_ALL = 1000, 0.02
SOME, TOP, OF_SOME = 200, 20, 0.35
#: With fewer, one edit is used three times, or for at most this share of them.
MOST_OF_FEW = 0.20
#: With fewer foils of a kind, unlikely foils and the most frequent relations are not limited.
FEW = 100
#: Maximum share of foils that a language model finds less likely than their captions.
LESS_LIKELY = 0.55


@dataclass(frozen=True, slots=True)
class Option:
    """A foil that can be chosen."""

    caption: int  #: index among the sources
    place: int  #: index among the caption's verdicts
    edit: str
    words: tuple[tuple[str, int], ...]  #: +1 for added words, −1 for removed words
    signs: tuple[int, int, int]  #: signs of the differences in length, in word frequency and in likelihood
    gap: float  #: log P(foil) − log P(caption)
    support: float = 1.0  #: how far the corpus has its words together


def choose(maker: object, outcomes: Callable[[], Iterable[SourceOutcome]]) -> Iterator[SourceOutcome]:
    """Choose among the accepted foils. Yield every outcome; accepted foils that were not chosen are now rejected, each
    with a reason. If the `maker` does not choose, the outcomes stay as they are.

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
        taken = _taken(list(rows.values()), maker.options.foils)
        likely = _likely(taken) if maker.options.matched else taken
        kept = _most_of_all(_capped(likely, kind, maker.options.matched), rows, kind, maker.options)
        every = [option for row in rows.values() for option in row]
        for options, why in ((every, NOT_CHOSEN), (taken, UNLIKELY), (likely, TOO_OFTEN), (kept, "")):
            reasons |= {(o.caption, o.place): why for o in options}
    for number, outcome in enumerate(outcomes()):
        why_not = (reasons.get((number, k), v.reason) for k, v in enumerate(outcome.verdicts))
        verdicts = tuple(CandidateVerdict(v.candidate, why) for v, why in zip(outcome.verdicts, why_not))
        yield replace(outcome, verdicts=verdicts)


def _option(number: int, place: int, candidate: Candidate) -> Option:
    edit = candidate.edit.lower()
    gone, _, come = edit.removeprefix("− ").replace(", + ", " → ").partition(" → ")
    moved = [(w, 1) for w in words(come)] + [(w, -1) for w in words(gone)] if come else []
    gap, frequency = (float(candidate.tags.get(name, 0.0)) for name in ("lm_gap", "frequency_gap"))
    longer = len(come) - len(gone) if come else 0
    if edit.startswith("− "):
        edit = come  # an addition repeats itself by what it adds, whatever made room for it
    support = float(candidate.tags.get("support", 1.0))
    return Option(number, place, edit, tuple(moved), (_sign(longer), _sign(frequency), _sign(gap)), gap, support)


def _sign(value: float) -> int:
    return (value > 1e-9) - (value < -1e-9)


def _taken(rows: list[list[Option]], count: int) -> list[Option]:
    """Choose up to `count` foils from each row (the foils of one caption), and return them in one list. They are chosen
    so that no edit is too frequent, words are added as often as they are removed, and differences in length, word
    frequency and likelihood cancel out.
    """
    limit = max(2, int(MOST_OF_ALL * len(rows)))
    edits: Counter[str] = Counter()
    balance: Counter[str] = Counter()  # word → how much more often it was added than removed
    sums = [0, 0, 0]
    taken: list[Option] = []

    def cost(option: Option) -> float:
        used = edits[option.edit] / limit
        imbalance = sum(n * balance[word] for word, n in option.words) / limit
        cues = sum(sign * total for sign, total in zip(option.signs, sums)) / (1 + len(taken) / 20)
        return (10 if used >= 1 else 0) + 2 * used + imbalance + 0.5 * cues + abs(option.gap) / 10 - 2 * option.support

    order = sorted(rows, key=lambda row: (len(row), dice_for(0, "choice", str(row[0].caption)).random()))
    for row in order:
        for option in sorted(row, key=cost)[:count]:
            edits[option.edit] += 1
            balance.update(dict(option.words))
            for k, sign in enumerate(option.signs):
                sums[k] += sign
            taken.append(option)
    return taken


def _likely(taken: list[Option]) -> list[Option]:
    """Return the foils that are left after limiting the share of foils that are less likely than their captions."""
    less = sorted((o for o in taken if o.gap < 0), key=lambda o: o.gap)
    likely = len(taken) - len(less)
    dropped = {id(o) for o in less[: max(0, len(less) - _most_unlikely(likely))]}
    return [o for o in taken if id(o) not in dropped]


def _most_unlikely(likely: int) -> int:
    """Return how many foils may be less likely than their captions if `likely` foils are at least as likely as their
    captions.
    """
    return max(int(LESS_LIKELY / (1 - LESS_LIKELY) * likely), FEW - likely)


def _capped(taken: list[Option], kind: str, balanced: bool) -> list[Option]:
    """Return the foils that are left after limiting the share of the most frequent edits."""
    counts = Counter(option.edit for option in taken)
    limits = range(max(counts.values(), default=1), 0, -1)
    limit = next((n for n in limits if _is_within(counts, n, kind, balanced)), 1)
    used: Counter[str] = Counter()
    left = []
    for option in sorted(taken, key=lambda o: abs(o.gap)):
        used[option.edit] += 1
        if used[option.edit] <= limit:
            left.append(option)
    return left


def _most_of_all(kept: list[Option], rows: dict[int, list[Option]], kind: str, options: MakerOptions) -> list[Option]:
    """Return `kept`, with foils added for captions that have too few. If the limits on frequent edits would then leave
    fewer foils than a choice with more varied edits, return that choice instead.
    """

    def within(counts: Counter[str], limit: int) -> bool:
        return _is_within(counts, limit, kind, options.matched)

    best = _filled(kept, rows, options, lambda counts, _: within(counts, counts.total()))
    few = len(best) < min(SOME, len(rows))
    for limit in range(12, 1, -1) if few and options.matched and len(rows) >= SOME else ():
        varied = _filled([], rows, options, partial(_is_rare, limit))
        if len(varied) > len(best) and within(Counter(o.edit for o in varied), limit):
            return _filled(varied, rows, options, lambda counts, _: within(counts, counts.total()))
    return best


def _is_rare(limit: int, counts: Counter[str], edit: str) -> bool:
    return counts[edit] <= limit


def _filled(
    kept: list[Option], rows: dict[int, list[Option]], options: MakerOptions, fits: Callable[[Counter[str], str], bool]
) -> list[Option]:
    """Return `kept` plus further foils from `rows` for captions with fewer foils than wanted. A foil is added only if
    `fits(counts, edit)` is true: `edit` is its edit, and `counts` says how many foils each edit would then have.
    """
    kept, own, counts = list(kept), Counter(o.caption for o in kept), Counter(o.edit for o in kept)
    less = sum(o.gap < 0 for o in kept)
    taken = {(o.caption, o.place) for o in kept}
    wanting = [caption for caption in rows if own[caption] < options.foils]
    rest = {caption: [o for o in rows[caption] if (caption, o.place) not in taken] for caption in wanting}
    order = sorted(rest, key=lambda caption: (len(rest[caption]), caption))
    for stage in ("likely", "all") if options.matched else ("all",):
        size = -1
        while size != len(kept):  # more foils leave room for more of one edit
            size = len(kept)
            for caption in order:
                for option in sorted(rest[caption], key=lambda o: (counts[o.edit], abs(o.gap))):
                    room = option.gap >= 0 or (stage == "all" and less < _most_unlikely(len(kept) - less))
                    if own[caption] == options.foils or not (room or not options.matched):
                        continue
                    counts[option.edit] += 1
                    if not fits(counts, option.edit):
                        counts[option.edit] -= 1
                        continue
                    kept.append(option)
                    less += option.gap < 0
                    own[caption] += 1
                    rest[caption].remove(option)
    return kept


def _is_within(counts: Counter[str], limit: int, kind: str, balanced: bool) -> bool:
    """Return True if every edit stays within its maximum share of the foils when no edit is used more than `limit`
    times. `counts` says how often each edit could be used. If there are few foils, the share is limited only if
    `balanced`.
    """
    cut = sorted((min(n, limit) for n in counts.values()), reverse=True)
    total, top = sum(cut), sum(cut[:TOP])
    if total < (FEW if kind.endswith("relation") else SOME):
        return not balanced or kind.startswith("swap") or max(cut, default=0) <= max(3, MOST_OF_FEW * total)
    return top <= OF_SOME * total and (total < MANY or cut[0] <= MOST_OF_ALL * total)
