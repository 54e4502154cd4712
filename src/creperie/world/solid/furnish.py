"""The surroundings of things: walls, windows, floors, table tops and rugs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from creperie.world.solid.arrange import degrees_of
from creperie.world.solid.meshes import TILE, Patches, build, grid, joined, turned
from creperie.world.solid.models import DRESSING, dressing_of
from creperie.world.solid.paints import RUGS, Surface, lab, large_look, surface
from creperie.world.solid.scene import Room
from creperie.world.solid.space import VIEW, WALL, camera_of, points_of, project


def plane(corner: tuple[float, ...], u: tuple[float, ...], v: tuple[float, ...]) -> Patches:
    a, u_, v_ = (np.array(p, float) for p in (corner, u, v))
    points = np.array([[a, a + u_, a + u_ + v_, a + v_]])
    normal = np.cross(u_, v_) / np.linalg.norm(np.cross(u_, v_))
    wide, high = np.linalg.norm(u_) / TILE, np.linalg.norm(v_) / TILE
    return Patches(points, np.broadcast_to(normal, (1, 4, 3)), np.array([[[0, 0], [wide, 0], [wide, high], [0, high]]]))


def _copies(piece: Patches, shifts: Sequence[Sequence[float]]) -> Patches:
    """Return a copy of a piece for each shift."""
    points = np.concatenate([piece.points + np.asarray(shift) for shift in shifts])
    return Patches(points, np.tile(piece.normals, (len(shifts), 1, 1)), np.tile(piece.uv, (len(shifts), 1, 1)))


def surroundings(room: Room) -> list[tuple[Patches, Surface]]:
    """Return the surfaces around the things: the ground or table with a rug or runner on it, and the wall with its
    panels and skirting board. They are not parallel to the picture, unless a thing hangs on the wall or leans on it.
    """
    swing = _swing(room)
    return [(patches.moved(*swing), look) for patches, look in _walls_and_ground(room)]


@lru_cache(8)
def _swing(room: Room) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the shift that turn the surroundings around the point at which the camera is aimed."""
    aim, matrix = camera_of(room)[1], turned("z", degrees_of(room))
    return matrix, aim - matrix @ aim


@lru_cache(8)
def _boxes(room: Room) -> list[tuple[float, ...]]:
    """Return the things' bounding boxes (see `box_of`) along the axes of the surroundings."""
    matrix, shift = _swing(room)
    found = [(points_of(thing, 4) - shift) @ matrix for thing in room.things]
    return [(*points.min(0), *points.max(0)) for points in found]


def _walls_and_ground(room: Room) -> list[tuple[Patches, Surface]]:
    back, wide, table = WALL[room.setting], 1400.0, room.setting == "table"
    paper = large_look("walls", room.wall, 14)
    below = large_look("grounds", room.ground, 10 if table else 24)
    window, opening = _window(room)
    parts = [*((piece, paper) for piece in _wall(back, wide, opening)), *window, *_dressing(room, opening)]
    if table:
        look = replace(below, texture=_TOPS[below.texture])
        if look.texture == "large gingham":
            look = replace(look, rgb=(128, 146, 124))
        front, edge = _front_edge(room), 0.35  # rounded a little
        outline = [(front, -3.2), (front, -edge), (front + edge, 0.0), (back, 0.0)]
        for (y, z), (y1, z1) in pairwise(outline):
            parts.append((plane((-250, y, z), (500, 0, 0), (0, y1 - y, z1 - z)), look))
        parts.append((plane((-wide / 2, -500, -72), (wide, 0, 0), (0, 500 + back, 0)), Surface((116, 98, 84), 0.8)))
    else:
        parts.append((plane((-wide / 2, -500, 0), (wide, 0, 0), (0, 500 + back, 0)), below))
    if room.things and (room.wall + room.ground) % 3 in ((1,) if table else (1, 2)):
        parts += _rug(room)
    if table and room.wall % 2:
        tiles = large_look("walls", 7, 6)
        parts.append((plane((-wide / 2, back - 0.4, 0), (wide, 0, 0), (0, 0, 13)), replace(tiles, rgb=(214, 208, 196))))
        rail = [((0, back - 1.2, 12.6), (0, 0, 1.4)), ((0, back - 1.2, 14), (0, 1.2, 0))]
        parts += [(plane((-wide / 2, y, z), (wide, 0, 0), up), _PAINT) for (_, y, z), up in rail]
    if not table:
        parts += _at_wall("skirting board", 0, back) + ([] if room.wall % 2 else _at_wall("panels", 0, back))
    return parts


#: Floors, and what table tops are made of instead.
_TOPS = {
    "large planks": "large board", "large tiles": "large stone", "large parquet": "large gingham",
    "large checker": "large marble", "large terracotta": "large board",
}  # fmt: skip


