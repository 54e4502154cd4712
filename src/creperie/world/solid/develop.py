"""Turning simulated light into pictures: noise is removed, and the picture is exposed as a camera does it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from scipy.ndimage import median_filter


def denoised(light: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Return the light with less noise. `guide` holds the colour, normal and depth at each pixel. Without the package
    `mitsuba-oidn`, which has no build for some machines, the light stays as noisy as it is.
    """
    light, guide = (np.nan_to_num(a, posinf=0, neginf=0) for a in (light, guide))  # rays that went astray
    level = np.minimum(light.max(2), 30)
    most = np.minimum(level, 2.5 * median_filter(level, 3) + 0.5)  # few rays find the sun by a mirror: specks
    light = light * (most / np.maximum(light.max(2), 1e-6))[..., None]
    if not can_denoise():
        return np.asarray(light)
    albedo, normal = np.clip(guide[..., :3], 0, 1), guide[..., 3:6]
    images = (np.ascontiguousarray(a, np.float32) for a in (light, albedo, normal))
    return np.array(import_module("mitsuba_oidn").denoise(*images, hdr=True))


def can_denoise() -> bool:
    """Return whether the package that removes noise from pictures is installed."""
    return find_spec("mitsuba_oidn") is not None


def _spot_mean(layers: np.ndarray) -> np.ndarray:
    """Return the mean of each pixel of the layers (k, n, n) and its eight neighbours."""
    for axis in (1, 2):
        layers = (np.roll(layers, 1, axis) + layers + np.roll(layers, -1, axis)) / 3
    return layers


def _cover(normal: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return the fraction of each pixel (1, n, n) that does not show the sky; the sky is where the normal is
    missing.
    """
    beside = _spot_mean((depth == 0).astype(float)) > 0
    return np.where(beside, np.sqrt((normal**2).sum(0, keepdims=True)).clip(0, 1), 1)


def defocus(light: np.ndarray, guide: np.ndarray, last: float) -> np.ndarray:
    """Return the light as through a lens that is focused on things up to the distance `last`. Whatever is farther away
    is blurred, without blurring the edges of nearer things. `guide` is as for `denoised`.
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
    """Return the light, blurred. Each of the `parts` is a pair: a fraction of the light, and the width by which this
    fraction is blurred. Widths are fractions of the picture's width.
    """
    for axis in (0, 1):
        at = np.arange(light.shape[axis])
        far = (at - at[:, None]) / len(at)
        kernel = sum(share * np.exp(-((far / width) ** 2)) for share, width in parts)
        kernel = np.asarray(kernel / np.sum(kernel, 1).max(), light.dtype)
        light = np.moveaxis(np.tensordot(kernel, light, (1, axis)), 0, axis)
    return light


def expose(light: np.ndarray) -> np.ndarray:
    """Return the light as a picture. Very bright parts glow, corners are darkened, and highlights are softened. The
    exposure is longer for dark pictures, and shorter for bright ones and those with large white parts.
    """
    rows, columns = light.shape[:2]
    level = light.max(2, keepdims=True)
    high = light * np.clip(1 - 6 / np.maximum(level, 1e-6), 0, 1)
    glow = _spread(high, ((0.72, 0.004), (0.22, 0.012), (0.06, 0.05))) - 0.8 * high  # flames have soft edges
    y, x = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    grey = light.mean(2)
    middle, bright = np.exp(np.log(grey + 0.01).mean()), np.percentile(grey, 98)
    time = min(float(np.clip(math.sqrt(0.48 / middle), 0.8, 1.35)), max(0.9, 1.6 / bright))
    total = light + glow
    seen = time * total / np.maximum(total.max(2, keepdims=True) / 3, 1) * (1 - 0.1 * (x**2 + y**2))[..., None]
    peak = np.maximum(seen.max(2, keepdims=True), 1e-6)
    mapped = (_film(seen) + seen / peak * _film(peak)) / 2  # half of each, so that flames keep their hue
    coded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-6) ** (1 / 2.4) - 0.055)
    coded = np.clip(coded, 0, 1)
    coded += np.where(coded < 0.5, 0.45, 0.2) * coded * (1 - coded) * (2 * coded - 1)  # contrast in shadows
    return np.asarray((coded * 255 + 0.5).astype(np.uint8))


def _film(light: np.ndarray) -> np.ndarray:
    """Return the brightness that film gives to an amount of light: dark parts keep their detail, and bright ones never
    clip.
    """
    return np.asarray(1 - np.exp(-(light**1.08)))
