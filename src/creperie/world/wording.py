"""Sentence plans for twins: one plan for both claims, so that only the meaning differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from creperie.world.dice import Dice
from creperie.world.grammar import (
    DATIVE,
    DIRECT,
    DOUBLE,
    FLAVOURS,
    FRAMES,
    GIVING_TURNED,
    INDEFINITE,
    LISTING,
    PRESENCE,
    TAILS,
    TURNED,
    SentencePlan,
    constructions,
    write_sentence,
)
from creperie.world.truth import LogicalForm
from creperie.world.twins import Twins

#: kind → the two groups of constructions that it contrasts; other kinds take any two of _GROUPS.
TWO_WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "spatial": (DIRECT, TURNED),
    "active_passive": (DIRECT, TURNED),
    "dative": (DATIVE, DOUBLE),
}
_GROUPS = (DIRECT + DATIVE, TURNED + GIVING_TURNED, DOUBLE)

PlanPair = tuple[SentencePlan, SentencePlan]


def sayable(form: LogicalForm) -> tuple[str, ...]:
    """Return the constructions that can express a claim."""
    if not form.facts:
        return LISTING if len(form.things + form.counts) > 1 else tuple(PRESENCE)
    return constructions(form.facts[0].relation, form.facts[0].negated)


def draw_style(twins: Twins, dice: Dice) -> SentencePlan:
    """Return a plan with everything but its construction drawn at random."""
    return SentencePlan(
        article="the" if twins.definite and twins.forms[0].facts and dice.chance(40) else "a",
        flavour=dice.roll(FLAVOURS),
        frame=dice.roll(len(FRAMES)) if dice.chance(22) else 0,
        tail=dice.roll(TAILS),
    )


def one_wording(twins: Twins, dice: Dice) -> PlanPair:
    """Return a plan for each of the two claims, with the same construction if both can use it."""
    return _pair(twins, draw_style(twins, dice), DIRECT + TURNED + DATIVE + DOUBLE + GIVING_TURNED, (), dice)


def two_wordings(kind: str, twins: Twins, dice: Dice) -> tuple[PlanPair, PlanPair]:
    """Return two pairs of plans, in random order; the pairs use different constructions where possible.

    A pair has one plan for each claim; writing a claim by both pairs gives two paraphrases.
    """
    ways = TWO_WAYS.get(kind) or tuple(dice.shuffled(_GROUPS)[:2])
    first_style = draw_style(twins, dice)
    second_style = replace(first_style, flavour=dice.roll(FLAVOURS), tail=dice.roll(TAILS))
    first = _pair(twins, first_style, ways[0], (), dice)
    second = _pair(twins, second_style, ways[1], (first[0].construction, first[1].construction), dice)
    return (first, second) if dice.coin() else (second, first)


def _pair(twins: Twins, style: SentencePlan, wanted: Sequence[str], taken: Sequence[str], dice: Dice) -> PlanPair:
    """Return a plan for each claim, with a wanted construction that both can use, else with different ones.

    Constructions in `taken` are avoided if the claim allows another.
    """
    barred = INDEFINITE if style.article == "the" else frozenset[str]()
    options = [
        [c for c in sayable(form) if c not in barred and c not in taken] or list(sayable(form)) for form in twins.forms
    ]
    liked = [[c for c in side if c in wanted] or side for side in options]
    shared = [c for c in liked[0] if c in liked[1]]
    if shared:
        chosen = dice.pick(shared)
        return replace(style, construction=chosen), replace(style, construction=chosen)
    return tuple(replace(style, construction=dice.pick(side)) for side in liked)  # type: ignore[return-value]


def say(twins: Twins, side: int, plans: PlanPair) -> str:
    """Return the caption of one side (0 or 1) of the twins."""
    return write_sentence(twins.forms[side], plans[side])