_PAINT = Surface((222, 216, 204), 0.4)


def _wall(back: float, wide: float, opening: tuple[float, ...]) -> list[Patches]:
    """Return a wall with an opening. `opening` holds the opening's smallest x and z, then its largest x and z. `back`
    is the wall's y position, and `wide` its width.
    """
    x0, z0, x1, z1 = opening
    left, top = -wide / 2, 600.0
    pieces = [(left, 0, x0, top), (x1, 0, -left, top), (x0, 0, x1, z0), (x0, z1, x1, top)]
    made = [(plane((a, back, z), (b - a, 0, 0), (0, 0, high - z)), (a - left, z)) for a, z, b, high in pieces]
    return [Patches(p.points, p.normals, p.uv + np.array(at) / TILE) for p, at in made]


def _window(room: Room) -> tuple[list[tuple[Patches, Surface]], tuple[float, ...]]:
    """Return the parts of a window with a curtain, and the opening in the wall for it (see `_wall`). The window is
    beside the things that hang on the wall or stand at it. If the wall has no space for a window, return no parts and
    a small opening far above the things.
    """
    back, table = WALL[room.setting], room.setting == "table"
    sill, high, half = (16.0, 60.0, 26.0) if table else (76.0, 80.0, 36.0)
    eye, aim = camera_of(room)
    seen = (back - eye[1]) * math.tan(math.radians(VIEW / 2))
    taken = [box for box in _boxes(room) if box[4] > back - 30 and box[5] > sill]
    side = -1 if (room.wall + room.light) % 2 else 1
    for x in (aim[0] + side * 0.62 * seen, aim[0] - side * 0.62 * seen):
        if all(box[3] < x - half - 8 or box[0] > x + half + 8 for box in taken):
            break
    else:
        return [], (aim[0] - 1, 500, aim[0] + 1, 501)
    x0, x1, top = x - half, x + half, sill + high
    foot, rod = sill - 3 if table else 12.0, top + 9
    ends = [(x0 - 20, back - 8, rod), (x1 + 20, back - 8, rod)]
    bar = [build("tube", (0.9, x0 - 19, back - 8, rod, x1 + 19, back - 8, rod)), _copies(_KNOB, ends)]
    curtain = []
    for end, sign in ((x0, -1), (x1, 1)):
        bar.append(build("tube", (0.6, end + 16 * sign, back - 8, rod, end + 16 * sign, back, rod)))
        if any(box[0] < end + 15 * sign < box[3] for box in taken):
            continue
        at = np.linspace(-8, 8, 60) + end + 6 * sign
        wave = 1.3 * np.sin(at * 1.3) + 0.5 * np.sin(at * 2.9 + 1)
        folds = np.stack([at, back - 8 + wave, np.full(60, foot)], 1)
        curtain.append(grid(np.stack([folds, folds + (0, 0, rod - 1.4 - foot)])))
        bar.append(_copies(_RING, [(a, back - 8, rod - 0.5) for a in at[4::10]]))
    dyed = large_look("rugs", room.wall % RUGS, 1).rgb
    red, green, blue = (round(0.4 * a + 0.6 * b) for a, b in zip(dyed, (214, 204, 188)))
    cloth = Surface((red, green, blue), 0.9)  # paler than things
    parts = _at_wall(f"{room.setting} window", x, back)
    if curtain:
        parts += [(joined(curtain), cloth), (joined(bar), Surface((104, 80, 58), 0.4))]
    behind = [box for box in _boxes(room) if box[4] > back - 14]
    if not table and all(box[3] < x0 or box[0] > x1 for box in behind):
        parts += _at_wall("radiator", x, back)
    return parts, (x0, sill, x1, top)


_KNOB = build("ball", (0, 0, 0, 2, 2, 2))
_RING = build("arc", (0.3, 0, 0, 1.5, 1.5, 0, 360)).moved(turned("z", 90))


def _dressing(room: Room, window: tuple[float, ...]) -> list[tuple[Patches, Surface]]:
    """Return the parts of up to two decorations that stand at the wall, and up to two small ones that lie near the
    things, in places where no thing hides them. Captions never name them.
    """
    first = room.aim_x + 3 * room.ground + 5 * room.wall
    share = 1.0 if room.setting == "table" else 0.3  # furniture may be behind the edge of a thing
    taken = [_outline(points_of(thing, 40), room) for thing in room.things]
    taken = [box.mean(0) + share * (box - box.mean(0)) for box in taken]
    made: list[tuple[Patches, Surface]] = []
    for place in (room.setting, f"{room.setting} top"):
        names, most = [name for name, piece in DRESSING.items() if piece["setting"] == place], len(taken) + 2
        for k in range(len(names)):
            parts = _piece(names[(first + k) % len(names)], room, window, taken) if len(taken) < most else []
            if not parts:
                continue
            made += parts
            points = np.concatenate([p.moved(*_swing(room)).points.reshape(-1, 3) for p, _ in parts])
            taken.append(_outline(points, room))
    return made


