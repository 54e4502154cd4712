"""Twins: two scenes with one claim each. Each claim is true of its own scene and false of the other.

This is why the text of a clean foil does not give it away. The foil is not a corrupted caption: it is the true caption
of a twin scene, made in the same way. A coin toss decides which of the two scenes is shown. For every pair of texts (a,
b), "a true, b false" is therefore exactly as likely as the reverse.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from creperie.world.dice import Dice, UnfitError
from creperie.world.drawn import DRAWINGS
from creperie.world.foils import EVERY
from creperie.world.grammar import needs_the, takes_place
from creperie.world.sample import Draft, Sampler, Stage
from creperie.world.solid.stage import ROOMS
from creperie.world.truth import LogicalForm, evaluate


@dataclass(frozen=True, slots=True)
class Twins:
    """Two claims, each with its scene, that have been certified (see `certify`)."""

    forms: tuple[LogicalForm, LogicalForm]
    scenes: tuple[Any, Any]  #: two scenes, or two rooms
    note: str
    novel: bool
    definite: bool  #: whether "the" is unambiguous in both scenes
    base: LogicalForm | None = None


def find_twins(kind: str, dice: Dice, split: str, *, rooms: bool = False) -> Twins:
    """Draw drafts until one is certified, and return its twins. In the test split, a coin toss decides beforehand
    whether the scenes show held-out combinations; the coin is tossed again after 300 failures.
    """
    stage = ROOMS if rooms else DRAWINGS
    while True:
        novel = split == "test" and dice.coin()
        for _ in range(300):
            with suppress(UnfitError):
                draft = EVERY[kind].propose(Sampler(stage, dice, seen=not novel))
                return certify(draft, stage, dice, split, novel)


def certify(draft: Draft, stage: Stage, dice: Dice, split: str, novel: bool) -> Twins:
    """Lay out both scenes and return twins; raise an UnfitError unless each claim can be written, is true of its own
    scene and is false of the other.
    """
    scenes = stage.scenes(draft, dice.tape(), split, novel)
    graphs = [stage.graph(scene) for scene in scenes or ()]
    if scenes is None or any(evaluate(draft.forms[i], graphs[j]) is not (i == j) for i in (0, 1) for j in (0, 1)):
        raise UnfitError
    named = [desc if form.facts else replace(desc, state=None) for form in draft.forms for desc in form.things]
    definite = all(sum(g.fits(desc, t) is not False for t in g.things) <= 1 for desc in named for g in graphs)
    if not definite and any(map(needs_the, draft.forms)):
        raise UnfitError
    setting = draft.setting if dice.chance(50) and all(takes_place(form, draft.setting) for form in draft.forms) else ""
    first, second = (replace(form, setting=setting) for form in draft.forms)
    base = draft.base and replace(draft.base, setting=setting)
    return Twins((first, second), (scenes[0], scenes[1]), draft.note, novel, definite, base)
