"""Sentence plans for twins. Both claims are written with the same plan, so that only the meaning differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from creperie.world.dice import Dice
from creperie.world.grammar import FLAVOURS, SentencePlan, needs_the, postures, sayable, write_sentence
from creperie.world.twins import Twins


def _is_turned(construction: str) -> bool:
    return construction.startswith("turned") or construction == "double"


def draw_style(twins: Twins, dice: Dice) -> SentencePlan:
    """Return a sentence plan without a construction; everything else in it is drawn at random."""
    common = [verb for verb in postures(twins.forms[0]) if verb in postures(twins.forms[1])]
    definite = twins.definite and (dice.chance(40) or any(map(needs_the, twins.forms)))
    posture = dice.pick(common) if common and dice.chance(65) else ""
    return SentencePlan("", "the" if definite else "a", dice.roll(FLAVOURS), posture)


def one_wording(twins: Twins, dice: Dice) -> SentencePlan:
    """Return a random plan with which both claims can be written."""
    return _planned(twins, draw_style(twins, dice), dice)


def two_wordings(kind: str, twins: Twins, dice: Dice) -> tuple[SentencePlan, SentencePlan]:
    """Return two plans in random order. If possible, their constructions differ, and one of them mentions the things in
    reverse order.
    """
    style = draw_style(twins, dice)
    first = _planned(twins, style, dice, turned=False, wanted=("to",) if kind == "dative" else ())
    again = replace(style, flavour=dice.roll(FLAVOURS))
    second = _planned(twins, again, dice, turned=True, wanted=("double",) if kind == "dative" else (), taken=first)
    return (first, second) if dice.coin() else (second, first)


def _planned(
    twins: Twins,
    style: SentencePlan,
    dice: Dice,
    *,
    turned: bool | None = None,
    wanted: Sequence[str] = (),
    taken: SentencePlan | None = None,
) -> SentencePlan:
    """Return the plan `style` with a random construction in which both claims can be written. If possible, the
    construction differs from that of the plan `taken`.

    If `turned` is None, no construction is preferred, and `wanted` is ignored. Otherwise the constructions in `wanted`
    are preferred or, if it is empty, those that mention the things in reverse order (`turned` is True) or in the usual
    order (False).
    """
    options = [c for c in sayable(twins.forms[0]) if c in sayable(twins.forms[1])]
    fresh = [c for c in options if taken is None or c != taken.construction] or options
    liked = fresh if turned is None else [c for c in fresh if (c in wanted if wanted else _is_turned(c) == turned)]
    liked = liked or fresh
    return replace(style, construction=dice.pick([*liked, *(c for c in liked if not c.endswith("there"))]))


def say(twins: Twins, side: int, plan: SentencePlan) -> str:
    """Return the caption of one scene (0 or 1) of the twins, written with the plan."""
    return write_sentence(twins.forms[side], plan)
