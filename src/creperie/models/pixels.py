"""Turn images into pixel tensors: resized and cropped on the CPU, normalised on the model's device.

The image processors of transformers are the reference. If a processor's steps are the usual ones (resize, centre crop,
rescale, normalise), Pillow does them several times faster and releases the GIL. When a model is loaded, both ways are
compared on test images. The fast way is used only if the results agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from PIL import Image

from creperie.models.device import Place

if TYPE_CHECKING:
    import torch

PROBES = ((61, 47), (47, 90), (40, 40), (700, 33))


class Pixels(Protocol):
    """An image preprocessing. `prepare` turns an image into an array, and `batch` turns arrays into the model's
    inputs.
    """

    def prepare(self, image: Image.Image) -> np.ndarray: ...

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]: ...


@dataclass(frozen=True)
class Preprocessing:
    """The settings of the preprocessing that most models use: resize, crop, rescale, normalise. `size` is either one
    number, the length of the shorter edge, or a pair (height, width).
    """

    size: int | tuple[int, int]
    crop: tuple[int, int] | None
    resample: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    round_centre: bool = False  #: round a half-pixel crop offset to even (torchvision) instead of down

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and the height of an image after resizing, given its original width and height."""
        if not isinstance(self.size, int):
            return self.size[1], self.size[0]
        if width <= height:
            return self.size, int(self.size * height / width)
        return int(self.size * width / height), self.size

    def corner(self, width: int, height: int, crop: tuple[int, int]) -> tuple[int, int]:
        """Return the left and the top edge of the centre crop of an image with this width and height. `crop` is
        (height, width).
        """
        left, top = (width - crop[1]) / 2, (height - crop[0]) / 2
        return (round(left), round(top)) if self.round_centre else (int(left), int(top))


@dataclass(frozen=True, eq=False)
class DirectPixels:
    """Preprocessing with Pillow. Prepared images are bytes, (height, width, 3): a quarter of the size of float32."""

    recipe: Preprocessing
    #: fallback for transparency, palettes and crops larger than the image
    odd: Callable[[Image.Image], np.ndarray] | None = None
    _norms: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def prepare(self, image: Image.Image) -> np.ndarray:
        if image.mode not in ("RGB", "L"):
            return self.odd(image) if self.odd else self.prepare(image.convert("RGB"))
        if image.mode == "L":
            image = image.convert("RGB")
        width, height = self.recipe.resized(*image.size)
        crop = self.recipe.crop
        if self.odd and crop and (crop[0] > height or crop[1] > width):
            return self.odd(image)
        image = image.resize((width, height), self.recipe.resample)
        if crop and crop != (height, width):
            left, top = self.recipe.corner(width, height, crop)
            image = image.crop((left, top, left + crop[1], top + crop[0]))
        return np.asarray(image)

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.scaled(stack(prepared, place)).to(place.torch_dtype)}

    def scaled(self, stacked: torch.Tensor) -> torch.Tensor:
        """Return a stack of prepared images, on any device, as float32 (n, 3, height, width)."""
        import torch

        values = stacked.permute(0, 3, 1, 2).to(torch.float32) * self.recipe.scale
        if values.device not in self._norms:  # cached per device: a transfer for every batch would make a GPU wait
            norms = (torch.tensor(numbers).view(3, 1, 1) for numbers in (self.recipe.mean, self.recipe.std))
            mean, std = (norm.to(values.device) for norm in norms)
            self._norms[values.device] = mean, std
        mean, std = self._norms[values.device]
        return (values - mean) / std


@dataclass(frozen=True)
class ProcessorPixels:
    """Preprocessing by the transformers processor. Prepared images are float32 (3, height, width)."""

    processor: Any

    def prepare(self, image: Image.Image) -> np.ndarray:
        values = self.processor(in_colour(self.processor, image), return_tensors="np")["pixel_values"][0]
        return np.asarray(values, np.float32)

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]:
        return {"pixel_values": stack(prepared, place).to(place.torch_dtype)}


def stack(prepared: Sequence[np.ndarray], place: Place) -> torch.Tensor:
    """Return the arrays as one tensor on the device. CUDA devices are reached through pinned memory, which is
    faster.
    """
    import torch

    if place.torch_device.type != "cuda":
        return torch.from_numpy(np.stack(prepared)).to(place.torch_device)
    kind = torch.uint8 if prepared[0].dtype == np.uint8 else torch.float32
    host = torch.empty((len(prepared), *prepared[0].shape), dtype=kind, pin_memory=True)
    np.stack(prepared, out=host.numpy())
    return host.to(place.torch_device, non_blocking=True)


def pixels_of(processor: Any) -> Pixels:
    """Return the fast preprocessing (with Pillow) if it gives the same pixels as the processor. Otherwise return the
    processor's own.
    """
    slow = ProcessorPixels(processor)
    recipe = _recipe_of(processor)
    if recipe is None:
        return slow
    return agreeing(DirectPixels(recipe, lambda image: _processor_bytes(processor, image)), slow)


def agreeing(fast: DirectPixels, slow: Pixels) -> Pixels:
    """Return the fast preprocessing if it agrees with the slow one on every test image, else the slow one."""
    rng = np.random.default_rng(0)
    for width, height in PROBES:
        image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        both: tuple[Pixels, ...] = fast, slow
        here, there = (way.batch([way.prepare(image)], Place())["pixel_values"][0].numpy() for way in both)
        if here.shape != there.shape or not np.abs(here - there).max() <= 1e-5:
            return slow
    return fast


def in_colour(processor: Any, image: Image.Image) -> Image.Image:
    """Return the image in a mode that a processor accepts: RGB, unless the processor converts to RGB itself."""
    own_way = image.mode == "RGB" or getattr(processor, "do_convert_rgb", False)
    return image if own_way else image.convert("RGB")


def _processor_bytes(processor: Any, image: Image.Image) -> np.ndarray:
    """Return an image as bytes after the processor has resized and cropped it, before rescaling and normalisation."""
    image = in_colour(processor, image)
    plain = processor(image, do_rescale=False, do_normalize=False, return_tensors="np")["pixel_values"][0]
    return np.ascontiguousarray(np.asarray(plain).transpose(1, 2, 0).astype(np.uint8))


def _recipe_of(processor: Any) -> Preprocessing | None:
    """Return the preprocessing that a processor's settings describe. Return None unless it consists of resizing, an
    optional centre crop, rescaling and normalisation.
    """
    settings = processor.to_dict()
    if not (settings.get("do_resize") and settings.get("do_rescale") and settings.get("do_normalize")):
        return None
    size = _size(settings.get("size"))
    if size is None:
        return None
    cropped = settings.get("do_center_crop")
    crop = _size(settings.get("crop_size")) if cropped else None
    if cropped and not isinstance(crop, tuple):
        return None
    return Preprocessing(
        size=size,
        crop=crop if isinstance(crop, tuple) else None,
        resample=int(settings["resample"]),
        scale=float(settings["rescale_factor"]),
        mean=tuple(settings["image_mean"]),
        std=tuple(settings["image_std"]),
    )


def _size(value: Any) -> int | tuple[int, int] | None:
    named = {k: v for k, v in dict(value or {}).items() if v is not None}
    if set(named) == {"shortest_edge"}:
        return int(named["shortest_edge"])
    if set(named) == {"height", "width"}:
        return int(named["height"]), int(named["width"])
    return None
