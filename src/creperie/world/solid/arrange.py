"""Layout of rooms: both scenes of a pair of twins at once, so that only what is claimed differs between them.

A draft has one slot per thing, with its look in each of the two scenes. A slot takes the room of the larger look, so
things that are exchanged, or change, leave all others where they are. Things stand on the ground, on or in another
thing, hang on the wall or lean against it; nothing overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.world.dice import Tape, TapeEnd
from creperie.world.solid.models import SCALES, SOLIDS
from creperie.world.solid.scene import Room, Solid
from creperie.world.solid.space import CENTIMETRES, VIEW, WALL, RoomGraph, box_of, fits_in_view, project
from creperie.world.truth import LogicalForm

Slot = tuple[Solid, Solid]
Box = tuple[float, ...]
#: setting → half the width of the ground that is used, its near and far end, gaps between things
_GROUND = {"table": (34, -24, 34, 2, 7), "room": (125, -70, 120, 8, 24)}
_BELOW = 0.08  #: how far below the middle of the picture the things are
_FAR = 1.6  #: of a front thing's gap, so that it hides less of what is behind


@dataclass(frozen=True, slots=True)
class RoomDraft:
    """A pair of rooms without places: the first slots stand in the relation of each scene; others are bystanders."""

    setting: str
    slots: tuple[Slot, ...]
    relations: tuple[str, str]
    forms: tuple[LogicalForm, LogicalForm]
    note: str
    base: LogicalForm | None = None
    tails: bool = True

    @property
    def arity(self) -> int:
        """The number of slots in the relation; 0 for a crowd."""
        return {"crowd": 0, "depth": 3, "between": 3}.get(self.relations[0], 2)


def lay_out(draft: RoomDraft, tape: Tape) -> tuple[Room, Room] | None:
    """Return both rooms; None if this tape of random numbers gives none that a camera sees well."""
    try:
        turns = [_turn(slot, tape) for slot in draft.slots]
        slots = [tuple(replace(look, turn=turn) for look in slot) for slot, turn in zip(draft.slots, turns)]
        hulls = [_hull([box_of(look) for look in slot]) for slot in slots]
        mains = _mains(draft, hulls, tape)
        if mains is None:
            return None
        slope, spare = tape.pick((14, 18, 22, 27)), 1.09 + tape.roll(10) / 100
        placed = [[_put(slots[k][side], spot) for k, spot in enumerate(mains[side])] for side in (0, 1)]
        for k in range(draft.arity, len(slots)):
            spot = _free_spot(draft.setting, slots[k], hulls[k], placed, tape)
            if spot is None:
                return None
            for side in (0, 1):
                placed[side].append(_put(slots[k][side], spot))
        look = tape.roll(8), tape.roll(8), tape.roll(4)
    except TapeEnd:
        return None
    rooms = _framed([Room(tuple(things), draft.setting, *look, slope) for things in placed], spare)
    if all(_sound(room) and fits_in_view(RoomGraph(room).seen, room.things) for room in rooms):
        return rooms[0], rooms[1]
    return None


def _framed(rooms: Sequence[Room], spare: float) -> list[Room]:
    """Return the rooms with one camera that sees all things of both, with some space around and above them."""
    boxes = [box_of(thing) for room in rooms for thing in room.things]
    corners = np.array([[x, y, z] for b in boxes for x in b[::3] for y in b[1::3] for z in b[2::3]])
    x, y, z = (corners.min(0) + corners.max(0)) / 2
    away = 600.0
    for _ in range(6):
        aims = {"aim_x": round(x / CENTIMETRES), "aim_y": round(y / CENTIMETRES), "aim_z": round(z / CENTIMETRES)}
        seen = [replace(room, **aims, away=min(2047, round(away))) for room in rooms]
        places, _ = project(corners, seen[0])
        low, high = places.min(1), places.max(1)
        half = away * CENTIMETRES * math.tan(math.radians(VIEW / 2))
        x += half * (low[0] + high[0]) / 2
        z = max(0.0, z - half * ((low[1] + high[1]) / 2 - _BELOW))
        away *= max(high[0] - low[0], high[1] - low[1] + 2 * _BELOW) / 2 * spare
    return seen


def _turn(slot: Slot, tape: Tape) -> int:
    return 0 if any(against_wall(look) for look in slot) else tape.between(-7, 7)


def against_wall(look: Solid) -> bool:
    """Return whether a thing hangs on the wall, leans against it or stands close to it."""
    return bool({"wall", "back"} & {*SOLIDS[look.kind].place}) or (look.kind, look.state) == ("umbrella", "closed")


def _hull(boxes: Sequence[Box]) -> Box:
    return tuple(f(values) for f, values in zip((min, min, min, max, max, max), zip(*boxes, strict=True)))


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in centimetres; `base` counts from 1."""

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


