"""Rendering of scenes to pixels: uint8 arrays, the same on every machine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from creperie.core import UsageError
from creperie.world.kinds import CANVAS, KINDS, SIZES
from creperie.world.places import GROUND, LIFTING, pair_places
from creperie.world.raster import UNIT, path_distance, sample_points
from creperie.world.scene import Scene, Thing
from creperie.world.sprites import (
    COLOURS,
    FRONTS,
    INK,
    TABLES,
    Rgb,
    Sprite,
    count_labels,
    oversampling,
    pixels_from_sums,
    shade_of,
    sprite,
)

#: Colours at the top and bottom of the sky, and at the top and bottom of the ground.
_PALETTES: tuple[tuple[Rgb, Rgb, Rgb, Rgb], ...] = TABLES["backdrops"]["palettes"]
SMALLEST, LARGEST = 32, 1024
#: Strokes: colour, pen width, points on the canvas, and whether it has an outline.
Strokes = list[tuple[tuple[int, int, int, int], int, tuple[int, ...], bool]]


def render(scene: Scene, size: int = 64) -> np.ndarray:
    """Return the image of a scene as a (size, size, 3) array of uint8. The size may be 32 to 1024 pixels."""
    if not SMALLEST <= size <= LARGEST:
        raise UsageError(f"`size={size}` is out of range", hint=f"choose {SMALLEST} to {LARGEST} pixels")
    picture = backdrop(scene.backdrop, size).copy()
    for thing in scene.things:
        if thing.y >= GROUND:
            _paste(picture, _shadow(_pixels(thing, size)), thing, size, centred=True)
    behind, before = strokes_of(scene)
    for strokes in (*map(_stand, unsupported(scene)), *behind):
        _draw_strokes(picture, strokes, size)
    for thing, front in painting_order(scene):
        _paste(picture, _sprite_of(thing, size, front), thing, size)
    for strokes in before:
        _draw_strokes(picture, strokes, size)
    return picture.astype(np.uint8)


def unsupported(scene: Scene) -> list[Thing]:
    """Return the things under which a stand must be drawn: those above the ground that neither float nor rest on
    another thing.
    """
    places, _ = pair_places(scene.things, scene.action)
    return [
        thing
        for k, thing in enumerate(scene.things)
        if thing.y < GROUND
        and not KINDS[thing.kind].floats
        and not {"IN", "ON"} & set(places[k])
        and not (k == 1 and scene.action in LIFTING)
    ]


def _stand(thing: Thing) -> Strokes:
    """Return the strokes that draw a stand under a thing: a board on a post."""
    left, _, right, foot = thing.box
    wood = (156, 110, 68, 255)
    return [
        (wood, 5, (thing.x, foot + 4, thing.x, 204), True),
        (wood, 6, (left + 2, foot + 3, right - 2, foot + 3), True),
    ]


def painting_order(scene: Scene) -> list[tuple[Thing, bool]]:
    """Return (thing, front_only) pairs in the order of painting, from back to front. The front of a container is
    painted once more, after the container's contents.
    """
    things = scene.things
    places, _ = pair_places(things, scene.action)
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


def _paste(picture: np.ndarray, patch: Sprite, thing: Thing, size: int, centred: bool = False) -> None:
    """Paint a sprite onto the image, clipped at the edges. Its bottom is at the thing's position or, with `centred`
    (for a shadow), its middle.
    """
    high, wide = patch.rgb.shape[:2]
    left = (2 * thing.x * size // CANVAS - wide + 1) // 2
    bottom = thing.y * size // CANVAS + patch.pad if not centred else thing.y * size // CANVAS + high // 2
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
    """Return a thing's shadow on the ground, `px` pixels wide: a soft dark ellipse."""
    wide, high = px, max(3, px // 5)
    x = np.arange(wide, dtype=np.int64)[None, :] * 2 + 1 - wide
    y = np.arange(high, dtype=np.int64)[:, None] * 2 + 1 - high
    outward = (x * x * 1024) // wide**2 + (y * y * 1024) // high**2
    alpha = np.clip((1024 - outward) * 90 // 1024, 0, 60)[:, :, None]
    sums = np.concatenate([alpha * 60, alpha * 58, alpha * 70, alpha], axis=2)
    return pixels_from_sums(sums, 1, 0)


@lru_cache(maxsize=512)
def backdrop(number: int, size: int) -> np.ndarray:
    """Return the sky and the ground of a backdrop as an image."""
    sky_top, sky_low, ground_top, ground_low = (np.array(c, np.int64) for c in _PALETTES[number % 8])
    horizon = (148 + 4 * (number // 8)) * size // CANVAS
    rows = np.arange(size, dtype=np.int64)[:, None]
    sky = sky_top + (sky_low - sky_top) * np.minimum(rows, horizon) // max(1, horizon)
    ground = ground_top + (ground_low - ground_top) * (rows - horizon) // max(1, size - horizon)
    column = np.where(rows < horizon, sky, ground)
    return np.broadcast_to(column[:, None, :], (size, size, 3)).astype(np.uint16)


# -- arms, ropes, and the lines that show movement -------------------------------------------------------------


def strokes_of(scene: Scene) -> tuple[list[Strokes], list[Strokes]]:
    """Return two lists of strokes that show the action of a scene: those drawn behind the things and those drawn in
    front.
    """
    if not scene.action:
        return [], []
    agent, patient, *others = scene.things
    if scene.action == "follows":
        return [_speed_lines(agent), _speed_lines(patient)], []
    if scene.action == "pushes":
        return [_speed_lines(agent)], [_reach(agent, patient, spread=9)]
    if scene.action == "pulls":
        return [_speed_lines(patient)], [_rope(agent, patient)]
    if scene.action == "carries":
        return [_lift(agent, patient)], []
    if scene.action == "hands":
        return [], [_reach(agent, patient, spread=0), _motion(patient, others[0])]
    if scene.action == "throws":
        return [], [_flight(agent, patient), _motion(patient, others[0])]
    return [], [_reach(agent, patient, spread=0)]


def _arm(agent: Thing, points: tuple[int, ...]) -> Strokes:
    colour = COLOURS[agent.colour]
    hand = shade_of(colour, 78) if agent.colour in ("white", "yellow", "pink") else shade_of(colour, 128)
    return [((*colour, 255), 9, points, True), ((*hand, 255), 13, (*points[-2:], *points[-2:]), True)]


def _shoulder(agent: Thing) -> tuple[int, int]:
    place = KINDS[agent.kind].shoulder
    assert place is not None
    return agent.spot(*place)


def _reach(agent: Thing, patient: Thing, spread: int) -> Strokes:
    """Return the strokes of the agent's arms, which reach to the near side of the patient (the thing acted on)."""
    x0, y0 = _shoulder(agent)
    left, top, right, bottom = patient.box
    x1 = left + 3 if agent.facing > 0 else right - 3
    y1 = max(top + 12, min(bottom - 10, y0))
    if not spread:
        return _arm(agent, (x0, y0, x1, y1))
    return _arm(agent, (x0, y0, x1, y1 - spread)) + _arm(agent, (x0, y0 + 4, x1, y1 + spread))


def _flight(agent: Thing, gift: Thing) -> Strokes:
    """Return the strokes of an arm raised towards the thrown gift, and of dots along the gift's path."""
    x, y = _shoulder(agent)
    hand = (x + 20 * agent.facing, y - 26)
    edge = (gift.box[0] - 4 if agent.facing > 0 else gift.box[2] + 4), gift.y - 14
    steps = [(hand[0] + (edge[0] - hand[0]) * k // 8, hand[1] - 4 + (edge[1] - hand[1]) * k // 8) for k in (3, 5, 7)]
    return [*_arm(agent, (x, y, *hand)), *(((96, 94, 108, 255), 5, (*step, *step), False) for step in steps)]


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
    """Return the strokes of an arrow above the gift that points to the taker."""
    x, y = gift.x, gift.box[1] - 14
    side = 1 if taker.x > gift.x else -1
    grey = (96, 94, 108, 255)
    tip = x + side * 20
    return [
        (grey, 5, (x - side * 18, y, tip, y), False),
        (grey, 5, (tip - side * 8, y - 8, tip, y, tip - side * 8, y + 8), False),
    ]


def _draw_strokes(picture: np.ndarray, strokes: Strokes, size: int) -> None:
    """Draw strokes onto the image, including their outlines."""
    border, steps, times = 1 + 10 * size // CANVAS, CANVAS * UNIT, oversampling(size)
    starts, spans = [], []
    for k in (0, 1):
        places = [p * size // CANVAS for _, _, points, _ in strokes for p in points[k::2]]
        starts.append(min(places) - border)
        spans.append(max(places) - starts[-1] + border + 1)
    x, y = (
        sample_points(n * times, n * steps // size, at * steps // size) for n, at in zip(spans, starts, strict=True)
    )
    labels = np.zeros((spans[1] * times, spans[0] * times), np.uint8)
    paints = [(*INK, 255), *(rgba for rgba, _, _, _ in strokes)]
    for label, (_, width, points, outlined) in enumerate(strokes, 2):
        distance = path_distance(x[None, :], y[:, None], [p * UNIT for p in points])
        reach = width * UNIT // 2
        if outlined:
            labels[distance <= (reach + _OUTLINE) ** 2] = 1
        labels[distance <= reach * reach] = label
    used, counts = count_labels(labels, times)
    weights = np.array([(r * a, g * a, b * a, a) for r, g, b, a in paints], np.int64)
    _blend(picture, pixels_from_sums(counts @ weights[used - 1], times * times, 0), starts[0], starts[1])


_OUTLINE = CANVAS * UNIT // 80 // 4 * 3
