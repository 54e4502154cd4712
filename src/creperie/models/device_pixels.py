"""Pillow's resizing on the model's device, to the bit.

Pillow resizes bytes with whole numbers: weights rounded to 22 bits, a sum, a shift, first along one side and then along
the other. Sums of such numbers are exact in float64 in any order, so two matrix products on a GPU give the same bytes
as Pillow in a fraction of its time, and a processor core has only to decode. Which side goes first depends on Pillow's
version and on the sizes: it is tried with noise for each new size, and a size that does not come out equal stays with
Pillow.

`decode=fast` gives up the bytes: the GPU decodes JPEGs where torchvision can ask it to, and elsewhere Pillow decodes
them at a half, a quarter or an eighth of their size, as long as that is not below what the model reads.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import ModelError
from creperie.models.device import Place
from creperie.models.pixels import DirectPixels, Pixels, stack

if TYPE_CHECKING:
    import torch

BITS = 22  #: of Pillow's weights
LARGEST = 1_500_000  #: pixels; larger pictures are resized by Pillow, for they wait for the device as they are
Way = tuple[bool, Any, Any]  #: rows first or columns; the weights along rows and along columns


@dataclass(frozen=True)
class FastDecoding:
    """How `decode=fast` decodes: `size` is what a picture is resized to, the least that it must have."""

    size: Callable[[int, int], tuple[int, int]]
    on_gpu: bool


def fast_decoding(pixels: Pixels, place: Place) -> FastDecoding | None:
    """How this preprocessing can be fed faster; None where it is the processor's own."""
    if type(pixels) is not DirectPixels:
        return None
    seen = place.device.startswith("cuda") and importlib.util.find_spec("torchvision") is not None
    return FastDecoding(pixels.recipe.resized, seen and pixels.recipe.resample in FILTERS)


def on_device(pixels: Pixels, place: Place) -> Pixels:
    """Resize on the device where that is faster and the same."""
    plain = type(pixels) is DirectPixels and pixels.recipe.resample in FILTERS
    return DevicePixels(pixels, place) if plain and place.device.startswith("cuda") else pixels


class DevicePixels:
    """What `DirectPixels` makes, resized on the device. A prepared image is the picture's own memory, four bytes per
    pixel, or what Pillow made of it."""

    def __init__(self, pixels: Any, place: Place) -> None:
        self.pixels, self.place = pixels, place
        self._ways: dict[tuple[int, int], Way | None] = {}

    def prepare(self, image: Image.Image) -> np.ndarray:
        memory = None if image.mode != "RGB" or self._way_of(*image.size) is None else memory_of(image)
        done: np.ndarray = self.pixels.prepare(image) if memory is None else memory
        return done

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]:
        import torch

        encoded = [i for i, one in enumerate(prepared) if one.ndim == 1]
        pictures: dict[int, Any] = dict(enumerate(prepared))
        if encoded:
            pictures |= zip(encoded, decoded_on_gpu([prepared[i] for i in encoded], place), strict=True)
        alike: dict[tuple[int, ...], list[int]] = {}
        for i, one in pictures.items():
            alike.setdefault(tuple(one.shape), []).append(i)
        parts = [self._read([pictures[i] for i in rows], place) for rows in alike.values()]
        order = np.argsort(np.concatenate(list(alike.values())))
        together = torch.cat(parts)[torch.from_numpy(order).to(place.torch_device)]
        return {"pixel_values": self.pixels.scaled(together).to(place.torch_dtype)}

    def _read(self, group: Sequence[Any], place: Place) -> torch.Tensor:
        """Pictures of one size as the model reads them, (n, height, width, 3) bytes on the device."""
        import torch

        if isinstance(group[0], np.ndarray):
            stacked, done = stack(group, place), group[0].shape[2] == 3  # Pillow made three bytes per pixel
        else:
            stacked, done = torch.stack(list(group)).permute(0, 2, 3, 1), False  # (3, height, width), as decoded there
        way = None if done else self._way_of(stacked.shape[2], stacked.shape[1])
        if way is not None:
            return _resized(stacked, way)
        if done:
            return stacked
        return stack([self.pixels.prepare(Image.fromarray(one)) for one in stacked.cpu().numpy()], place)

    def _way_of(self, width: int, height: int) -> Way | None:
        if width * height > LARGEST:
            return None
        if (width, height) not in self._ways:
            self._ways[width, height] = self._way(width, height)
        return self._ways[width, height]

    def _way(self, width: int, height: int) -> Way | None:
        """Whether rows or columns go first, and the weights of both, where the result equals Pillow's."""
        import torch

        recipe = self.pixels.recipe
        wide, high = recipe.resized(width, height)
        crop = recipe.crop or (high, wide)
        if crop[0] > high or crop[1] > wide:
            return None
        left, top = recipe.corner(wide, high, crop)
        columns = weights(width, wide, recipe.resample)[:, left : left + crop[1]]
        rows = weights(height, high, recipe.resample)[:, top : top + crop[0]]
        device = self.place.torch_device
        across, down = (torch.tensor(w, device=device) for w in (columns, rows.T.copy()))
        noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
        wanted = self.pixels.prepare(Image.fromarray(noise))
        for rows_first in (True, False):
            made = _resized(torch.from_numpy(noise[None]).to(device), (rows_first, across, down))
            if np.array_equal(made[0].cpu().numpy(), wanted):
                return rows_first, across, down
        return None


