"""Rooms as a kind of world (see `sample.Stage`): what solid things can look like, and how scenes are laid out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

from creperie.world.dice import Dice, Tape
from creperie.world.sample import Draft, Sampler, Stage, arity_of
from creperie.world.solid.arrange import backdrops, lay_out
from creperie.world.solid.models import SOLIDS
from creperie.world.solid.paints import COLOURS, NATURAL
from creperie.world.solid.scene import LIGHTS, PATTERNS, Room, Solid
from creperie.world.solid.space import RoomGraph
from creperie.world.splits import SHARES
from creperie.world.sprites import TABLES
from creperie.world.words import MATERIAL_WORDS

_KINDS = list(SOLIDS)
_SMALL = tuple(k for k in SOLIDS if "table" in SOLIDS[k].place)
_FREE = tuple(k for k in SOLIDS if "floor" in SOLIDS[k].place and "back" not in SOLIDS[k].place)
_BACK = tuple(k for k in SOLIDS if {"back", "wall"} & {*SOLIDS[k].place})
_BESIDE = ("left", "right", "front", "behind", "near")


def novel_colour(kind: str, colour: str) -> bool:
    """Return whether this combination of kind and colour is held out for the test split."""
    return bool(colour) and (_KINDS.index(kind) + list(COLOURS).index(colour)) % 5 == 0 and not SOLIDS[kind].colours


class Rooms(Stage):
    """The kind of world that consists of rooms. A solid thing has a colour (of its paint, wood, metal or glass), a
    pattern, and a state such as open, full or lit.
    """

    name = "3d"
    pools: ClassVar = {
        "small": _SMALL,
        "free": _FREE,
        "furniture": (*(k for k in _FREE if SOLIDS[k].top and k not in _SMALL), "shelf"),
        **TABLES["pools"],
    }

    def colours(self, kind: str, seen: bool) -> Sequence[str]:
        options = SOLIDS[kind].colours or [name for name in COLOURS if name != "brown"]  # too much like wood
        return [c for c in options if not (seen and novel_colour(kind, c))]

    def others(self, kinds: Sequence[str], setting: str, dice: Dice) -> list[str]:
        pool = _SMALL if setting == "table" else _FREE + _BACK
        return dice.shuffled([k for k in pool if k not in kinds])[: dice.between(1, 3)]

    def looks(self, kinds: Sequence[str], relation: str, setting: str, s: Sampler) -> list[Solid]:
        looks: list[Solid] = []
        for k, kind in enumerate(kinds):
            look = self.look(kind, setting, s, [x.colour for x in looks[: arity_of(relation)]])
            if relation == "inside" and k == 0:
                look = replace(look, size="small")
            elif relation == "inside" and kind in self.pools["boxes"]:
                look = replace(look, size="big", state="open" if kind == "box" else "empty")
            if relation == "leaning" and kind == "umbrella":
                look = replace(look, state="closed")
            if relation == "on" and kind == "book":
                look = replace(look, state="closed")
            looks.append(look)
        return looks

    def look(self, kind: str, setting: str, s: Sampler, used: Sequence[str] = (), plain: bool = False) -> Solid:
        """Return a thing of this kind with a random look. Its colour is not in `used`, unless the kind has no other
        colour. With `plain`, the thing is painted and has no pattern.
        """
        dice, model = s.dice, SOLIDS[kind]
        material = dice.pick([m for m in model.materials if m not in NATURAL] if plain else model.materials)
        colour = ""
        if material not in NATURAL:
            colour = dice.pick([c for c in s.colours(kind) if c not in used] or s.colours(kind))
        marked = not plain and _patterned(kind, material) and dice.chance(30)
        state = "open" if kind == "umbrella" else dice.pick(model.states) if model.states else ""
        size = "big" if "table" in model.place and setting == "room" else "medium"
        return Solid(kind, colour, material, dice.pick(PATTERNS[1:]) if marked else "", size, state)

    def painted(self, kinds: Sequence[str], s: Sampler) -> list[Solid]:
        looks = [self.look(kind, "table", s, plain=True) for kind in kinds]
        return [replace(look, state=(SOLIDS[look.kind].states or ("",))[0]) for look in looks]

    def as_kind(self, look: Solid, kind: str, s: Sampler, setting: str) -> Solid:
        new = replace(self.look(kind, setting, s), size=look.size)
        new = replace(new, pattern=look.pattern if _patterned(kind, new.material) else "")
        return replace(new, colour=look.colour) if new.colour and look.colour in s.colours(kind) else new

    def said(self, look: Solid, field: str) -> str:
        if field == "material":
            return look.material if look.material in MATERIAL_WORDS else ""
        if field == "colour" and (look.kind, look.state) == ("book", "open"):
            return ""  # only its pages are seen
        return "" if field == "size" or (field == "state" and look.kind == "umbrella") else str(getattr(look, field))

    def values(self, look: Solid, field: str, s: Sampler) -> Sequence[str]:
        model = SOLIDS[look.kind]
        if field == "colour":
            return s.colours(look.kind) if self.said(look, "colour") else ()
        if field == "pattern":
            return PATTERNS[1:] if _patterned(look.kind, look.material) else ()
        if field == "material":
            return [m for m in model.materials if m in MATERIAL_WORDS] if self.said(look, field) else ()
        return model.states if self.said(look, "state") else ()

    def allows(self, setting: str, relation: str, kinds: Sequence[str]) -> bool:
        beside = relation in _BESIDE and "framed picture" not in kinds
        return beside or super().allows(setting, relation, kinds)

    def scenes(self, draft: Draft, tape: Tape, split: str, novel: bool) -> Sequence[Room] | None:
        """Return both rooms of a draft, with the best-suited wall, ground and light for which both rooms fall into
        the split. With `novel`, both must show a combination of kind and colour that is held out from training;
        without it, neither may. Return None if there are no such rooms, or if the draft cannot be laid out.
        """
        rooms = lay_out(draft, tape)
        if rooms is None or any(any(novel_colour(x.kind, x.colour) for x in r.things) != novel for r in rooms):
            return None
        for (wall, ground), light in product(backdrops(rooms), range(LIGHTS)):
            moved = [replace(room, wall=wall, ground=ground, light=(room.light + light) % LIGHTS) for room in rooms]
            shares = [((zlib.crc32(room.code.encode()) * 0x9E3779B1) & 0xFFFFFFFF) >> 28 for room in moved]
            if all(share in SHARES[split] for share in shares):
                return moved
        return None

    def graph(self, scene: Any) -> RoomGraph:
        return RoomGraph(scene)


def _patterned(kind: str, material: str) -> bool:
    """Return whether a thing of this kind and material can have stripes, checks or spots."""
    return not SOLIDS[kind].plain and material in ("ceramic", "plastic", "cloth")


ROOMS = Rooms()
