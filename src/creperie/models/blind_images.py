"""Images that show nothing: noise, Gaussian noise, one grey. Deterministic by seed and name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from PIL import Image

NULLS = ("noise", "gaussian", "grey")
#: of Gaussian noise, in units of 0…255: the middle, and a spread that clips about 5 % of the pixels
MEAN, SPREAD = 127.5, 64.0


def blind_image(kind: str, size: tuple[int, int], seed: int = 0, name: str = "") -> Image.Image:
    """A picture of a size (width, height) that shows nothing; the same for the same seed and name.

    >>> blind_image("grey", (4, 3)).getpixel((0, 0))
    (128, 128, 128)
    """
    width, height = size
    if kind == "grey":
        return Image.new("RGB", size, (128, 128, 128))
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8], "big"))
    if kind == "noise":
        return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    values = rng.normal(MEAN, SPREAD, (height, width, 3))
    return Image.fromarray(np.rint(values).clip(0, 255).astype(np.uint8))


def null_images(kind: str, count: int, size: tuple[int, int] = (336, 336), seed: int = 0) -> list[Image.Image]:
    """Several pictures that show nothing, for the probability of a caption without an image."""
    return [blind_image(kind, size, seed, f"null {i}") for i in range(1 if kind == "grey" else count)]


def mean_image(images: Sequence[Image.Image], size: tuple[int, int] = (256, 256)) -> Image.Image:
    """The mean of pictures, each first brought to one size."""
    total = np.zeros((size[1], size[0], 3), np.float64)
    for image in images:
        total += np.asarray(image.convert("RGB").resize(size, Image.Resampling.BICUBIC), np.float64)
    return Image.fromarray(np.rint(total / max(1, len(images))).clip(0, 255).astype(np.uint8))
