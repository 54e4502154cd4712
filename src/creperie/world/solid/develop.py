"""Turning simulated light into pictures: noise is smoothed, and the picture is exposed as a camera does it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def smooth(light: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Return the light with less noise, by averaging over neighbours on the same surface and of similar brightness.
    `guide` holds the colour, normal and depth at each pixel.
    """
    light, guide = (np.nan_to_num(np.moveaxis(a, 2, 0), posinf=0, neginf=0) for a in (light, guide))  # astray rays
    albedo, normal, depth = np.clip(guide[-7:-4], 0.04, 1), guide[-4:-1], guide[-1:]
    albedo = albedo + 1 - _cover(normal, depth)  # the sky has no colour of its own
    light = light / albedo
    light = _despeckled(light / np.maximum(light.max(0) / 30, 1))
    likeness = np.concatenate([4 * albedo, 3 * normal, depth / np.maximum(depth.mean() * 0.04, 1e-3)])
    beside = {step: _apart(likeness, step) for step in (1, 2)}
    grainy = np.clip(5 * _grain_of(light.mean(0)), 0, 1)
    for step in (1, 2, 4, 8):
        raw = light.mean(0)[None]  # noisier than its average, by which edges are not ragged
        grey = _averaged(raw, beside[1], 1.1 / step**0.3 * np.log(raw[0] + 0.25), 1)
        if step < 4:
            wide = _averaged(raw, beside[1], 0.8 * np.log(raw[0] + 0.25), 1)
            wide = _averaged(wide, beside[2], 0.8 * np.log(wide[0] + 0.25), 2)
            grey += grainy * (wide - grey)
        level = math.sqrt(9 * step**0.6) * np.log(grey[0] + 0.25)  # by now, less noisy: thin shadows stay
        light = _averaged(light, beside[step] if step in beside else _apart(likeness, step), level, step)
    ways = (*_WAYS, *((-y, -x) for y, x in _WAYS))
    alike = sum(np.exp(-((likeness - np.roll(likeness, way, (1, 2))) ** 2).sum(0)) for way in ways)
    whole = np.clip(alike / 1.5, 0.01, 1)[None]  # of pixels on an edge, which are of two surfaces, little
    around = _spot_mean(light * whole) / _spot_mean(whole)
    return np.moveaxis((light * whole + around * (1 - whole)) * albedo, 0, 2)


def _spot_mean(layers: np.ndarray) -> np.ndarray:
    """Return the mean of each pixel of the layers (k, n, n) and its eight neighbours."""
    for axis in (1, 2):
        layers = (np.roll(layers, 1, axis) + layers + np.roll(layers, -1, axis)) / 3
    return layers


