"""Image towers: vision models of transformers that compute features of one or more views of an image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import affine_grid, grid_sample, interpolate

from creperie.core import UsageError
from creperie.models import Folder, Place, hash_files, model_folder, parse_uri

#: ways to make an image square: the whole image resized, the same mirrored, or the centre
VIEWS = ("whole", "mirrored", "centre")
#: share of the shorter side in the centre view, as in tests of ImageNet models
CENTRE = 224 / 256


@dataclass(frozen=True)
class ViewRule:
    """How to cut an image into square views for an image tower: the names of the views, and their width in pixels."""

    names: tuple[str, ...] = ("whole",)
    size: int = 224

    def __post_init__(self) -> None:
        if not self.names or set(self.names) - set(VIEWS):
            wrong = ", ".join(sorted(set(self.names) - set(VIEWS)))
            why = f"unknown views: {wrong}" if wrong else "no view is named"
            raise UsageError(why, hint=f"choose from: {', '.join(VIEWS)}")

    def __call__(self, image: Image.Image) -> np.ndarray:
        """Return the views of an image as RGB bytes, (views, size, size, 3).

        >>> ViewRule(("whole", "mirrored"), 28)(Image.new("L", (50, 40))).shape
        (2, 28, 28, 3)
        """
        return np.stack([np.asarray(self._view(image.convert("RGB"), name)) for name in self.names])

    def _view(self, image: Image.Image, name: str) -> Image.Image:
        box = None
        if name == "centre":
            side = CENTRE * min(image.size)
            left, top = ((edge - side) / 2 for edge in image.size)
            box = (left, top, left + side, top + side)
        square = image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)
        return square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if name == "mirrored" else square


class VisionTower:
    """A vision model as a function from pixels to features.

    For a model with a class token, the features are the class tokens of the last `layers` layers and the mean of the
    patch tokens. For a model without one, they are its pooled output. For a dual encoder, they are the image's vector.
    """

    def __init__(self, uri: str, layers: int, place: Place) -> None:
        from transformers import AutoModel

        parsed = parse_uri(uri)
        self.layers = layers
        self.path: Path = model_folder(parsed.name, uri=uri, revision=parsed.options.get("revision"))
        folder = Folder(self.path, uri)
        self.processor = folder.image_processor()
        self.model: Any = folder.model(AutoModel, place)
        config = self.model.config
        self.norm: Any = self.model.layernorm if hasattr(getattr(self.model, "embeddings", None), "cls_token") else None
        self.architecture = f"{type(self.model).__name__}, class tokens of {layers} layers, patch mean"
        if self.norm is None:
            self.side: int | None = getattr(getattr(config, "vision_config", config), "image_size", None)
            self.architecture = f"{type(self.model).__name__}, pooled"
            with torch.no_grad():
                blank = torch.zeros((1, 224, 224, 3), dtype=torch.uint8, device=place.torch_device)
                self.width = self.features(self.scaled(blank)).shape[1]
            return
        if not 1 <= layers <= config.num_hidden_layers:
            raise UsageError(
                f"layers must be from 1 to {config.num_hidden_layers}, not {layers}",
                where=uri,
                hint="choose another ?layers=",
            )
        #: tokens before the patches: the class token, distillation and register tokens
        self.skip = 1 + getattr(config, "num_register_tokens", 0) + (config.model_type == "deit")
        self.side, self.width = None, config.hidden_size * (layers + 1)

    def scaled(self, pixels: torch.Tensor) -> torch.Tensor:
        """Convert images from bytes (n, h, w, 3) to normalised pixels (n, 3, h, w), in the size that the model
        expects.
        """
        own = self.processor
        shift, scale = (torch.tensor(list(v), device=pixels.device) for v in (own.image_mean, own.image_std))
        normalised = ((pixels.float() / 255 - shift) / scale).permute(0, 3, 1, 2)
        if self.side is None or self.side == normalised.shape[-1]:
            return normalised
        return interpolate(normalised, (self.side, self.side), mode="bicubic", antialias=True)

    def features(self, scaled: torch.Tensor) -> torch.Tensor:
        """Return the features (n, width) of images given as pixels (n, 3, h, w)."""
        if self.norm is None:
            output = getattr(self.model, "get_image_features", self.model)(pixel_values=scaled)
            return getattr(output, "pooler_output", output).flatten(1).float()
        output = self.model(pixel_values=scaled, output_hidden_states=self.layers > 1)
        last = output.last_hidden_state
        tokens = [self.norm(h)[:, 0] for h in output.hidden_states[-self.layers : -1]] if self.layers > 1 else []
        return torch.cat([*tokens, last[:, 0], last[:, self.skip :].mean(dim=1)], dim=1).float()

    def weights(self) -> str:
        return hash_files(sorted(self.path.glob("*.safetensors")) or sorted(self.path.glob("*.bin")))


def random_crops(images: torch.Tensor, smallest: float) -> torch.Tensor:
    """Return the images (n, 3, h, w), each cropped to a random window and mirrored at random. The window is then
    enlarged to the size of the image. It covers at least the fraction `smallest` of the image, provided that `smallest`
    is at most 0.7.
    """
    # This reduces overfitting if a tower is trained on a small number of images.
    n = len(images)
    area, shape, x, y, side = torch.rand(5, n)
    edge, stretch = (smallest + (1 - smallest) * area).sqrt(), torch.exp((2 * shape - 1) * 0.16)
    wide, high = (edge * stretch).clamp(max=1), (edge / stretch).clamp(max=1)
    where = torch.zeros(n, 2, 3)
    where[:, 0, 0], where[:, 0, 2] = wide * torch.where(side < 0.5, -1.0, 1.0), (2 * x - 1) * (1 - wide)
    where[:, 1, 1], where[:, 1, 2] = high, (2 * y - 1) * (1 - high)
    grid = affine_grid(where.to(images.device), list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
