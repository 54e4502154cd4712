"""Which transformers architectures are known as dual encoders, and how each is asked for its vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.models.hf.dual import Towers

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Family:
    """A dual encoder of transformers: the class that loads it and the way to its vectors."""

    model_class: str
    towers: Towers
    context: Callable[[Any], int]  #: from the configuration
    note: str = ""


def pooled(output: Any) -> torch.Tensor:
    """The projected vector: a tensor in older versions of transformers, a field of an output in newer ones."""
    vector: torch.Tensor = output if hasattr(output, "shape") else output.pooler_output
    return vector


def _image_features(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return pooled(model.get_image_features(**inputs))


def _causal_text(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The vector at the end token. A token sees only what is before it, so padding needs no mask."""
    return pooled(model.get_text_features(input_ids=ids))


def _text_positions(config: Any) -> int:
    return int(config.text_config.max_position_embeddings)


FAMILIES: dict[str, Family] = {
    "clip": Family("CLIPModel", Towers(_causal_text, _image_features, trims=True), _text_positions),
}
