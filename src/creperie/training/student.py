"""A small CLIP in training, and a function that opens any URI as a model in training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models import Tokens, pad_tokens, parse_uri
from creperie.training.architecture import (
    SmallClip,
    SmallConfig,
    Student,
    TrainedNetwork,
    Words,
    vocabulary_of,
)

if TYPE_CHECKING:
    import torch

    from creperie.training.towers import TowersConfig

#: the upper limit of the temperature in CLIP trainings: exp(logit_scale) ≤ 100
HIGHEST_SCALE = 4.6052


class SmallStudent(Student):
    """A SmallClip in training."""

    kind = "small"
    trims = True
    text_weights = ("model.text.",)

    def __init__(self, model: SmallClip, words: Words) -> None:
        self.words = words
        self.network = TrainedNetwork(model)

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        from creperie.training.small import prepare_image

        return prepare_image(image, self.network.model.config.size)

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.words(texts)

    def ids(self, prepared: Sequence[Tokens]) -> torch.Tensor:
        return pad_tokens(prepared, pad_id=self.words.pad)[0]

    def save(self, folder: Path) -> None:
        from creperie.training.small import save_small

        save_small(folder, self.network.merged(), self.words)


def open_student(uri: str | TowersConfig, seed: int = 0, captions: Iterable[str] = ()) -> Student:
    """Return the model of a URI, ready to be trained.

    The URI may begin with `hf:` (CLIP and FLAVA), `open_clip:` (ARCHITECTURE/random has random weights), `small:`
    (creperie's small models) or `towers:` (joined towers). It may also be the path of a JSON file with the settings of
    joined towers or of a small model. The vocabulary of a new small model is taken from `captions`. Two towers to join
    may also be given as a TowersConfig.
    """
    if not isinstance(uri, str):
        from creperie.training.joining import new_towers

        return new_towers(uri, seed)
    path = Path(uri)
    if path.suffix == ".json":
        from creperie.training.small import read_config
        from creperie.training.towers import TowersConfig, is_towers

        if is_towers(path):
            return open_student(read_config(path, TowersConfig), seed)
        return new_small(read_config(path, SmallConfig), captions, seed)
    parsed = parse_uri(uri)
    if parsed.kind == "small":
        from creperie.training.small import load_small

        return SmallStudent(*load_small(Path(parsed.name)))
    if parsed.kind == "towers":
        from creperie.training.joining import open_towers

        trained = parsed.options.get("trained")
        return open_towers(Path(parsed.name), None if trained is None else tuple(filter(None, trained.split(","))))
    if parsed.kind == "hf":
        from creperie.training.dual import open_transformers

        return open_transformers(uri)
    if parsed.kind == "open_clip":
        from creperie.training.openclip import open_open_clip

        return open_open_clip(uri, seed)
    hint = "name a model as hf:MODEL, open_clip:MODEL or small:FOLDER, or a JSON file with the settings of a small one"
    raise UsageError(f"models of kind {parsed.kind!r} cannot be trained here", where=uri, hint=hint)


def new_small(config: SmallConfig, captions: Iterable[str], seed: int) -> SmallStudent:
    """Return a small model with random weights, which `seed` determines. Its vocabulary is the words of the
    captions.
    """
    import torch

    words = vocabulary_of(captions, config.context)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallStudent(SmallClip(replace(config, vocabulary=len(words.vocabulary))), words)
