"""Training of joined towers. The features of a frozen tower are computed once and cached. A tower that is not frozen
gets pixels or tokens, like any other model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from creperie.core import ModelError, Progress, batched, silent
from creperie.models import Tokens, find_place, pad_tokens, quiet_libraries
from creperie.scoring import ResultStore, text_keys
from creperie.training.architecture import Student, TrainedNetwork
from creperie.training.examples import TrainSet
from creperie.training.pictures import READERS
from creperie.training.towers import JoinedHeads, TowerPair, TowersConfig, load_heads, mean_view, new_heads, save_heads
from creperie.training.vision import random_crops

BATCH = 32  #: images or captions per batch of a frozen tower
_LAST_SET: dict[str, np.ndarray] = {}


class TowersNetwork(TrainedNetwork):
    """The trained part of joined towers: the heads, and those towers that are not frozen.

    A frozen tower is not part of the network. In its place, the network takes the features that the tower computed from
    the pixels or token ids.
    """

    def __init__(self, heads: JoinedHeads, towers: TowerPair) -> None:
        super().__init__(heads)
        self.towers = towers
        trained = heads.config.trained
        self.image_tower = towers.image.model if "image" in trained else None
        self.text_tower = towers.text.model if "text" in trained else None
        self.texts = torch.zeros(0)  #: features of captions by number, if the text tower is frozen

    def rate_of(self, name: str) -> float:
        return self.model.config.tower_rate if name.startswith(("image_tower.", "text_tower.")) else 1.0

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return one vector per image. `pixels` has the views of each image (such as whole and mirrored), as pixels or
        as features.

        In training, one view is chosen at random. Otherwise the vector is the mean over all views.
        """
        n, count = pixels.shape[:2]
        if not self.training:
            flat = pixels.reshape(n * count, *pixels.shape[2:])
            return mean_view(self.model.image(self._image_features(flat)).view(n, count, -1))
        drawn = torch.randint(count, (n,)).to(pixels.device)
        return self.model.image(self._image_features(pixels[torch.arange(n, device=pixels.device), drawn]))

    def _image_features(self, shown: torch.Tensor) -> torch.Tensor:
        if self.image_tower is None:
            return shown
        scaled = self.towers.image.scaled(shown)
        if self.training:
            scaled = random_crops(scaled, self.model.config.crop)
        return self.towers.image.features(scaled)

    def embed_texts(self, ids: torch.Tensor) -> torch.Tensor:
        if self.text_tower is None:
            if self.texts.device != ids.device:
                self.texts = self.texts.to(ids.device)
            return self.model.text(self.texts[ids[:, 0]])
        encoder = self.towers.text
        mask = (ids != encoder.tokenizer.tokenizer.pad_token_id).long()
        return self.model.text(encoder.embed_texts(self.text_tower, ids, mask).float())


