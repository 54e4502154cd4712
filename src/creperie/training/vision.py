"""Image towers: a vision model of transformers as views and features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import ModelError, UsageError
from creperie.models import Folder, Place, hash_files, model_folder, parse_uri

if TYPE_CHECKING:
    import torch

#: how an image becomes a square: the whole image resized, the same mirrored, or the centre
VIEWS = ("whole", "mirrored", "centre")
#: share of the shorter side that the centre view keeps, as ImageNet models are tested
CENTRE = 224 / 256


@dataclass(frozen=True)
class ViewRule:
    """Which squares of an image are shown to the tower, and their width in pixels."""

    names: tuple[str, ...] = ("whole",)
    size: int = 224

    def __post_init__(self) -> None:
        if not self.names or set(self.names) - set(VIEWS):
            raise UsageError(f"unknown view among {list(self.names)}", hint=f"known: {', '.join(VIEWS)}")

    def __call__(self, image: Image.Image) -> np.ndarray:
        """RGB bytes, (views, size, size, 3).

        >>> ViewRule(("whole", "mirrored"), 28)(Image.new("L", (50, 40))).shape
        (2, 28, 28, 3)
        """
        shown = image if image.mode == "RGB" else image.convert("RGB")
        return np.stack([np.asarray(self._view(shown, name)) for name in self.names])

    def _view(self, image: Image.Image, name: str) -> Image.Image:
        box = None
        if name == "centre":
            side = CENTRE * min(image.size)
            left, top = ((edge - side) / 2 for edge in image.size)
            box = (left, top, left + side, top + side)
        square = image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)
        return square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if name == "mirrored" else square


class VisionTower:
    """Pixels to features: the class tokens of the last `layers` layers and the mean of the patches."""

    def __init__(self, uri: str, layers: int, place: Place) -> None:
        from transformers import AutoModel

        parsed = parse_uri(uri)
        if parsed.kind != "hf":
            raise UsageError("image towers are named by hf:", where=uri, hint="name a vision model of transformers")
        self.uri, self.layers = uri, layers
        self.path: Path = model_folder(parsed.name, uri=uri, revision=parsed.options.get("revision"))
        folder = Folder(self.path, uri)
        self.processor = folder.image_processor()
        self.model: Any = folder.model(AutoModel, place)
        self.norm: Any = getattr(self.model, "layernorm", None)
        config = self.model.config
        if self.norm is None or not hasattr(config, "num_hidden_layers"):
            raise ModelError(
                f"{config.model_type!r} is not a known image tower",
                where=uri,
                hint="name a vision transformer with a class token: dinov2, vit, deit, …",
            )
        if not 1 <= layers <= config.num_hidden_layers:
            raise UsageError(f"the tower has {config.num_hidden_layers} layers, not {layers}", where=uri)
        #: tokens before the patches: the class token, distillation and register tokens
        self.skip = 1 + getattr(config, "num_register_tokens", 0) + (config.model_type == "deit")
        self.width: int = config.hidden_size * (layers + 1)

    def scaled(self, pixels: torch.Tensor) -> torch.Tensor:
        """Bytes (n, h, w, 3) to the numbers that the tower was trained on."""
        import torch

        mean, std = (
            torch.tensor(v, device=pixels.device) for v in (self.processor.image_mean, self.processor.image_std)
        )
        return ((pixels.float() / 255 - mean) / std).permute(0, 3, 1, 2)

    def features(self, scaled: torch.Tensor) -> torch.Tensor:
        """(n, 3, h, w) to (n, width)."""
        import torch

        found = self.model(pixel_values=scaled, output_hidden_states=self.layers > 1)
        last = found.last_hidden_state
        tokens = [self.norm(h)[:, 0] for h in found.hidden_states[-self.layers : -1]] if self.layers > 1 else []
        return torch.cat([*tokens, last[:, 0], last[:, self.skip :].mean(dim=1)], dim=1).float()

    def weights(self) -> str:
        return hash_files(sorted(self.path.glob("*.safetensors")) or sorted(self.path.glob("*.bin")))


def random_crops(images: torch.Tensor, smallest: float) -> torch.Tensor:
    """Each image (n, 3, h, w) cropped to a random window of at least `smallest` of its area and mirrored at random,
    which keeps a tower in training from learning its few images by heart."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    n = len(images)
    area, shape, x, y, side = torch.rand(5, n)
    edge, stretch = (smallest + (1 - smallest) * area).sqrt(), torch.exp((2 * shape - 1) * 0.16)
    wide, high = (edge * stretch).clamp(max=1), (edge / stretch).clamp(max=1)
    where = torch.zeros(n, 2, 3)
    where[:, 0, 0], where[:, 0, 2] = wide * torch.where(side < 0.5, -1.0, 1.0), (2 * x - 1) * (1 - wide)
    where[:, 1, 1], where[:, 1, 2] = high, (2 * y - 1) * (1 - high)
    grid = affine_grid(where.to(images.device), list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
