"""Items made from twins: two scenes, each with a claim that is false of the other. A coin toss decides which scene is
shown, and everything else that could give a foil away is random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from creperie.bench import PAIRED, Match, Tag, choice
from creperie.world.dice import Dice, key_of
from creperie.world.foils import EVERY, HALF, QUAD, TRIPLE, TWINS, WINOGROUND
from creperie.world.grammar import SentencePlan, write_sentence
from creperie.world.scene import Scene
from creperie.world.solid.scene import Room
from creperie.world.twins import Twins, find_twins
from creperie.world.wording import one_wording, say, two_wordings


@dataclass(frozen=True, slots=True)
class MadeItem:
    """An item without an id. It holds scenes in place of images."""

    scenes: tuple[Scene | Room, ...]
    captions: tuple[str, ...]
    match: Match
    tags: dict[str, Tag]


def clean_items(kind: str, form: str, split: str, seed: int, *, rooms: bool = False) -> Iterator[MadeItem]:
    """Yield items with one kind of foil in one form of item (such as "choice"); the iterator never ends. A set of
    captions is repeated only if 50 draws in a row gave no new set. With `rooms`, the scenes are rooms instead of
    drawings.
    """
    dice = Dice(seed, key_of(f"{kind} {form} {split}{' 3d' if rooms else ''}"))
    seen: set[frozenset[str]] = set()
    repeats = 0
    while True:
        made = made_item(kind, form, find_twins(kind, dice, split, rooms=rooms), dice)
        if made is None:
            continue
        texts = frozenset(made.captions)
        repeats = repeats + 1 if texts in seen else 0
        if 0 < repeats < 50:
            continue
        seen.add(texts)
        yield made


#: the forms with a true caption in each of two wordings, and those that show both scenes, each with its caption
_TWO_WORDINGS, _BOTH_SCENES = (TRIPLE, QUAD), (TWINS, WINOGROUND)


def made_item(kind: str, form: str, twins: Twins, dice: Dice) -> MadeItem | None:
    """Return an item of the form `form`, made from the twins. Return None if two of its captions are equal or, for the
    form "winoground", if its captions do not consist of the same words.

    An item of the form "triple" has the true caption in two wordings, and a foil in one of these wordings; a "quad" has
    a foil in each wording. An item of the form "half" (half-truth) has a short true caption and two longer ones: the
    same with a true detail added, and the same with a false detail added.
    """
    foils = (dice.roll(2),) if form == TRIPLE else (0, 1) if form == QUAD else (0,)
    plans = two_wordings(kind, twins, dice) if form in _TWO_WORDINGS else (one_wording(twins, dice),)
    shown = dice.roll(2)
    true = [say(twins, shown, plan) for plan in plans]
    false = [say(twins, 1 - shown, plans[k]) for k in foils]
    if form == HALF:
        assert twins.base is not None
        true.insert(0, write_sentence(twins.base, plans[0]))
    captions = (*true, *false)
    alike = form != WINOGROUND or _bag(captions[0]) == _bag(captions[1])
    if len(set(captions)) < len(captions) or not alike:
        return None
    both = form in _BOTH_SCENES
    scenes = (twins.scenes[shown], twins.scenes[1 - shown]) if both else (twins.scenes[shown],)
    match = PAIRED if both else choice(len(true), len(false))
    return MadeItem(scenes, captions, match, _tags(kind, form, twins, plans, plans[foils[0]]))


def _bag(text: str) -> Counter[str]:
    return Counter(text.lower().replace(",", "").rstrip(".").split())


def _tags(kind: str, form: str, twins: Twins, plans: Sequence[SentencePlan], foil: SentencePlan) -> dict[str, Tag]:
    tags: dict[str, Tag] = {
        "kind": kind,
        "family": EVERY[kind].family,
        "clean": True,
        "form": form,
        "combination": "novel" if twins.novel else "seen",
        "difference": twins.note,
        "construction": plans[0].construction,
        "construction_foil": foil.construction,
    }
    if twins.base is not None:
        tags["base"] = write_sentence(twins.base, plans[0])
    if len(plans) > 1:
        tags["construction_2"] = plans[1].construction
    return tags
