"""Training of dual encoders from other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import ModelError, UsageError
from creperie.models import DirectPixels, DualEncoder, Tokens, pad_tokens, parse_uri
from creperie.training.architecture import DualNetwork, Student

if TYPE_CHECKING:
    import torch


class DualStudent(Student):
    """A dual encoder in training. Images and captions are prepared as in the encoder's own library."""

    def __init__(self, encoder: DualEncoder) -> None:
        raw = encoder.tokenizer.tokenizer
        self._pad = getattr(raw, "pad_token_id", None) or 0
        mask_id = raw.pad_token_id if encoder.towers.trims == "masked" else None
        self.network = DualNetwork(encoder.model, encoder.towers, mask_id)
        self.trims = encoder.trims
        self.encoder = encoder

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return self.encoder.prepare_image(image)

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.encoder.prepare_texts(texts)

    def pixels(self, stacked: torch.Tensor) -> torch.Tensor:
        pixels = self.encoder.pixels
        return pixels.scaled(stacked) if isinstance(pixels, DirectPixels) else stacked.float()

    def ids(self, prepared: Sequence[Tokens]) -> torch.Tensor:
        return pad_tokens(prepared, pad_id=self._pad, width=self.encoder.width)[0]


class ClipStudent(DualStudent):
    """A CLIP or FLAVA model from the transformers library, in training. Its tokenizer and image processor are saved
    with it.
    """

    kind = "hf"
    text_weights = ("model.text_model.", "model.text_projection.")

    def __init__(self, encoder: DualEncoder, processor: Any) -> None:
        super().__init__(encoder)
        self._processor = processor

    def save(self, folder: Path) -> None:
        from creperie.models import quiet_libraries

        with quiet_libraries():
            for part in (self.network.merged(), self.encoder.tokenizer.tokenizer, self._processor):
                part.save_pretrained(folder)


def open_transformers(uri: str) -> ClipStudent:
    """Return the CLIP or FLAVA model of an `hf:` URI, ready to be trained."""
    from creperie.models import Folder, load_model, model_folder

    parsed = parse_uri(uri)
    folder = Folder(model_folder(parsed.name, uri=uri, revision=parsed.options.get("revision")), uri)
    config = folder.config()
    if config.model_type not in ("clip", "flava"):
        raise UsageError(
            f"only CLIP and FLAVA models can be trained, not {config.model_type!r}",
            where=uri,
            hint="name a CLIP or FLAVA model, or pass one as open_clip:MODEL",
        )
    encoder = load_model(uri, device="cpu")
    assert isinstance(encoder, DualEncoder)
    tokens = len(encoder.tokenizer.tokenizer)
    if tokens > config.text_config.vocab_size:
        raise ModelError(
            f"the tokenizer has {tokens} tokens, but the model only {config.text_config.vocab_size}",
            where=uri,
            hint="use a folder whose config.json and tokenizer belong together",
        )
    return ClipStudent(encoder, folder.image_processor())
