"""Sprites: small images of things with transparency, painted once for each size, colour and pattern, then cached.

This module reads the data of the world: drawings.toml (what each kind of thing looks like) and tables.toml (colours and
words).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from creperie.core import packaged_toml
from creperie.world.raster import SHAPES, UNIT, sample_points

Part = tuple[str, str, tuple[int, ...]]


def _read(name: str) -> dict[str, Any]:
    """Return the content of a TOML file of the world, with tuples instead of arrays."""
    return _frozen(packaged_toml("creperie.world", name))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list) else value


def _parts(rows: tuple[Any, ...]) -> tuple[Part, ...]:
    return tuple((paint, shape, tuple(numbers)) for paint, shape, *numbers in rows)


THINGS: dict[str, Any] = _read("drawings.toml")
TABLES: dict[str, Any] = _read("tables.toml")
#: Width and height of each drawing on the grid, by kind.
EXTENT: dict[str, tuple[int, int]] = {name: thing["extent"] for name, thing in THINGS.items()}
DRAWINGS: dict[str, tuple[Part, ...]] = {name: _parts(thing["parts"]) for name, thing in THINGS.items()}
#: Front parts of containers, painted after their content.
FRONTS: dict[str, tuple[Part, ...]] = {name: _parts(t["front"]) for name, t in THINGS.items() if "front" in t}
#: Words on signs.
WORDS: tuple[str, ...] = TABLES["words"]["written"]

Rgb = tuple[int, int, int]

COLOURS: dict[str, Rgb] = TABLES["colours"]
INK: Rgb = (38, 34, 44)
FIXED: dict[str, tuple[int, int, int, int]] = TABLES["paints"]
OWN = ("main", "shade", "tint", "deep")
PAINTS = ("", "mark", *OWN, *FIXED)
LABEL = {name: i for i, name in enumerate(PAINTS)}
#: Pale colours: patterns on them are dark, on others light.
PALE = frozenset({"yellow", "pink", "white", "orange"})


@dataclass(frozen=True, slots=True)
class Sprite:
    """The image of a thing: its colours multiplied by their opacity (premultiplied alpha), its transparency (255 −
    alpha) as a separate array, and the width of the margin for the outline.
    """

    rgb: np.ndarray  #: (h, w, 3) uint16, colour × alpha / 255
    through: np.ndarray  #: (h, w, 1) uint16, 255 − alpha
    pad: int  #: pixels by which the outline extends on every side


def oversampling(canvas: int) -> int:
    """Return the number of samples per pixel in each direction for a canvas of this size: 3 to 6, more for small
    images.
    """
    return max(3, min(6, 960 // canvas))


@cache
def label_map(kind: str, word: str, front: bool, px: int, canvas: int) -> np.ndarray:
    """Return which paint each sample of a drawing has, as an array of labels; 100 units of the drawing are `px` pixels
    wide.
    """
    parts = FRONTS[kind] if front else DRAWINGS[kind]
    return paint_parts((*parts, *_lettering(word)), EXTENT[kind], px, canvas)


def _lettering(word: str) -> tuple[Part, ...]:
    """Return the letters of a sign's word as parts of the sign's drawing."""
    paths = [(16 + 29 * k, TABLES["letters"][letter]) for k, letter in enumerate(word)]
    return tuple(
        ("ink!", "line", (7, *(p + (15 if i % 2 else left) for i, p in enumerate(path)))) for left, path in paths
    )


def pad_pixels(canvas: int) -> int:
    return 1 + canvas // 72


def paint_parts(parts: tuple[Part, ...], extent: tuple[int, int], px: int, canvas: int) -> np.ndarray:
    """Return an array with the label of the topmost part at each sample. Each part has an outline unless its paint is
    marked with "!".
    """
    times, pad = oversampling(canvas), pad_pixels(canvas)
    steps = 100 * UNIT
    margin = pad * steps // px
    wide, high = (-(-side * px // 100) + 2 * pad for side in extent)
    x = sample_points(wide * times, wide * steps // px, -margin)[None, :]
    top = extent[1] * UNIT - (high - 2 * pad) * steps // px  # whole pixels are aligned to the foot
    y = sample_points(high * times, high * steps // px, top - margin)[:, None]
    labels = np.zeros((high * times, wide * times), np.uint8)
    stroke = canvas * 100 * UNIT // (px * 80)
    for paint, shape, numbers in parts:
        draw = SHAPES[shape]
        if paint == "cut":
            inside = draw(x, y, numbers, 0)
            labels[draw(x, y, numbers, stroke) & (labels > 0)] = LABEL["ink"]
            labels[inside] = 0
            continue
        if not paint.endswith("!"):
            labels[draw(x, y, numbers, stroke)] = LABEL["ink"]
        labels[draw(x, y, numbers, 0)] = LABEL[paint.rstrip("!")]
    return labels


def pattern_marks(pattern: str, shape: tuple[int, int], canvas: int) -> np.ndarray | None:
    """Return the mask of a pattern's stripes or spots, one value per sample; None for a plain thing. The size of
    stripes and spots depends on the canvas.
    """
    if pattern == "plain":
        return None
    unit = oversampling(canvas) * canvas  # 64 units are 64 pixels of a 64-pixel canvas
    x = (np.arange(shape[1], dtype=np.int64)[None, :] * 640) // unit
    y = (np.arange(shape[0], dtype=np.int64)[:, None] * 640) // unit
    if pattern == "striped":
        return (x + 2 * y + 20) % 84 < 40
    if pattern == "spotted":
        row = y // 46
        dx, dy = (x + 26 * (row % 2)) % 52 - 26, y % 46 - 23
        return dx * dx + dy * dy < 15 * 15
    raise KeyError(pattern)


def shade_of(colour: Rgb, percent: int) -> Rgb:
    """Return a shade of a colour: darker if `percent` is below 100, lighter if it is above."""
    if percent <= 100:
        return tuple(c * percent // 100 for c in colour)  # type: ignore[return-value]
    return tuple(c + (255 - c) * (percent - 100) // 100 for c in colour)  # type: ignore[return-value]


def mark_colour(colour: str) -> Rgb:
    base = COLOURS[colour]
    if colour == "white":
        return (150, 150, 158)
    return shade_of(base, 55) if colour in PALE else shade_of(base, 175)


@cache
def weighted_palette(colour: str) -> np.ndarray:
    """Return one row per paint of a thing of this colour: red, green and blue multiplied by alpha, then alpha."""
    base = COLOURS[colour]
    own = {"main": base, "shade": shade_of(base, 78), "tint": shade_of(base, 130), "deep": shade_of(base, 46)}
    table = np.zeros((len(PAINTS), 4), np.int64)
    table[LABEL["mark"]] = (*mark_colour(colour), 255)
    for name, rgb in own.items():
        table[LABEL[name]] = (*rgb, 255)
    for name, rgba in FIXED.items():
        table[LABEL[name]] = rgba
    table[:, :3] *= table[:, 3:]
    return table


def count_labels(labels: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays: the labels that occur, except 0, and for each pixel and label, how many of the pixel's samples
    have the label. A pixel has `times` × `times` samples.
    """
    high, wide = labels.shape[0] // times, labels.shape[1] // times
    used = np.flatnonzero(np.bincount(labels.ravel(), minlength=2)[1:]) + 1
    counts = np.zeros((high, wide, len(used)), np.int64)
    for k, label in enumerate(used):
        marked = (labels == label).view(np.uint8).reshape(high, times, wide, times)
        counts[:, :, k] = marked.sum(axis=3, dtype=np.uint8).sum(axis=1, dtype=np.uint8)
    return used, counts


