"""Adapters to real models, behind a few small protocols.

`load_model("hf:openai/clip-vit-base-patch32")` gives an object that can do what `protocols` describes.
"""

from __future__ import annotations

from creperie.models.captions import clean_caption
from creperie.models.place import Place
from creperie.models.protocols import (
    Fingerprint,
    Generator,
    ImageEncoder,
    Model,
    PairEncoder,
    PairScorer,
    Prompt,
    StagedImages,
    StagedPairs,
    StagedTexts,
    TextEncoder,
    TextScorer,
    Tokens,
)
from creperie.models.registry import KINDS, ModelKind, load_model
from creperie.models.uri import ModelURI, parse_uri
from creperie.models.weights import hash_files, hash_state

__all__ = [
    "KINDS",
    "Fingerprint",
    "Generator",
    "ImageEncoder",
    "Model",
    "ModelKind",
    "ModelURI",
    "PairEncoder",
    "PairScorer",
    "Place",
    "Prompt",
    "StagedImages",
    "StagedPairs",
    "StagedTexts",
    "TextEncoder",
    "TextScorer",
    "Tokens",
    "clean_caption",
    "hash_files",
    "hash_state",
    "load_model",
    "parse_uri",
]
