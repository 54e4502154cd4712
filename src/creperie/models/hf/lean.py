"""CLIP's towers with less work and the same vectors, for CPUs, where every product counts.

Three things a forward pass computes are never read. Padding. The states of a caption's beginning that another caption
of the batch begins with too: in a causal tower they are the same, and a caption and its foil share about a third of
their tokens. And what the last layer makes of all positions but the one that is pooled. So linear layers run over the
different beginnings only, attention over captions gathered from them, and the last layer over the pooled positions.

Whether the result is the same is not assumed but tried when a model is loaded; where it is not, the library's own
forward pass is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.device import Place, exact_float32
from creperie.models.hf.dual import DualEncoder, Towers

if TYPE_CHECKING:
    import torch

TOLERANCE = 1e-5
ROUND = 16  #: captions are as wide as a multiple of this, so that a longer one beside them does not change sums


class LeanEncoder(DualEncoder):
    """A dual encoder whose text tower does less for captions that begin alike: it wants them in one batch."""

    shares = True


def encoder_for(model: Any, towers: Towers, place: Place) -> tuple[type[DualEncoder], Towers]:
    """The lean towers where they apply and agree with the library's, else what was there."""
    if place.device != "cpu" or place.dtype != "float32" or type(model).__name__ != "CLIPModel":
        return DualEncoder, towers
    lean = replace(towers, embed_texts=lean_texts, embed_images=lean_images)
    _lay_out(model)
    try:
        with exact_float32():
            return (LeanEncoder, lean) if _agree(model, towers, lean) else (DualEncoder, towers)
    except (AttributeError, TypeError, RuntimeError):  # another version of the library, with other parts
        return DualEncoder, towers


def _lay_out(model: Any) -> None:
    """Store the weights of linear layers input by input. They are multiplied that way round, and OpenBLAS is some 5 %
    faster, for small batches 30 %, when it need not turn them each time. Nothing else sees the difference."""
    import torch

    if "BLAS_INFO=open" not in torch.__config__.show():
        return
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.weight.data = layer.weight.data.t().contiguous().t()


def _agree(model: Any, ours: Towers, lean: Towers) -> bool:
    import torch

    generator = torch.Generator().manual_seed(0)
    config = model.config
    ids = torch.randint(3, config.text_config.vocab_size - 2, (3, 9), generator=generator)
    end = config.text_config.eos_token_id
    ids[1, :4] = ids[0, :4]
    for row, length in enumerate((5, 8, 9)):
        ids[row, length - 1 :] = end if end != 2 else config.text_config.vocab_size - 1
    size = config.vision_config.image_size
    pixels = {"pixel_values": torch.randn(2, 3, size, size, generator=generator)}
    far = (
        (ours.embed_texts(model, ids, None) - lean.embed_texts(model, ids, None)).abs().max(),
        (ours.embed_images(model, pixels) - lean.embed_images(model, pixels)).abs().max(),
    )
    scale = float(ours.embed_texts(model, ids, None).norm(dim=-1).min())
    return bool(max(far) <= TOLERANCE * max(1.0, scale))


# -- captions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beginnings:
    """The different beginnings of a batch of captions: `tokens` and `depths` of the last token of each; `places` the
    beginning at every position of every caption (captions × longest); `first` where each stands first in that."""

    tokens: np.ndarray
    depths: np.ndarray
    places: np.ndarray
    first: np.ndarray


