"""Two pretrained towers joined by heads: any vision model and any sentence encoder become a dual encoder.

A folder holds config.json (which towers, which heads), model.safetensors (the heads) and, for towers that were trained
too, their own folders `image` and `text`. It is named `towers:/path/to/folder` wherever a model URI is taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from creperie.core import DataError, ModelError, UsageError, read_json, unknown, write_json
from creperie.models import (
    Fingerprint,
    ModelURI,
    Place,
    StagedTexts,
    Tokens,
    exact_float32,
    hash_files,
    in_parts,
    load_model,
    unit_vectors,
)
from creperie.scoring import ResultStore, VectorShelf
from creperie.training.vision import ViewRule, VisionTower

CONFIG, WEIGHTS = "config.json", "model.safetensors"
MODEL_TYPE = "creperie-towers"
HEADS = {"linear": "one linear map", "mlp": "one hidden layer", "residual": "both, added"}
TOWERS = ("image", "text")


@dataclass(frozen=True)
class TowersConfig:
    """Which towers are joined, and how. `trained` names the towers whose own weights are trained too."""

    image: str = ""  #: URI of a vision model
    text: str = ""  #: URI of a sentence encoder
    head: str = "residual"
    hidden: int = 1024
    joint: int = 512  #: dimensions of the shared space
    dropout: float = -1.0  #: below 0: 0.3 where a tower is trained, which learns by heart, else 0.1
    layers: int = 4  #: of the image tower whose class tokens are read
    views: tuple[str, ...] = ("whole", "mirrored", "centre")
    size: int = 224
    trained: tuple[str, ...] = ()
    tower_rate: float = 0.02  #: learning rate of trained towers, as a share of the heads'
    crop: float = 0.5  #: smallest share of an image that a trained image tower is shown

    def __post_init__(self) -> None:
        if self.dropout < 0:
            object.__setattr__(self, "dropout", 0.3 if self.trained else 0.1)
        for name in TOWERS:
            if not getattr(self, name):
                raise UsageError(f"no {name} tower given", hint=f"pass {name}_tower=")
        if self.head not in HEADS:
            raise unknown("head", self.head, HEADS)
        for name in self.trained:
            if name not in TOWERS:
                raise unknown("tower", name, TOWERS)

    @property
    def views_rule(self) -> ViewRule:
        return ViewRule(self.views, self.size)


class ProjectionHead(nn.Module):
    """From a tower's features into the shared space."""

    def __init__(self, width: int, config: TowersConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, config.joint) if config.head != "mlp" else None
        self.mlp = None
        if config.head != "linear":
            self.mlp = nn.Sequential(
                nn.Dropout(config.dropout),
                nn.Linear(width, config.hidden),
                nn.GELU(),
                nn.Dropout(config.dropout),
                nn.Linear(config.hidden, config.joint),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        parts = [part(x) for part in (self.linear, self.mlp) if part is not None]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


class JoinedHeads(nn.Module):
    """Both heads and the temperature: what every training of two towers trains."""

    def __init__(self, config: TowersConfig, image_width: int, text_width: int) -> None:
        super().__init__()
        self.config = config
        self.image = ProjectionHead(image_width, config)
        self.text = ProjectionHead(text_width, config)
        self.logit_scale = nn.Parameter(torch.tensor(float(np.log(1 / 0.07))))

    @property
    def widths(self) -> tuple[int, int]:
        return self.image.norm.normalized_shape[0], self.text.norm.normalized_shape[0]


class TowerPair:
    """The two towers that a configuration names, opened when they are first used."""

    def __init__(self, config: TowersConfig, place: Place, base: Path | None = None) -> None:
        self.config, self.place, self.base = config, place, base

    @cached_property
    def image(self) -> Any:
        uri = self._uri(self.config.image)
        if not uri.startswith("hf:"):
            raise UsageError("this is not a vision model of transformers", where=uri, hint="name one by hf:")
        return VisionTower(uri, self.config.layers, self.place)

    @cached_property
    def text(self) -> Any:
        uri = self._uri(self.config.text)
        model = load_model(uri, device=self.place.device)
        if not isinstance(model, StagedTexts):
            raise ModelError("this is not a text encoder", where=uri, hint="name a sentence encoder by st: or hf:")
        return model

    def _uri(self, uri: str) -> str:
        """Towers that lie in the model's own folder are named relative to it."""
        kind, _, name = uri.partition(":")
        return f"{kind}:{self.base / name[2:]}" if self.base and name.startswith("./") else uri

    @cached_property
    def shelf(self) -> VectorShelf:
        """Where features of images are kept: by the bytes of the views, so that the same image is seen once."""
        return ResultStore().shelf(self.fingerprint, "image")

    def image_features(self, views: np.ndarray) -> np.ndarray:
        """Return features, (n, views, width), of (n, views, size, size, 3): from the store, or computed now and
        stored."""
        n, count = views.shape[:2]
        features = np.zeros((n, count, self.image.width), np.float32)
        names = np.stack([np.frombuffer(hashlib.sha256(v.tobytes()).digest(), np.uint8) for v in views])
        known = self.shelf.find(names)
        if len(known.rows):
            features[known.rows] = known.vectors.reshape(-1, count, self.image.width)
        missing = np.setdiff1d(np.arange(n), known.rows)
        if len(missing):
            flat = views[missing].reshape(len(missing) * count, *views.shape[2:])
            pixels = torch.from_numpy(flat).to(self.place.torch_device)
            with exact_float32():
                fresh = self.image.features(self.image.scaled(pixels))
            features[missing] = fresh.view(len(missing), count, -1).cpu().numpy()
            self.shelf.add(names[missing], features[missing])
        return features

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the image features, for the store."""
        views = self.config.views_rule
        return Fingerprint(
            uri=self.config.image,
            architecture=self.image.architecture,
            weights=self.image.weights(),
            preprocessing={"views": list(views.names), "size": views.size},
        )


class TowersEncoder:
    """Joined towers behind the protocols of the models room. The vector of an image is the mean over its views."""

    trims = True

    def __init__(self, heads: JoinedHeads, towers: TowerPair, place: Place, fingerprint: Fingerprint) -> None:
        self.heads = heads.to(place.torch_device).eval()
        self.towers, self.place = towers, place
        self._rule = heads.config.views_rule
        self.fingerprint = fingerprint

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return self._rule(image)

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        features = torch.from_numpy(self.towers.image_features(np.stack(prepared))).to(self.place.torch_device)
        with exact_float32():
            return unit_vectors(mean_view(self.heads.image(features)))

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return in_parts(lambda part: self.forward_images([self.prepare_image(i) for i in part]), images)

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        tokens: list[Tokens] = self.towers.text.prepare_texts(texts)
        return tokens

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        features = torch.from_numpy(self.towers.text.forward_texts(prepared)).to(self.place.torch_device)
        with exact_float32():
            return unit_vectors(self.heads.text(features))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return in_parts(lambda part: self.forward_texts(self.prepare_texts(part)), texts)


def mean_view(vectors: torch.Tensor) -> torch.Tensor:
    """(n, views, d) to (n, d): the mean of unit vectors."""
    return nn.functional.normalize(vectors.float(), dim=-1).mean(dim=1)


# -- folders ---------------------------------------------------------------------------------------------------------


def new_heads(config: TowersConfig, towers: TowerPair, seed: int) -> JoinedHeads:
    """Fresh heads, the same for the same seed."""
    width = towers.text.encode_texts(["a"]).shape[1]
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        return JoinedHeads(config, towers.image.width, width)
    finally:
        torch.random.set_rng_state(state)


def save_heads(folder: Path, heads: JoinedHeads, config: TowersConfig) -> None:
    from safetensors.torch import save_file

    document = {"model_type": MODEL_TYPE, "widths": list(heads.widths), **asdict(config)}
    write_json(folder / CONFIG, document)
    save_file({k: v.detach().cpu().contiguous() for k, v in heads.state_dict().items()}, folder / WEIGHTS)


def load_heads(folder: Path) -> JoinedHeads:
    """Return the heads that lie in a folder; their configuration says which towers they join."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config = read_towers(folder / CONFIG)
    widths = read_json(folder / CONFIG).get("widths", ())
    try:
        heads = JoinedHeads(config, *widths)
        heads.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError, TypeError, ValueError, SafetensorError) as e:
        raise ModelError(f"the weights do not fit ({str(e).splitlines()[0][:100]})", where=str(folder / WEIGHTS)) from e
    return heads


