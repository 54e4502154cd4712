"""Items made from twins. A coin toss decides which of the two scenes is shown, and everything else that could be a cue
is random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from creperie.bench import PAIRED, Match, Tag, choice
from creperie.world.dice import Dice, key_of
from creperie.world.foils import CHOICE, EVERY, HALF, QUAD, TRIPLE, TWINS, WINOGROUND
from creperie.world.grammar import SentencePlan, write_sentence
from creperie.world.scene import Scene
from creperie.world.solid.scene import Room
from creperie.world.twins import Twins, find_twins
from creperie.world.wording import one_wording, say, two_wordings


@dataclass(frozen=True, slots=True)
class MadeItem:
    """An item that has no id yet and holds scenes instead of images."""

    scenes: tuple[Scene | Room, ...]
    captions: tuple[str, ...]
    match: Match
    tags: dict[str, Tag]


def clean_items(kind: str, form: str, split: str, seed: int, *, rooms: bool = False) -> Iterator[MadeItem]:
    """Yield items of one kind in one form; the iterator never ends. A set of captions is repeated only after 50 draws
    in a row gave no new one.
    """
    dice = Dice(seed, key_of(f"{kind} {form} {split}{' 3d' if rooms else ''}"))
    seen: set[frozenset[str]] = set()
    repeats = 0
    while True:
        made = _SHAPES[form](kind, find_twins(kind, dice, split, rooms=rooms), dice)
        if made is None:
            continue
        texts = frozenset(made.captions)
        repeats = repeats + 1 if texts in seen else 0
        if 0 < repeats < 50:
            continue
        seen.add(texts)
        yield made


def _choice(kind: str, twins: Twins, dice: Dice) -> MadeItem | None:
    plan = one_wording(twins, dice)
    shown = dice.roll(2)
    captions = say(twins, shown, plan), say(twins, 1 - shown, plan)
    tags = _tags(kind, CHOICE, twins, plan)
    return _made((twins.scenes[shown],), captions, choice(1, 1), tags)


def _triple(kind: str, twins: Twins, dice: Dice) -> MadeItem | None:
    return _in_two_wordings(kind, twins, dice, TRIPLE, (dice.roll(2),))


def _quad(kind: str, twins: Twins, dice: Dice) -> MadeItem | None:
    return _in_two_wordings(kind, twins, dice, QUAD, (0, 1))


def _in_two_wordings(kind: str, twins: Twins, dice: Dice, form: str, foils: tuple[int, ...]) -> MadeItem | None:
    """Return an item with one true caption in each of two wordings. `foils` lists the wordings (0, 1) in which the item
    also has a foil. Return None if two captions are equal.
    """
    wordings = two_wordings(kind, twins, dice)
    shown = dice.roll(2)
    captions = *(say(twins, shown, plan) for plan in wordings), *(say(twins, 1 - shown, wordings[k]) for k in foils)
    tags = _tags(kind, form, twins, wordings[0], wordings[foils[0]])
    tags["construction_2"] = wordings[1].construction
    return _made((twins.scenes[shown],), captions, choice(2, len(foils)), tags)


def _half(kind: str, twins: Twins, dice: Dice) -> MadeItem | None:
    """Return an item for the half-truth test with three captions: a short true one, the same with a true detail, and
    the same with a false detail. Return None if two captions are equal.
    """
    plan = one_wording(twins, dice)
    shown = dice.roll(2)
    assert twins.base is not None
    captions = write_sentence(twins.base, plan), say(twins, shown, plan), say(twins, 1 - shown, plan)
    tags = _tags(kind, HALF, twins, plan)
    return _made((twins.scenes[shown],), captions, choice(2, 1), tags)


def _winoground(kind: str, twins: Twins, dice: Dice) -> MadeItem | None:
    """Return an item with both scenes and both captions, or None if the captions do not consist of the same words."""
    made = _twins(kind, twins, dice, WINOGROUND)
    return made if made and _bag(made.captions[0]) == _bag(made.captions[1]) else None


def _twins(kind: str, twins: Twins, dice: Dice, form: str = TWINS) -> MadeItem | None:
    """Return an item with both scenes and both captions; each caption is true of one scene and false of the other."""
    plan = one_wording(twins, dice)
    first = dice.roll(2)
    sides = (first, 1 - first)
    captions = tuple(say(twins, side, plan) for side in sides)
    tags = _tags(kind, form, twins, plan)
    return _made(tuple(twins.scenes[side] for side in sides), captions, PAIRED, tags)


_SHAPES = {CHOICE: _choice, TRIPLE: _triple, QUAD: _quad, WINOGROUND: _winoground, TWINS: _twins, HALF: _half}


def _bag(text: str) -> Counter[str]:
    return Counter(text.lower().replace(",", "").rstrip(".").split())


def _made(
    scenes: tuple[Scene | Room, ...], captions: tuple[str, ...], match: Match, tags: dict[str, Tag]
) -> MadeItem | None:
    return MadeItem(scenes, captions, match, tags) if len(set(captions)) == len(captions) else None


def _tags(kind: str, form: str, twins: Twins, true: SentencePlan, false: SentencePlan | None = None) -> dict[str, Tag]:
    tags: dict[str, Tag] = {
        "kind": kind,
        "family": EVERY[kind].family,
        "clean": True,
        "form": form,
        "combination": "novel" if twins.novel else "seen",
        "difference": twins.note,
        "construction": true.construction,
        "construction_foil": (false or true).construction,
    }
    if twins.base is not None:
        tags["base"] = write_sentence(twins.base, true)
    return tags