def _cover(normal: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return how much of each pixel (1, n, n) is not sky, which has no normal."""
    beside = _spot_mean((depth == 0).astype(float)) > 0
    return np.where(beside, np.sqrt((normal**2).sum(0, keepdims=True)).clip(0, 1), 1)


def defocus(light: np.ndarray, guide: np.ndarray, last: float) -> np.ndarray:
    """Return the light as through a lens that is focused on things up to the distance `last`. Whatever is farther away
    is blurred, without blurring the edges of nearer things. `guide` is as for `smooth`.
    """
    normal, depth = (np.nan_to_num(np.moveaxis(a, 2, 0)) for a in (guide[..., -4:-1], guide[..., -1:]))
    cover = _cover(normal, depth)[0][..., None]
    depth = np.where(cover > 0.05, depth[0][..., None] / np.maximum(cover, 0.05), 1e9)
    blur = 0.05 * np.clip(1 - last / depth, 0, 0.35)  # as a share of the picture's width
    levels, weight = [light], np.minimum(blur / 0.003, 1) + 1e-6
    for width in (0.004, 0.014):
        share = _spread(weight, ((1, width),))
        levels.append(_spread(light * weight, ((1, width),)) / share)
    for level, width, before in ((levels[1], 0.004, 0.0), (levels[2], 0.014, 0.004)):
        light = light + np.clip((blur - before) / (width - before), 0, 1) * (level - light)
    return light


def _spread(light: np.ndarray, parts: Sequence[tuple[float, float]]) -> np.ndarray:
    """Return the light, blurred. Each of the `parts` is a share of the light, and the width by which this share is
    blurred, as a fraction of the picture's width.
    """
    for axis in (0, 1):
        at = np.arange(light.shape[axis])
        far = (at - at[:, None]) / len(at)
        kernel = sum(share * np.exp(-((far / width) ** 2)) for share, width in parts)
        light = np.moveaxis(np.tensordot(kernel / np.sum(kernel, 1).max(), light, (1, axis)), 0, axis)
    return light


def expose(light: np.ndarray) -> np.ndarray:
    """Return the light as a picture. Very bright parts glow, corners are darkened, and highlights are softened. The
    exposure is longer for dark pictures, and shorter for bright ones and those with large white parts.
    """
    high, wide = light.shape[:2]
    level = light.max(2, keepdims=True)
    glow = light * np.clip(1 - 6 / np.maximum(level, 1e-6), 0, 1)
    glow = _spread(glow, ((0.8, 0.012), (0.2, 0.05)))
    y, x = np.mgrid[-1 : 1 : high * 1j, -1 : 1 : wide * 1j]
    grey = light.mean(2)
    middle, bright = np.exp(np.log(grey + 0.01).mean()), np.percentile(grey, 98)
    time = min(float(np.clip(math.sqrt(0.48 / middle), 0.8, 1.35)), max(0.9, 1.6 / bright))
    total = light + 0.25 * glow
    seen = time * total / np.maximum(total.max(2, keepdims=True) / 3, 1) * (1 - 0.1 * (x**2 + y**2))[..., None]
    peak = np.maximum(seen.max(2, keepdims=True), 1e-6)
    mapped = (_film(seen) + seen / peak * _film(peak)) / 2  # half of each, so that flames keep their hue
    coded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-6) ** (1 / 2.4) - 0.055)
    coded = np.clip(coded, 0, 1)
    coded += np.where(coded < 0.5, 0.5, 0.2) * coded * (1 - coded) * (2 * coded - 1)  # more contrast, mostly in shadows
    return np.asarray((coded * 255 + 0.5).astype(np.uint8))


def _film(light: np.ndarray) -> np.ndarray:
    """Return the brightness that film gives to an amount of light: dark parts keep their detail, and bright ones never
    clip.
    """
    return np.asarray(1 - np.exp(-(light**1.08)))


def _grain_of(grey: np.ndarray) -> np.ndarray:
    """Return how noisy the brightness (n, n) is around each pixel. A pixel is compared with the mean of two opposite
    neighbours, in the direction in which this difference is smallest. Thin lines and edges therefore do not count as
    noise.
    """
    level = np.log(grey + 0.05)
    ways = [level - (np.roll(level, (y, x), (0, 1)) + np.roll(level, (-y, -x), (0, 1))) / 2 for y, x in _WAYS]
    return _spot_mean(_spot_mean(np.abs(ways).min(0)[None]))[0]


#: Sorts eight values by exchanging pairs of them.
_EXCHANGES = ("02134657", "04152637", "01234567", "2435", "1436", "123456")


def _despeckled(light: np.ndarray) -> np.ndarray:
    """Return the light (3, n, n) without speckles: each pixel is clipped to lie between its second-darkest and its
    third-brightest neighbour.
    """
    wide, (high, across) = _padded(light, 1), light.shape[1:]
    rank = [wide[:, y : y + high, x : x + across] for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    for pairs in _EXCHANGES:
        for a, b in zip(map(int, pairs[::2]), map(int, pairs[1::2])):
            rank[a], rank[b] = np.minimum(rank[a], rank[b]), np.maximum(rank[a], rank[b])
    return np.clip(light, rank[1], rank[5])


#: Steps down and to the right to four of the eight neighbours; the other four are on the opposite sides.
_WAYS = ((0, 1), (1, -1), (1, 0), (1, 1))


def _padded(layers: np.ndarray, step: int) -> np.ndarray:
    return np.pad(layers, ((0, 0), (step, step), (step, step)), mode="edge")


def _pair(wide: np.ndarray, down: int, right: int) -> tuple[np.ndarray, np.ndarray]:
    """Return views of the pixels that have a neighbour so many pixels away, and of these neighbours."""
    high, across = wide.shape[-2:]
    first, last = max(0, -right), across - max(0, right)
    return wide[..., : high - down, first:last], wide[..., down:, first + right : last + right]


def _apart(layers: np.ndarray, step: int) -> list[np.ndarray]:
    """Return how unlike each pixel of the layers (k, n, n) and its neighbour are, for each of `_WAYS`."""
    pairs = (_pair(_padded(layers, step), step * down, step * right) for down, right in _WAYS)
    return [((a - b) ** 2).sum(0) for a, b in pairs]


def _averaged(light: np.ndarray, apart: Sequence[np.ndarray], level: np.ndarray, step: int) -> np.ndarray:
    """Return the light (k, n, n) averaged over neighbours `step` pixels away; those that are most alike, by `apart`
    and the `level` of brightness, have the most weight.
    """
    wide = _padded(light, step)
    total, weights = 4 * wide, np.full_like(wide[:1], 4)
    for (down, right), unlike, brighter in zip(_WAYS, apart, _apart(level[None], step)):
        weight = np.exp(-unlike - brighter) * (2 - down * right**2)  # a corner has half the weight
        for values, sums in ((wide, total), (np.ones_like(weights), weights)):
            here, there = (_pair(a, step * down, step * right) for a in (values, sums))
            there[0][...] += weight * here[1]
            there[1][...] += weight * here[0]
    return np.asarray((total / weights)[:, step:-step, step:-step])