def is_towers(path: Path) -> bool:
    """Does a JSON file hold the settings of joined towers?"""
    document = read_json(path) if path.is_file() else None
    return isinstance(document, dict) and document.get("model_type") == MODEL_TYPE


def read_towers(path: Path) -> TowersConfig:
    if not path.is_file():
        raise ModelError("no joined towers in this folder", where=str(path.parent), hint=f"it needs {CONFIG}")
    document = read_json(path)
    known = {f.name for f in fields(TowersConfig)}
    for name in document.keys() - known - {"model_type", "widths"}:
        raise UsageError(f"unknown setting {name!r}", where=str(path), hint=f"known: {', '.join(sorted(known))}")
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items() if k in known}
    try:
        return TowersConfig(**settings)
    except TypeError as e:
        raise DataError(f"a setting has the wrong type ({e})", where=str(path)) from None


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> TowersEncoder:
    """`towers:/path/to/folder`: the entry point of the models room."""
    if options:
        raise UsageError(f"joined towers take no option {next(iter(options))!r}", where=str(uri))
    folder = Path(uri.name).expanduser()
    heads = load_heads(folder)
    place = Place(place.device)
    towers = TowerPair(heads.config, place, folder)
    image, text = towers.fingerprint, towers.text.fingerprint
    shape = {k: v for k, v in asdict(heads.config).items() if k in ("head", "hidden", "joint", "layers")}
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture=f"{image.architecture} + {text.architecture} + {json.dumps(shape, sort_keys=True)}",
        weights=hash_files([folder / WEIGHTS]) + image.weights[:16] + text.weights[:16],
        preprocessing={**image.preprocessing, "text": dict(text.preprocessing)},
        context=text.context,
        prompt=text.prompt,
        options=text.options,
    )
    return TowersEncoder(heads, towers, place, fingerprint)
