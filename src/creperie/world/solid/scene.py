"""Rooms: solid things at their positions, the surroundings and the camera. A room can be written as JSON or as a file
name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from creperie.core import DataError
from creperie.world.scene import read_number, spell_number
from creperie.world.solid.models import SCALES, SOLIDS
from creperie.world.solid.paints import COLOURS, MATERIALS

SETTINGS = ("table", "room")
PATTERNS = ("", "striped", "checked", "spotted")
WALLS, GROUNDS, LIGHTS = 8, 8, 4
PREFIX = "3d-"


@dataclass(frozen=True, slots=True)
class Solid:
    """A solid thing. `x` (to the right), `y` (away from the camera) and `z` (up) are in half centimetres, and `turn` is
    in steps of five degrees. `base` is the number of the thing that it stands on or in, counted from 1; 0 is the
    ground.
    """

    kind: str
    colour: str = ""  #: "" if it has the colour of its material
    material: str = "plastic"
    pattern: str = ""
    size: str = "medium"
    state: str = ""
    x: int = 0
    y: int = 0
    z: int = 0
    turn: int = 0
    base: int = 0
    inside: bool = False  #: in its base, not on it


@dataclass(frozen=True)
class Room:
    """Things on a table or in a room. `wall`, `ground` and `light` are numbers of walls, grounds and lights in
    paints.toml.

    The camera looks down at the point (`aim_x`, `aim_y`, `aim_z`) at an angle of `slope` degrees, from a distance of
    `away` half centimetres.
    """

    things: tuple[Solid, ...]
    setting: str = "table"
    wall: int = 0
    ground: int = 0
    light: int = 0
    slope: int = 30
    aim_x: int = 0
    aim_y: int = 0
    aim_z: int = 10
    away: int = 200

    def to_json(self) -> str:
        """Return the room as JSON. Positions are in half centimetres, turns in steps of five degrees."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Room:
        """Return the room that a JSON document describes; raise a DataError if it does not describe one."""
        try:
            fields = json.loads(text)
            room = cls(**{**fields, "things": tuple(Solid(**thing) for thing in fields["things"])})
            return read_room(room.code)
        except (TypeError, ValueError, KeyError, AttributeError) as e:
            raise DataError(
                f"is not the JSON of a scene in three dimensions ({e})",
                hint="use a line of scenes.jsonl, which `creperie world make --render 3d` writes",
            ) from None

    @cached_property
    def code(self) -> str:
        """The room encoded as text, with about twelve characters per thing."""
        number = 1
        for thing in self.things:
            for value, options in zip(_values(thing), _FIELDS, strict=True):
                number = number * len(options) + options.index(value)
        for value, options in zip(_look(self), _LOOK, strict=True):
            number = number * len(options) + options.index(value)
        return PREFIX + spell_number(number)


def _values(thing: Solid) -> tuple[object, ...]:
    own = thing.kind, thing.colour, thing.material, thing.pattern, thing.size
    states = ("", *SOLIDS[thing.kind].states)
    place = thing.x, thing.y, thing.z, thing.turn, thing.base, thing.inside
    return (*own, states.index(thing.state), *place)


def _look(room: Room) -> tuple[object, ...]:
    return room.setting, room.wall, room.ground, room.light, room.slope, room.aim_x, room.aim_y, room.aim_z, room.away


_FIELDS: tuple[Sequence[Any], ...] = (
    tuple(SOLIDS), ("", *COLOURS), tuple(MATERIALS), PATTERNS, tuple(SCALES), range(3),
    range(-512, 512), range(-512, 512), range(512), range(-36, 36), range(16), (False, True),
)  # fmt: skip
_LOOK: tuple[Sequence[Any], ...] = (
    SETTINGS, range(WALLS), range(GROUNDS), range(LIGHTS), range(90), range(-512, 512), range(-512, 512), range(512),
    range(2048),
)  # fmt: skip


def read_room(code: str) -> Room:
    """Return the room that a code encodes; raise a DataError if the code is not valid."""
    number = read_number(code.removeprefix(PREFIX), code)

    def values(fields: tuple[Sequence[Any], ...]) -> list[Any]:
        nonlocal number
        found = []
        for options in reversed(fields):
            number, at = divmod(number, len(options))
            found.append(options[at])
        return found[::-1]

    look = values(_LOOK)
    things: list[Solid] = []
    try:
        while number > 1:
            kind, colour, material, pattern, size, state, *place = values(_FIELDS)
            states = ("", *SOLIDS[kind].states)
            things.insert(0, Solid(kind, colour, material, pattern, size, states[state], *place))
        room = Room(tuple(things), *look)
    except IndexError:
        room = Room(())
    if number != 1 or not things or room.code != code:
        what = f"{code!r} is not the name of a scene in three dimensions"
        raise DataError(what, hint="name a picture that `creperie world make --render 3d` made")
    return room
