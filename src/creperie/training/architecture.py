"""The towers and the word tokenizer of a small CLIP, and the base classes of models in training."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

from creperie.core import Progress, UsageError
from creperie.models import Tokens, Towers
from creperie.training.examples import TrainSet

SPECIAL = ("<pad>", "<start>", "<end>", "<unknown>")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text in lower case.

    >>> split_words("There is no cat.")
    ['there', 'is', 'no', 'cat', '.']
    """
    return _TOKEN.findall(text.lower())


@dataclass(frozen=True)
class Words:
    """A tokenizer whose tokens are whole words. The tokens of a caption are <start>, one token per word, and <end>. If
    a caption has more than `context` tokens, its last words are cut off; `cut` is their number.

    >>> words = vocabulary_of(["a red cat", "a dog"], context=5)
    >>> words(["a red dog sits"])[0].ids.tolist(), words(["a red dog sits"])[0].cut
    ([1, 4, 7, 6, 2], 1)
    """

    vocabulary: tuple[str, ...]
    context: int

    pad, start, end, unknown = range(4)

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        return [self._tokens(text) for text in texts]

    def _tokens(self, text: str) -> Tokens:
        ids = [self.index.get(word, self.unknown) for word in split_words(text)]
        room = self.context - 2
        fitted = [self.start, *ids[:room], self.end]
        return Tokens(np.asarray(fitted, np.int64), max(0, len(ids) - room))


def vocabulary_of(captions: Iterable[str], context: int) -> Words:
    """Return a tokenizer whose vocabulary is all words of the captions, in alphabetical order. `context` is the largest
    number of tokens per caption.
    """
    return Words((*SPECIAL, *sorted({word for caption in captions for word in split_words(caption)})), context)


@dataclass(frozen=True)
class SmallConfig:
    """The size of a small CLIP: a convolutional image tower with a transformer on top, and a causal text tower."""

    vocabulary: int = 0  #: number of words; set from the training captions
    size: int = 64  #: width and height of images
    channels: tuple[int, ...] = (48, 96, 160)  #: the first stage downsamples by four, each other one by two
    vision_layers: int = 1  #: transformer layers over the cells of the last stage
    residual: bool = False  #: add a residual block after every stage, as in a ResNet
    text_width: int = 128
    text_layers: int = 1
    heads: int = 4
    joint: int = 128  #: dimensions of the shared space
    context: int = 48  #: maximum number of tokens in a caption

    @property
    def shrink(self) -> int:
        """The downsampling factor of the image tower: the width in pixels of one cell of its feature map."""
        return int(2 ** (len(self.channels) + 1))

    def __post_init__(self) -> None:
        if not self.channels:
            raise UsageError("`channels` is empty", hint="give at least one number of channels")
        if self.size % self.shrink:
            near = max(1, round(self.size / self.shrink)) * self.shrink
            raise UsageError(
                f"size {self.size} is not a multiple of {self.shrink}", hint=f"choose {near}, for instance"
            )
        if self.text_width % self.heads or self.channels[-1] % self.heads:
            raise UsageError(
                f"text_width={self.text_width} and the last of channels, {self.channels[-1]}, must be multiples of "
                f"heads={self.heads}",
                hint="change heads, channels or text_width",
            )


class TransformerBlock(nn.Module):
    """A transformer layer with normalisation before attention and MLP (pre-norm)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, causal: bool) -> torch.Tensor:
        n, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.relu(self.up(self.norm_mlp(x))))


class ResidualBlock(nn.Module):
    """Two convolutions with a shortcut, as in a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.inner = nn.Sequential(first, nn.BatchNorm2d(channels), nn.ReLU(), second, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.inner(x))


class ImageTower(nn.Module):
    """An image tower: convolutions, a transformer over the cells with position embeddings, and attention pooling."""

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        stages = []
        before = 3
        for k, channels in enumerate(config.channels):
            # The first stage downsamples by four: at full resolution it would cost more than all that follows.
            width, stride = (3, 2) if k else (6, 4)
            stages += [nn.Conv2d(before, channels, width, stride, 1), nn.BatchNorm2d(channels), nn.ReLU()]
            stages += [ResidualBlock(channels)] if config.residual else []
            before = channels
        self.stages = nn.Sequential(*stages)
        cells = (config.size // config.shrink) ** 2
        self.places = nn.Parameter(torch.randn(1, cells, before) * 0.02)
        self.blocks = nn.ModuleList(TransformerBlock(before, config.heads) for _ in range(config.vision_layers))
        self.norm = nn.LayerNorm(before)
        self.weigh = nn.Linear(before, config.heads)
        self.project = nn.Linear(before * config.heads, config.joint, bias=False)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        cells = self.stages(pixels).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            cells = block(cells, False)
        cells = self.norm(cells)
        weights = self.weigh(cells).softmax(dim=1)
        return self.project(torch.einsum("nch,ncw->nhw", weights, cells).flatten(1))


class SmallTextTower(nn.Module):
    """A causal transformer. Its output is taken at the end token, so that padding has no effect."""

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.text_width)
        self.places = nn.Parameter(torch.randn(config.context, config.text_width) * 0.02)
        self.blocks = nn.ModuleList(
            TransformerBlock(config.text_width, config.heads) for _ in range(config.text_layers)
        )
        self.norm = nn.LayerNorm(config.text_width)
        self.project = nn.Linear(config.text_width, config.joint, bias=False)
        nn.init.normal_(self.words.weight, std=0.05)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, True)
        ends = (ids == Words.end).to(torch.int64).argmax(dim=1)
        return self.project(self.norm(x[torch.arange(len(ids), device=ids.device), ends]))