def pixels_from_sums(sums: np.ndarray, area: int, pad: int) -> Sprite:
    """Return a sprite, given the sums of colour × alpha and of alpha over the `area` samples of each pixel."""
    rgb = (sums[:, :, :3] + area * 255 // 2) // (area * 255)
    opacity = (sums[:, :, 3:] + area // 2) // area
    return Sprite(rgb.astype(np.uint16), (255 - opacity).astype(np.uint16), pad)


@cache
def coverage(
    kind: str, pattern: str, px: int, canvas: int, mirrored: bool, front: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the paints in a drawing, and how many samples of each pixel each paint covers. Both are the
    same for all colours of a thing.
    """
    word = pattern if pattern in WORDS else ""
    labels = label_map(kind, word, front, px, canvas)
    if mirrored and not word:
        labels = labels[:, ::-1]
    marks = pattern_marks("plain" if word else pattern, labels.shape, canvas)
    if marks is not None:
        labels = np.where(marks & (labels == LABEL["main"]), np.uint8(LABEL["mark"]), labels)
    return count_labels(labels, oversampling(canvas))


@lru_cache(maxsize=32_768)
def sprite(kind: str, colour: str, pattern: str, px: int, canvas: int, mirrored: bool, front: bool = False) -> Sprite:
    """Return the image of a thing; 100 units of its drawing are `px` pixels wide."""
    used, counts = coverage(kind, pattern, px, canvas, mirrored, front)
    sums = counts @ weighted_palette(colour)[used]
    high = counts.shape[0]
    light = 106 - (14 * np.arange(high, dtype=np.int64)) // max(1, high - 1)  # lighter at the top, darker at the foot
    sums[:, :, :3] = np.minimum(sums[:, :, :3] * light[:, None, None] // 100, sums[:, :, 3:] * 255)
    return pixels_from_sums(sums, oversampling(canvas) ** 2, pad_pixels(canvas))
