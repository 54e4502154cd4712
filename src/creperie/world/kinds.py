"""The things of the world: what they can do, what can be done with them, and how big they are."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.world.drawings import EXTENT
from creperie.world.sprites import COLOURS as _RGB

CANVAS = 256  #: units across; pictures of any size show the same units


@dataclass(frozen=True, slots=True)
class ThingKind:
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
    ThingKind("cat", animate=True, shoulder=(54, 66)),
    ThingKind("dog", animate=True, shoulder=(62, 60)),
    ThingKind("rabbit", animate=True, shoulder=(50, 74)),
    ThingKind("bear", animate=True, shoulder=(56, 64)),
    ThingKind("robot", animate=True, shoulder=(56, 58)),
    ThingKind("elephant", animate=True, shoulder=(66, 52), surface=(20, 46, 17)),
    ThingKind("bird", animate=True),
    ThingKind("fish", animate=True),
    ThingKind("turtle", animate=True, surface=(32, 52, 3)),
    ThingKind("ball", held=True, moved=True),
    ThingKind("box", held=True, moved=True, surface=(20, 76, 0), interior=(14, 13, 82, 79), patterned=False),
    ThingKind("cage", interior=(6, 26, 86, 80), patterned=False),
    ThingKind("tent", interior=(14, 20, 86, 94), patterned=False),
    ThingKind("car", moved=True, surface=(40, 58, 3)),
    ThingKind("tree"),
    ThingKind("house"),
    ThingKind("cup", held=True),
    ThingKind("star", held=True, foot=50),
    ThingKind("umbrella", held=True, foot=16),
    ThingKind("flower", held=True, foot=18),
    ThingKind("table", moved=True, surface=(20, 80, 0)),
    ThingKind("balloon", held=True, foot=10),
    ThingKind("boat", moved=True),
    ThingKind("mushroom", held=True, foot=36),
    ThingKind("apple", held=True),
    ThingKind("hat", held=True, surface=(36, 62, 1)),
)
KINDS: dict[str, ThingKind] = {kind.name: kind for kind in _ALL}
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
