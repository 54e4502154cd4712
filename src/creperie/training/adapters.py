"""Low-rank adapters (LoRA) beside attention weights of any library: W + alpha / rank · B A."""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import nn
from torch.nn.utils import parametrize

#: other names of the same weights
ALIASES = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
#: weights that hold queries, keys and values one below the other
STACKED = ("in_proj_weight", "qkv.weight")
THIRDS = ("q_proj", "k_proj", "v_proj")


class LowRankUpdate(nn.Module):
    """What is added to a matrix, or to some of its thirds; nothing at first."""

    def __init__(self, weight: torch.Tensor, thirds: Collection[int], rank: int, alpha: float) -> None:
        super().__init__()
        self.thirds, self.scale = tuple(thirds), alpha / rank
        height, width = weight.shape[0] // (3 if thirds else 1), weight.shape[1]
        self.down = nn.Parameter(torch.empty(len(thirds) or 1, rank, width, dtype=weight.dtype))
        self.up = nn.Parameter(torch.zeros(len(thirds) or 1, height, rank, dtype=weight.dtype))
        nn.init.uniform_(self.down, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        added = self.scale * (self.up @ self.down)
        if not self.thirds:
            return weight + added[0]
        parts = list(weight.chunk(3))
        for third, update in zip(self.thirds, added):
            parts[third] = parts[third] + update
        return torch.cat(parts)


def add_adapters(model: nn.Module, targets: Collection[str], rank: int, alpha: float) -> int:
    """Freeze a model and put adapters beside the matrices that `targets` names; how many there are."""
    found = []
    for name, weight in model.named_parameters():
        weight.requires_grad_(False)
        owner, _, own = name.rpartition(".")
        layer = owner.rpartition(".")[2]
        if name.endswith(STACKED):
            thirds = [k for k, third in enumerate(THIRDS) if third in targets]
            found += [(owner, own, thirds)] if thirds else []
        elif own == "weight" and weight.ndim == 2 and {layer, ALIASES.get(layer, layer)} & {*targets}:
            found.append((owner, own, []))
    for owner, own, thirds in found:
        module = model.get_submodule(owner)
        parametrize.register_parametrization(
            module, own, LowRankUpdate(getattr(module, own), thirds, rank, alpha), unsafe=True
        )
    return len(found)


def merged_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights by name, with the adapters merged into those they stand beside."""
    state = {}
    for name, tensor in model.state_dict().items():
        owner, adapted, rest = name.partition(".parametrizations.")
        if not adapted:
            state[name] = tensor
        elif rest.endswith(".original"):
            own = rest.removesuffix(".original")
            state[f"{owner}.{own}"] = getattr(model.get_submodule(owner), own)
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}
