"""The protocols of models: what a model can do, and the fingerprint that every model must have.

A plug-in needs only the short methods (`encode_images`, `encode_texts`, `score_pairs`, …). The staged pairs
(`prepare_*` then `forward_*`) let the scorer tokenise and decode in other threads, sort captions by length and pad
batches only to their longest; if a model has them, `encode_*` must be their composition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from creperie.core import digest_of

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image


@dataclass(frozen=True)
class Fingerprint:
    """Everything that can change a model's scores. It is part of every cache key and of every run."""

    uri: str
    architecture: str
    weights: str  #: sha256 over the weights
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    context: int | None = None  #: tokens; None if there is no limit
    prompt: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A hash of everything but the URI, so that two URIs of one model share their cached results."""
        content = asdict(self)
        content.pop("uri")
        return digest_of(content)[:32]


@runtime_checkable
class Model(Protocol):
    """The protocol of all models: they have a fingerprint."""

    @property
    def fingerprint(self) -> Fingerprint: ...


@runtime_checkable
class ImageEncoder(Model, Protocol):
    """Encodes images as L2-normalised float32 vectors (n, d), or as (n, q, d), where the best of q queries counts."""

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray: ...


@runtime_checkable
class TextEncoder(Model, Protocol):
    """Encodes captions as L2-normalised float32 vectors (n, d); a dual encoder does so in the space of its images."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class PairScorer(Model, Protocol):
    """Scores one image with several captions: float32 (n,); a higher number means a better match."""

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class PairEncoder(Model, Protocol):
    """Encodes one image joined with each of several captions: float32, L2-normalised, (n, d). Some published
    evaluations compare these fused vectors with each other instead of asking how well image and caption match.
    """

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class TextScorer(Model, Protocol):
    """Scores captions without images (blind): one float32 number per caption (n,); higher is better."""

    def score_texts(self, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class TextPairScorer(Model, Protocol):
    """Compares captions without images (blind): the similarity of two captions, float32 (n,), symmetric."""

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray: ...


@dataclass(frozen=True)
class Prompt:
    """The input of a generator: chat messages (role, text), images, and sampling settings.

    `shows` gives the number of images in each user turn, in order; if empty, all images belong to the first user turn.
    """

    messages: tuple[tuple[str, str], ...]
    images: tuple[Image.Image, ...] = ()
    shows: tuple[int, ...] = ()
    temperature: float = 0.0
    max_tokens: int = 256
    seed: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    reasoning: str = ""  #: off, low, medium, high, or a number of tokens; empty for the model's own habit
    top_logprobs: int = 0  #: how many of the likeliest first tokens are returned (`GeneratedText.top`)
    schema: str = ""  #: a named JSON schema for the answer, as JSON; for servers that support structured output


@runtime_checkable
class Generator(Model, Protocol):
    """Generates text from prompts; implemented by LLMs and chat VLMs."""

    def generate(self, prompts: Sequence[Prompt]) -> list[str]: ...


# -- the staged forms, for speed -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of a caption, without padding. `cut` is the number of tokens that did not fit the context."""

    ids: np.ndarray
    cut: int = 0


@runtime_checkable
class StagedImages(Protocol):
    def prepare_image(self, image: Image.Image) -> np.ndarray:
        """Resize, crop and normalise one image; safe to call from several threads."""
        ...

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray: ...


@runtime_checkable
class StagedTexts(Protocol):
    @property
    def trims(self) -> bool:
        """True if padding a batch only to its longest caption is exact."""
        ...

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]: ...

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray: ...
