"""Matching heads: the model reads image and caption together, and a head computes whether they match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.models.device import Place, exact_float32
from creperie.models.hf.dual import (
    after_padding,
    all_seen,
    qformer_positions,
    text_positions,
    unit_vectors,
    vision_states,
)
from creperie.models.pixels import Pixels
from creperie.models.protocols import CHUNK, Fingerprint, Tokens
from creperie.models.tokens import CaptionTokenizer

if TYPE_CHECKING:
    import torch

    See = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]
    Match = Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Matcher:
    """The two stages of a matching model.

    `see` runs the part of the model that needs only the image, once per image. `match` combines the result with n
    captions and returns logits. Their shape is (n, 2), for "no match" and "match", or (n, 1), for "match" alone.
    """

    model_class: str
    see: See
    match: Match
    context: Callable[[Any], int]


@dataclass(eq=False)
class JointModel:
    """The base class of models that read an image together with captions (`MatchingHead` and `FusedEncoder`)."""

    model: Any
    matcher: Matcher
    tokenizer: CaptionTokenizer
    pixels: Pixels
    place: Place
    fingerprint: Fingerprint

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return self.pixels.prepare(image)

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.tokenizer(texts)

    def joined(self, image: np.ndarray, texts: Sequence[Tokens]) -> torch.Tensor:
        """Return the model's outputs for the image with each of the captions, in float32."""
        import torch

        parts = [torch.zeros(0, 2)] if not texts else []
        with exact_float32():
            seen = self.matcher.see(self.model, self.pixels.batch([image], self.place))
            for start in range(0, len(texts), CHUNK):
                ids, mask = self.tokenizer.pad(texts[start : start + CHUNK], None, self.place)
                shown = torch.ones_like(ids) if mask is None else mask
                parts.append(self.matcher.match(self.model, seen, ids, shown).float())
            return torch.cat(parts)


@dataclass(eq=False)
class MatchingHead(JointModel):
    """A pair scorer that says how well captions match an image. `value` selects the score: "prob" (the probability of a
    match), "logit" (the logit of a match) or "margin" (the difference between the logits of match and no match).
    """

    value: str = "prob"

    def forward_pairs(self, image: np.ndarray, texts: Sequence[Tokens]) -> np.ndarray:
        return match_value(self.joined(image, texts), self.value).cpu().numpy()

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return self.forward_pairs(self.prepare_image(image), self.prepare_texts(texts))


class FusedEncoder(JointModel):
    """A pair encoder. It returns one vector per caption, computed from caption and image together."""

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return unit_vectors(self.joined(self.prepare_image(image), self.prepare_texts(texts)))


def match_value(logits: torch.Tensor, value: str) -> torch.Tensor:
    """Return one number per pair from logits (no match, match), or from a single match logit."""
    # Most evaluations use the probability. In float32, it is exactly 1 if the margin is about 17 or more, which causes
    # ties. The margin gives the same ranking without such ties. The match logit alone gives a different ranking.
    import torch

    if logits.shape[1] == 1:
        return torch.sigmoid(logits[:, 0]) if value == "prob" else logits[:, 0]
    if value == "prob":
        return torch.softmax(logits, dim=1)[:, 1]
    return logits[:, 1] if value == "logit" else logits[:, 1] - logits[:, 0]


def _repeat(seen: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return seen.expand(ids.shape[0], *seen.shape[1:])


# -- BLIP, BLIP-2 ----------------------------------------------------------------------------------------------------


def _blip_match(model: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    states = _repeat(seen, ids)
    output = model.text_encoder(
        input_ids=ids, attention_mask=mask, encoder_hidden_states=states, encoder_attention_mask=all_seen(states)
    )
    return model.itm_head(output.last_hidden_state[:, 0])


def _blip2_match(model: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    import torch

    states = _repeat(seen, ids)
    queries = _repeat(model.query_tokens, ids)
    output = model.qformer(
        query_embeds=model.embeddings(input_ids=ids, query_embeds=queries),
        query_length=queries.shape[1],
        attention_mask=torch.cat([all_seen(queries), mask], dim=1),
        encoder_hidden_states=states,
        encoder_attention_mask=all_seen(states),
    )
    weight = model.itm_head.weight
    logits: torch.Tensor = model.itm_head(output.last_hidden_state[:, : queries.shape[1]].to(weight.dtype))
    return logits.mean(dim=1)


# -- FLAVA -----------------------------------------------------------------------------------------------------------


def _flava_see(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the input of FLAVA's multimodal encoder: the projected states of the image tower's last layer, before the
    final norm.
    """
    states = model.flava.image_model(**inputs, output_hidden_states=True).hidden_states[-1]
    return model.flava.image_to_mm_projection(states)


def _flava_match(model: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    import torch

    flava = model.flava
    states = flava.text_model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[-1]
    joined = torch.cat([_repeat(seen, ids), flava.text_to_mm_projection(states)], dim=1)
    before = seen.shape[1] + bool(flava.multimodal_model.use_cls_token)
    whole = torch.cat([mask.new_ones(len(ids), before), mask], dim=1)
    return model.itm_head(flava.multimodal_model(joined, attention_mask=whole).last_hidden_state)


# -- ViLT ------------------------------------------------------------------------------------------------------------


def _vilt_see(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the embedded image patches."""
    # ViLT draws some at random if there are more than its limit; here the seed is fixed, so that scores are
    # reproducible.
    import torch

    pixels = inputs["pixel_values"]
    vilt = getattr(model, "vilt", model)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        patches: torch.Tensor = vilt.embeddings.visual_embed(
            pixels,
            pixels.new_ones(1, *pixels.shape[2:], dtype=torch.long),
            max_image_length=model.config.max_image_length,
        )[0]
    return patches


def _vilt_join(model: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> Any:
    patches = _repeat(seen, ids)
    return model(input_ids=ids, attention_mask=mask, image_embeds=patches, pixel_mask=all_seen(patches))


# -- the table -------------------------------------------------------------------------------------------------------


def _positions(config: Any) -> int:
    return int(config.max_position_embeddings)


MATCHERS: dict[str, Matcher] = {
    "blip": Matcher("BlipForImageTextRetrieval", vision_states, _blip_match, text_positions),
    "blip-2": Matcher("Blip2ForImageTextRetrieval", vision_states, _blip2_match, qformer_positions),
    "bridgetower": Matcher(
        "BridgeTowerForImageAndTextRetrieval",
        lambda model, inputs: inputs["pixel_values"],  # its image blocks cannot be run without its text blocks
        lambda model, seen, ids, mask: (
            model(input_ids=ids, attention_mask=mask, pixel_values=_repeat(seen, ids)).logits
        ),
        after_padding,
    ),
    "flava": Matcher("FlavaForPreTraining", _flava_see, _flava_match, text_positions),
    "vilt": Matcher("ViltForImageAndTextRetrieval", _vilt_see, lambda *given: _vilt_join(*given).logits, _positions),
}
FUSERS: dict[str, Matcher] = {
    "vilt": Matcher("ViltModel", _vilt_see, lambda *given: _vilt_join(*given).last_hidden_state[:, 0], _positions)
}
