"""Dual encoders: an image tower and a text tower with a shared embedding space."""

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
