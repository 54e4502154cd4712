"""Geometry of a room: where things are, what the camera sees of them, and which relations hold.

The camera looks along y, so x points to the viewer's right. Left, right, in front and behind are
as the viewer sees them. Every verdict is True, False or None; it is None where people might disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from creperie.world.places import Verdict
from creperie.world.solid.meshes import turned
from creperie.world.solid.models import SCALES, SOLIDS, extent, parts_of
from creperie.world.solid.paints import NATURAL
from creperie.world.solid.scene import Room, Solid
from creperie.world.truth import Desc, and_

CENTIMETRES = 0.5  #: of a step of a position
DEGREES = 5  #: of a step of a turn
RASTER = 40  #: width and height of the identity picture
FULL = 256  #: least number of its pixels that things cover
VIEW = 25.0  #: field of view in degrees
WALL = {"table": 75.0, "room": 150.0}  #: distance of the wall behind


@cache
def _cloud(kind: str, state: str) -> np.ndarray:
    """Return points spread evenly over the surface of a thing at the origin."""
    quads = np.concatenate([patches.points for _, patches in parts_of(kind, state)])
    areas = np.linalg.norm(np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1]), axis=1) / 2
    steps = np.ceil(np.sqrt(areas / areas.sum() * 16000)).astype(int)
    found = []
    for n in np.unique(steps[steps > 0]):
        t = (np.arange(n) + 0.5) / n
        u, v = (a.ravel()[:, None] for a in np.meshgrid(t, t))
        q = quads[steps == n][:, None]
        found.append(
            (
                (1 - u) * (1 - v) * q[..., 0, :]
                + u * (1 - v) * q[..., 1, :]
                + u * v * q[..., 2, :]
                + (1 - u) * v * q[..., 3, :]
            ).reshape(-1, 3)
        )
    return np.concatenate(found)


def points_of(thing: Solid, step: int = 1) -> np.ndarray:
    """Return every `step`-th of the points on a thing's surface (see `_cloud`), with the thing at its position in the
    room.
    """
    matrix, at = pose_of(thing)
    return _cloud(thing.kind, thing.state)[::step] @ matrix.T + at


def pose_of(thing: Solid) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Return the matrix (turn and size) and the shift, in centimetres, that move a thing from the origin to its
    position.
    """
    at = thing.x * CENTIMETRES, thing.y * CENTIMETRES, thing.z * CENTIMETRES
    return turned("z", DEGREES * thing.turn) * SCALES[thing.size], at


@cache
def box_of(thing: Solid) -> tuple[float, ...]:
    """Return a thing's bounding box in centimetres: the smallest x, y and z, then the largest."""
    low, high = np.array(extent(thing.kind, thing.state)).reshape(2, 3)
    matrix, at = pose_of(thing)
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    moved = corners @ matrix.T + at
    return tuple(float(v) for v in (*moved.min(0), *moved.max(0)))


LEANING = 18  #: turn of a thing that leans to the left; to the right it is the opposite, and 0 is away


def leans(thing: Solid) -> bool:
    """Return whether a thing leans instead of standing upright, as a ladder and a closed umbrella do."""
    return thing.kind == "ladder" or (thing.kind, thing.state) == ("umbrella", "closed")


def contact(a: Solid, b: Solid, axis: int) -> tuple[float, float]:
    """Return how far `a` can move along an axis (0: to the right, 1: away from the camera) until it touches `b`, and
    the height above the ground of the point where they touch. The distance is infinite if `a` would pass `b` without
    touching it.
    """
    boxes = np.array([box_of(a), box_of(b)])
    cell = max(1.0, float((boxes[:, 3:] - boxes[:, :3]).max()) / 60)
    sides = []
    for thing, sign in ((a, 1), (b, -1)):
        points = points_of(thing)
        keys = np.floor(np.delete(points, axis, 1) / cell).astype(int) @ (4096, 1)
        cells, where = np.unique(keys, return_inverse=True)
        ends = np.full(len(cells), -np.inf)
        np.maximum.at(ends, where, sign * points[:, axis])
        sides.append((cells, ends))
    both, one, two = np.intersect1d(sides[0][0], sides[1][0], return_indices=True)
    if not len(both):
        return math.inf, 0.0
    gaps = -sides[0][1][one] - sides[1][1][two]
    first = int(gaps.argmin())
    return float(gaps[first]), float((both[first] + 2048) % 4096 - 2048) * cell


def camera_of(room: Room) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of the camera and the point at which it is aimed, in centimetres."""
    aim = np.array([room.aim_x, room.aim_y, room.aim_z]) * CENTIMETRES
    rise = math.radians(room.slope)
    return aim + room.away * CENTIMETRES * np.array([0, -math.cos(rise), math.sin(rise)]), aim


def project(points: np.ndarray, room: Room) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of points in the picture, from −1 to 1, as an array (2, n), and their depths along the view
    of the camera.
    """
    eye, aim = camera_of(room)
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    up = np.cross([1.0, 0, 0], ahead)
    ray = points - eye
    depth = ray @ ahead
    return np.stack([ray[:, 0], -(ray @ up)]) / np.maximum(depth, 1) / math.tan(math.radians(VIEW / 2)), depth


