"""Vera: how plausible a statement is, by a T5 encoder whose head hides in its embedding table.

The head's weight is row 32099 of the shared embeddings, its bias element 0 of row 32098, the temperature element 0 of
row 32097. The score is sigmoid((w · h + b) / t) of the hidden state h of the text's last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.errors import ModelError, missing_extra
from creperie.models.hub import model_folder
from creperie.models.place import Place, find_place
from creperie.models.protocols import Fingerprint
from creperie.models.uri import parse_uri
from creperie.models.weights import hash_files, weight_files

WEIGHT_ROW, BIAS_ROW, TEMPERATURE_ROW = 32099, 32098, 32097
MAX_LENGTH = 128
BATCH = 32


class Vera:
    """A `TextScorer`: the calibrated plausibility of a caption, between 0 and 1."""

    def __init__(self, encoder: Any, tokenizer: Any, place: Place, fingerprint: Fingerprint) -> None:
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.place = place
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        parts = [self._score(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    def _score(self, texts: Sequence[str]) -> np.ndarray:
        import torch

        tokens = self.tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation="longest_first", max_length=MAX_LENGTH
        ).to(self.place.torch_device)
        table = self.encoder.get_input_embeddings().weight.float()
        with torch.inference_mode():
            hidden = self.encoder(tokens.input_ids, attention_mask=tokens.attention_mask).last_hidden_state.float()
            last = tokens.attention_mask.sum(dim=1) - 1
            final = hidden[torch.arange(len(texts), device=hidden.device), last]
            logits = final @ table[WEIGHT_ROW] + table[BIAS_ROW, 0]
            scores = torch.sigmoid(logits / table[TEMPERATURE_ROW, 0])
        return scores.cpu().numpy().astype(np.float32)


def load_vera(uri: str, *, device: str = "auto", dtype: str = "float32") -> Vera:
    """Load a Vera checkpoint: `hf:owner/name` or `hf:/folder`."""
    try:
        import transformers
    except ImportError as e:
        raise missing_extra(e.name or "transformers", "models") from e
    place = find_place(device, dtype)
    folder = model_folder(parse_uri(uri).name, uri=uri)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        encoder = transformers.T5EncoderModel.from_pretrained(folder, dtype=place.torch_dtype)
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"this is no T5 checkpoint that can be read: {str(e).splitlines()[0]}", where=uri) from e
    encoder.eval().to(place.torch_device)
    rows = encoder.get_input_embeddings().weight.shape[0]
    if rows <= WEIGHT_ROW:
        raise ModelError(
            f"the embedding table has {rows} rows, Vera's head is in rows {TEMPERATURE_ROW} to {WEIGHT_ROW}",
            where=uri,
            mend="give a Vera checkpoint",
        )
    fingerprint = Fingerprint(
        uri=uri,
        architecture="T5 encoder + Vera head",
        weights=hash_files(weight_files(folder)),
        dtype=place.dtype,
        context=MAX_LENGTH,
    )
    return Vera(encoder, tokenizer, place, fingerprint)
