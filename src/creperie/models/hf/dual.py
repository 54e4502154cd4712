"""Dual encoders: an image tower and a text tower with a shared embedding space. The dual encoder architectures of
transformers, and how to compute vectors with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from creperie.models.device import Place, exact_float32
from creperie.models.pixels import Pixels
from creperie.models.protocols import Fingerprint, StagedImages, StagedTexts, Tokens
from creperie.models.tokens import CaptionTokenizer

if TYPE_CHECKING:
    import torch

    EmbedTexts = Callable[[Any, torch.Tensor, torch.Tensor | None], torch.Tensor]
    EmbedImages = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]


@dataclass(frozen=True)
class Towers:
    """The functions that embed texts and images with a model.

    `trims` says whether vectors stay the same if a batch is padded only to its longest caption: "always" (causal
    towers), "masked" (only if the tower gets an attention mask) or "never".
    """

    embed_texts: EmbedTexts
    embed_images: EmbedImages
    trims: Literal["always", "masked", "never"]


@dataclass(eq=False)
class HfTextTower(StagedTexts):
    """A text encoder. Batches are padded to `width` tokens or, if it is None, to the longest caption in the batch."""

    model: Any
    embed_texts: EmbedTexts
    tokenizer: CaptionTokenizer
    place: Place
    fingerprint: Fingerprint
    width: int | None

    @property
    def trims(self) -> bool:
        return self.width is None

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.tokenizer(texts)

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        return self.forward_padded(prepared, self.width)

    def forward_padded(self, prepared: Sequence[Tokens], width: int | None) -> np.ndarray:
        """Return the vectors of a batch that is padded to `width` tokens. If `width` is None, it is padded to its
        longest caption.
        """

        ids, mask = self.tokenizer.pad(prepared, width, self.place)
        with exact_float32():
            return unit_vectors(self.embed_texts(self.model, ids, mask))


class DualEncoder(HfTextTower, StagedImages):
    """An encoder of captions and images into one embedding space."""

    def __init__(
        self,
        model: Any,
        towers: Towers,
        tokenizer: CaptionTokenizer,
        pixels: Pixels,
        place: Place,
        fingerprint: Fingerprint,
        *,
        width: int | None = None,
    ) -> None:
        exact = towers.trims == "always" or (towers.trims == "masked" and tokenizer.masks)
        width = width or (None if exact else tokenizer.context)
        super().__init__(model, towers.embed_texts, tokenizer, place, fingerprint, width)
        self.pixels = pixels
        self.towers = towers

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return self.pixels.prepare(image)

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        with exact_float32():
            return unit_vectors(self.towers.embed_images(self.model, self.pixels.batch(prepared, self.place)))


def unit_vectors(vectors: torch.Tensor) -> np.ndarray:
    """Return the vectors as float32 arrays of length one."""
    import torch

    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()


# -- the architectures of transformers ---------------------------------------------------------------------------------

Config = Any  #: a transformers configuration


@dataclass(frozen=True)
class DualEncoderFamily:
    """A dual encoder architecture: its class in transformers, the functions that embed, and the context length."""

    model_class: str
    towers: Towers
    context: Callable[[Config], int]
    options: tuple[str, ...] = ()  #: options beside those that every dual encoder takes


def all_seen(states: torch.Tensor) -> torch.Tensor:
    """Return an attention mask of ones, so that every state is attended to."""
    import torch

    return torch.ones(states.shape[:-1], dtype=torch.long, device=states.device)


def pooled(output: Any) -> torch.Tensor:
    """Return the projected vector. In older versions of transformers, this vector is the output itself; in newer
    versions, it is a field of the output.
    """
    return output if hasattr(output, "shape") else output.pooler_output


# -- texts -----------------------------------------------------------------------------------------------------------


def causal_text(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return the vector at the end token."""
    # Each token attends only to those before it, so padding needs no mask.
    return pooled(model.get_text_features(input_ids=ids))


def masked_text(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return pooled(model.get_text_features(input_ids=ids, attention_mask=mask))


def _blip_text(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    states = model.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    return model.text_proj(states[:, 0])


def _blip2_text(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    embedded = model.embeddings(input_ids=ids)
    states = model.qformer(query_embeds=embedded, query_length=0, attention_mask=mask).last_hidden_state
    return model.text_projection(states[:, 0].to(model.text_projection.weight.dtype))


# -- images ----------------------------------------------------------------------------------------------------------


def image_features(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return pooled(model.get_image_features(**inputs))


def vision_states(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model.vision_model(**inputs).last_hidden_state


def _blip2_image(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return one vector per query token."""
    # A caption's score is that of the query that matches it best.
    states = vision_states(model, inputs)
    queries = model.query_tokens.expand(states.shape[0], -1, -1)
    output = model.qformer(query_embeds=queries, encoder_hidden_states=states, encoder_attention_mask=all_seen(states))
    weight = model.vision_projection.weight
    return model.vision_projection(output.last_hidden_state.to(weight.dtype))


def first_query(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the vector of the first query token. Some published BLIP-2 evaluations use it instead of the best
    query.
    """
    return _blip2_image(model, inputs)[:, 0]


# -- contexts --------------------------------------------------------------------------------------------------------


def text_positions(config: Config) -> int:
    return int(config.text_config.max_position_embeddings)


def after_padding(config: Config) -> int:
    """Return the context length of a text tower like RoBERTa. Its positions begin at `pad_token_id` + 1, so the lower
    position embeddings are not used.
    """
    return int(config.text_config.max_position_embeddings) - int(config.text_config.pad_token_id) - 1


def _either(config: Config) -> int:
    offset = config.text_config.model_type in ("roberta", "xlm-roberta", "camembert")
    return after_padding(config) if offset else text_positions(config)


def qformer_positions(config: Config) -> int:
    return int(config.qformer_config.max_position_embeddings)


_CAUSAL = Towers(causal_text, image_features, trims="always")
_MASKED = Towers(masked_text, image_features, trims="masked")
_FULL = Towers(masked_text, image_features, trims="never")


FAMILIES: dict[str, DualEncoderFamily] = {
    "align": DualEncoderFamily("AlignModel", _MASKED, text_positions),
    "altclip": DualEncoderFamily("AltCLIPModel", _MASKED, after_padding),
    "blip": DualEncoderFamily(
        "BlipForImageTextRetrieval",
        Towers(_blip_text, lambda model, inputs: model.vision_proj(vision_states(model, inputs)[:, 0]), trims="masked"),
        text_positions,
    ),
    "blip-2": DualEncoderFamily(
        "Blip2ForImageTextRetrieval",
        Towers(_blip2_text, _blip2_image, trims="masked"),
        qformer_positions,
        ("query",),
    ),
    "clip": DualEncoderFamily("CLIPModel", _CAUSAL, text_positions),
    "flava": DualEncoderFamily(
        "FlavaModel",
        Towers(  # the vectors at the first position, which its contrastive loss uses
            lambda *given: masked_text(*given)[:, 0], lambda *given: image_features(*given)[:, 0], trims="masked"
        ),
        text_positions,
    ),
    "siglip": DualEncoderFamily("SiglipModel", _FULL, text_positions),
    "vision-text-dual-encoder": DualEncoderFamily("VisionTextDualEncoderModel", _MASKED, _either),
}