@dataclass(frozen=True, slots=True)
class Seen:
    """What the camera sees of a thing, measured in a small picture that records which thing is visible at each pixel.
    The fields are the visible fraction of the thing, the number of pixels that it covers, and whether the whole thing
    is inside the picture.
    """

    share: float
    pixels: int
    whole: bool


def look_at(room: Room) -> list[Seen]:
    """Return what the camera sees of each thing, by drawing a small picture that records the nearest thing at each
    pixel.
    """
    nearest = np.full(RASTER * RASTER, np.inf)
    spots = []
    for thing in room.things:
        across, depth = project(points_of(thing), room)
        whole = bool((np.abs(across) < 0.93).all())
        cell = np.clip(((across + 1) / 2 * RASTER).astype(int), 0, RASTER - 1)
        pixels, where = np.unique(cell[1] * RASTER + cell[0], return_inverse=True)
        own = np.full(len(pixels), np.inf)
        np.minimum.at(own, where, depth)
        nearest[pixels] = np.minimum(nearest[pixels], own)
        spots.append((pixels, own, whole))
    return [
        Seen(float((own <= nearest[pixels] * 1.004 + 0.3).mean()), len(pixels), whole) for pixels, own, whole in spots
    ]


class RoomGraph:
    """The scene graph of a room: all relations between its things, computed from their positions."""

    action = ""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.things, self.setting = room.things, room.setting
        self.boxes = [box_of(thing) for thing in room.things]

    @cached_property
    def seen(self) -> list[Seen]:
        return look_at(self.room)

    def holds(self, relation: str, args: tuple[int, ...]) -> Verdict:
        """Return whether the relation holds between the things with these indices; None if that is undecided."""
        if relation == "depth":
            return and_(self.holds("front", args[:2]), self.holds("front", args[1:]))
        if relation == "between":
            return self._between(*args)
        back = _BACK.get(relation)
        return getattr(self, f"_{back}")(args[1], args[0]) if back else getattr(self, f"_{relation}")(*args)

    def _chain(self, k: int) -> list[int]:
        """Return the index of the thing on or in which a thing stands, then of the thing below that, and so on down to
        the ground.
        """
        found = []
        while self.things[k].base:
            k = self.things[k].base - 1
            found.append(k)
        return found

    def _level(self, a: int, b: int) -> bool:
        """Return whether two things stand on the same thing or both stand on the ground."""
        one, two = self.things[a], self.things[b]
        return one.base == two.base and not one.inside and not two.inside and _mounted(one) == _mounted(two)

    def _apart(self, a: int, b: int) -> tuple[float, float, float, float]:
        """Return four distances: how far the middle of `a` is to the right of the middle of `b`, how far it is behind
        it, and the gaps between the two things in x and in y.
        """
        x, y = self.boxes[a], self.boxes[b]
        across, deep = ((x[k] + x[k + 3] - y[k] - y[k + 3]) / 2 for k in (0, 1))
        gaps = [max(y[k] - x[k + 3], x[k] - y[k + 3]) for k in (0, 1)]
        return across, deep, gaps[0], gaps[1]

    def _left(self, a: int, b: int, axis: int = 0) -> Verdict:
        if not self._level(a, b):
            return False if {a, b} & {*self._chain(a), *self._chain(b)} else None
        across, deep, *gaps = self._apart(a, b)
        along, aside, gap = (deep, across, gaps[1]) if axis else (across, deep, gaps[0])
        if (along > 1 and gap > -1) or abs(along) * 6 < abs(aside):
            return False
        return True if along < 0 and gap > 0 and abs(along) > 1.6 * abs(aside) else None

    def _front(self, a: int, b: int) -> Verdict:
        return self._left(a, b, 1)

    def _on(self, a: int, b: int) -> Verdict:
        thing = self.things[a]
        if thing.base == b + 1:
            return None if thing.inside else True
        return None if b in self._chain(a) else False

    def _inside(self, a: int, b: int) -> Verdict:
        return self.things[a].inside if self.things[a].base == b + 1 else None if b in self._chain(a) else False

    def _under(self, a: int, b: int) -> Verdict:
        room = SOLIDS[self.things[b].kind].under
        x, y = self.boxes[a], self.boxes[b]
        if room is None or self.things[b].base or self.things[a].base:
            return None if a in self._chain(b) else False
        if all(y[k] <= x[k] and x[k + 3] <= y[k + 3] for k in (0, 1)):
            return x[5] < room * SCALES[self.things[b].size]
        return None if all(min(x[k + 3], y[k + 3]) > max(x[k], y[k]) for k in (0, 1)) else False

    def _above(self, a: int, b: int) -> Verdict:
        x, y = self.boxes[a], self.boxes[b]
        if x[2] < y[5]:
            return False
        if not _mounted(self.things[a]) or _mounted(self.things[b]):
            return None
        return True if self.boxes[b][0] < (x[0] + x[3]) / 2 < self.boxes[b][3] else None

    def _near(self, a: int, b: int) -> Verdict:
        if not self._level(a, b):
            return None
        _, _, gap_x, gap_y = self._apart(a, b)
        gap = math.hypot(max(gap_x, 0), max(gap_y, 0))
        x, y = self.boxes[a], self.boxes[b]
        width = max(x[3] - x[0], y[3] - y[0])
        beside = gap_x > 0 and gap_y < 0
        return True if gap < 0.4 * width and beside else False if gap > 1.6 * width else None

    def _touching(self, a: int, b: int) -> Verdict:
        if not self._level(a, b):
            return None
        across, _, *gaps = self._apart(a, b)
        one, two = (a, b) if across < 0 else (b, a)
        if gaps[0] < 1 and gaps[1] < 0 and abs(contact(self.things[one], self.things[two], 0)[0]) < 0.4:
            return True
        clear = {"table": 2.0, "room": 5.0}[self.room.setting]
        return False if gaps[0] > clear or gaps[1] > 2 * clear else None

    def _leaning(self, a: int, b: int) -> Verdict:
        one = self.things[a]
        if not leans(one):
            return False if self._touching(a, b) is False else None
        two = self.things[b]
        gap, height = contact(two, one, 0) if one.turn == LEANING else contact(one, two, 0 if one.turn else 1)
        if -0.3 < gap < 0.6:
            return True if height > 0.5 * (self.boxes[a][5] - self.boxes[a][2]) else None
        return False if gap > 5 else None

    def _between(self, a: int, b: int, c: int) -> Verdict:
        if not (self._level(a, b) and self._level(a, c)):
            return False if b in self._chain(a) or c in self._chain(a) else None
        sides = {self._left(b, a), self._left(a, c)}, {self._left(c, a), self._left(a, b)}
        if {True} in sides:
            return True
        return False if all(False in side for side in sides) and not self._stacked(a, b, c) else None

    def _stacked(self, a: int, b: int, c: int) -> bool:
        return any(self._front(i, a) is not False and self._front(a, j) is not False for i, j in ((b, c), (c, b)))

    def _taller(self, a: int, b: int) -> Verdict:
        heights = [self.boxes[k][5] - self.boxes[k][2] for k in (a, b)]
        if not self._level(a, b) or max(heights) < 1.3 * min(heights):
            return None
        return heights[0] > heights[1]

    def _bigger(self, a: int, b: int) -> Verdict:
        one, two = self.things[a], self.things[b]
        sizes = SCALES[one.size], SCALES[two.size]
        if one.kind != two.kind or max(sizes) < 1.5 * min(sizes):
            return None
        return sizes[0] > sizes[1]

    def _nearer(self, a: int, b: int) -> Verdict:
        _, deep, _, gap = self._apart(a, b)
        clear = {"table": 6.0, "room": 30.0}[self.room.setting]
        return None if not self._level(a, b) or abs(deep) < clear or gap < 0 else deep < 0

    def fits(self, desc: Desc, thing: Solid) -> Verdict:
        """Return whether a description fits a thing; None if undecided."""
        if desc.kind != thing.kind or (desc.pattern not in (None, thing.pattern or "plain")):
            return False
        if desc.state not in (None, thing.state):
            return False
        if desc.material and desc.material != thing.material:
            return False
        if desc.colour and not thing.colour:
            return None if desc.colour in _LIKE[thing.material] else False
        return desc.colour in (None, thing.colour)


_BACK = {
    "right": "left", "behind": "front", "below": "above", "shorter": "taller", "smaller": "bigger", "farther": "nearer",
}  # fmt: skip
#: Colours that things in the natural colour of a material may be said to have.
_LIKE = dict.fromkeys(("wood", "wicker", "clay", "cardboard"), ("brown", "orange", "yellow", "red")) | dict.fromkeys(
    ("metal", "glass"), ("white", "black", "green", "blue", "brown")
)
assert set(_LIKE) == set(NATURAL)


def _mounted(thing: Solid) -> bool:
    return "wall" in SOLIDS[thing.kind].place


def fits_in_view(seen: Sequence[Seen], things: Sequence[Solid]) -> bool:
    """Return whether all things can be seen well: each is wholly in the picture, large enough and not much hidden by
    others, and together they cover enough of the picture.
    """
    return sum(s.pixels for s in seen) >= FULL and all(
        s.whole and s.pixels >= (14 if t.inside else 28) and s.share >= (0.4 if t.inside else 0.87)
        for s, t in zip(seen, things)
    )
