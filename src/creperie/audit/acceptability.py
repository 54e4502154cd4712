"""Grammaticality by a classifier trained on CoLA: the probability of its label 1, "acceptable"."""

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

BATCH = 64


class Cola:
    """A `TextScorer`: P(LABEL_1) of a two-class sequence classifier."""

    def __init__(self, model: Any, tokenizer: Any, place: Place, fingerprint: Fingerprint) -> None:
        self.model = model
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

        tokens = self.tokenizer(list(texts), return_tensors="pt", padding=True, truncation=True)
        with torch.inference_mode():
            logits = self.model(**tokens.to(self.place.torch_device)).logits.float()
        return torch.softmax(logits, dim=-1)[:, 1].cpu().numpy().astype(np.float32)


def load_cola(uri: str, *, device: str = "auto", dtype: str = "float32") -> Cola:
    """Load a two-class classifier: `hf:textattack/distilbert-base-uncased-CoLA`, or a folder."""
    try:
        import transformers
    except ImportError as e:
        raise missing_extra(e.name or "transformers", "models") from e
    place = find_place(device, dtype)
    folder = model_folder(parse_uri(uri).name, uri=uri)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=place.torch_dtype)
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"this is no classifier that can be read: {str(e).splitlines()[0]}", where=uri) from e
    if model.config.num_labels != 2:
        raise ModelError(f"a classifier of {model.config.num_labels} classes", where=uri, mend="CoLA has two classes")
    model.eval().to(place.torch_device)
    fingerprint = Fingerprint(
        uri=uri,
        architecture=f"{type(model).__name__} P(LABEL_1)",
        weights=hash_files(weight_files(folder)),
        dtype=place.dtype,
        context=tokenizer.model_max_length,
    )
    return Cola(model, tokenizer, place, fingerprint)