def beginnings(captions: Sequence[np.ndarray]) -> Beginnings:
    """
    >>> b = beginnings([np.array([9, 1, 2, 8]), np.array([9, 1, 3, 8])])
    >>> b.tokens.tolist(), b.depths.tolist(), b.places[:, :4].tolist()
    ([9, 1, 2, 8, 3, 8], [0, 1, 2, 3, 2, 3], [[0, 1, 2, 3], [0, 1, 4, 5]])
    """
    width = -(-max(len(c) for c in captions) // ROUND) * ROUND
    places = np.zeros((len(captions), width), np.int64)
    known: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    depths: list[int] = []
    first: list[int] = []
    for row, caption in enumerate(captions):
        node = -1
        for depth, token in enumerate(caption.tolist()):
            step = (node, token)
            node = known.setdefault(step, len(known))
            if node == len(tokens):
                tokens.append(token)
                depths.append(depth)
                first.append(row * width + depth)
            places[row, depth] = node
    return Beginnings(np.array(tokens), np.array(depths), places, np.array(first))


def pooled_positions(ids: np.ndarray, end: int) -> np.ndarray:
    """Where a caption is read: at its first end token. 2 is how old configurations say "the highest id"."""
    return np.asarray(ids.argmax(axis=1) if end == 2 else (ids == end).argmax(axis=1))


def lean_texts(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The vectors of a batch; what follows a caption's end token is not looked at."""
    import torch

    rows = ids.numpy()
    ends = pooled_positions(rows, model.config.text_config.eos_token_id)
    batch = beginnings([row[: end + 1] for row, end in zip(rows, ends, strict=True)])
    places, first = torch.from_numpy(batch.places), torch.from_numpy(batch.first)
    tower = model.text_model
    states = tower.embeddings.token_embedding(torch.from_numpy(batch.tokens))
    states = states + tower.embeddings.position_embedding(torch.from_numpy(batch.depths))
    *layers, last = tower.encoder.layers
    for layer in layers:
        normal = layer.layer_norm1(states)
        query, key, value = (project(normal)[places] for project in _projections(layer.self_attn))
        seen = _attend(layer.self_attn, query, key, value, causal=True)
        states = _finish(layer, states, seen.reshape(places.numel(), -1)[first])
    pooled = places[torch.arange(len(rows)), torch.from_numpy(ends)]
    visible = torch.arange(places.shape[1])[None, :] <= torch.from_numpy(ends)[:, None]
    normal = last.layer_norm1(states)
    ask, offer, give = _projections(last.self_attn)
    seen = _attend(
        last.self_attn, ask(normal[pooled])[:, None], offer(normal)[places], give(normal)[places], mask=visible
    )
    vector: torch.Tensor = model.text_projection(tower.final_layer_norm(_finish(last, states[pooled], seen[:, 0])))
    return vector


# -- images ----------------------------------------------------------------------------------------------------------


def lean_images(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The vectors of a batch of images; the last layer is asked for the first position only."""
    tower = model.vision_model
    states = tower.pre_layrnorm(_patches(tower.embeddings, inputs["pixel_values"]))
    *layers, last = tower.encoder.layers
    for layer in layers:
        normal = layer.layer_norm1(states)
        query, key, value = (project(normal) for project in _projections(layer.self_attn))
        states = _finish(layer, states, _attend(layer.self_attn, query, key, value))
    normal = last.layer_norm1(states)
    ask, offer, give = _projections(last.self_attn)
    seen = _attend(last.self_attn, ask(normal[:, :1]), offer(normal), give(normal))
    pooled = tower.post_layernorm(_finish(last, states[:, :1], seen)[:, 0])
    vector: torch.Tensor = model.visual_projection(pooled)
    return vector


def _patches(embeddings: Any, pixels: torch.Tensor) -> torch.Tensor:
    """The embedded patches behind the class embedding. Patches do not overlap, so their convolution is a product."""
    import torch

    kernel = embeddings.patch_embedding
    size = kernel.kernel_size[0]
    if (
        pixels.shape[-1] % size
        or pixels.shape[-2] % size
        or kernel.stride != kernel.kernel_size
        or kernel.padding != (0, 0)
    ):
        whole: torch.Tensor = embeddings(pixels)
        return whole
    cut = pixels.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # image, colour, row, y, column, x
    flat = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    patches = torch.nn.functional.linear(flat, kernel.weight.flatten(1), kernel.bias)
    first = embeddings.class_embedding.expand(len(pixels), 1, -1)
    states: torch.Tensor = torch.cat([first, patches], dim=1) + embeddings.position_embedding(embeddings.position_ids)
    return states


# -- one layer -------------------------------------------------------------------------------------------------------


def _projections(attention: Any) -> tuple[Any, Any, Any]:
    return attention.q_proj, attention.k_proj, attention.v_proj


def _attend(
    attention: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    causal: bool = False,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention over (rows, positions, width), heads inside; `mask` says which positions a row may see."""
    import torch

    q, k, v = (x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2) for x in (query, key, value))
    allowed = None if mask is None else mask[:, None, None, :]
    seen = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=allowed, is_causal=causal, scale=attention.scale
    )
    return seen.transpose(1, 2).flatten(-2)


def _finish(layer: Any, states: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """What follows attention: its projection, and the MLP."""
    states = states + layer.self_attn.out_proj(seen)
    finished: torch.Tensor = states + layer.mlp(layer.layer_norm2(states))
    return finished
