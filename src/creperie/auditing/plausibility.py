"""Vera: how plausible a statement is, by a T5 encoder whose head hides in its embedding table.

The head's weight is row 32099 of the shared embeddings, its bias element 0 of row 32098, the temperature element 0 of
row 32097. The score is sigmoid((w · h + b) / t) of the hidden state h of the text's last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from creperie.core import ModelError
from creperie.models import Judge, LoadedNetwork, read_network

WEIGHT_ROW, BIAS_ROW, TEMPERATURE_ROW = 32099, 32098, 32097
MAX_LENGTH = 128
BATCH = 32


def load_vera(uri: str, *, device: str = "auto", dtype: str = "float32") -> Judge:
    """Load a Vera checkpoint: `hf:owner/name` or `hf:/folder`."""
    network = read_network(uri, "T5EncoderModel", device=device, dtype=dtype)
    rows = network.model.get_input_embeddings().weight.shape[0]
    if rows <= WEIGHT_ROW:
        raise ModelError(
            f"the embedding table has {rows} rows, Vera's head is in rows {TEMPERATURE_ROW} to {WEIGHT_ROW}",
            where=uri,
            hint="give a Vera checkpoint",
        )
    return Judge(network, network.described("T5 encoder + Vera head", MAX_LENGTH), _plausible, BATCH)


def _plausible(network: LoadedNetwork, texts: Sequence[str]) -> Any:
    import torch

    tokens = network.read(texts, longest=MAX_LENGTH)
    table = network.model.get_input_embeddings().weight.detach().float()
    hidden = network(tokens).last_hidden_state.float()
    last = tokens.attention_mask.sum(dim=1) - 1
    final = hidden[torch.arange(len(texts), device=hidden.device), last]
    return torch.sigmoid((final @ table[WEIGHT_ROW] + table[BIAS_ROW, 0]) / table[TEMPERATURE_ROW, 0])


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
