"""Drawing shapes as masks in integer arithmetic, so that an image has the same pixels on every machine.

Drawings use a grid of 100 units, and a unit is divided into 64 steps. Every coordinate then fits into 14 bits. Every
product of coordinates that is computed here fits into 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

UNIT = 64
Mask = np.ndarray
Ints = np.ndarray


def sample_points(count: int, span: int, start: int) -> Ints:
    """Return the middles of `count` equal intervals that together cover the range from `start` to `start + span`, as
    whole numbers.
    """
    at = np.arange(count, dtype=np.int64)
    return start + ((2 * at + 1) * span) // (2 * count)


def ellipse(x: Ints, y: Ints, args: Sequence[int], grow: int) -> Mask:
    """Return the mask of an ellipse: True for each of the points (`x`, `y`) inside it. `args` holds the centre's two
    coordinates and the two radii; `grow` is added to the radii, in steps (`UNIT` steps are one unit of `args`).
    """
    cx, cy, rx, ry = (a * UNIT for a in args)
    a, b = rx + grow, ry + grow
    return (x - cx) ** 2 * (b * b) + (y - cy) ** 2 * (a * a) <= a * a * b * b


def dome(x: Ints, y: Ints, args: Sequence[int], grow: int) -> Mask:
    """Return the mask of the upper half of an ellipse; the arguments are those of `ellipse`."""
    return ellipse(x, y, args, grow) & (y <= args[1] * UNIT + grow)


def box(x: Ints, y: Ints, args: Sequence[int], grow: int) -> Mask:
    """Return the mask of a rectangle. `args` holds its left, top, right and bottom, and the radius of its rounded
    corners.
    """
    left, top, right, bottom, radius = (a * UNIT for a in args)
    radius += grow
    dx = np.maximum(np.maximum(left - grow + radius - x, x - (right + grow - radius)), 0)
    dy = np.maximum(np.maximum(top - grow + radius - y, y - (bottom + grow - radius)), 0)
    return dx * dx + dy * dy <= radius * radius


def _segment(x: Ints, y: Ints, ends: Sequence[int]) -> Ints:
    """Return the squared distance of each point to a line segment."""
    x0, y0, x1, y1 = ends
    dx, dy = x1 - x0, y1 - y0
    from_x, from_y = x - x0, y - y0
    start = from_x * from_x + from_y * from_y
    length = dx * dx + dy * dy
    if not length:
        return start
    along = from_x * dx + from_y * dy
    across = from_x * dy - from_y * dx
    past = along >= length
    beside = (along > 0) & ~past
    distance = np.where(past, (x - x1) ** 2 + (y - y1) ** 2, start)
    np.floor_divide(across * across, length, out=distance, where=beside)
    return distance


def path_distance(x: Ints, y: Ints, points: Sequence[int]) -> Ints:
    """Return, for each point (`x`, `y`), the squared distance to the path through `points`, in squared steps."""
    distance = _segment(x, y, points[:4])
    for k in range(2, len(points) - 2, 2):
        distance = np.minimum(distance, _segment(x, y, points[k : k + 4]))
    return distance


def line(x: Ints, y: Ints, args: Sequence[int], grow: int) -> Mask:
    """Return the mask of a line. `args` holds the width of the pen, then the points of the path."""
    reach = args[0] * UNIT // 2 + grow
    return path_distance(x, y, [a * UNIT for a in args[1:]]) <= reach * reach


def polygon(x: Ints, y: Ints, args: Sequence[int], grow: int) -> Mask:
    """Return the mask of a polygon. `args` holds its corners, in order."""
    points = [a * UNIT for a in args]
    mask = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    edge = np.zeros_like(mask)
    for i in range(0, len(points), 2):
        x0, y0 = points[i : i + 2]
        x1, y1 = points[(i + 2) % len(points)], points[(i + 3) % len(points)]
        spans = (y0 > y) != (y1 > y)
        side = (x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)
        mask ^= spans & ((side < 0) if y1 > y0 else (side > 0))
        if grow > 0:
            edge |= _segment(x, y, (x0, y0, x1, y1)) <= grow * grow
    return mask | edge


SHAPES: dict[str, Callable[[Ints, Ints, Sequence[int], int], Mask]] = {
    "ellipse": ellipse,
    "dome": dome,
    "box": box,
    "line": line,
    "polygon": polygon,
}
