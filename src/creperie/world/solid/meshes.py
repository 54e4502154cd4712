"""Meshes of things: four-sided patches with normals and texture coordinates, built from the parts in models.toml."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

TILE = 4.0  #: texture coordinates count in tiles of this many centimetres
_CREASE = math.cos(math.radians(50))
Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Patches:
    """Quadrilaterals: their corners and normals (n, 4, 3), and their texture coordinates (n, 4, 2)."""

    points: np.ndarray
    normals: np.ndarray
    uv: np.ndarray

    def moved(self, matrix: np.ndarray, shift: Numbers | np.ndarray = (0, 0, 0)) -> Patches:
        """Return the patches after a linear map (turning, mirroring or scaling) and then a shift."""
        if np.array_equal(matrix, np.eye(3)):
            return Patches(self.points + np.asarray(shift, float), self.normals, self.uv)
        normals = self.normals @ np.linalg.inv(matrix)
        normals /= np.sqrt(np.maximum(np.einsum("nij,nij->ni", normals, normals), 1e-18))[..., None]
        return Patches(self.points @ matrix.T + np.asarray(shift, float), normals, self.uv)

    def split(self, widest: float) -> Patches:
        """Return the patches, after cutting those with a texture wider than `widest` into smaller ones."""
        sides = np.abs(np.roll(self.uv, -1, 1) - self.uv).reshape(-1, 2, 2, 2).max(1)  # first and second side of each
        most = np.maximum(sides.max(2), 1e-9)
        slant = (sides / most[..., None]).sum(1).max(1)[:, None]  # 1 if the sides are along the texture's, at most 2
        counts = np.ceil(most * slant / widest - 1e-6).astype(int).clip(1)
        if counts.max() == 1:
            return self
        made = []
        for m, n in np.unique(counts, axis=0):
            like = (counts == (m, n)).all(1)
            made.append(Patches(self.points[like], self.normals[like], self.uv[like]).cut(m, n))
        return joined(made)

    def cut(self, m: int, n: int) -> Patches:
        """Return smaller patches: the first side of each patch is divided into `m` pieces, the second into `n`."""
        a, b = (at.ravel() / k for at, k in zip(np.mgrid[:m, :n], (m, n)))
        u, v = np.stack([a, a + 1 / m, a + 1 / m, a], 1), np.stack([b, b, b + 1 / n, b + 1 / n], 1)
        weights = np.stack([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v], 2)  # (mn, 4, 4)
        fields = (self.points, self.normals, self.uv)
        return Patches(*((weights @ f[:, None]).reshape(-1, 4, f.shape[-1]) for f in fields))


def joined(patches: Sequence[Patches]) -> Patches:
    """Return all patches joined into one object."""
    return Patches(*(np.concatenate([getattr(p, f) for p in patches]) for f in ("points", "normals", "uv")))


def turned(axis: str, degrees: float) -> np.ndarray:
    """Return the rotation matrix for a turn about the axis x, y or z."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
    return matrix


def build(shape: str, numbers: Numbers) -> Patches:
    """Return the patches of one part. `shape` is the name of a shape, with an optional suffix after "|" that makes
    copies. A number in the suffix is the number of copies around the z axis; letters are axes along which a mirror
    image is added. For example, "turn y|x" is the shape "turn y" and its mirror image along x.
    """
    name, _, copies = shape.partition("|")
    patches = _SHAPES[name](numbers)
    if copies.isdigit():
        return joined([patches.moved(turned("z", 360 * k / int(copies))) for k in range(int(copies))])
    for axis in copies:
        patches = joined([patches, patches.moved(np.diag([-1.0 if axis == a else 1.0 for a in "xyz"]))])
    return patches


def grid(points: np.ndarray, normals: np.ndarray | None = None, uv: np.ndarray | None = None) -> Patches:
    """Return the quadrilaterals between neighbouring points of a grid (m, n, 3). Without `normals`, each quadrilateral
    is shaded as flat.
    """

    def corners(a: np.ndarray) -> np.ndarray:
        quads = np.stack([a[:-1, :-1], a[:-1, 1:], a[1:, 1:], a[1:, :-1]], 2)
        return quads.reshape(-1, 4, a.shape[2])

    quads = corners(points)
    if uv is None:
        along = np.linalg.norm(np.diff(points, axis=0), axis=2).max(1).cumsum()
        around = np.linalg.norm(np.diff(points, axis=1), axis=2).max(0).cumsum()
        v, u = np.concatenate([[0], along]), np.concatenate([[0], around])
        uv = np.stack(np.broadcast_arrays(u[None, :], v[:, None]), 2) / TILE
    return Patches(quads, _flat(quads) if normals is None else corners(normals), corners(uv))


