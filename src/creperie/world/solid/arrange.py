"""Layout of rooms. Both rooms of a pair of twins are laid out together, so that they differ only in what is claimed.

A draft has one slot per thing, which holds the thing's look in each of the two scenes. A slot is as wide as the larger
of its two looks, so a thing that changes or is exchanged does not move the others. Things stand on the ground, stand on
or in another thing, hang on the wall or lean against it; no two things overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from creperie.world.dice import Tape, TapeEnd
from creperie.world.sample import Draft
from creperie.world.solid.meshes import turned
from creperie.world.solid.models import SCALES, SOLIDS
from creperie.world.solid.paints import lab, large_look, surface
from creperie.world.solid.scene import GROUNDS, WALLS, Room, Solid
from creperie.world.solid.space import (
    CENTIMETRES,
    LEANING,
    VIEW,
    WALL,
    RoomGraph,
    box_of,
    camera_of,
    contact,
    fits_in_view,
    leans,
    points_of,
    project,
)

Box = tuple[float, ...]
#: setting → half the width of the ground that is used, its near and far end, gaps between things
_GROUND = {"table": (30, -20, 26, 2, 4), "room": (100, 0, 115, 5, 10)}
_FAR = 1.6  #: of a front thing's gap, so that it hides less of what is behind


def lay_out(draft: Draft, tape: Tape) -> tuple[Room, Room] | None:
    """Return both rooms, laid out with the random numbers of the tape; None if they lead to rooms that are not valid or
    that a camera cannot see well.
    """
    try:
        turns = [_turn(slot, tape) for slot in draft.slots]
        if "leaning" in draft.relations:
            turns[1] = 0
        slots = [tuple(replace(look, turn=turn) for look in slot) for slot, turn in zip(draft.slots, turns)]
        hulls = [_hull([box_of(look) for look in slot]) for slot in slots]
        mains = _mains(draft, slots, hulls, tape)
        if mains is None:
            return None
        slope, spare = tape.pick((15, 18, 21, 24)), 1.1 + tape.roll(4) / 100
        placed = [[_put(slots[k][side], spot) for k, spot in enumerate(mains[side])] for side in (0, 1)]
        if not all(_bring_into_contact(things, relation) for things, relation in zip(placed, draft.relations)):
            return None
        for k in range(draft.arity, len(slots)):
            spot = _free_spot(draft.setting, slots[k], hulls[k], placed, tape)
            if spot is None:
                return None
            for side in (0, 1):
                placed[side].append(_put(slots[k][side], spot))
        look = tape.roll(8), tape.roll(8), tape.roll(4)
    except TapeEnd:
        return None
    rooms = _with_one_camera([Room(tuple(things), draft.setting, *look, slope) for things in placed], spare)
    if all(_is_plausible(room) and fits_in_view(RoomGraph(room).seen, room.things) for room in rooms):
        return rooms[0], rooms[1]
    return None


def backdrops(rooms: Sequence[Room]) -> list[tuple[int, int]]:
    """Return the best backdrops as (number of the wall, number of the ground). The colours of the first one differ most
    from those of the things.
    """
    things = np.array([lab(surface("main", x.colour, x.material, "").rgb) for room in rooms for x in room.things])
    pairs = [((rooms[0].wall + k // GROUNDS) % WALLS, (rooms[0].ground + k) % GROUNDS) for k in range(WALLS * GROUNDS)]
    straight = not all(_may_be_seen_at_an_angle(room) for room in rooms)
    pairs = [(wall, ground) for wall, ground in pairs if ((wall + ground) % 2 == 0) == straight]

    def apart(pair: tuple[int, int]) -> float:
        colours = [lab(large_look(table, k, 1).rgb) for table, k in zip(("walls", "grounds"), pair)]
        return min(40.0, *(float(np.linalg.norm(things - colour, axis=1).min()) for colour in colours))

    return sorted(pairs, key=apart, reverse=True)[:14]


def degrees_of(room: Room) -> int:
    """Return the angle between the wall and the picture. It depends on nothing in which the two rooms of a pair
    differ.
    """
    return 0 if (room.wall + room.ground) % 2 == 0 else (9 + room.ground % 4 * 2) * (-1 if room.light % 2 else 1)


def _may_be_seen_at_an_angle(room: Room) -> bool:
    """Return False if a thing hangs on the wall or leans on it, or would reach the wall if this was turned."""
    aim, points = camera_of(room)[1], [points_of(thing, 40) - camera_of(room)[1] for thing in room.things]
    far = max(((p @ turned("z", angle))[:, 1].max() for p in points for angle in (-15, 15)), default=0)
    return not any(map(against_wall, room.things)) and bool(far + aim[1] < WALL[room.setting] - 9)


def _with_one_camera(rooms: Sequence[Room], spare: float) -> list[Room]:
    """Return the rooms, both with the same camera. The camera is placed so that the picture contains all things of both
    rooms, with some space around and above them. A larger `spare` moves the camera away and leaves more space.
    """
    points = np.concatenate([points_of(thing, 40) for room in rooms for thing in room.things])
    x, y, z = (points.min(0) + points.max(0)) / 2
    away = 600.0
    for _ in range(6):
        aim = dict(zip(("aim_x", "aim_y", "aim_z"), (round(v / CENTIMETRES) for v in (x, y, z))))
        seen = [replace(room, **aim, away=min(2047, round(away))) for room in rooms]
        places, _ = project(points, seen[0])
        low, high = places.min(1), places.max(1)
        below = 0.04 + 0.12 * max(0, 1.7 - high[1] + low[1])  # low things leave more room above than in front
        half = away * CENTIMETRES * math.tan(math.radians(VIEW / 2))
        x += half * (low[0] + high[0]) / 2
        z = max(0.0, z - half * ((low[1] + high[1]) / 2 - below))
        away *= max(high[0] - low[0], high[1] - low[1] + 2 * below) / 2 * spare
    return seen


def _turn(slot: Sequence[Solid], tape: Tape) -> int:
    return 0 if any(against_wall(look) for look in slot) else tape.between(-7, 7)


def against_wall(look: Solid) -> bool:
    """Return whether a thing hangs on the wall, leans against it or stands close to it."""
    return bool({"wall", "back"} & {*SOLIDS[look.kind].place}) or leans(look)


def _bring_into_contact(things: list[Solid], relation: str) -> bool:
    """If the relation is "touching" or "leaning", move the first thing sideways until it touches the second. Return
    False if the first thing cannot be made to touch, else True.
    """
    if relation not in ("touching", "leaning"):
        return True
    one, two = things[:2]
    side = 1 if one.x < two.x else -1
    if relation == "leaning":
        one = replace(one, turn=-side * LEANING)
    gap, _ = contact(*((one, two) if side > 0 else (two, one)), 0)
    if math.isfinite(gap):
        things[0] = replace(one, x=one.x + side * round(gap / CENTIMETRES))
    return math.isfinite(gap)


def _hull(boxes: Sequence[Box]) -> Box:
    return tuple(f(values) for f, values in zip((min, min, min, max, max, max), zip(*boxes, strict=True)))


@dataclass(frozen=True, slots=True)
class Spot:
    """A position in centimetres. `base` is the number of the thing that it is on or in, counted from 1; 0 is the
    ground.
    """

    x: float
    y: float
    z: float = 0
    base: int = 0
    inside: bool = False


def _put(look: Solid, spot: Spot) -> Solid:
    x, y, z = (round(v / CENTIMETRES) for v in (spot.x, spot.y, spot.z))
    return replace(look, x=x, y=y, z=z, base=spot.base, inside=spot.inside)


def _wall_y(setting: str, hull: Box) -> float:
    return WALL[setting] - hull[4] - 0.5


def _mains(draft: Draft, slots: Sequence[Sequence[Solid]], hulls: Sequence[Box], tape: Tape) -> list[list[Spot]] | None:
    """Return the positions of the things in the relation, as one list per scene; None if the things do not fit. A
    thing that is the same in both scenes has the same position in both. If both things are of another kind in the
    second scene, each scene is made as compact as possible. `hulls` has one box per thing, large enough for the
    thing's looks in both scenes.
    """
    if not draft.arity:
        return [[], []]
    setting = draft.setting
    wide, near, far, low, high = _GROUND[setting]
    gap = low + (high - low) * tape.roll(1000) / 1000
    x = wide * 0.45 * (tape.roll(1001) / 500 - 1)
    y = near + (far - near) * (0.35 + 0.4 * tape.roll(1001) / 1000)
    shift, left = tape.roll(1001) / 500 - 1, tape.coin()
    anchored = "above" in draft.relations or against_wall(draft.slots[1][0])
    anchor = Spot(x, _wall_y(setting, hulls[1]) if anchored and setting == "room" else y)
    if draft.relations[0] in ("depth", "between"):
        return [_row(draft.relations[0], hulls, gap, shift, left)] * 2
    spots = []
    exchanged = all(one.kind != two.kind for one, two in slots[:2])
    for side, relation in enumerate(draft.relations):
        lower = draft.slots[1][side]
        own = [box_of(slot[side]) for slot in slots[:2]] if exchanged else hulls
        spot = _beside(relation, own, anchor, lower, (gap, shift, left), setting)
        if spot is None:
            return None
        spots.append(_centred([spot, anchor], own, anchored))
    return spots


def _centred(spots: Sequence[Spot], hulls: Sequence[Box], anchored: bool) -> list[Spot]:
    """Move two things so that the point halfway between them lies where the second thing was, and return their new
    positions. A close camera can then see both scenes. If `anchored` is set, the things are moved only to the left or
    right. If the first thing is on, in or above something, neither is moved.
    """
    if spots[0].base or spots[0].z:
        return [*spots]
    x0, y0, _, x1, y1, _ = _hull([_at(hull, spot) for hull, spot in zip(hulls, spots)])
    x, y = (x0 + x1) / 2 - spots[1].x, 0 if anchored else (y0 + y1) / 2 - spots[1].y
    return [replace(spot, x=spot.x - x, y=spot.y - y) for spot in spots]


def _at(hull: Box, spot: Spot) -> Box:
    return tuple(v + s for v, s in zip(hull, (spot.x, spot.y, spot.z) * 2))


def _beside(
    relation: str, hulls: Sequence[Box], anchor: Spot, lower: Solid, chance: tuple[float, float, bool], setting: str
) -> Spot | None:
    """Return the position of the first thing if the second is at `anchor`; None if it does not fit. `lower` is the
    second thing, and `chance` holds the random gap, shift and side.
    """
    gap, shift, left = chance
    a, b = hulls[:2]
    scale, kind = SCALES[lower.size], SOLIDS[lower.kind]
    level = anchor.y + (b[1] + b[4] - a[1] - a[4]) / 2
    middle = anchor.x + (b[0] + b[3] - a[0] - a[3]) / 2
    if relation in ("taller", "bigger", "shorter", "smaller", "near"):
        relation, gap = ("left" if left else "right"), min(gap, 0.3 * (b[3] - b[0]))
    if relation in ("touching", "leaning"):
        relation, gap, shift = ("left" if left else "right"), 0.0, 0.3 * shift
    sides = {"left": anchor.x + b[0] - a[3] - gap, "right": anchor.x + b[3] - a[0] + gap}
    if relation in sides:  # a little askew, as far as neither is in front
        along = abs(sides[relation] + (a[0] + a[3]) / 2 - anchor.x - (b[0] + b[3]) / 2)
        return Spot(sides[relation], level + shift * min(0.5 * along, 0.4 * (a[4] - a[1] + b[4] - b[1])))
    if relation in ("front", "behind", "nearer", "farther"):
        beside = relation in ("nearer", "farther")
        step = (2 if setting == "table" else 12) + gap if beside else _FAR * gap
        deep = b[1] - a[4] - step if relation in ("front", "nearer") else b[4] - a[1] + step
        x = sides["left" if left else "right"] if beside else middle + (0.45 if left else -0.45) * deep
        return Spot(x, anchor.y + deep)
    if relation == "on" and kind.top and lower.state != "open":
        top, *room = (v * scale for v in kind.top)
        spare = [room[k] + 1 - (a[k + 3] - a[k]) / 2 for k in (0, 1)]
        if min(spare) < 0:
            return None
        return Spot(anchor.x + shift * min(spare[0], 8), anchor.y - (a[1] + a[4]) / 2, top, 2)
    if relation == "inside" and kind.inner and lower.state in ("", "open", "empty"):
        radius, floor, _ = (v * scale for v in kind.inner)
        return None if math.hypot(a[3] - a[0], a[4] - a[1]) / 2 > radius else Spot(anchor.x, anchor.y, floor, 2, True)
    if relation == "under" and kind.under and a[5] < kind.under * scale - 2:
        return Spot(middle + shift * 4, level)
    if relation == "above":
        return Spot(middle + 4 * shift, _wall_y(setting, a), b[5] + 12 + gap)
    return None


def _row(relation: str, hulls: Sequence[Box], gap: float, shift: float, left: bool) -> list[Spot]:
    """Return the positions of three things in a row: one behind the other for "depth", side by side with the first in
    the middle for "between".
    """
    a, b, c = hulls[:3]
    if relation == "between":
        one, two = (b, c) if left else (c, b)
        left_x, right_x = a[0] - one[3] - gap, a[3] - two[0] + gap
        sides = Spot(left_x, 0.45 * shift * abs(left_x)), Spot(right_x, 0.45 * shift * right_x)
        return [Spot(0, 0), *(sides if left else sides[::-1])]
    step = _FAR * gap
    middle = Spot(0, 0)
    front, back = b[1] - a[4] - step, b[4] - c[1] + step
    slant = (0.28 if left else -0.28) + 0.1 * shift
    return [Spot(slant * front, front), middle, Spot(slant * back, back)]


def _free_spot(
    setting: str, slot: Sequence[Solid], hull: Box, placed: Sequence[Sequence[Solid]], tape: Tape
) -> Spot | None:
    """Return a position for a bystander that is free in both scenes and at which it hides little of the other things;
    None if there is none. If there are several, the one that makes the picture narrowest is returned.
    """
    wide, near, far, low, high = _GROUND[setting]
    taken = [box_of(thing) for things in placed for thing in things] or [(0.0, (near + far) / 2, 0.0) * 2]
    x0, y0, _, x1, y1, _ = _hull(taken)
    first, gap = 2 * math.pi * tape.roll(1000) / 1000, low + (high - low) * tape.roll(1000) / 1000
    back, up = against_wall(slot[0]), 85 + tape.roll(25) if "wall" in SOLIDS[slot[0].kind].place else 0
    best, least = None, math.inf
    for k in range(160):
        out, way = math.sqrt(k / 160), first + 2.4 * k
        x = (x0 + x1) / 2 + 1.4 * wide * out * math.cos(way)
        y = _wall_y(setting, hull) if back else (y0 + y1) / 2 + (far - near) * out * math.sin(way)
        box = _at(hull, Spot(x, y, up))
        free = abs(x) < wide and (back or near < y < far) and box[4] < WALL[setting]
        width = _width([*taken, box]) if free else math.inf
        if width < least and all(_gap(box, other) >= gap and not _hides(box, other) for other in taken):
            best, least = Spot(x, y, up), width
    return best


def _width(boxes: Sequence[Box]) -> float:
    """Return the approximate width, in centimetres, that a picture of all boxes must have. A long row needs more than a
    compact group.
    """
    x0, _, _, x1, _, _ = _hull(boxes)
    up = max(0.4 * box[4] + 0.9 * box[5] for box in boxes) - min(0.4 * box[1] + 0.9 * box[2] for box in boxes)
    return max(x1 - x0, up) + 0.3 * min(x1 - x0, up)


def _hides(a: Box, b: Box) -> bool:
    """Return whether the nearer of two things hides much of the other."""
    front, back = (a, b) if a[1] + a[4] < b[1] + b[4] else (b, a)
    across = min(a[3], b[3]) - max(a[0], b[0])
    up = front[5] - 0.27 * (back[4] - front[4]) - back[2]
    return across > 0.04 * (back[3] - back[0]) and up > 0.04 * (back[5] - back[2])


def _gap(a: Box, b: Box) -> float:
    return max(max(b[k] - a[k + 3], a[k] - b[k + 3]) for k in (0, 1, 2))


def _is_plausible(room: Room) -> bool:
    """Return whether the room is physically plausible: things do not reach through the wall and do not intersect."""
    boxes = [box_of(thing) for thing in room.things]
    return all(box[4] <= WALL[room.setting] + 0.5 for box in boxes) and all(
        i + 1 == b.base
        or j + 1 == a.base
        or SOLIDS[a.kind].under
        or SOLIDS[b.kind].under
        or _gap(boxes[i], boxes[j]) >= 0.4
        or max(contact(*pair, axis)[0] for pair in ((a, b), (b, a)) for axis in (0, 1)) > -0.3
        for (i, a), (j, b) in combinations(enumerate(room.things), 2)
    )
