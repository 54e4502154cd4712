"""A scene: two or three things at their places, and at most one thing that one does to another.

A scene is small enough to be its own name. `scene.code` spells it, `decode` reads it back, and a picture whose file
is named so can be checked against its captions without any other record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from creperie.core import DataError
from creperie.world.kinds import COLOURS, KINDS, MEASURES, NAMES, PATTERNS, SIZES

ACTIONS = ("pushes", "pulls", "carries", "holds", "follows", "hands")
BACKDROPS = 64
_SIZE_NAMES = tuple(SIZES)
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: hard to misread, and the same in any letter case


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing: `x` is its middle and `y` its foot, in canvas units; `facing` is 1 (right) or −1 (left)."""

    kind: str
    colour: str
    pattern: str
    size: str
    x: int
    y: int
    facing: int = 1

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom."""
        width, height = MEASURES[self.kind, self.size]
        left = self.x - width // 2
        return left, self.y - height, left + width, self.y

    def spot(self, across: int, down: int) -> tuple[int, int]:
        """A point of the drawing, given in the drawing's hundredths, on the canvas."""
        left, top, right, _ = self.box
        units = SIZES[self.size]
        shift = across * units // 100
        return (left + shift if self.facing > 0 else right - shift), top + down * units // 100


@dataclass(frozen=True, slots=True)
class SceneEvent:
    """What one thing does to another: who, to what, and for `hands` to whom (indices of things)."""

    action: str
    roles: tuple[int, ...]


@dataclass(frozen=True)
class Scene:
    things: tuple[Thing, ...]
    event: SceneEvent | None = None
    backdrop: int = 0

    @cached_property
    def code(self) -> str:
        """The scene in some twenty letters.

        >>> cat, box = Thing("cat", "red", "plain", "medium", 60, 220), Thing("box", "blue", "plain", "small", 170, 224)
        >>> scene = Scene((cat, box))
        >>> scene.code, decode(scene.code) == scene
        ('1004ydsa82ne1000', True)
        """
        return encode(self)


_THING_BITS, _EVENT_BITS = 30, 9
_FIELDS = ((NAMES, 32), (COLOURS, 16), (PATTERNS, 4), (_SIZE_NAMES, 4))


def content_number(scene: Scene) -> int:
    """Everything but the backdrop, as one number."""
    number = len(scene.things) - 1
    for thing in scene.things:
        for (names, room), value in zip(_FIELDS, (thing.kind, thing.colour, thing.pattern, thing.size), strict=True):
            number = number * room + names.index(value)
        number = ((number * 256 + thing.x) * 256 + thing.y) * 2 + (thing.facing > 0)
    action, roles = 0, 0
    if scene.event:
        action = 1 + ACTIONS.index(scene.event.action)
        for role in (*scene.event.roles, 3)[:3]:
            roles = roles * 4 + role
    return (number * 8 + action) * 64 + roles


def shift_numbers(count: int) -> tuple[int, int]:
    """What one unit to the right and one unit down add to the number of a scene with so many things."""
    right = sum(1 << (_EVENT_BITS + _THING_BITS * k + 9) for k in range(count))
    return right, right >> 8


def encode(scene: Scene) -> str:
    number = content_number(scene) * BACKDROPS + scene.backdrop
    letters = ""
    while number:
        number, digit = divmod(number, 32)
        letters = _DIGITS[digit] + letters
    return letters


def decode(code: str) -> Scene:
    """The scene that a code spells; DataError where it spells none."""
    number = 0
    for letter in code:
        digit = _DIGITS.find(letter)
        if digit < 0:
            raise _not_a_scene(code)
        number = number * 32 + digit
    number, backdrop = divmod(number, BACKDROPS)
    number, roles = divmod(number, 64)
    number, action = divmod(number, 8)
    things: list[Thing] = []
    while number >= 4:
        number, thing = _pop_thing(number, code)
        things.append(thing)
    if number != len(things) - 1 or number not in (1, 2) or action > len(ACTIONS):
        raise _not_a_scene(code)
    event = None
    if action:
        cast = tuple(r for r in (roles // 16, roles // 4 % 4, roles % 4) if r != 3)
        event = SceneEvent(ACTIONS[action - 1], cast)
        if len(set(cast)) != (3 if event.action == "hands" else 2) or max(cast) >= len(things):
            raise _not_a_scene(code)
    scene = Scene(tuple(reversed(things)), event, backdrop)
    if scene.code != code:  # leading zeros, roles without an action
        raise _not_a_scene(code)
    return scene


def _pop_thing(number: int, code: str) -> tuple[int, Thing]:
    number, facing = divmod(number, 2)
    number, y = divmod(number, 256)
    number, x = divmod(number, 256)
    values: list[str] = []
    for names, room in reversed(_FIELDS):
        number, at = divmod(number, room)
        if at >= len(names):
            raise _not_a_scene(code)
        values.append(names[at])
    size, pattern, colour, kind = values
    return number, Thing(kind, colour, pattern, size, x, y, 1 if facing else -1)


def _not_a_scene(code: str) -> DataError:
    hint = "`creperie world make` names its pictures by their scenes"
    return DataError(f"{code!r} is not the name of a scene", hint=hint)


def surface_of(thing: Thing) -> tuple[int, int, int] | None:
    """Left, right and height of the place where things can stand on this one."""
    place = KINDS[thing.kind].surface
    if place is None:
        return None
    (x0, y), (x1, _) = thing.spot(place[0], place[2]), thing.spot(place[1], place[2])
    return min(x0, x1), max(x0, x1), y


def interior_of(thing: Thing) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of the inside of this thing."""
    place = KINDS[thing.kind].interior
    if place is None:
        return None
    (x0, y0), (x1, y1) = thing.spot(place[0], place[1]), thing.spot(place[2], place[3])
    return min(x0, x1), y0, max(x0, x1), y1