def _piece(
    name: str, room: Room, window: tuple[float, ...], taken: Sequence[np.ndarray]
) -> list[tuple[Patches, Surface]]:
    """Return the parts of a decoration in a place where it overlaps none of the rectangles `taken` in the picture;
    empty if there is no such place.
    """
    back, (eye, aim), (matrix, shift) = WALL[room.setting], camera_of(room), _swing(room)
    half, deep = DRESSING[name]["half"], DRESSING[name]["deep"]
    rows = [back] if DRESSING[name]["setting"] == room.setting else [_front_edge(room) + deep for deep in (22, 11, 33)]
    seen = (back - eye[1]) * math.tan(math.radians(VIEW / 2))
    there = [(box[0], box[3]) for box in _boxes(room) if box[4] > back - deep - 2]
    there += [(window[0] - 20, window[2] + 20)] if "wall" in DRESSING[name] else []
    points = np.concatenate([patches.points.reshape(-1, 3)[::7] for _, patches in dressing_of(name)])
    for y, share in product(rows, (-0.55, 0.55, -0.7, 0.7, -0.35, 0.35, -0.95, 0.95)):
        x = aim[0] + (share if room.wall % 2 else -share) * seen
        if y == back and any(left - half < x < right + half for left, right in there):
            continue
        low, high = _outline((points + (x, y, 0)) @ matrix.T + shift, room)
        whole = np.abs([low, high]).max() < 0.98 or (room.setting == "room" and "rise" not in DRESSING[name])
        if whole and all((np.maximum(low, other[0]) > np.minimum(high, other[1])).any() for other in taken):
            return _at_wall(name, x, y)
    return []


def _at_wall(name: str, x: float, back: float) -> list[tuple[Patches, Surface]]:
    return [(p.moved(np.eye(3), (x, back, 0)), surface(paint, "", "", "")) for paint, p in dressing_of(name)]


def _outline(points: np.ndarray, room: Room) -> np.ndarray:
    """Return a rectangle around points in the picture: its two smallest coordinates, then its two largest."""
    places, _ = project(points, room)
    return np.stack([places.min(1) - 0.02, places.max(1) + 0.02])


def _front_edge(room: Room) -> float:
    """Return the y position of the table's front edge: just inside the picture, and nearer to the camera than all
    things.
    """
    eye, aim = camera_of(room)
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    low = ahead - 0.92 * math.tan(math.radians(VIEW / 2)) * np.cross([1.0, 0, 0], ahead)
    seen = eye[1] - eye[2] / low[2] * low[1] if low[2] < 0 else math.inf
    return min([seen, *(box[1] - 1.5 for box in _boxes(room))])


def rug_looks() -> list[Surface]:
    return [large_look("rugs", k, 6.0) for k in range(RUGS)]


def _rug(room: Room) -> list[tuple[Patches, Surface]]:
    """Return a rug under the things in a room, or a runner on a table, in the colour that contrasts most with the
    things.
    """
    boxes = np.array(_boxes(room))
    things = np.array([lab(surface("main", x.colour, x.material, "").rgb) for x in room.things])
    best = max(rug_looks(), key=lambda rug: float(np.linalg.norm(things - lab(rug.rgb), axis=1).min()))
    (x0, y0), (x1, y1), table = boxes[:, :2].min(0), boxes[:, 3:5].max(0), room.setting == "table"
    border = 3.0 if table else 14.0
    x0, x1 = (-300.0, 300.0) if table else (x0 - 2 * border, x1 + 2 * border)
    y0, y1 = y0 - 2 * border, min(y1 + 2 * border, WALL[room.setting] - 4)
    y0 = max(y0, _front_edge(room) + 1) if table else y0
    red, green, blue = (round(0.75 * v) for v in best.rgb)
    trim = replace(best, rgb=(red, green, blue), texture="weave")
    thread = plane((0, 0, 0.06), (5, 0, 0), (0, 0.8, 0))
    fringe = _copies(thread, [(x, y, 0) for x in (x0 - 5, x1) for y in np.arange(y0, y1, 1.5)])
    inner = best if table else replace(best, texture="large kilim", tiles=20.0)
    stripes = [(0.0, best), (0.45 * border, trim), (0.75 * border, inner)]
    ends = [] if table else [(fringe, Surface((214, 202, 178), 0.9))]
    return ends + [
        (plane((x0 + s, y0 + s, 0.05 + 0.02 * k), (x1 - x0 - 2 * s, 0, 0), (0, y1 - y0 - 2 * s, 0)), look)
        for k, (s, look) in enumerate(stripes)
    ]
