"""`decode=fast`: JPEGs decoded faster, with slightly other pixels than Pillow's, by explicit choice.

Where torchvision can ask a GPU to, it decodes and resizes there. Elsewhere Pillow decodes JPEGs at a half, a quarter or
an eighth of their size, as long as that is not below what the model reads.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import ModelError
from creperie.models.device import Place
from creperie.models.pixels import DirectPixels, Pixels, Preprocessing, stack

if TYPE_CHECKING:
    import torch

#: what torch can resize as Pillow does, to a level or so
MODES = {Image.Resampling.BILINEAR: "bilinear", Image.Resampling.BICUBIC: "bicubic"}


@dataclass(frozen=True)
class FastDecoding:
    """How pictures are decoded: `size` is what one is resized to, the least that it must have."""

    size: Callable[[int, int], tuple[int, int]]
    on_gpu: bool


def fast_decoding(pixels: Pixels, place: Place) -> tuple[FastDecoding | None, Pixels]:
    """How this preprocessing can be fed faster, and what takes it; None where it is the processor's own."""
    if type(pixels) is not DirectPixels:
        return None, pixels
    recipe = pixels.recipe
    there = place.device.startswith("cuda") and importlib.util.find_spec("torchvision") is not None
    fits = recipe.resample in MODES and not (recipe.crop and min(recipe.crop) > min(recipe.resized(1, 1)))
    on_gpu = there and fits
    return FastDecoding(recipe.resized, on_gpu), DevicePixels(pixels) if on_gpu else pixels


class DevicePixels:
    """A prepared image is the bytes of a JPEG, which the device decodes, or what Pillow made of any other picture."""

    def __init__(self, pixels: DirectPixels) -> None:
        self.pixels = pixels

    def prepare(self, image: Image.Image) -> np.ndarray:
        return self.pixels.prepare(image)

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]:
        import torch

        encoded = [i for i, one in enumerate(prepared) if one.ndim == 1]
        decoded = decoded_on_gpu([prepared[i] for i in encoded], place) if encoded else []
        alike: dict[tuple[int, ...], list[int]] = {}
        for k, picture in enumerate(decoded):
            alike.setdefault(tuple(picture.shape), []).append(k)
        parts = [resized(torch.stack([decoded[k] for k in ks]), self.pixels.recipe) for ks in alike.values()]
        order = [encoded[k] for ks in alike.values() for k in ks]
        others = sorted(set(range(len(prepared))) - set(order))
        if others:
            parts.append(stack([prepared[i] for i in others], place))
        back = torch.from_numpy(np.argsort([*order, *others])).to(place.torch_device)
        return {"pixel_values": self.pixels.scaled(torch.cat(parts)[back]).to(place.torch_dtype)}


def decoded_on_gpu(encoded: Sequence[np.ndarray], place: Place) -> list[torch.Tensor]:
    """JPEGs as (3, height, width) bytes."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    data = [torch.from_numpy(one.copy()) for one in encoded]
    try:
        pictures: list[torch.Tensor] = decode_jpeg(data, mode=ImageReadMode.RGB, device=place.torch_device)
    except RuntimeError as e:
        raise ModelError(f"the GPU cannot decode a JPEG ({e})", hint="leave out decode=fast") from None
    return pictures


def resized(pictures: torch.Tensor, recipe: Preprocessing, together: int = 64) -> torch.Tensor:
    """Pictures of one size, (n, 3, height, width), as the model reads them, (n, height, width, 3)."""
    import torch

    wide, high = recipe.resized(pictures.shape[3], pictures.shape[2])
    tall, broad = recipe.crop or (high, wide)
    left, top = recipe.corner(wide, high, (tall, broad))
    how: Any = {"size": (high, wide), "mode": MODES[Image.Resampling(recipe.resample)], "antialias": True}
    parts = [torch.nn.functional.interpolate(part.float(), **how) for part in pictures.split(together)]
    kept = [part[:, :, top : top + tall, left : left + broad].round().clamp(0, 255).to(torch.uint8) for part in parts]
    return torch.cat(kept).permute(0, 2, 3, 1)
