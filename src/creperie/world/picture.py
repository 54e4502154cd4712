"""Scenes to pixels: uint8 arrays, the same on every machine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from creperie.core import UsageError
from creperie.world.kinds import CANVAS, KINDS, SIZES
from creperie.world.places import pair_places
from creperie.world.raster import UNIT, path_distance, sample_points
from creperie.world.scene import Scene, Thing
from creperie.world.sprites import COLOURS, FRONTS, INK, Rgb, Sprite, count_labels, pixels_from_sums, sister, sprite

#: Sky above and below, ground above and below.
_PALETTES: tuple[tuple[Rgb, Rgb, Rgb, Rgb], ...] = (
    ((205, 228, 245), (236, 244, 250), (205, 222, 184), (186, 208, 164)),
    ((244, 226, 210), (252, 243, 234), (226, 211, 184), (210, 194, 166)),
    ((222, 220, 242), (241, 240, 250), (206, 212, 206), (188, 196, 188)),
    ((208, 236, 232), (238, 248, 246), (222, 216, 190), (206, 200, 172)),
    ((248, 234, 204), (253, 247, 232), (204, 220, 200), (186, 204, 182)),
    ((226, 230, 234), (244, 246, 248), (212, 212, 214), (196, 196, 200)),
    ((214, 234, 214), (240, 248, 238), (226, 214, 200), (210, 198, 182)),
    ((246, 218, 226), (252, 240, 244), (214, 214, 198), (198, 198, 180)),
)
SMALLEST, LARGEST = 32, 1024
#: Colour, width of the pen, points on the canvas, and whether it has an outline.
Strokes = list[tuple[tuple[int, int, int, int], int, tuple[int, ...], bool]]
#: The same with a number for the colour and points from the upper left corner on.
StrokeShape = tuple[tuple[int, int, tuple[int, ...], bool], ...]


def render(scene: Scene, size: int = 64) -> np.ndarray:
    """The picture of a scene: (size, size, 3) uint8."""
    if not SMALLEST <= size <= LARGEST:
        raise UsageError(f"pictures are {SMALLEST} to {LARGEST} pixels wide, not {size}")
    picture = backdrop(scene.backdrop, size).copy()
    for thing in scene.things:
        if thing.y >= 190:
            _paste(picture, _shadow(_pixels(thing, size)), thing, size, foot=True)
    behind, before = strokes_of(scene)
    for strokes in behind:
        _draw_strokes(picture, strokes, size)
    for thing, front in painting_order(scene):
        _paste(picture, _sprite_of(thing, size, front), thing, size)
    for strokes in before:
        _draw_strokes(picture, strokes, size)
    return picture.astype(np.uint8)


def painting_order(scene: Scene) -> list[tuple[Thing, bool]]:
    """From back to front: what stands lower is nearer; what is on or in another comes right after it."""
    things = scene.things
    places, _ = pair_places(things, scene.event)
    depth = [2 * thing.y for thing in things]
    for i in range(len(things)):
        for j in range(len(things)):
            if i != j and places[i][j] in ("IN", "ON", "CARRIED"):
                depth[i] = 2 * things[j].y + 1
    order = sorted(range(len(things)), key=lambda k: depth[k])
    layers = [(things[k], False) for k in order]
    for k in order:
        if things[k].kind in FRONTS:
            last = max(i for i, (thing, _) in enumerate(layers) if depth[things.index(thing)] <= depth[k] + 1)
            layers.insert(last + 1, (things[k], True))
    return layers


def _pixels(thing: Thing, size: int) -> int:
    return max(6, SIZES[thing.size] * size // CANVAS)


def _sprite_of(thing: Thing, size: int, front: bool) -> Sprite:
    return sprite(thing.kind, thing.colour, thing.pattern, _pixels(thing, size), size, thing.facing < 0, front)


def _paste(picture: np.ndarray, patch: Sprite, thing: Thing, size: int, foot: bool = False) -> None:
    """Lay a sprite over the picture so that its foot and middle are where the thing is; cut at the edges."""
    high, wide = patch.rgb.shape[:2]
    left = (2 * thing.x * size // CANVAS - wide + 1) // 2
    bottom = thing.y * size // CANVAS + patch.pad if not foot else thing.y * size // CANVAS + high // 2
    _blend(picture, patch, left, bottom - high)


def _blend(picture: np.ndarray, patch: Sprite, left: int, top: int) -> None:
    high, wide = patch.rgb.shape[:2]
    size = picture.shape[0]
    x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + wide, size), min(top + high, size)
    if x0 >= x1 or y0 >= y1:
        return
    rows, columns = slice(y0 - top, y1 - top), slice(x0 - left, x1 - left)
    under = picture[y0:y1, x0:x1]
    under *= patch.through[rows, columns]
    under += 127
    under //= 255
    under += patch.rgb[rows, columns]


@lru_cache(maxsize=256)
def _shadow(px: int) -> Sprite:
    """A soft dark oval for things that stand on the ground."""
    wide, high = px, max(3, px // 5)
    x = np.arange(wide, dtype=np.int64)[None, :] * 2 + 1 - wide
    y = np.arange(high, dtype=np.int64)[:, None] * 2 + 1 - high
    outward = (x * x * 1024) // wide**2 + (y * y * 1024) // high**2
    alpha = np.clip((1024 - outward) * 90 // 1024, 0, 60)[:, :, None]
    sums = np.concatenate([alpha * 60, alpha * 58, alpha * 70, alpha], axis=2)
    return pixels_from_sums(sums, 1, 0)


@lru_cache(maxsize=512)
def backdrop(number: int, size: int) -> np.ndarray:
    """Sky and ground."""
    sky_top, sky_low, ground_top, ground_low = (np.array(c, dtype=np.int64) for c in _PALETTES[number % 8])
    horizon = (148 + 4 * (number // 8)) * size // CANVAS
    rows = np.arange(size, dtype=np.int64)[:, None]
    sky = sky_top + (sky_low - sky_top) * np.minimum(rows, horizon) // max(1, horizon)
    ground = ground_top + (ground_low - ground_top) * (rows - horizon) // max(1, size - horizon)
    column = np.where(rows < horizon, sky, ground)
    return np.broadcast_to(column[:, None, :], (size, size, 3)).astype(np.uint16)


# -- arms, ropes, and the lines that show movement -------------------------------------------------------------


def strokes_of(scene: Scene) -> tuple[list[Strokes], list[Strokes]]:
    """What the event adds to the picture: strokes behind the things, and strokes before them."""
    event = scene.event
    if event is None:
        return [], []
    agent, patient = (scene.things[k] for k in event.roles[:2])
    if event.action == "follows":
        return [_speed_lines(agent), _speed_lines(patient)], []
    if event.action == "pushes":
        return [_speed_lines(agent)], [_reach(agent, patient, spread=9)]
    if event.action == "pulls":
        return [_speed_lines(patient)], [_rope(agent, patient)]
    if event.action == "carries":
        return [_lift(agent, patient)], []
    if event.action == "hands":
        return [], [_reach(agent, patient, spread=0), _motion(patient, scene.things[event.roles[2]])]
    return [], [_reach(agent, patient, spread=0)]


def _arm(agent: Thing, points: tuple[int, ...]) -> Strokes:
    colour = COLOURS[agent.colour]
    hand = sister(colour, 78) if agent.colour in ("white", "yellow", "pink") else sister(colour, 128)
    return [((*colour, 255), 9, points, True), ((*hand, 255), 13, (*points[-2:], *points[-2:]), True)]


def _shoulder(agent: Thing) -> tuple[int, int]:
    place = KINDS[agent.kind].shoulder
    assert place is not None
    return agent.spot(*place)


def _reach(agent: Thing, patient: Thing, spread: int) -> Strokes:
    """Arms stretched out to the near side of the patient."""
    x0, y0 = _shoulder(agent)
    left, top, right, bottom = patient.box
    x1 = left + 3 if agent.facing > 0 else right - 3
    y1 = max(top + 12, min(bottom - 10, y0))
    if not spread:
        return _arm(agent, (x0, y0, x1, y1))
    return _arm(agent, (x0, y0, x1, y1 - spread)) + _arm(agent, (x0, y0 + 4, x1, y1 + spread))


def _rope(agent: Thing, patient: Thing) -> Strokes:
    x0, y0 = _shoulder(agent)
    left, _, right, bottom = patient.box
    back = -agent.facing
    box = agent.box
    hand = (box[2] + 6 if back > 0 else box[0] - 6, y0 + 4)
    end = (left + 6 if back > 0 else right - 6, min(bottom - 12, y0 + 10))
    rope = (168, 120, 62, 255)
    middle = ((hand[0] + end[0]) // 2, (hand[1] + end[1]) // 2 + 3)
    knot: Strokes = [(rope, 9, (*end, *end), True)]
    return [(rope, 5, (*hand, *middle, *end), True), *knot, *_arm(agent, (x0, y0, *hand))]


def _lift(agent: Thing, load: Thing) -> Strokes:
    x, y = _shoulder(agent)
    left, _, right, _ = agent.box
    foot = load.y - 5
    wide = (load.box[2] - load.box[0]) * KINDS[load.kind].foot // 200 + 3
    strokes: Strokes = []
    for side, edge in ((-1, left - 1), (1, right + 1)):
        start = x if side == agent.facing else (left + right) // 2 - 12 * agent.facing
        strokes += _arm(agent, (start, y, edge + 3 * side, (y + foot) // 2 + 6, load.x + side * wide, foot))
    return strokes


def _speed_lines(thing: Thing) -> Strokes:
    left, top, right, bottom = thing.box
    edge = left - 5 if thing.facing > 0 else right + 5
    back = -thing.facing
    high = bottom - top
    grey = (118, 116, 128, 255)
    return [
        (grey, 4, (edge, top + high * down // 100, edge + back * length, top + high * down // 100), False)
        for down, length in ((46, 9), (66, 14), (86, 9))
    ]


def _motion(gift: Thing, taker: Thing) -> Strokes:
    """An arrow over the gift, to the one who gets it."""
    x, y = gift.x, gift.box[1] - 14
    side = 1 if taker.x > gift.x else -1
    grey = (96, 94, 108, 255)
    tip = x + side * 20
    return [
        (grey, 5, (x - side * 18, y, tip, y), False),
        (grey, 5, (tip - side * 8, y - 8, tip, y, tip - side * 8, y + 8), False),
    ]


def _draw_strokes(picture: np.ndarray, strokes: Strokes, size: int) -> None:
    """Paint strokes over the picture. Their shape is kept: the same arms and lines come again and again."""
    x0 = min(p for _, _, points, _ in strokes for p in points[::2])
    y0 = min(p for _, _, points, _ in strokes for p in points[1::2])
    paints = {(*INK, 255): 1}
    shape = tuple(
        (
            paints.setdefault(rgba, len(paints) + 1),
            width,
            tuple(p - (x0, y0)[k % 2] for k, p in enumerate(points)),
            line,
        )
        for rgba, width, points, line in strokes
    )
    used, counts, times = _stroke_coverage(shape, size)
    weights = np.array([(r * a, g * a, b * a, a) for r, g, b, a in paints], dtype=np.int64)
    patch = pixels_from_sums(counts @ weights[used - 1], times * times, 0)
    border = _border(size)
    _blend(picture, patch, x0 * size // CANVAS - border, y0 * size // CANVAS - border)


_OUTLINE = CANVAS * UNIT // 80 // 4 * 3


def _border(size: int) -> int:
    """Pixels around the points of a stroke: half the widest pen and its outline."""
    return 1 + 10 * size // CANVAS


@lru_cache(maxsize=4096)
def _stroke_coverage(shape: StrokeShape, size: int) -> tuple[np.ndarray, np.ndarray, int]:
    """How many samples of every pixel each paint of some strokes covers; paint 1 is the outline's."""
    border, steps, times = _border(size), CANVAS * UNIT, 4 if size <= 128 else 3
    wide, high = (
        max(p for _, _, points, _ in shape for p in points[k::2]) * size // CANVAS + 2 * border + 1 for k in (0, 1)
    )
    start = -border * steps // size
    x = sample_points(wide * times, wide * steps // size, start)[None, :]
    y = sample_points(high * times, high * steps // size, start)[:, None]
    labels = np.zeros((high * times, wide * times), dtype=np.uint8)
    for label, width, points, outlined in shape:
        distance = path_distance(x, y, [p * UNIT for p in points])
        reach = width * UNIT // 2
        if outlined:
            labels[distance <= (reach + _OUTLINE) ** 2] = 1
        labels[distance <= reach * reach] = label
    return *count_labels(labels, times), times
