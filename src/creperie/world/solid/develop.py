"""Turning simulated light into pictures: noise is smoothed, and the picture is exposed as a camera does it."""

from __future__ import annotations

import math

import numpy as np


def smooth(light: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Return the light with less noise, by averaging over neighbours on the same surface and of similar brightness.
    `guide` holds the colour, normal and depth at each pixel.
    """
    light, guide = (np.nan_to_num(layer, posinf=0, neginf=0) for layer in (light, guide))  # a ray that went astray
    albedo, normal, depth = guide[..., -7:-4], guide[..., -4:-1], guide[..., -1:]
    albedo = np.clip(albedo, 0.04, 1)
    light = light / albedo
    light = _despeckled(light / np.maximum(light.max(2, keepdims=True) / 150, 1))
    likeness = np.concatenate([4 * albedo, 3 * normal, depth / np.maximum(depth.mean() * 0.04, 1e-3)], 2)
    for step in (1, 2, 4, 8):
        grey = light.mean(2, keepdims=True)  # less noisy than the light itself, so that edges are not ragged
        grey = _averaged(grey, np.concatenate([likeness, 0.55 * np.log(grey + 0.05)], 2), 1)
        level = math.sqrt(12 / step**0.8) * np.log(grey + 0.05)
        light = _averaged(light, np.concatenate([likeness, level], 2), step)
    return np.asarray(light * albedo)


def expose(light: np.ndarray) -> np.ndarray:
    """Return the light as a picture. Very bright parts glow, corners are darkened, and highlights are softened. The
    exposure is longer for dark pictures, and shorter for bright ones and those with large white parts.
    """
    high, wide = light.shape[:2]
    level = light.max(2, keepdims=True)
    glow = light * np.clip(1 - 6 / np.maximum(level, 1e-6), 0, 1)
    for axis, n in ((0, high), (1, wide)):
        far = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n
        spread = 0.8 * np.exp(-((far / 0.012) ** 2)) + 0.2 * np.exp(-((far / 0.05) ** 2))
        glow = np.moveaxis(np.tensordot(spread / spread.sum(1).max(), glow, (1, axis)), 0, axis)
    y, x = np.mgrid[-1 : 1 : high * 1j, -1 : 1 : wide * 1j]
    grey = light.mean(2)
    middle, bright = np.exp(np.log(grey + 0.01).mean()), np.percentile(grey, 98)
    time = min(float(np.clip(math.sqrt(0.48 / middle), 0.8, 1.35)), max(0.9, 1.6 / bright))
    total = light + 0.25 * glow
    seen = time * total / np.maximum(total.max(2, keepdims=True) / 3, 1) * (1 - 0.1 * (x**2 + y**2))[..., None]
    peak = np.maximum(seen.max(2, keepdims=True), 1e-6)
    mapped = (_film(seen) + seen / peak * _film(peak)) / 2  # half of each, so that flames keep their hue
    coded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-6) ** (1 / 2.4) - 0.055)
    return (np.clip(coded, 0, 1) * 255 + 0.5).astype(np.uint8)


def _film(light: np.ndarray) -> np.ndarray:
    """Return the brightness that film gives to an amount of light: dark parts keep their detail, and bright ones never
    clip.
    """
    return np.asarray(1 - np.exp(-(light**1.08)))


def _despeckled(light: np.ndarray) -> np.ndarray:
    """Return the light without speckles: each pixel is clipped to lie between its second-darkest and its
    third-brightest neighbour.
    """
    wide = np.pad(light, ((1, 1), (1, 1), (0, 0)), mode="edge")
    high, across = light.shape[:2]
    around = [wide[y : y + high, x : x + across] for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    ranked = np.partition(np.stack(around), (1, 5), axis=0)
    return np.clip(light, ranked[1], ranked[5])


def _averaged(light: np.ndarray, likeness: np.ndarray, step: int) -> np.ndarray:
    """Return the light averaged over neighbours `step` pixels away; those that are most alike have the most weight."""
    pad = ((step, step), (step, step), (0, 0))
    wide, near = np.pad(light, pad, mode="edge"), np.pad(likeness, pad, mode="edge")
    total, weights = np.zeros_like(light), np.zeros_like(light[..., :1])
    high, across = light.shape[:2]
    for dy in (0, step, 2 * step):
        for dx in (0, step, 2 * step):
            apart = ((near[dy : dy + high, dx : dx + across] - likeness) ** 2).sum(2, keepdims=True)
            weight = np.exp(-apart) * ((2 - (dy != step)) * (2 - (dx != step)))
            total += weight * wide[dy : dy + high, dx : dx + across]
            weights += weight
    return total / weights
