"""A drawn scene: two to eight things at their positions, and at most one action, which the first thing does.

A scene can be encoded in a short name: `scene.code` encodes it and `decode` reads it back. An image named after its
scene can therefore be checked against its captions without any other data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from creperie.core import DataError
from creperie.world.kinds import COLOURS, KINDS, MARKINGS, MEASURES, NAMES, SIZES

GIVING = ("hands", "throws")
ACTIONS = ("pushes", "pulls", "carries", "holds", "follows", *GIVING)
MOST = 8  #: maximum number of things in a scene
BACKDROPS = 64
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: hard to misread, and independent of letter case


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing in a drawn scene. `x` is its horizontal middle and `y` its lower end, in canvas units; `facing` is 1
    (right) or −1 (left).

    The `pattern` of a sign is the word that is written on it.
    """

    kind: str
    colour: str
    pattern: str
    size: str
    x: int
    y: int
    facing: int = 1

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The bounding box: left, top, right, bottom."""
        width, height = MEASURES[self.kind, self.size]
        left = self.x - width // 2
        return left, self.y - height, left + width, self.y

    def spot(self, across: int, down: int) -> tuple[int, int]:
        """Return the canvas position of a point of the thing's drawing. `across` and `down` locate the point in the
        drawing, in hundredths of the drawing's size.
        """
        left, top, right, _ = self.box
        units = SIZES[self.size]
        shift = across * units // 100
        return (left + shift if self.facing > 0 else right - shift), top + down * units // 100


@dataclass(frozen=True)
class Scene:
    """A drawn scene. If it has an action, the first thing acts on the second. If the action is giving, the first thing
    gives the second to the third.
    """

    things: tuple[Thing, ...]
    action: str = ""
    backdrop: int = 0

    @property
    def roles(self) -> tuple[int, ...]:
        """The indices of the things that take part in the action."""
        return tuple(range(participants(self.action)))

    @cached_property
    def code(self) -> str:
        """The scene encoded as text, about seven characters per thing.

        >>> cat, box = Thing("cat", "red", "plain", "medium", 60, 220), Thing("box", "blue", "plain", "small", 170, 224)
        >>> scene = Scene((cat, box))
        >>> scene.code, decode(scene.code) == scene
        ('8009wvjmg1aq0g0', True)
        """
        return spell_number(content_number(self) * BACKDROPS + self.backdrop)


def spell_number(number: int) -> str:
    """Return a number as letters and digits that are safe in a file name."""
    letters = ""
    while number:
        number, digit = divmod(number, 32)
        letters = _DIGITS[digit] + letters
    return letters


def read_number(letters: str, code: str) -> int:
    """Return the number that `letters` spell; raise a DataError that quotes `code` if they are not a number."""
    number = 0
    for letter in letters:
        digit = _DIGITS.find(letter)
        if digit < 0:
            raise _not_a_scene(code)
        number = number * 32 + digit
    return number


def participants(action: str) -> int:
    """Return how many things take part in an action."""
    return 3 if action in GIVING else 2 if action else 0


_FIELDS = ((NAMES, 32), (COLOURS, 16), (MARKINGS, 16), (tuple(SIZES), 4))


def content_number(scene: Scene) -> int:
    """Return one number that encodes everything in a scene except its backdrop."""
    number = len(scene.things) - 1
    for thing in scene.things:
        for (names, room), value in zip(_FIELDS, (thing.kind, thing.colour, thing.pattern, thing.size), strict=True):
            number = number * room + names.index(value)
        number = ((number * 256 + thing.x) * 256 + thing.y) * 2 + (thing.facing > 0)
    return number * 8 + ("", *ACTIONS).index(scene.action)


def decode(code: str) -> Scene:
    """Return the scene that a code encodes; raise a DataError if the code is not valid."""
    number, backdrop = divmod(read_number(code, code), BACKDROPS)
    number, action = divmod(number, 8)
    things: list[Thing] = []
    while number >= MOST:
        number, thing = _pop_thing(number, code)
        things.append(thing)
    scene = Scene(tuple(reversed(things)), ("", *ACTIONS)[action], backdrop)
    if number != len(things) - 1 or not max(2, len(scene.roles)) <= len(things) or scene.code != code:
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
    hint = "use images of `creperie world make`, which names them after their scenes"
    return DataError(f"{code!r} is not the name of a scene", hint=hint)


def area_of(thing: Thing, part: str) -> tuple[int, int, int, int] | None:
    """Return (left, top, right, bottom) of a part of a thing: its `surface`, on which things can stand, or its
    `interior`. None if the thing has no such part.
    """
    place = getattr(KINDS[thing.kind], part)
    if place is None:
        return None
    (x0, y0), (x1, y1) = thing.spot(*place[:2]), thing.spot(*place[2:])
    return min(x0, x1), y0, max(x0, x1), y1
