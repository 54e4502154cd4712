"""Integer shapes against floating-point geometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from creperie.world.raster import SHAPES, UNIT, sample_points

N = 100
X = sample_points(N, 100 * UNIT, 0)[None, :]
Y = sample_points(N, 100 * UNIT, 0)[:, None]
POINTS = (np.arange(N) + 0.5)[None, :], (np.arange(N) + 0.5)[:, None]
coordinate = st.integers(5, 95)
radius = st.integers(3, 45)


def agree(mask: np.ndarray, signed: np.ndarray, slack: float = 0.75) -> bool:
    """Equal everywhere but within a hair of the edge; `signed` is negative inside."""
    clear = np.abs(signed) > slack
    return bool(((signed < 0) == mask)[clear].all())


@given(coordinate, coordinate, radius, radius, st.sampled_from([0, 3]))
def test_ellipse(cx: int, cy: int, rx: int, ry: int, grow: int) -> None:
    x, y = POINTS
    level = np.sqrt(((x - cx) / (rx + grow)) ** 2 + ((y - cy) / (ry + grow)) ** 2) - 1
    mask = SHAPES["ellipse"](X, Y, (cx, cy, rx, ry), grow * UNIT)
    assert agree(mask, level * min(rx, ry))
    half = SHAPES["dome"](X, Y, (cx, cy, rx, ry), 0)
    assert not half[min(cy + 1, 99) :].any()
    assert (half <= SHAPES["ellipse"](X, Y, (cx, cy, rx, ry), 0)).all()


@given(coordinate, coordinate, coordinate, coordinate, st.integers(2, 12))
def test_line_is_everything_near_a_segment(x0: int, y0: int, x1: int, y1: int, width: int) -> None:
    x, y = POINTS
    dx, dy = x1 - x0, y1 - y0
    t = np.clip(((x - x0) * dx + (y - y0) * dy) / max(1, dx * dx + dy * dy), 0, 1)
    distance = np.hypot(x - x0 - t * dx, y - y0 - t * dy)
    assert agree(SHAPES["line"](X, Y, (width, x0, y0, x1, y1), 0), distance - width / 2)


@given(st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=7))
def test_polygon_covers_what_pillow_fills(corners: list[tuple[int, int]]) -> None:
    """Pillow's polygon at 8 times the size is the reference; simple polygons, so corners go round their middle."""
    middle = tuple(sum(c[k] for c in corners) / len(corners) for k in (0, 1))
    ring = sorted(set(corners), key=lambda c: math.atan2(c[1] - middle[1], c[0] - middle[0]))
    if len(ring) < 3:
        return
    mask = SHAPES["polygon"](X, Y, tuple(v for c in ring for v in c), 0)
    canvas = Image.new("L", (800, 800))
    ImageDraw.Draw(canvas).polygon([(8 * a, 8 * b) for a, b in ring], fill=1)
    share = np.asarray(canvas).reshape(100, 8, 100, 8).mean(axis=(1, 3))
    assert (mask[share == 1]).all()
    assert not mask[share == 0].any()


@pytest.mark.parametrize(
    ("args", "inside", "outside"),
    [
        ((20, 30, 80, 70, 0), [(21, 31), (79, 69)], [(18, 50), (50, 72)]),
        ((20, 30, 80, 70, 15), [(50, 50), (21, 50)], [(21, 31), (79, 69)]),
    ],
)
def test_box(args: tuple[int, ...], inside: list[tuple[int, int]], outside: list[tuple[int, int]]) -> None:
    mask = SHAPES["box"](X, Y, args, 0)
    assert all(mask[y, x] for x, y in inside)
    assert not any(mask[y, x] for x, y in outside)