class SmallClip(nn.Module):
    """A dual encoder: an image tower, a text tower and the temperature."""

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        self.config = config
        self.image = ImageTower(config)
        self.text = SmallTextTower(config)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the vectors of images. The images are bytes of shape (n, size, size, 3)."""
        scaled = pixels.permute(0, 3, 1, 2).to(self.logit_scale.dtype) / 127.5 - 1.0
        return self.image(scaled)

    def embed_texts(self, ids: torch.Tensor) -> torch.Tensor:
        return self.text(ids)


def save_weights(model: nn.Module, path: Path) -> None:
    """Write a model's weights into a safetensors file."""
    # The format requires contiguous tensors on the CPU.
    from safetensors.torch import save_file

    save_file({name: tensor.detach().cpu().clone().contiguous() for name, tensor in model.state_dict().items()}, path)


Vectors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TrainedNetwork(nn.Module):
    """A network around a model that is trained: the part of the network to save."""

    adapters: tuple[Any, ...] = ()  #: peft's tuner, if any; in a tuple, so that it does not become a submodule

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def merged(self) -> Any:
        """Return the model. If it has adapters, return a copy with the adapters merged into its weights."""
        return copy.deepcopy(self.adapters[0]).merge_and_unload() if self.adapters else self.model

    @property
    def logit_scale(self) -> torch.Tensor:
        return self.model.logit_scale

    def rate_of(self, name: str) -> float:
        """Return the learning rate of the weight `name`, as a multiple of the rate in the settings."""
        return 1.0

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor) -> Vectors:
        return self.embed_images(pixels), self.embed_texts(ids), self.logit_scale.exp()

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.embed_images(pixels)

    def embed_texts(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model.embed_texts(ids)


class DualNetwork(TrainedNetwork):
    """A network around a dual encoder of the library transformers or open_clip. `towers` holds the functions that call
    the encoder's image tower and text tower.

    `pad` is the id of the padding token, for towers that need a mask.
    """

    def __init__(self, model: Any, towers: Towers, pad: int | None = None) -> None:
        super().__init__(model)
        self.towers, self.pad = towers, pad

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.towers.embed_images(self.model, {"pixel_values": pixels})

    def embed_texts(self, ids: torch.Tensor) -> torch.Tensor:
        return self.towers.embed_texts(self.model, ids, None if self.pad is None else (ids != self.pad).long())


class Student(Protocol):
    """The interface of a model in training. `network` maps (pixels, ids) to three things: image vectors, text vectors
    and the scale.
    """

    kind: str  #: the kind of URI that loads what `save` writes
    network: TrainedNetwork
    trims: bool  #: whether the token ids of a batch may be cut at its longest caption
    text_weights: tuple[str, ...] = ()  #: how the names of the text tower's weights begin
    frozen_images: bool = False  #: whether the features of all images are computed once, by `features_of`

    def is_text(self, name: str) -> bool:
        """Return whether a weight of the network belongs to the text tower or its projection."""
        return name.startswith(self.text_weights)

    def prepare_image(self, image: Image.Image) -> np.ndarray: ...

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]: ...

    def pixels(self, stacked: torch.Tensor) -> torch.Tensor:
        """Convert a stack of prepared images to the tensor that the network takes. The result is on the device of
        `stacked`.
        """
        return stacked

    def features_of(self, keys: Sequence[str], data: TrainSet, progress: Progress) -> np.ndarray:
        """Return the features that the frozen image tower computes for the images named by `keys`, one row per key.
        Called only if `frozen_images` is set.
        """
        return np.stack([self.prepare_image(data.open(key)) for key in keys])

    def ids(self, prepared: Sequence[Tokens]) -> torch.Tensor: ...

    def save(self, folder: Path) -> None:
        """Write the complete model into an existing folder."""
        ...
