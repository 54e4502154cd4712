"""Grammaticality by a classifier trained on CoLA: the probability of its label 1, "acceptable"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from creperie.core import ModelError
from creperie.models import Judge, LoadedNetwork, read_network


def load_cola(uri: str, *, device: str = "auto", dtype: str = "float32") -> Judge:
    """Load a two-class classifier: `hf:textattack/distilbert-base-uncased-CoLA`, or a folder."""
    network = read_network(uri, "AutoModelForSequenceClassification", device=device, dtype=dtype)
    classes = network.model.config.num_labels
    if classes != 2:
        raise ModelError(f"a classifier of {classes} classes", where=uri, hint="CoLA has two classes")
    name = f"{type(network.model).__name__} P(LABEL_1)"
    return Judge(network, network.described(name, network.tokenizer.model_max_length), _acceptable)


def _acceptable(network: LoadedNetwork, texts: Sequence[str]) -> Any:
    return network(network.read(texts)).logits.float().softmax(dim=-1)[:, 1]