def _mains(draft: RoomDraft, hulls: Sequence[Box], tape: Tape) -> list[list[Spot]] | None:
    """Return the places of the things in the relation, in each of the two scenes."""
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
    for side, relation in enumerate(draft.relations):
        lower = draft.slots[1][side]
        spot = _beside(relation, hulls, anchor, lower, (gap, shift, left), setting)
        if spot is None:
            return None
        spots.append([spot, anchor])
    return spots


def _beside(
    relation: str, hulls: Sequence[Box], anchor: Spot, lower: Solid, chance: tuple[float, float, bool], setting: str
) -> Spot | None:
    """Return the place of the first thing relative to the second."""
    gap, shift, left = chance
    a, b = hulls[:2]
    scale, kind = SCALES[lower.size], SOLIDS[lower.kind]
    level = anchor.y + (b[1] + b[4] - a[1] - a[4]) / 2
    middle = anchor.x + (b[0] + b[3] - a[0] - a[3]) / 2
    if relation in ("taller", "bigger", "shorter", "smaller", "near"):
        relation, gap = ("left" if left else "right"), min(gap, 0.3 * (b[3] - b[0]))
    if relation == "left":
        return Spot(anchor.x + b[0] - a[3] - gap, level + shift)
    if relation == "right":
        return Spot(anchor.x + b[3] - a[0] + gap, level + shift)
    if relation == "front":
        return Spot(middle + shift, anchor.y + b[1] - a[4] - _FAR * gap)
    if relation == "behind":
        return Spot(middle + shift, anchor.y + b[4] - a[1] + _FAR * gap)
    if relation in ("nearer", "farther"):
        away = (2 if setting == "table" else 12) + gap
        side = anchor.x + b[0] - a[3] - gap if left else anchor.x + b[3] - a[0] + gap
        return Spot(side, anchor.y + b[1] - a[4] - away if relation == "nearer" else anchor.y + b[4] - a[1] + away)
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
    """Return three things in a row: from front to back, or side by side with the first between the others."""
    a, b, c = hulls[:3]
    if relation == "between":
        one, two = (b, c) if left else (c, b)
        sides = Spot(a[0] - one[3] - gap, shift), Spot(a[3] - two[0] + gap, -shift)
        return [Spot(0, 0), *(sides if left else sides[::-1])]
    step = _FAR * gap
    middle = Spot(0, 0)
    front, back = b[1] - a[4] - step, b[4] - c[1] + step
    slant = (0.28 if left else -0.28) + 0.1 * shift
    return [Spot(slant * front, front), middle, Spot(slant * back, back)]


def _free_spot(
    setting: str, slot: Sequence[Solid], hull: Box, placed: Sequence[Sequence[Solid]], tape: Tape
) -> Spot | None:
    """Return the most central of some places where a bystander has room in both scenes; None if none is found."""
    wide, near, far, low, _ = _GROUND[setting]
    taken = [box_of(thing) for things in placed for thing in things]
    middle = [(min(box[k] for box in taken) + max(box[k + 3] for box in taken)) / 2 if taken else 0.0 for k in (0, 1)]
    free = []
    for _ in range(14):
        x = wide * (tape.roll(1001) / 500 - 1)
        spot = Spot(x, near + (far - near) * tape.roll(1001) / 1000)
        if against_wall(slot[0]):
            high = 85 + tape.roll(25) if "wall" in SOLIDS[slot[0].kind].place else 0
            spot = Spot(x, _wall_y(setting, hull), high)
        box = tuple(v + s for v, s in zip(hull, (spot.x, spot.y, spot.z) * 2))
        if box[4] < WALL[setting] and all(_gap(box, other) >= low for other in taken):
            free.append(spot)
    return min(free, key=lambda spot: math.hypot(spot.x - middle[0], spot.y - middle[1]), default=None)


def _gap(a: Box, b: Box) -> float:
    return max(max(b[k] - a[k + 3], a[k] - b[k + 3]) for k in (0, 1, 2))


def _sound(room: Room) -> bool:
    """Return whether nothing pierces anything, and everything that stands on something has its middle on it."""
    boxes = [box_of(thing) for thing in room.things]
    for i, a in enumerate(room.things):
        if boxes[i][4] > WALL[room.setting] + 0.5:
            return False
        for j in range(i):
            b = room.things[j]
            hollow = SOLIDS[b.kind].under or SOLIDS[a.kind].under
            related = i + 1 == b.base or j + 1 == a.base
            if not related and not hollow and _gap(boxes[i], boxes[j]) < 0.4:
                return False
    return True
