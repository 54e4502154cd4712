"""The kinds of drawn things: what they can do, what can be done with them, and how big they are."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.world.sprites import COLOURS as _RGB
from creperie.world.sprites import EXTENT, WORDS
from creperie.world.sprites import THINGS as THINGS_DRAWN

CANVAS = 256  #: width and height in units; an image of any size shows the same units


@dataclass(frozen=True, slots=True)
class ThingKind:
    """A kind of drawn thing. Coordinates are in hundredths of the size of its drawing."""

    name: str
    animate: bool = False
    shoulder: tuple[int, int] | None = None  #: where its arm begins; None where it has none
    held: bool = False  #: can be held, carried, handed over
    moved: bool = False  #: can be pushed and pulled
    surface: tuple[int, int, int, int] | None = None  #: left and right end of the place where things stand
    interior: tuple[int, int, int, int] | None = None  #: left, top, right, bottom of the inside
    patterned: bool = True  #: has room for stripes and spots
    foot: int = 70  #: width of its base, in hundredths of its width
    floats: bool = False  #: stays in the air by itself
    written: bool = False  #: has a word on it


_DRAWN = ("extent", "parts", "front")
KINDS: dict[str, ThingKind] = {
    name: ThingKind(name, **{field: value for field, value in thing.items() if field not in _DRAWN})
    for name, thing in THINGS_DRAWN.items()
}
NAMES: tuple[str, ...] = tuple(KINDS)
COLOURS: tuple[str, ...] = tuple(_RGB)
PATTERNS: tuple[str, ...] = ("plain", "striped", "spotted")
MARKINGS: tuple[str, ...] = (*PATTERNS, *WORDS)  #: what can be on a thing: a pattern, or the word on a sign
SIZES: dict[str, int] = {"small": 64, "medium": 92, "big": 140}

UNWRITTEN = tuple(n for n in NAMES if not KINDS[n].written)
ANIMATES = tuple(n for n in NAMES if KINDS[n].animate)
HANDED = tuple(n for n in NAMES if KINDS[n].shoulder)
HELD = tuple(n for n in NAMES if KINDS[n].held)
MOVED = tuple(n for n in NAMES if KINDS[n].moved)
SUPPORTS = tuple(n for n in NAMES if KINDS[n].surface)
CONTAINERS = tuple(n for n in NAMES if KINDS[n].interior)

#: Width and height in canvas units, by kind and size.
MEASURES: dict[tuple[str, str], tuple[int, int]] = {
    (name, size): (EXTENT[name][0] * units // 100, EXTENT[name][1] * units // 100)
    for name in NAMES
    for size, units in SIZES.items()
}