class TowersStudent(Student):
    """Joined towers in training."""

    kind = "towers"
    trims = True
    text_weights = ("model.text.", "text_tower.")

    def __init__(self, heads: JoinedHeads, towers: TowerPair) -> None:
        self.heads, self.towers = heads, towers
        self.config = heads.config
        if "text" in self.config.trained and not hasattr(getattr(towers.text, "model", None), "save"):
            raise ModelError(
                "cannot be trained as a text tower: use an `st:` model, or leave `text` out of `train_towers`",
                where=self.config.text,
            )
        self.network: Any = TowersNetwork(heads, towers)
        self._rule = self.config.views_rule
        self._numbers: dict[str, int] = {}
        self.frozen_images = "image" not in self.config.trained
        for part in (self.network.image_tower, self.network.text_tower):
            for weight in part.parameters() if part is not None else ():
                weight.requires_grad_(True)

    # -- images ------------------------------------------------------------------------------------------------------

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        views = self._rule(image)
        return self.towers.image_features(views[None])[0] if self.frozen_images else views

    def features_of(self, keys: Sequence[str], data: TrainSet, progress: Progress = silent) -> np.ndarray:
        """Return the features of all images of a set, (n, views, width)."""
        # The features of the last set are cached, because a study trains many models on the same images.
        seen = [self.towers.fingerprint.key, data.contents(), *keys]
        name = hashlib.sha256("\0".join(seen).encode()).hexdigest()
        if name in _LAST_SET:
            return _LAST_SET[name]
        with progress("features of images", len(keys), "images") as advance, ThreadPoolExecutor(READERS) as readers:
            parts = []
            for part in batched(keys, BATCH):
                views = np.stack(list(readers.map(lambda key: self._rule(data.open(key)), part)))
                parts.append(self.towers.image_features(views))
                advance(len(views))
        _LAST_SET.clear()
        _LAST_SET[name] = np.concatenate(parts)
        return _LAST_SET[name]

    # -- captions ----------------------------------------------------------------------------------------------------

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        tokens = self.towers.text.prepare_texts(texts)
        if "text" in self.config.trained:
            return tokens
        self._learn(texts, tokens)
        return [Tokens(np.array([self._numbers[text]]), whole.cut) for text, whole in zip(texts, tokens, strict=True)]

    def _learn(self, texts: Sequence[str], tokens: Sequence[Tokens]) -> None:
        """Add the features of new captions to the table `network.texts`, and store the row number of each caption.
        Features on disk are read; the others are computed and stored.
        """
        fresh = list({text: i for i, text in enumerate(texts) if text not in self._numbers}.values())
        if not fresh:
            return
        shelf = ResultStore().shelf(self.towers.text.fingerprint, "text")
        names = text_keys([texts[i] for i in fresh])
        known = shelf.find(names)
        missing = np.setdiff1d(np.arange(len(fresh)), known.rows)
        missing = missing[np.argsort([len(tokens[fresh[m]].ids) for m in missing], kind="stable")]
        vectors = np.zeros((len(fresh), self.heads.widths[1]), np.float32)
        if len(known.rows):
            vectors[known.rows] = known.vectors
        for k in range(0, len(missing), BATCH):
            part = missing[k : k + BATCH]
            vectors[part] = self.towers.text.forward_texts([tokens[fresh[m]] for m in part])
            shelf.add(names[part], vectors[part], np.array([tokens[fresh[m]].cut for m in part], np.int32))
        shelf.close()
        self._numbers |= {texts[i]: len(self._numbers) + k for k, i in enumerate(fresh)}
        new = torch.from_numpy(vectors).to(self.network.texts.device)
        self.network.texts = torch.cat([self.network.texts.view(-1, new.shape[1]), new])

    def ids(self, prepared: Sequence[Tokens]) -> torch.Tensor:
        pad = self.towers.text.tokenizer.tokenizer.pad_token_id if "text" in self.config.trained else 0
        return pad_tokens(prepared, pad_id=pad)[0]

    # -- folders -----------------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write the heads and the trained towers. Only the URI of a frozen tower is stored."""
        config = self.config
        with quiet_libraries():
            if "image" in config.trained:
                self.towers.image.model.save_pretrained(folder / "image")
                self.towers.image.processor.save_pretrained(folder / "image")
                config = replace(config, image="hf:./image")
            if "text" in config.trained:
                self.towers.text.model.save(str(folder / "text"), create_model_card=False)
                config = replace(config, text="st:./text")
        save_heads(folder, self.heads, config)


def open_towers(folder: Path, trained: tuple[str, ...] | None) -> TowersStudent:
    """Return the joined towers in a folder, ready for more training. `trained` names the towers to train; by default,
    the folder's configuration names them.
    """
    heads = load_heads(folder)
    if trained is not None:
        heads.config = replace(heads.config, trained=trained)
    return TowersStudent(heads, TowerPair(heads.config, find_place(), folder))


def new_towers(config: TowersConfig, seed: int) -> TowersStudent:
    """Return two towers joined by new heads."""
    towers = TowerPair(config, find_place())
    return TowersStudent(new_heads(config, towers, seed), towers)
