"""The layout of OpenAI's CLIP weights, read from their shapes and carried over to transformers' names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

from creperie.core import ModelError, packaged_toml

if TYPE_CHECKING:
    import torch

State = Mapping[str, "torch.Tensor"]

#: how wide a head is in the vision towers that do not have heads of 64 (ViT-H, ViT-g, ViT-bigG)
VISION_HEADS = {1280: 80, 1408: 88, 1664: 104}
#: numbers that archived programs carry beside their weights
NOT_WEIGHTS = ("input_resolution", "context_length", "vocab_size", "attn_mask", "logit_bias")
_NAMES: dict[str, dict[str, str]] = packaged_toml("creperie.models", "clip_layout.toml")
_OUTER, _NORMS, _TOWERS, _INNER = (_NAMES[part] for part in ("outer", "norms", "towers", "inner"))


@dataclass(frozen=True)
class CLIPShape:
    """Everything about a CLIP model that its weights show, and the heads, which follow from the widths."""

    joint: int
    image: int
    patch: int
    vision_width: int
    vision_layers: int
    vision_heads: int
    vision_inner: int
    text_width: int
    text_layers: int
    text_heads: int
    text_inner: int
    context: int
    vocabulary: int

    @property
    def described(self) -> str:
        vision = f"ViT {self.vision_layers}x{self.vision_width}/{self.patch} at {self.image}"
        return f"{vision}, text {self.text_layers}x{self.text_width}, {self.joint}"


def clip_shape(state: State, *, uri: str, vision_heads: int | None = None, text_heads: int | None = None) -> CLIPShape:
    """Read the architecture from the shapes of the weights."""
    weights = _flattened(state)
    if "visual.layer1.0.conv1.weight" in weights:
        hint = "load it with its architecture: open_clip:RN50//path/to/file?activation=quick_gelu"
        raise ModelError("the checkpoint has a ResNet vision tower", where=uri, hint=hint)
    needed = ("visual.conv1.weight", "visual.proj", "token_embedding.weight", "positional_embedding")
    lacking = [name for name in needed if name not in weights]
    if lacking:
        what = f"the checkpoint has no {lacking[0]!r}, so it is not laid out like OpenAI's CLIP"
        hint = "name transformers folders hf:FOLDER and other open_clip architectures open_clip:ARCH//FILE"
        raise ModelError(what, where=uri, hint=hint)
    vision_width, _, _, patch = weights["visual.conv1.weight"].shape
    grid = isqrt(weights["visual.positional_embedding"].shape[0] - 1)
    vocabulary, text_width = weights["token_embedding.weight"].shape
    return CLIPShape(
        joint=weights["visual.proj"].shape[1],
        image=grid * patch,
        patch=patch,
        vision_width=vision_width,
        vision_layers=_layers(weights, "visual.transformer.resblocks."),
        vision_heads=vision_heads or max(1, vision_width // VISION_HEADS.get(vision_width, 64)),
        vision_inner=_inner(weights, "visual.transformer.resblocks.", vision_width),
        text_width=text_width,
        text_layers=_layers(weights, "transformer.resblocks."),
        text_heads=text_heads or max(1, text_width // 64),
        text_inner=_inner(weights, "transformer.resblocks.", text_width),
        context=weights["positional_embedding"].shape[0],
        vocabulary=vocabulary,
    )


def clip_config(shape: CLIPShape, activation: str) -> Any:
    """transformers' configuration of that architecture."""
    from transformers import CLIPConfig

    text = {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.text_width,
        "intermediate_size": shape.text_inner,
        "num_hidden_layers": shape.text_layers,
        "num_attention_heads": shape.text_heads,
        "max_position_embeddings": shape.context,
        "hidden_act": activation,
        "bos_token_id": 0,
        "eos_token_id": 2,  # stands for "the highest id of the caption", which is how OpenAI's code finds the end
        "pad_token_id": 1,
    }
    vision = {
        "hidden_size": shape.vision_width,
        "intermediate_size": shape.vision_inner,
        "num_hidden_layers": shape.vision_layers,
        "num_attention_heads": shape.vision_heads,
        "image_size": shape.image,
        "patch_size": shape.patch,
        "hidden_act": activation,
    }
    return CLIPConfig(text_config=text, vision_config=vision, projection_dim=shape.joint)


def convert_state(state: State, shape: CLIPShape) -> dict[str, torch.Tensor]:
    """OpenAI's names and matrices to transformers'. Names without a counterpart stay, so that they are refused."""
    weights = {k: v for k, v in _flattened(state).items() if k not in NOT_WEIGHTS}
    return {name: value.float() for old, new in weights.items() for name, value in _renamed(old, new)}


def _renamed(name: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    if name in _OUTER:
        yield _OUTER[name], value
    elif name == "visual.proj":
        yield "visual_projection.weight", value.T.contiguous()
    elif name == "text_projection":
        yield "text_projection.weight", value.T.contiguous()
    elif name.rpartition(".")[0] in _NORMS:
        stem, _, kind = name.rpartition(".")
        yield f"{_NORMS[stem]}.{kind}", value
    else:
        yield from _renamed_block(name, value)


def _renamed_block(name: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    tower = next((t for t in _TOWERS if name.startswith(f"{t}.")), None)
    number, _, rest = name.removeprefix(f"{tower}.").partition(".")
    stem, _, kind = rest.rpartition(".")
    layer = f"{_TOWERS.get(tower or '', '')}.{number}"
    if tower and rest.startswith("attn.in_proj_"):
        kind = rest.removeprefix("attn.in_proj_")
        for letter, part in zip("qkv", value.chunk(3)):
            yield f"{layer}.self_attn.{letter}_proj.{kind}", part.contiguous()
    elif tower and stem in _INNER:
        yield f"{layer}.{_INNER[stem]}.{kind}", value
    else:
        yield name, value


def _flattened(state: State) -> dict[str, torch.Tensor]:
    """open_clip keeps the text tower of some models under `text.`."""
    return {name.removeprefix("text."): value for name, value in state.items()}


def _layers(weights: State, prefix: str) -> int:
    return len({name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)})


def _inner(weights: State, prefix: str, width: int) -> int:
    """How wide the middle of a block is; four times the tower where it has no block."""
    first = weights.get(f"{prefix}0.mlp.c_fc.weight")
    return 4 * width if first is None else int(first.shape[0])
