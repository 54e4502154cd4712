"""Dual encoders: an image tower and a text tower in one space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from creperie.models.device import Place, exact_float32
from creperie.models.pixels import Pixels
from creperie.models.protocols import Fingerprint, Tokens
from creperie.models.tokens import CaptionTokenizer

if TYPE_CHECKING:
    import torch

    EmbedTexts = Callable[[Any, torch.Tensor, torch.Tensor | None], torch.Tensor]
    EmbedImages = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]

#: `encode_*` works through long lists in parts of this size; the scorer chooses its own
CHUNK = 64


@dataclass(frozen=True)
class Towers:
    """How a model is asked for its vectors, and whether cutting a batch at its longest caption changes nothing:
    "always" for causal towers, "masked" for towers that read an attention mask, "never" for the others."""

    embed_texts: EmbedTexts
    embed_images: EmbedImages
    trims: Literal["always", "masked", "never"]


class HfTextTower:
    """Captions to vectors. `width` pads every batch to that many tokens; None cuts it at its longest caption."""

    def __init__(
        self,
        model: Any,
        embed_texts: EmbedTexts,
        tokenizer: CaptionTokenizer,
        place: Place,
        fingerprint: Fingerprint,
        *,
        width: int | None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.place = place
        self.width = width
        self._embed_texts = embed_texts
        self.fingerprint = fingerprint

    @property
    def trims(self) -> bool:
        return self.width is None

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.tokenizer(texts)

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        return self.forward_padded(prepared, self.width)

    def forward_padded(self, prepared: Sequence[Tokens], width: int | None) -> np.ndarray:
        """Return the vectors of a batch that is padded to `width` tokens, or to its longest caption."""

        ids, mask = self.tokenizer.pad(prepared, width, self.place)
        with exact_float32():
            return unit_vectors(self._embed_texts(self.model, ids, mask))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return in_parts(lambda part: self.forward_texts(self.prepare_texts(part)), texts)


class DualEncoder(HfTextTower):
    """Captions and images to vectors in one space."""

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
        super().__init__(
            model,
            towers.embed_texts,
            tokenizer,
            place,
            fingerprint,
            width=width or (None if exact else tokenizer.context),
        )
        self.pixels = pixels
        self.towers = towers
        self._embed_images = towers.embed_images

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return self.pixels.prepare(image)

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        with exact_float32():
            return unit_vectors(self._embed_images(self.model, self.pixels.batch(prepared, self.place)))

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return in_parts(lambda part: self.forward_images([self.prepare_image(i) for i in part]), images)


def in_parts(encode: Callable[[Sequence[Any]], np.ndarray], inputs: Sequence[Any]) -> np.ndarray:
    """Encode a long list in parts, so that it need not fit the device at once."""
    if not inputs:
        return np.zeros((0, 0), dtype=np.float32)
    return np.concatenate([encode(inputs[i : i + CHUNK]) for i in range(0, len(inputs), CHUNK)])


def unit_vectors(vectors: torch.Tensor) -> np.ndarray:
    """Return float32 vectors of length one."""
    import torch

    normal: np.ndarray = torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()
    return normal