def _resized(stacked: torch.Tensor, way: Way, together: int = 32) -> torch.Tensor:
    """Pictures of one size, (n, height, width, 3 or 4) bytes, so many at a time."""
    import torch

    rows_first, across, down = way
    made = []
    for part in stacked.split(together):
        values = part.permute(0, 3, 1, 2)[:, :3].to(torch.float64)
        values = (
            _rounded(down @ _rounded(values @ across)) if rows_first else _rounded(_rounded(down @ values) @ across)
        )
        made.append(values.to(torch.uint8).permute(0, 2, 3, 1))
    return torch.cat(made)


def _rounded(sums: torch.Tensor) -> torch.Tensor:
    """Weighted sums as bytes, still float64: half up, as a shift does it."""
    return sums.add_(1 << (BITS - 1)).mul_(2.0**-BITS).floor_().clamp_(0, 255)


def decoded_on_gpu(encoded: Sequence[np.ndarray], place: Place) -> list[torch.Tensor]:
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    data = [torch.from_numpy(one.copy()) for one in encoded]
    try:
        pictures: list[torch.Tensor] = decode_jpeg(data, mode=ImageReadMode.RGB, device=place.torch_device)
        return pictures
    except RuntimeError as e:
        raise ModelError(f"the GPU cannot decode a JPEG ({e})", hint="leave out decode=fast") from None


def memory_of(image: Image.Image) -> np.ndarray | None:
    """A picture's own memory, (height, width, 4), if Pillow can show it: an older one cannot."""
    try:
        import pyarrow

        flat = np.frombuffer(pyarrow.array(image).buffers()[-1], np.uint8)
        return flat.reshape(image.height, image.width, 4)
    except (ImportError, TypeError, ValueError):
        return None


# -- Pillow's weights --------------------------------------------------------------------------------------------------


def _bilinear(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _bicubic(x: float, a: float = -0.5) -> float:
    x = abs(x)
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2.0 else 0.0


def _lanczos(x: float) -> float:
    def sinc(x: float) -> float:
        return 1.0 if x == 0.0 else math.sin(x * math.pi) / (x * math.pi)

    return sinc(x) * sinc(x / 3) if -3.0 <= x < 3.0 else 0.0


FILTERS: dict[int, tuple[Callable[[float], float], float]] = {
    Image.Resampling.BILINEAR: (_bilinear, 1.0),
    Image.Resampling.BICUBIC: (_bicubic, 2.0),
    Image.Resampling.LANCZOS: (_lanczos, 3.0),
}


@functools.lru_cache(maxsize=256)
def weights(old: int, new: int, resample: int) -> np.ndarray:
    """What each of `old` pixels gives to each of `new`, (old, new), as whole numbers of 2^-22.

    >>> (weights(4, 2, Image.Resampling.BILINEAR) / 2**22).round(3).T.tolist()
    [[0.429, 0.429, 0.143, 0.0], [0.0, 0.143, 0.429, 0.429]]
    """
    found = np.zeros((old, new))
    if old == new:  # then Pillow does nothing
        np.fill_diagonal(found, 1 << BITS)
        return found
    shape, reach = FILTERS[resample]
    step = old / new
    stretch = max(step, 1.0)
    for at in range(new):
        centre = (at + 0.5) * step
        low, high = max(0, int(centre - reach * stretch + 0.5)), min(old, int(centre + reach * stretch + 0.5))
        own = np.array([shape((x - centre + 0.5) * (1.0 / stretch)) for x in range(low, high)])
        own = own / own.sum() * (1 << BITS)
        found[low:high, at] = np.trunc(own + np.copysign(0.5, own))
    return found
