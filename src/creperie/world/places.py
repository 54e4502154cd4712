"""How two things are placed relative to each other, and which words are then true, false, or better left unsaid.

The geometry gives every ordered pair one *place* (`LEFT`, `ON`, …). A table then says for every spatial word whether
it is true there (1), false (0) or undecided (2). Borderline places are undecided for every word that a person could
defend, so neither a true caption nor a foil is ever made of them. Left and right are the viewer's. "In front of" and
"behind" are the viewer's too, by what hides what; beside something with a front of its own they are undecided.
"""

from __future__ import annotations

from collections.abc import Sequence

from creperie.world.kinds import KINDS, MEASURES
from creperie.world.scene import SceneEvent, Thing, interior_of, surface_of
from creperie.world.sprites import TABLES

Verdict = bool | None

SPATIAL = ("left", "right", "above", "below", "inside", "on", "front", "behind")
#: place of a to b → verdict of each word of SPATIAL about (a, b)
_TABLE: dict[str, str] = TABLES["places"]
_VERDICT: dict[str, Verdict] = {"0": False, "1": True, "2": None}
TABLE: dict[str, dict[str, Verdict]] = {
    place: {word: _VERDICT[v] for word, v in zip(SPATIAL, row.split(), strict=True)} for place, row in _TABLE.items()
}
CONTACT = frozenset({"IN", "AROUND", "ON", "UNDER", "FRONT", "BEHIND", "CARRIED", "CARRYING", "HAND", "UNCLEAR"})
MIRROR = {"IN": "AROUND", "ON": "UNDER", "FRONT": "BEHIND", "CARRIED": "CARRYING", "HAND": "HAND", "UNCLEAR": "UNCLEAR"}

NEAR, NOT_NEAR = 18, 72  #: widest gap called near; narrowest that is surely not
FAR, NOT_FAR = 92, 56  #: narrowest gap called far; widest that is surely not
DEEP = 14  #: how much lower a foot must be for "in front of"

Box = tuple[int, int, int, int]


def pair_places(things: Sequence[Thing], event: SceneEvent | None) -> tuple[list[list[str]], list[list[int]]]:
    """The place of every thing relative to every other, and the squared gap between them (0 where they touch)."""
    n = len(things)
    boxes = [thing.box for thing in things]
    places = [[""] * n for _ in range(n)]
    gaps = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            place, gap = _place(things, boxes, i, j, event)
            places[i][j], places[j][i] = place, _BACK[place]
            gaps[i][j] = gaps[j][i] = gap
    return places, gaps


_OPPOSITE = {"LEFT": "RIGHT", "RIGHT": "LEFT", "ABOVE": "BELOW", "BELOW": "ABOVE"}
_BACK = {**MIRROR, **{b: a for a, b in MIRROR.items()}}
_BACK.update({p: " ".join(_OPPOSITE[w] for w in p.split()) for p in TABLE if p.split()[0] in _OPPOSITE})


def _place(things: Sequence[Thing], boxes: list[Box], i: int, j: int, event: SceneEvent | None) -> tuple[str, int]:
    if event is not None and event.action in ("carries", "holds", "hands"):
        agent, patient = event.roles[:2]
        if {i, j} == {agent, patient}:
            if event.action != "carries":
                return "HAND", 0
            return ("CARRYING" if i == agent else "CARRIED"), 0
    a, b = boxes[i], boxes[j]
    gap_x = max(b[0] - a[2], a[0] - b[2])
    gap_y = max(b[1] - a[3], a[1] - b[3])
    if gap_x < 3 and gap_y < 3:
        return _touching(things[i], things[j], a, b, gap_x, gap_y), 0
    return _apart(a, b, gap_x, gap_y), max(gap_x, 0) ** 2 + max(gap_y, 0) ** 2


def _apart(a: Box, b: Box, gap_x: int, gap_y: int) -> str:
    """Level or upright neighbours share at least half of the smaller one's height or width; others lie askew."""
    if gap_x >= 6 and -2 * gap_y >= min(a[3] - a[1], b[3] - b[1]):
        return "LEFT" if a[2] <= b[0] else "RIGHT"
    if gap_y >= 8 and -2 * gap_x >= min(a[2] - a[0], b[2] - b[0]):
        return "ABOVE" if a[3] <= b[1] else "BELOW"
    side = "LEFT" if a[0] + a[2] < b[0] + b[2] else "RIGHT"
    level = "ABOVE" if a[1] + a[3] < b[1] + b[3] else "BELOW"
    return f"{side} {level}"


def _touching(a: Thing, b: Thing, box_a: Box, box_b: Box, gap_x: int, gap_y: int) -> str:
    if _within(box_a, interior_of(b)):
        return "IN"
    if _within(box_b, interior_of(a)):
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
    place = surface_of(b)
    return place is not None and abs(a.y - place[2]) <= 1 and place[0] <= a.x <= place[1]


def _covers(front: Thing, back: Thing, box_f: Box, box_b: Box, gap_x: int, gap_y: int) -> bool:
    """The nearer thing stands clearly lower and hides a good part of the other, but not most of it."""
    width, height = MEASURES[back.kind, back.size]
    hidden = -gap_x * -gap_y * 100 if gap_x < 0 and gap_y < 0 else 0
    tall = MEASURES[front.kind, front.size][1]
    return front.y - back.y >= DEEP and 15 <= hidden // (width * height) <= 55 and box_f[1] < back.y - tall // 4


def has_front(thing: Thing) -> bool:
    """Does it have a face, or a bonnet: can one stand before it from its own point of view?"""
    return KINDS[thing.kind].animate or thing.kind in ("car", "boat", "house")


def spatial(word: str, place: str, gap: int, a: Thing, b: Thing) -> Verdict:
    """Is the word true of two things that lie so? Converse words agree: front of (a, b) is behind of (b, a)."""
    if word in ("front", "behind") and place not in CONTACT and place not in ("ABOVE", "BELOW"):
        return None if has_front(a) or has_front(b) else False
    if word == "near":
        if place in CONTACT:
            return None
        return True if gap <= NEAR * NEAR else False if gap >= NOT_NEAR * NOT_NEAR else None
    if word == "far":
        if place in CONTACT:
            return False
        return True if gap >= FAR * FAR else False if gap <= NOT_FAR * NOT_FAR else None
    return TABLE[place][word]


def is_animate(thing: Thing) -> bool:
    return KINDS[thing.kind].animate
