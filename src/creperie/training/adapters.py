"""Low-rank adapters (LoRA) from peft, which can be added to the attention layers of models from any library."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import nn

from creperie.core import UsageError, missing_extra

#: alternative names of the same layers
ALIASES = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
THIRDS = {"q_proj", "k_proj", "v_proj"}
#: linear layers with the weights of queries, keys and values stacked
STACKED = "qkv"


def add_adapters(model: nn.Module, targets: Collection[str], rank: int, alpha: float) -> Any:
    """Freeze a model and add adapters to the layers named in `targets`. Return the peft object that holds the
    adapters.
    """
    # If one layer computes queries, keys and values together, the whole layer gets an adapter.
    try:
        from peft import LoraConfig, LoraModel
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "peft", "train") from e

    layers = [name for name, layer in model.named_modules() if _is_target(name, layer, {*targets})]
    if not layers:
        raise UsageError(f"no layer is called {' or '.join(targets)}", hint="name other layers with `targets=`")
    return LoraModel(model, LoraConfig(r=rank, lora_alpha=alpha, target_modules=layers), "default")


def _is_target(name: str, layer: nn.Module, targets: set[str]) -> bool:
    own = name.rpartition(".")[2]
    if isinstance(layer, nn.MultiheadAttention) or (isinstance(layer, nn.Linear) and own == STACKED):
        return bool(targets & {*THIRDS, own})
    return isinstance(layer, nn.Linear) and bool({own, ALIASES.get(own, own)} & targets)
