"""Drawings as a kind of world (see `sample.Stage`): what drawn things can look like, and how scenes are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from creperie.world.dice import Dice, Tape
from creperie.world.kinds import (
    ANIMATES,
    COLOURS,
    CONTAINERS,
    HANDED,
    HELD,
    KINDS,
    MOVED,
    PATTERNS,
    SUPPORTS,
    UNWRITTEN,
)
from creperie.world.layout import Look, SceneDraft, lay_out
from creperie.world.sample import Draft, Sampler, Stage, arity_of
from creperie.world.scene import GIVING, MOST, Scene
from creperie.world.splits import SEEN_COLOURS, is_novel, settle
from creperie.world.sprites import WORDS
from creperie.world.truth import Graph

#: Relations whose image has room for a big and a small thing.
_SIZABLE = frozenset({"left", "right", "above", "below", "near", "front", "behind", "faces"})
#: Roles that the layout fills with small things, which are too small for patterns; those it fills with big ones.
_SMALL = {"far": (0, 1), "inside": (0,), **dict.fromkeys(("holds", "carries", *GIVING), (1,))}
_BIG = {"inside": (1,)}


class Drawings(Stage):
    """The kind of world that consists of drawings. A drawn thing has a colour and a pattern, and is big or small if the
    scene shows both sizes; a sign has a word.
    """

    name = "2d"
    pools: ClassVar = {
        "unwritten": UNWRITTEN,
        "bodies": tuple(n for n in UNWRITTEN if n not in ("cage", "tent", "house", "tree", "table")),
        "animates": ANIMATES,
        "containers": CONTAINERS,
        "handed": HANDED,
        "held": HELD,
        "load": HANDED + HELD,
        "movable": ANIMATES + MOVED,
        "supports": SUPPORTS,
    }

    def colours(self, kind: str, seen: bool) -> Sequence[str]:
        return SEEN_COLOURS[kind] if seen else COLOURS

    def others(self, kinds: Sequence[str], setting: str, dice: Dice) -> list[str]:
        count = 1 if dice.chance(25) else dice.between(3, MOST - len(kinds))
        return dice.shuffled([kind for kind in UNWRITTEN if kind not in kinds])[:count]

    def looks(self, kinds: Sequence[str], relation: str, setting: str, s: Sampler) -> list[Look]:
        dice, main = s.dice, arity_of(relation)
        crowded = len(kinds) > main + 1
        contrast = relation in _SIZABLE and not crowded and dice.chance(18)
        sizes: list[str | None] = [*(dice.shuffled(("small", "big")) if contrast else ()), *[None] * 3]
        looks: list[Look] = []
        for k, kind in enumerate(kinds):
            size = sizes[k] if k < main and not crowded else "small" if crowded else None
            size = "small" if k in _SMALL.get(relation, ()) else "big" if k in _BIG.get(relation, ()) else size
            marked = size != "small" and k < main and KINDS[kind].patterned and dice.chance(40)
            colour = dice.pick([c for c in s.colours(kind) if c not in [x.colour for x in looks[:main]]])
            looks.append(Look(kind, colour, dice.pick(PATTERNS[1:]) if marked else "plain", size))
        return looks

    def painted(self, kinds: Sequence[str], s: Sampler) -> list[Look]:
        return [Look(kind, "", size="small") for kind in kinds]

    def as_kind(self, look: Look, kind: str, s: Sampler, setting: str) -> Look:
        return replace(look, kind=kind, pattern=look.pattern if KINDS[kind].patterned else "plain")

    def at_place_of(self, look: Look, other: Look) -> Look:
        return replace(look, size=other.size)

    def said(self, look: Look, field: str) -> str:
        value = getattr(look, field, None)
        return "" if value in (None, "plain", "medium") else str(value)

    def values(self, look: Look, field: str, s: Sampler) -> Sequence[str]:
        if field == "colour":
            return s.colours(look.kind)
        if field == "size":
            return ("small", "big") if look.size in ("small", "big") else ()
        if KINDS[look.kind].written:
            return WORDS
        return PATTERNS[1:] if KINDS[look.kind].patterned and look.size != "small" else ()

    def unposed(self, look: Look, crowded: bool) -> Look:
        return replace(look, pattern="plain", size="small" if crowded else None)

    def scenes(self, draft: Draft, tape: Tape, split: str, novel: bool) -> Sequence[Scene] | None:
        scenes: list[Scene] = []
        for side, relation in enumerate(draft.relations):
            scene = lay_out(SceneDraft(tuple(slot[side] for slot in draft.slots), relation), tape.replay())
            scene = settle(scene, split) if scene else None
            if scene is None or is_novel(Graph(scene)) != novel:
                return None
            scenes.append(scene)
        return scenes

    def graph(self, scene: Any) -> Graph:
        return Graph(scene)


DRAWINGS = Drawings()
