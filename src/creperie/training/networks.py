"""Both towers in one forward pass, so that one module can be wrapped, moved and shared between devices."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from creperie.models import Towers, causal_text, image_features
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


class ClipNetwork(TrainedNetwork):
    """`model` is a CLIPModel, or peft's wrapping of one."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor) -> Vectors:
        images = image_features(self.model, {"pixel_values": pixels})
        return images, causal_text(self.model, ids, None), self.logit_scale.exp()


class OpenClipNetwork(TrainedNetwork):
    """`model` is one of the open_clip library; its towers are asked as its adapter asks them."""

    def __init__(self, model: Any, towers: Towers) -> None:
        super().__init__()
        self.model = model
        self.towers = towers

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor) -> Vectors:
        images = self.towers.embed_images(self.model, {"pixel_values": pixels})
        return images, self.towers.embed_texts(self.model, ids, None), self.logit_scale.exp()
