"""Both towers in one forward pass, so that one module can be wrapped, moved and shared between devices."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from creperie.models import Towers
from creperie.training.architecture import SmallClip

Vectors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TrainedNetwork(nn.Module):
    """What the trainer moves, wraps and calls. `model` is what is saved."""

    model: Any

    @property
    def logit_scale(self) -> torch.Tensor:
        scale: torch.Tensor = self.model.logit_scale
        return scale

    def rate_of(self, name: str) -> float:
        """The learning rate of a weight, as a share of the training's."""
        return 1.0


class SmallNetwork(TrainedNetwork):
    def __init__(self, model: SmallClip) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor) -> Vectors:
        return self.model.embed_images(pixels), self.model.embed_texts(ids), self.model.logit_scale.exp()


class DualNetwork(TrainedNetwork):
    """`model` is one of transformers or of open_clip; its towers are asked as its adapter
    asks them. `pad` is the padding that a tower must be told about."""

    def __init__(self, model: Any, towers: Towers, pad: int | None = None) -> None:
        super().__init__()
        self.model, self.towers, self.pad = model, towers, pad

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor) -> Vectors:
        images = self.towers.embed_images(self.model, {"pixel_values": pixels})
        mask = None if self.pad is None else (ids != self.pad).long()
        return images, self.towers.embed_texts(self.model, ids, mask), self.logit_scale.exp()
