"""The protocols of models: what a model can do, and the fingerprint that every model must have.

A plug-in needs only the simple methods (`encode_images`, `encode_texts`, `score_pairs`, …). Methods in two stages,
`prepare_*` and `forward_*`, are faster: scoring can then tokenise and decode in other threads, sort captions by length,
and pad batches only to their longest caption. `encode_*` must give the same result as both stages together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from creperie.core import digest_of

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image


@dataclass(frozen=True)
class Fingerprint:
    """Everything on which a model's scores depend. It is part of every cache key and of every run."""

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
        """A hash of everything but the URI, so that two URIs of the same model share their cached results."""
        content = asdict(self)
        content.pop("uri")
        return digest_of(content)[:32]


@runtime_checkable
class Model(Protocol):
    """The protocol of all models. Each has a fingerprint."""

    @property
    def fingerprint(self) -> Fingerprint: ...


@runtime_checkable
class ImageEncoder(Model, Protocol):
    """Encodes images as L2-normalised float32 vectors (n, d). A model with q query vectors per image returns (n, q, d),
    and the vector that fits a caption best gives the score.
    """

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray: ...


@runtime_checkable
class TextEncoder(Model, Protocol):
    """Encodes captions as L2-normalised float32 vectors (n, d). In a dual encoder, captions and images are in the same
    vector space.
    """

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class PairScorer(Model, Protocol):
    """Scores one image with several captions, as float32 numbers (n,). A higher number means a better match."""

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class PairEncoder(Model, Protocol):
    """Encodes one image together with each of several captions, as L2-normalised float32 vectors (n, d).

    Some published evaluations compare these vectors with each other, instead of measuring how well image and caption
    match.
    """

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class TextScorer(Model, Protocol):
    """Scores captions without images, as float32 numbers (n,). A higher number is better."""

    def score_texts(self, texts: Sequence[str]) -> np.ndarray: ...


@runtime_checkable
class TextPairScorer(Model, Protocol):
    """Compares captions in pairs, without images. The similarities are float32 numbers (n,), the same in either
    order.
    """

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray: ...


@dataclass(frozen=True)
class Prompt:
    """The input of a generator: chat messages (role, text), images, and sampling settings.

    `shows` is the number of images in each user turn, in order. If it is empty, all images belong to the first user
    turn.
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


#: batch size of `encode_*`; the scorer chooses its own
CHUNK = 64


def in_parts(encode: Callable[[Sequence[Any]], np.ndarray], inputs: Sequence[Any]) -> np.ndarray:
    """Encode a long list in batches and return all vectors. The list need not fit into the device's memory at once."""
    import numpy as np

    if not inputs:
        return np.zeros((0, 0), np.float32)
    return np.concatenate([encode(inputs[i : i + CHUNK]) for i in range(0, len(inputs), CHUNK)])


@runtime_checkable
class StagedImages(Protocol):
    def prepare_image(self, image: Image.Image) -> np.ndarray:
        """Return one image resized, cropped and normalised. Several threads may call this at once."""
        ...

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray: ...

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return in_parts(lambda part: self.forward_images([self.prepare_image(i) for i in part]), images)


@runtime_checkable
class StagedTexts(Protocol):
    @property
    def trims(self) -> bool:
        """True if padding a batch only to its longest caption does not change the vectors."""
        ...

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]: ...

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray: ...

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return in_parts(lambda part: self.forward_texts(self.prepare_texts(part)), texts)
