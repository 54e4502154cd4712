"""The things of the world: what they can do, what can be done with them, and how big they are."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.world.drawings import EXTENT
from creperie.world.sprites import COLOURS as _RGB

CANVAS = 256  #: units across; pictures of any size show the same units


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing. Places on the drawing are in its own units (hundredths of its size)."""

    name: str
    animate: bool = False
    shoulder: tuple[int, int] | None = None  #: where its arm begins; None where it has none
    held: bool = False  #: can be held, carried, handed over
    moved: bool = False  #: can be pushed and pulled
    surface: tuple[int, int, int] | None = None  #: left, right and height of the place where things stand
    interior: tuple[int, int, int, int] | None = None  #: left, top, right, bottom of the inside
    patterned: bool = True  #: has room for stripes and spots
    foot: int = 70  #: width of what it stands on, in hundredths of its width


_ALL = (
    Kind("cat", animate=True, shoulder=(54, 66)),
    Kind("dog", animate=True, shoulder=(62, 60)),
    Kind("rabbit", animate=True, shoulder=(50, 74)),
    Kind("bear", animate=True, shoulder=(56, 64)),
    Kind("robot", animate=True, shoulder=(56, 58)),
    Kind("elephant", animate=True, shoulder=(66, 52), surface=(20, 46, 17)),
    Kind("bird", animate=True),
    Kind("fish", animate=True),
    Kind("turtle", animate=True, surface=(32, 52, 3)),
    Kind("ball", held=True, moved=True),
    Kind("box", held=True, moved=True, surface=(20, 76, 0), interior=(14, 13, 82, 79), patterned=False),
    Kind("cage", interior=(6, 26, 86, 80), patterned=False),
    Kind("tent", interior=(14, 20, 86, 94), patterned=False),
    Kind("car", moved=True, surface=(40, 58, 3)),
    Kind("tree"),
    Kind("house"),
    Kind("cup", held=True),
    Kind("star", held=True, foot=50),
    Kind("umbrella", held=True, foot=16),
    Kind("flower", held=True, foot=18),
    Kind("table", moved=True, surface=(20, 80, 0)),
    Kind("balloon", held=True, foot=10),
    Kind("boat", moved=True),
    Kind("mushroom", held=True, foot=36),
    Kind("apple", held=True),
    Kind("hat", held=True, surface=(36, 62, 1)),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
NAMES: tuple[str, ...] = tuple(KINDS)
COLOURS: tuple[str, ...] = tuple(_RGB)
PATTERNS: tuple[str, ...] = ("plain", "striped", "spotted")
SIZES: dict[str, int] = {"small": 64, "medium": 92, "big": 140}

ANIMATES = tuple(n for n in NAMES if KINDS[n].animate)
THINGS = tuple(n for n in NAMES if not KINDS[n].animate)
HANDED = tuple(n for n in NAMES if KINDS[n].shoulder)
HELD = tuple(n for n in NAMES if KINDS[n].held)
MOVED = tuple(n for n in NAMES if KINDS[n].moved)
SUPPORTS = tuple(n for n in NAMES if KINDS[n].surface)
CONTAINERS = tuple(n for n in NAMES if KINDS[n].interior)

#: Width and height in canvas units of every kind in every size.
MEASURES: dict[tuple[str, str], tuple[int, int]] = {
    (name, size): (EXTENT[name][0] * units // 100, EXTENT[name][1] * units // 100)
    for name in NAMES
    for size, units in SIZES.items()
}
