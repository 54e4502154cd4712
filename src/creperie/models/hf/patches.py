"""SigLIP 2 of flexible resolution: an image becomes a grid of patches that keeps its shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.models.device import Place
from creperie.models.pixels import in_colour

if TYPE_CHECKING:
    import torch


class PatchGrids:
    """Prepared images are float32, (rows, columns, values of a patch), without padding."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor

    def prepare(self, image: Image.Image) -> np.ndarray:
        inputs = self.processor(in_colour(self.processor, image), return_tensors="np")
        rows, columns = (int(n) for n in inputs["spatial_shapes"][0])
        patches = np.asarray(inputs["pixel_values"][0], dtype=np.float32)[: rows * columns]
        return np.ascontiguousarray(patches.reshape(rows, columns, -1))

    def batch(self, prepared: Sequence[np.ndarray], place: Place) -> dict[str, torch.Tensor]:
        """Pad to the number of patches that the processor pads to: the towers' sums then have one order."""
        import torch

        most = int(self.processor.max_num_patches)
        values = np.zeros((len(prepared), most, prepared[0].shape[-1]), dtype=np.float32)
        mask = np.zeros((len(prepared), most), dtype=np.int64)
        for i, grid in enumerate(prepared):
            count = grid.shape[0] * grid.shape[1]
            values[i, :count] = grid.reshape(count, -1)
            mask[i, :count] = 1
        shapes = np.array([grid.shape[:2] for grid in prepared], dtype=np.int64)
        device = place.torch_device
        return {
            "pixel_values": torch.from_numpy(values).to(device).to(place.torch_dtype),
            "pixel_attention_mask": torch.from_numpy(mask).to(device),
            "spatial_shapes": torch.from_numpy(shapes).to(device),
        }
