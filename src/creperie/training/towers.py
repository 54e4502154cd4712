"""Two pretrained towers joined by heads: any vision model and any sentence encoder become a dual encoder.

A folder contains config.json (towers and heads) and model.safetensors (the heads). Towers that were trained as well are
in the subfolders `image` and `text`. The model URI is `towers:/path/to/folder`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from creperie.core import DataError, ModelError, UsageError, check_name, read_json, write_json
from creperie.models import (
    Fingerprint,
    ModelURI,
    Place,
    StagedImages,
    StagedTexts,
    Tokens,
    exact_float32,
    hash_files,
    load_model,
    unit_vectors,
)
from creperie.scoring import ResultStore, VectorShelf
from creperie.training.architecture import save_weights
from creperie.training.options import HEADS, TOWERS
from creperie.training.small import CONFIG, WEIGHTS, load_weights, read_config
from creperie.training.vision import ViewRule, VisionTower

MODEL_TYPE = "creperie-towers"


@dataclass(frozen=True)
class TowersConfig:
    """The two towers to join and the size of the heads. `trained` names the towers that are trained together with the
    heads. The others are frozen.
    """

    image: str = ""  #: URI of a vision model
    text: str = ""  #: URI of a sentence encoder
    head: str = "residual"
    hidden: int = 1024
    joint: int = 512  #: dimensions of the shared space
    dropout: float = -1.0  #: below 0: 0.3 if a tower is trained, which tends to overfit, else 0.1
    layers: int = 4  #: number of layers of the image tower whose class tokens are used
    views: tuple[str, ...] = ("whole", "mirrored", "centre")
    size: int = 224
    trained: tuple[str, ...] = ()
    tower_rate: float = 0.02  #: learning rate of trained towers as a multiple of that of the heads
    crop: float = 0.5  #: smallest share of an image in the random crops for a trained image tower

    def __post_init__(self) -> None:
        if self.dropout < 0:
            object.__setattr__(self, "dropout", 0.3 if self.trained else 0.1)
        for name in TOWERS:
            if not getattr(self, name):
                raise UsageError(f"no {name} tower given", hint=f"pass `{name}_tower=`")
        check_name("head", self.head, HEADS)
        for name in self.trained:
            check_name("tower", name, TOWERS)

    @property
    def views_rule(self) -> ViewRule:
        return ViewRule(self.views, self.size)


class ProjectionHead(nn.Module):
    """A projection from the features of a tower into the shared space."""

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
        return sum(parts[1:], parts[0])


class JoinedHeads(nn.Module):
    """Both heads and the temperature; these are always trained."""

    def __init__(self, config: TowersConfig, image_width: int, text_width: int) -> None:
        super().__init__()
        self.config = config
        self.image = ProjectionHead(image_width, config)
        self.text = ProjectionHead(text_width, config)
        self.logit_scale = nn.Parameter(torch.tensor(float(np.log(1 / 0.07))))

    @property
    def widths(self) -> tuple[int, int]:
        return self.image.norm.normalized_shape[0], self.text.norm.normalized_shape[0]


@dataclass(eq=False)
class TowerPair:
    """The two towers of a configuration, loaded on first use."""

    config: TowersConfig
    place: Place
    base: Path | None = None

    @cached_property
    def image(self) -> Any:
        uri = self._uri(self.config.image)
        if not uri.startswith("hf:"):
            raise UsageError("this is not a vision model of transformers", where=uri, hint="name one as hf:MODEL")
        return VisionTower(uri, self.config.layers, self.place)

    @cached_property
    def text(self) -> Any:
        uri = self._uri(self.config.text)
        model = load_model(uri, device=self.place.device)
        if not isinstance(model, StagedTexts):
            raise ModelError("this is not a text encoder", where=uri, hint="name a sentence encoder as st:MODEL")
        return model

    def _uri(self, uri: str) -> str:
        """Return the URI of a tower. A path that starts with ./ is resolved against the model's own folder."""
        kind, _, name = uri.partition(":")
        return f"{kind}:{self.base / name[2:]}" if self.base and name.startswith("./") else uri

    @cached_property
    def shelf(self) -> VectorShelf:
        """The store of image features. Its keys are hashes of the images' views, so that each image is encoded only
        once.
        """
        return ResultStore().shelf(self.fingerprint, "image")

    def image_features(self, views: np.ndarray) -> np.ndarray:
        """Return the image tower's features, (n, views, width). `views` are the views of n images, (n, views, size,
        size, 3). Stored features are read; the others are computed and stored.
        """
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
        """The fingerprint under which image features are stored."""
        views = self.config.views_rule
        return Fingerprint(
            uri=self.config.image,
            architecture=self.image.architecture,
            weights=self.image.weights(),
            preprocessing={"views": list(views.names), "size": views.size},
        )


class TowersEncoder(StagedImages, StagedTexts):
    """Joined towers with the interface of `creperie.models`. The vector of an image is the mean over its views."""

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

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.towers.text.prepare_texts(texts)

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        features = torch.from_numpy(self.towers.text.forward_texts(prepared)).to(self.place.torch_device)
        with exact_float32():
            return unit_vectors(self.heads.text(features))


def mean_view(vectors: torch.Tensor) -> torch.Tensor:
    """Return one vector per image, given one vector per view: (n, views, d) becomes (n, d). The views' vectors are
    scaled to unit length and averaged.
    """
    return nn.functional.normalize(vectors.float(), dim=-1).mean(dim=1)


# -- folders ---------------------------------------------------------------------------------------------------------


def new_heads(config: TowersConfig, towers: TowerPair, seed: int) -> JoinedHeads:
    """Return new heads with random weights determined by the seed."""
    width = towers.text.encode_texts(["a"]).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return JoinedHeads(config, towers.image.width, width)


def save_heads(folder: Path, heads: JoinedHeads, config: TowersConfig) -> None:
    """Write the heads and the configuration of the towers into an existing folder."""
    write_json(folder / CONFIG, {"model_type": MODEL_TYPE, "widths": list(heads.widths), **asdict(config)})
    save_weights(heads, folder / WEIGHTS)


def load_heads(folder: Path) -> JoinedHeads:
    """Return the heads that a folder contains. Their configuration names the two towers."""
    path = folder / CONFIG
    if not path.is_file():
        raise ModelError("this folder contains no joined towers", where=folder, hint=f"name one with a {CONFIG}")
    config, widths = read_config(path, TowersConfig), read_json(path).get("widths", ())
    if not isinstance(widths, list) or [*map(type, widths)] != [int, int]:
        raise DataError(
            "`widths` must be two integers, one per tower", where=path, hint="train or join the towers again"
        )
    heads = JoinedHeads(config, *widths)
    load_weights(heads, folder / WEIGHTS)
    return heads


def is_towers(path: Path) -> bool:
    """Return whether a JSON file holds the settings of joined towers."""
    document = read_json(path) if path.is_file() else None
    return isinstance(document, dict) and document.get("model_type") == MODEL_TYPE


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> TowersEncoder:
    """Return the model of a URI `towers:/path/to/folder`. This is the entry point that `creperie.models` calls."""
    if options:
        raise UsageError(f"joined towers take no option {next(iter(options))!r}", where=uri, hint="leave it out")
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
