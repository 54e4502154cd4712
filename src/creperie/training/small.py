"""creperie's small CLIP: a convolutional image tower and a causal text tower, for worlds of drawn scenes.

In transformers, CLIP always has a vision transformer, which learns slowly on a CPU. A `SmallClip` is stored as a folder
of three files (config.json, model.safetensors, vocab.json); its model URI is `small:/path/to/folder`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image

from creperie.core import DataError, ModelError, UsageError, read_json, write_json
from creperie.models import (
    Fingerprint,
    ModelURI,
    Place,
    StagedImages,
    StagedTexts,
    Tokens,
    exact_float32,
    hash_files,
    pad_tokens,
    unit_vectors,
)
from creperie.training.architecture import SmallClip, SmallConfig, Words, save_weights

if TYPE_CHECKING:
    from torch import nn

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.json"


class SmallEncoder(StagedImages, StagedTexts):
    """A SmallClip with the interface of `creperie.models`: an encoder of images and texts."""

    trims = True

    def __init__(self, model: SmallClip, words: Words, place: Place, fingerprint: Fingerprint) -> None:
        self.model = model.to(place.torch_device).eval()
        self.words = words
        self.place = place
        self.fingerprint = fingerprint

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.words(texts)

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        ids, _ = pad_tokens(prepared, pad_id=self.words.pad)
        with exact_float32():
            return unit_vectors(self.model.embed_texts(ids.to(self.place.torch_device)))

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return prepare_image(image, self.model.config.size)

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        import torch

        pixels = torch.from_numpy(np.stack(prepared)).to(self.place.torch_device)
        with exact_float32():
            return unit_vectors(self.model.embed_images(pixels))


def prepare_image(image: Image.Image, size: int) -> np.ndarray:
    """Return an image as RGB bytes, scaled to (size, size, 3)."""
    shown = image.convert("RGB")
    if shown.size != (size, size):
        shown = shown.resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(shown)


def save_small(folder: Path, model: SmallClip, words: Words) -> None:
    """Write a small CLIP into an existing folder: config.json, vocab.json and model.safetensors."""
    write_json(folder / CONFIG, {"model_type": "creperie-small", **asdict(model.config)})
    write_json(folder / VOCABULARY, list(words.vocabulary), indent=None)
    save_weights(model, folder / WEIGHTS)


def load_small(folder: Path) -> tuple[SmallClip, Words]:
    """Return the model and the tokenizer that a folder contains."""
    if not (folder / CONFIG).is_file():
        raise ModelError("this folder contains no small model", where=folder, hint=f"name one with a {CONFIG}")
    config = read_config(folder / CONFIG, SmallConfig)
    vocabulary = read_json(folder / VOCABULARY)
    if not isinstance(vocabulary, list) or not all(isinstance(word, str) for word in vocabulary):
        raise DataError("is not a list of words", where=folder / VOCABULARY, hint="save the model again")
    if len(vocabulary) != config.vocabulary:
        raise ModelError(
            f"the model knows {config.vocabulary} words, but its vocabulary has {len(vocabulary)}",
            where=folder,
            hint="use files that were saved together",
        )
    model = SmallClip(config)
    load_weights(model, folder / WEIGHTS)
    return model, Words(tuple(vocabulary), config.context)


def load_weights(model: nn.Module, path: Path) -> None:
    """Load the weights in a file into a model of the same shape. Raise a ModelError if they do not fit."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model.load_state_dict(load_file(path))
    except (OSError, RuntimeError, ValueError, SafetensorError) as e:
        raise ModelError(
            f"the weights do not fit ({str(e).splitlines()[0][:100]})",
            where=path,
            hint="use files that were saved together",
        ) from e


Config = TypeVar("Config")


def read_config(path: Path, kind: type[Config]) -> Config:
    """Return the settings in a JSON file as an instance of the dataclass `kind`. Raise an error for unknown names."""
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError("is not a JSON object with settings", where=path, hint="save the model again")
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    for name in document.keys() - names - {"model_type", "widths"}:
        raise UsageError(f"unknown setting {name!r}", where=path, hint=f"known: {', '.join(sorted(names))}")
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in document.items() if k in names})
    except (TypeError, ValueError, ArithmeticError) as e:
        raise DataError(f"a setting has an invalid value ({e})", where=path, hint="save the model again") from None


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> SmallEncoder:
    """Return the model of a URI `small:/path/to/folder`. This is the entry point that `creperie.models` calls."""
    if options:
        raise UsageError(f"a small model takes no option {next(iter(options))!r}", where=uri, hint="leave it out")
    folder = Path(uri.name).expanduser()
    model, words = load_small(folder)
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture=f"SmallClip({json.dumps(asdict(model.config), sort_keys=True)})",
        weights=hash_files([folder / WEIGHTS, folder / VOCABULARY]),
        preprocessing={"size": model.config.size, "resample": "bicubic"},
        context=model.config.context,
    )
    return SmallEncoder(model, words, Place(place.device), fingerprint)