def _smooth(points: np.ndarray, uv: np.ndarray | None = None) -> Patches:
    """Return the quadrilaterals between the points of a grid, shaded as one smooth surface."""
    across = np.cross(np.gradient(points, axis=1), np.gradient(points, axis=0))
    return grid(points, across / np.maximum(np.linalg.norm(across, axis=2, keepdims=True), 1e-9), uv)


def _flat(quads: np.ndarray) -> np.ndarray:
    across = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-9)
    return np.repeat(across[:, None], 4, 1)


def _curve(points: np.ndarray, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (points, tangents) for each segment of a smooth curve through the points. Sharp corners stay sharp."""
    segments = np.diff(points, axis=0)
    lengths = np.maximum(np.linalg.norm(segments, axis=1, keepdims=True), 1e-9)
    ways = segments / lengths
    smooth = [False, *((ways[:-1] * ways[1:]).sum(1) > _CREASE), False]
    pieces = []
    for i, (start, end) in enumerate(pairwise(points)):
        t0 = (ways[i - 1] + ways[i]) / 2 if smooth[i] else ways[i]
        t1 = (ways[i] + ways[i + 1]) / 2 if smooth[i + 1] else ways[i]
        t = np.linspace(0, 1, steps + 1 if smooth[i] or smooth[i + 1] else 2)[:, None]
        before, after = lengths[max(i - 1, 0)], lengths[min(i + 1, len(lengths) - 1)]
        m0, m1 = t0 * np.minimum(lengths[i], before), t1 * np.minimum(lengths[i], after)  # no bulge beside a short one
        at = (2 * t**3 - 3 * t**2 + 1) * start + (t**3 - 2 * t**2 + t) * m0
        at += (3 * t**2 - 2 * t**3) * end + (t**3 - t**2) * m1
        slope = (6 * t**2 - 6 * t) * (start - end) + (3 * t**2 - 4 * t + 1) * m0 + (3 * t**2 - 2 * t) * m1
        pieces.append((at, slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-9)))
    return pieces


def _turn(numbers: Numbers, count: int = 40, plan: bool = True) -> Patches:
    """Return a surface of revolution with `count` steps around the axis. `numbers` are its position (x, y, z) and then
    the points (radius, height) of its profile. With `plan`, flat parts have a straight texture, as seen from above;
    otherwise their texture is bent around the axis.
    """
    profile = np.array(numbers[3:], float).reshape(-1, 2)
    turn = np.linspace(0, 2 * np.pi, count + 1)
    c, s = np.cos(turn), np.sin(turn)
    run, rise = np.abs(np.diff(profile, axis=0)).T
    level = (rise < 0.6 * run) & plan
    radii = (profile[1:, 0] + profile[:-1, 0]) / 2
    tiles = max(1, round(2 * np.pi * float(np.average(radii, weights=np.where(level, 1e-9, rise) + 1e-9)) / TILE))
    parts, length = [], 0.0
    for (at, way), seen_from_above in zip(_curve(profile, 5), level):
        r, z = at[:, :1], at[:, 1:]
        points = np.stack(np.broadcast_arrays(r * c, r * s, z), 2)
        normals = np.stack(np.broadcast_arrays(way[:, 1:] * c, way[:, 1:] * s, -way[:, :1]), 2)
        v = length + np.concatenate([[0], np.linalg.norm(np.diff(at, axis=0), axis=1).cumsum()])
        length = float(v[-1])
        uv = np.stack(np.broadcast_arrays(turn[None, :] / (2 * np.pi) * tiles, v[:, None] / TILE), 2)
        uv = points[..., :2] / TILE if seen_from_above else uv
        parts.append(grid(points, normals, uv))
    return joined(parts).moved(np.eye(3), numbers[:3])


def _turn_y(numbers: Numbers) -> Patches:
    return _turn((0, 0, 0, *numbers[3:])).moved(turned("x", -90), numbers[:3])


def _ball(numbers: Numbers) -> Patches:
    at = np.linspace(-np.pi / 2, np.pi / 2, 9)
    outline = np.stack([np.cos(at), np.sin(at)], 1)
    radii = np.array(numbers[3:])
    ball = _turn((0, 0, 0, *outline.ravel() * radii.max()), plan=False)
    normals = ball.points / radii.max()  # exact, where the curve's are nearly so
    back = np.diag(radii / radii.max()) @ turned("x", -20)  # no pole faces the camera
    return Patches(ball.points, normals, ball.uv).moved(back, numbers[:3])


def _box(numbers: Numbers) -> Patches:
    x0, y0, z0, x1, y1, z1, b = numbers
    rings = []
    for z, inset in ((z0, None), (z0, b), (z0 + b, 0), (z1 - b, 0), (z1, b), (z1, None)):
        if inset is None:
            rings.append([((x0 + x1) / 2, (y0 + y1) / 2, z)] * 9)
            continue
        e, r, f, k = x0 + inset, x1 - inset, y0 + inset, y1 - inset
        ring = [(e + b, f), (r - b, f), (r, f + b), (r, k - b), (r - b, k), (e + b, k), (e, k - b), (e, f + b)]
        rings.append([(x, y, z) for x, y in (*ring, ring[0])])
    box = grid(np.array(rings))
    facing = np.abs(box.normals[:, :1])  # texture by the side that a face looks to: lengthwise along x, or z
    p = box.points
    uv = np.where(
        (facing[..., 2] > 0.6)[..., None],
        p[..., :2],
        np.where((facing[..., 0] > 0.6)[..., None], p[..., 1:], p[..., ::2]),
    )
    if max(x1 - x0, y1 - y0) < z1 - z0 or (y1 - y0 > x1 - x0):
        uv = uv[..., ::-1]
    return Patches(p, box.normals, uv / TILE)


def _tube(numbers: Numbers, *, fruit: bool = False) -> Patches:
    """Return a bent tube. As a `fruit`, it has edges along it and is thinner at its ends."""
    radius = numbers[0]
    pieces = _curve(np.array(numbers[1:], float).reshape(-1, 3), 6)
    points = np.concatenate([at[(k > 0) :] for k, (at, _) in enumerate(pieces)])
    ways = np.concatenate([way[(k > 0) :] for k, (_, way) in enumerate(pieces)])
    side = np.eye(3)[np.abs(ways[0]).argmin()]
    turn = np.linspace(0, 2 * np.pi, 17)[:, None]
    rings = []
    for way in ways:
        side = side - way * (side @ way)
        side /= np.linalg.norm(side)
        rings.append(np.cos(turn) * side + np.sin(turn) * np.cross(way, side))
    normals = np.stack(rings)
    length = np.concatenate([[0], np.linalg.norm(np.diff(points, axis=0), axis=1).cumsum()])
    uv = np.stack(np.broadcast_arrays(length[:, None] / TILE, turn[None, :, 0] * radius / TILE), 2)
    if fruit:
        thick = 1 - 0.72 * np.abs(2 * length / length[-1] - 1)[:, None, None] ** 2.6
        body = _smooth(points[:, None] + radius * thick * (1 + 0.07 * np.cos(5 * turn)) * normals)
        return Patches(body.points, -body.normals, body.uv)
    body = grid(points[:, None] + radius * normals, normals, uv)
    caps = [
        grid(np.stack([end + 0 * ring, end + radius * ring]))
        for end, ring in ((points[0], rings[0]), (points[-1], rings[-1]))
    ]
    return joined([body, *caps])


def _arc(numbers: Numbers) -> Patches:
    radius, x, z, wide, high, start, end = numbers
    at = np.radians(np.linspace(start, end, 13))
    return _tube((radius, *np.stack([x + wide * np.cos(at), 0 * at, z + high * np.sin(at)], 1).ravel()))


def _cut(numbers: Numbers, low: float, high: float, scale: float = 1.0) -> Patches:
    """Return a solid between the heights `low` and `high`. `numbers` are the points (x, y) of its outline, which is
    scaled by `scale` at the lower height, as for a hull. Slight bends of the outline are rounded; sharp corners stay
    sharp. The upper and lower edges are rounded.
    """
    corners = np.array(numbers, float).reshape(-1, 2)
    if _area(corners) < 0:
        corners = corners[::-1]
    middle, least = corners.mean(0), np.ptp(corners, axis=0).min()
    bevel = min(0.7, 0.16 * least) if high - low > 3 else 0.0
    inset = bevel / least
    turn, rise = np.radians([0, 22, 45, 68, 90] if bevel else [90]), np.linspace(0, 1, 2 if scale == 1 else 9)
    sizes = np.concatenate(
        [
            scale * (1 - inset * (1 - np.sin(turn))),
            (scale + (1 - scale) * rise**0.6)[1:-1],
            1 - inset * (1 - np.sin(turn[::-1])),
        ]
    )
    edge = bevel * (1 - np.cos(turn))
    heights = np.concatenate([low + edge, (low + bevel + (high - low - 2 * bevel) * rise)[1:-1], high - edge[::-1]])
    parts = []
    for at, _ in _curve(np.concatenate([corners[-1:], corners, corners[:2]]), 9)[1:-1]:
        flat = (at - middle) * sizes[:, None, None] + middle
        points = np.concatenate([flat, np.broadcast_to(heights[:, None, None], (*flat.shape[:2], 1))], 2)
        parts.append(_smooth(points))
        for ring in (points[0], points[-1]):
            cap = grid(np.stack([ring, ring * (0, 0, 1) + (*middle, 0)]))
            parts.append(Patches(cap.points, cap.normals, cap.points[..., :2] / TILE))
    return joined(parts)


def _label(numbers: Numbers) -> Patches:
    """Return a piece of paper around a part of a bottle, towards the camera. `numbers` are its radius, its lower and
    upper edge, and how many degrees it reaches to each side.
    """
    radius, low, high, half = numbers
    at = np.radians(np.linspace(-90 - half, -90 + half, 25))
    facing = np.stack([np.cos(at), np.sin(at), 0 * at], 1)
    return grid(np.stack([radius * facing + (0, 0, z) for z in (low, high)]), np.stack([facing, facing]))


def _area(corners: np.ndarray) -> float:
    (x, y), (x1, y1) = corners.T, np.roll(corners, -1, 0).T
    return float((x * y1 - x1 * y).sum())


def _cut_y(numbers: Numbers) -> Patches:
    return _cut(numbers[2:], -numbers[1], -numbers[0]).moved(turned("x", 90))


def _cut_x(numbers: Numbers) -> Patches:
    return _cut_y(numbers).moved(turned("z", 90))


def _leaf(numbers: Numbers) -> Patches:
    """Return a bent leaf with a pointed tip. `numbers` are the position (x, y, z), the angle around the z axis, and the
    leaf's length, width and rise.
    """
    x, y, z, turn, length, width, rise = numbers
    t, side = np.linspace(0, 1, 25)[:, None], np.linspace(-1, 1, 7)[None]
    wide = width / 2 * (2.6 * (t + 0.03) ** 0.6 * (1 - t) ** 0.9 + 0.01) * side
    high = rise * np.sin(np.pi * 0.62 * t) + 0.36 * wide**2 / width
    leaf = np.stack(np.broadcast_arrays(length * t**1.3 + 0 * side, wide, high), 2)
    return _smooth(leaf).moved(turned("z", turn), (x, y, z))


def _bloom(numbers: Numbers) -> Patches:
    """Return the petals of a tulip. `numbers` are its middle (x, y, z), its radius, and the angle in degrees by which
    it is tilted from straight up towards the camera.
    """
    radius, tilt = numbers[3:]
    t, side = np.linspace(0, 1, 17)[:, None], np.linspace(-1, 1, 9)[None]
    wide = 0.98 * np.sin(np.pi * (0.14 + 0.84 * t)) ** 0.7 * side
    high = 2 * radius * (t - 0.1 * side**2 * t**2) - 0.4 * radius
    petals = []
    for k in range(6):
        out = (0.86 if k % 2 else 1) * radius * (0.2 + 0.8 * np.sin(np.pi * (0.06 + 0.66 * t))) * (1 - 0.12 * side**2)
        at = wide + k * np.pi / 3
        petals.append(_smooth(np.stack(np.broadcast_arrays(out * np.cos(at), out * np.sin(at), high), 2)))
    return joined(petals).moved(turned("x", tilt), numbers[:3])


def _basketry(numbers: Numbers) -> Patches:
    """Return a surface of revolution with rods woven around its outside. `numbers` are as for `_turn`."""
    profile = np.array(numbers[3:], float).reshape(-1, 2)[1:5]  # its outer wall
    rows, stakes = 9, 22
    up, turn = np.linspace(0, rows - 1e-6, 6 * rows + 1)[:, None], np.linspace(0, 2 * np.pi, 6 * stakes + 1)[None]
    z = profile[0, 1] + (profile[-1, 1] - profile[0, 1]) * up / rows
    bend = np.cos(stakes * turn + np.pi * np.floor(up)) * np.abs(np.sin(np.pi * up)) ** 0.5
    r = np.interp(z, profile[:, 1], profile[:, 0]) + 0.35 + 0.5 * bend - 0.3 * (1 - np.abs(np.sin(np.pi * up)) ** 0.5)
    rods = _smooth(np.stack(np.broadcast_arrays(r * np.cos(turn), r * np.sin(turn), z), 2))
    return joined([_turn(numbers), rods.moved(np.eye(3), numbers[:3])])


def _print(numbers: Numbers) -> Patches:
    """Return lines of print on a page of an open book. `numbers` are the side of the page (-1 or 1) and the points
    (x, z) of its curve, from the middle to the edge.
    """
    side, *curve = numbers
    at = np.concatenate([points for points, _ in _curve(np.reshape(curve, (-1, 2)), 6)])
    words = []
    for row in range(20):
        left, last = 2.6, 12.8 if row % 7 != 6 else 7.0
        for k in range(12):
            right = left + 0.4 + (row * 37 + k * 53 + 11 * side) % 17 / 13
            if right > last:
                break
            x = np.array([left, right])[None, :] if side > 0 else 15.4 - np.array([left, right])[None, :]
            z = np.interp(x, at[:, 0], at[:, 1]) + 0.05
            y = 8.6 - 0.9 * row + np.array([0.0, 0.27])[:, None]
            words.append(grid(np.stack(np.broadcast_arrays(side * x, y, z), 2)))
            left = right + 0.28
    return joined(words)


def _canopy(numbers: Numbers) -> Patches:
    """Return the cloth of an umbrella, with eight ribs. `numbers` are its radius and the heights of rim and top."""
    radius, rim, top = numbers
    t, turn = np.linspace(0.01, 1, 13)[:, None], np.linspace(0, 2 * np.pi, 65)[None, :]
    sag = np.abs(np.cos(4 * turn)) ** 0.8  # between the ribs
    r = radius * t * (1 - 0.09 * sag * t)
    points = np.stack(
        np.broadcast_arrays(r * np.cos(turn), r * np.sin(turn), top - (top - rim) * t**2.2 + 3 * sag * t**2), 2
    )
    return _smooth(points, np.stack(np.broadcast_arrays(turn * 16 / np.pi, t * radius / TILE), 2))


def _furl(numbers: Numbers) -> Patches:
    """Return a surface of revolution in twisted folds, such as rolled-up cloth."""
    rolled = _turn((0, 0, 0, *numbers), 96, plan=False).cut(3, 3)
    x, y, z = np.moveaxis(rolled.points, 2, 0)
    folds = 1 - 0.3 * np.abs(np.sin(3 * np.arctan2(y, x) + 0.07 * z)) ** 0.7
    points = np.stack([x * folds, y * folds, z], 2)
    return Patches(points, _flat(points), rolled.uv)


def fuzz(patches: Patches, count: int, length: float) -> Patches:
    """Return hairs that stand on patches, a little combed down."""
    areas = np.linalg.norm(np.cross(*np.moveaxis(patches.points[:, 2:] - patches.points[:, :2], 1, 0)), axis=1)
    chance = np.random.PCG64(np.random.SeedSequence([len(areas), count])).random_raw(7 * count) >> np.uint64(11)
    pick, u, v, *lean, turn = chance.reshape(7, -1) / 2.0**53
    at = np.searchsorted(np.cumsum(areas) / areas.sum(), pick * 0.999999)
    u, v = u[:, None], v[:, None]
    weights = np.stack([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v], 1)
    foot, up = ((weights * field[at]).sum(1) for field in (patches.points, patches.normals))
    way = up + 1.5 * (np.stack(lean, 1) - 0.5) - (0, 0, 0.6)
    side = np.cross(way, np.stack([np.cos(6.3 * turn), np.sin(6.3 * turn), 0 * turn], 1))
    side *= 0.03 / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
    tip = foot + length * way / np.linalg.norm(way, axis=1, keepdims=True)
    points = np.stack([foot - side, foot + side, tip + 0.3 * side, tip - 0.3 * side], 1)
    return Patches(points, np.repeat(up[:, None], 4, 1), patches.uv[at])


def _pillow(numbers: Numbers) -> Patches:
    """Return a cushion, flattened below by its own weight. Folds run from its seams to its middle."""
    wide, deep, high = numbers
    t = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 49))
    x, y = np.meshgrid(t, t)
    folds = np.sin(13 * x + 2 * np.sin(3 * y)) * (1 - x**2) * y**4 + np.sin(11 * y + 2 * np.sin(4 * x)) * x**4
    folds = folds + 1.5 * np.cos(17 * (np.abs(x) - np.abs(y))) * (x * y) ** 4
    bulge = ((1 - x**4) * (1 - y**4)) ** 0.45 * (1 + 0.07 * folds - 0.1 * np.exp(-6 * ((x - 0.2) ** 2 + y**2)))
    bulge /= bulge.max()
    pinch = 1 - 0.08 * (1 - y**2) * np.abs(x), 1 - 0.08 * (1 - x**2) * np.abs(y)
    sides = []
    for sign, height in ((1, 0.23 + 0.77 * bulge), (-1, 0.23 - 0.23 * np.minimum(1, 1.5 * bulge))):
        points = np.stack([wide * x * pinch[0], deep * y * pinch[1], high * height], 2)
        along = [  # so that no pattern is stretched where the cloth is steep
            np.concatenate([0 * steps.take([0], axis), steps.cumsum(axis)], axis) - steps.cumsum(axis).take([23], axis)
            for axis in (1, 0)
            for steps in [np.linalg.norm(np.diff(points, axis=axis), axis=2)]
        ]
        side = _smooth(points, np.stack(along, 2) / TILE)
        sides.append(Patches(side.points, sign * side.normals, side.uv))
    return joined(sides)


def _books(numbers: Numbers) -> Patches:
    """Return some of the books in rows: every `count`-th book from number `first` or, with `band`, only a band around
    the spine of each book. `numbers` holds `first`, `count` and `band`, then four numbers for each row: its left and
    right ends, its floor and its height.
    """
    first, count, band = map(int, numbers[:3])
    chance = iter(np.random.PCG64(5).random_raw(400) / 2.0**64)
    made = []
    for k, (left, right, floor, high) in enumerate(np.reshape(numbers[3:], (-1, 4))):
        while left < right - 4.6:
            wide, tall, deep = (
                low + more * next(chance) for low, more in ((2, 2.6), (0.74 * high, 0.22 * high), (7, 2))
            )
            if int(left * 7 + k) % count == first or band:
                z0, z1, d = (floor + 0.76 * tall, floor + 0.82 * tall, 0.06) if band else (floor, floor + tall, 0)
                made.append(_box((left - d, -deep - d, z0, left + wide + d, 11, z1, 0.25 if not band else 0)))
            left += wide + 0.15
    return joined(made)


_SHAPES: dict[str, Callable[[Numbers], Patches]] = {
    "turn": _turn,
    "turn y": _turn_y,
    "ball": _ball,
    "box": _box,
    "tube": _tube,
    "banana": lambda numbers: _tube(numbers, fruit=True),
    "arc": _arc,
    "cut z": lambda numbers: _cut(numbers[3:], *numbers[:3]),
    "cut y": _cut_y,
    "cut x": _cut_x,
    "label": _label,
    "leaf": _leaf,
    "bloom": _bloom,
    "basketry": _basketry,
    "print": _print,
    "canopy": _canopy,
    "furl": _furl,
    "pillow": _pillow,
    "books": _books,
}
