"""Spatial relations: how two things are placed relative to each other, and which spatial words are true of them.

The geometry gives every ordered pair of things one *place* (`LEFT`, `ON`, …). A table then says for each spatial word
whether it is true of that place (1), false (0) or undecided (2). A word is undecided at a borderline place where
people might disagree; it is then used neither in a true caption nor in a foil. Left and right are the viewer's. "In
front of" and "behind" are the viewer's too and depend on which thing hides the other; they are undecided for things
that have a front of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from creperie.world.kinds import KINDS, MEASURES
from creperie.world.scene import GIVING, Thing, area_of
from creperie.world.sprites import TABLES

Verdict = bool | None

SPATIAL = ("left", "right", "above", "below", "inside", "on", "front", "behind")
#: place of a relative to b → verdict of each word of SPATIAL on (a, b)
_VERDICT: dict[str, Verdict] = {"0": False, "1": True, "2": None}
TABLE: dict[str, dict[str, Verdict]] = {
    place: {word: _VERDICT[v] for word, v in zip(SPATIAL, row.split())} for place, row in TABLES["places"].items()
}
#: place of a relative to b → place of b relative to a, if they touch, and in general
_CONTACT: dict[str, str] = TABLES["contact"]
CONTACT = frozenset(_CONTACT)
_BACK: dict[str, str] = _CONTACT | TABLES["apart"]
LIFTING = ("carries", "holds", *GIVING)  #: actions in which the agent holds the patient, or just did

NEAR, NOT_NEAR = 18, 72  #: largest gap called near; smallest gap that is certainly not
FAR, NOT_FAR = 92, 56  #: smallest gap called far; largest gap that is certainly not
DEEP = 14  #: how much lower a foot must be for "in front of"
GROUND = 176  #: a thing whose foot is here or lower stands on the ground

Box = tuple[int, int, int, int]


def pair_places(things: Sequence[Thing], action: str) -> tuple[list[list[str]], list[list[int]]]:
    """Return two matrices with one row and one column per thing. Entry (i, j) of the first is the position of thing i
    relative to thing j, as a name such as LEFT or ABOVE. Entry (i, j) of the second is the squared distance between
    them, 0 if they touch.

    If the `action` of the scene is in `LIFTING` (such as carrying), the position of the first thing relative to the
    second is CARRYING or HAND, and their distance is 0.
    """
    n = len(things)
    boxes = [thing.box for thing in things]
    places = [[""] * n for _ in range(n)]
    gaps = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            place, gap = _place(things, boxes, i, j, action)
            places[i][j], places[j][i] = place, _BACK[place]
            gaps[i][j] = gaps[j][i] = gap
    return places, gaps


def _place(things: Sequence[Thing], boxes: list[Box], i: int, j: int, action: str) -> tuple[str, int]:
    if (i, j) == (0, 1) and action in LIFTING:
        return ("CARRYING" if action == "carries" else "HAND"), 0
    a, b = boxes[i], boxes[j]
    gap_x = max(b[0] - a[2], a[0] - b[2])
    gap_y = max(b[1] - a[3], a[1] - b[3])
    if gap_x < 3 and gap_y < 3:
        return _touching(things[i], things[j], a, b, gap_x, gap_y), 0
    return _apart(a, b, gap_x, gap_y), max(gap_x, 0) ** 2 + max(gap_y, 0) ** 2


def _apart(a: Box, b: Box, gap_x: int, gap_y: int) -> str:
    """Return where `a` is relative to `b`, for two things that do not touch. Two things are side by side (LEFT or
    RIGHT) if their vertical extents overlap by at least half of the smaller height. One is over the other (ABOVE or
    BELOW) if their horizontal extents overlap by at least half of the smaller width. Otherwise the result is a diagonal
    direction. If it would be ABOVE or BELOW but both things stand on the ground, one is only farther away, and the
    result is UNCLEAR.
    """
    if gap_x >= 6 and -2 * gap_y >= min(a[3] - a[1], b[3] - b[1]):
        return "LEFT" if a[2] <= b[0] else "RIGHT"
    if gap_y >= 8 and -2 * gap_x >= min(a[2] - a[0], b[2] - b[0]):
        if min(a[3], b[3]) >= GROUND:  # both stand on the ground, one further away
            return "UNCLEAR"
        return "ABOVE" if a[3] <= b[1] else "BELOW"
    side = "LEFT" if a[0] + a[2] < b[0] + b[2] else "RIGHT"
    level = "ABOVE" if a[1] + a[3] < b[1] + b[3] else "BELOW"
    return f"{side} {level}"


def _touching(a: Thing, b: Thing, box_a: Box, box_b: Box, gap_x: int, gap_y: int) -> str:
    if _within(box_a, area_of(b, "interior")):
        return "IN"
    if _within(box_b, area_of(a, "interior")):
        return "AROUND"
    if _stands_on(a, b):
        return "ON"
    if _stands_on(b, a):
        return "UNDER"
    if _covers(a, b, box_a, box_b, gap_x, gap_y):
        return "FRONT"
    if _covers(b, a, box_b, box_a, gap_x, gap_y):
        return "BEHIND"
    return "UNCLEAR"


def _within(box: Box, room: Box | None) -> bool:
    if room is None:
        return False
    return min(box[0] - room[0], box[1] - room[1], room[2] - box[2], room[3] - box[3]) >= -1


def _stands_on(a: Thing, b: Thing) -> bool:
    place = area_of(b, "surface")
    return place is not None and abs(a.y - place[1]) <= 1 and place[0] <= a.x <= place[2]


def _covers(front: Thing, back: Thing, box_f: Box, box_b: Box, gap_x: int, gap_y: int) -> bool:
    """Return whether the front thing stands clearly lower in the image than the back thing and hides 15 to 55 % of
    the back thing. `box_f` and `box_b` are their bounding boxes. `gap_x` and `gap_y` are the gaps between the boxes,
    negative where they overlap.
    """
    width, height = MEASURES[back.kind, back.size]
    hidden = -gap_x * -gap_y * 100 if gap_x < 0 and gap_y < 0 else 0
    tall = MEASURES[front.kind, front.size][1]
    return front.y - back.y >= DEEP and 15 <= hidden // (width * height) <= 55 and box_f[1] < back.y - tall // 4


def has_front(thing: Thing) -> bool:
    """Return whether a thing has a front of its own, such as a face or a bonnet."""
    return KINDS[thing.kind].animate or thing.kind in ("car", "boat", "house")


def spatial(word: str, place: str, gap: int, a: Thing, b: Thing) -> Verdict:
    """Return whether `a` is in the spatial relation `word` (such as "left") to `b`; None if that is undecided.
    `place` says where `a` is relative to `b` (such as LEFT), and `gap` is their squared distance.

    A word and its converse agree: `front` of (a, b) has the same verdict as `behind` of (b, a).
    """
    if word in ("front", "behind") and place not in CONTACT and place not in ("ABOVE", "BELOW"):
        return None if has_front(a) or has_front(b) else False
    if word == "near":
        if place in CONTACT or gap < NOT_NEAR * NOT_NEAR:  # "next to" does not mean overhead
            return True if place in ("LEFT", "RIGHT") and gap <= NEAR * NEAR else None
        return False
    if word == "far":
        if place in CONTACT:
            return False
        return True if gap >= FAR * FAR else False if gap <= NOT_FAR * NOT_FAR else None
    return TABLE[place].get(word)  # drawings do not decide what touches
