from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL import Image

from creperie import Benchmark as Benchmark
from creperie import CreperieError as CreperieError
from creperie import Item as Item
from creperie import UsageError as UsageError
from creperie import (
    _BatchCheck,
    _BuildItems,
    _CachedScorer,
    _Check,
    _Corpus,
    _Files,
    _ImageStore,
    _Learner,
    _Progress,
    _ProposeOne,
    _Role,
    _ScoreTexts,
    _Tag,
)
from creperie import register_model as register_model
from creperie import wrap as wrap

# from creperie.auditing.attackers import Attacker as Attacker
@runtime_checkable
class Attacker(Protocol):
    """The protocol of attackers: any object that returns a margin for each caption pair."""

    @property
    def name(self) -> str: ...
    @property
    def directed(self) -> bool: ...
    @property
    def prefers(self) -> str:
        """What the attacker chooses, in words, such as "the shorter caption"."""

    @property
    def otherwise(self) -> str:
        """What the attacker chooses if its rule is reversed, such as "the longer caption". The text is empty if the
        attacker's direction is fixed."""

    def margins(self, pairs: Pairs, progress: _Progress = ...) -> np.ndarray: ...

# from creperie.auditing.battery import AttackerModels as AttackerModels
@dataclass(frozen=True)
class AttackerModels:
    """The models that attackers may use, given by URI, and the random seed."""

    lm: str = ...
    encoder: str = ...
    image_encoder: str = ...
    plausibility: str = ...
    grammar: str = ...
    corpus: str = ...
    seed: int = ...
    cache: bool = ...
    @property
    def lm_uri(self) -> str:
        """The URI of the language model to use; empty if there is none."""

    @property
    def encoder_uri(self) -> str:
        """The URI of the text encoder to use; empty if there is none."""

    @property
    def by_family(self) -> dict[str, str]:
        """The name of the model that each family of attackers uses: the last part of the model's URI."""

    def asked_for(self, attackers: Iterable[str]) -> AttackerModels:
        """Return a copy with only the models that are needed. Models that the user named are always kept; installed
        models are kept only if one of these attackers uses them."""

    @property
    def language_model(self) -> _CachedScorer: ...
    @property
    def text_encoder(self) -> TextEncoder: ...
    def image_attacker(self, images: _ImageStore) -> Attacker | None:
        """Return the attacker that sees only images; None if no image encoder was named."""

    @property
    def learner(self) -> _Learner: ...
    @property
    def captions(self) -> _Corpus: ...

# from creperie.making.candidate import Candidate as Candidate
@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption that a maker proposes for a source caption. A source's candidates with the same `subset` become
    one item."""

    source: str
    text: str
    role: _Role
    kind: str
    maker: str
    edit: str
    group: str = ...
    tags: Mapping[str, _Tag] = ...
    refused: str = ...
    @property
    def subset(self) -> str: ...

# from creperie.making.source import Captions as Captions
@dataclass(frozen=True)
class Captions:
    """All source captions of one generation job, where they come from, and their image store."""

    name: str
    sources: Sequence[SourceCaption]
    images: _ImageStore = ...
    spec: str = ...
    bench: Benchmark | None = ...
    items: Mapping[str, Item] = ...
    drawn_from: Sequence[SourceCaption] = ...
    @property
    def false(self) -> frozenset[tuple[str, str]]:
        """The (image, caption) pairs of the benchmark that people found false."""

    @property
    def digest(self) -> str:
        """A hash of the captions in their order, with everything known about them. A job resumes only if this hash
        is unchanged."""

# from creperie.models.protocols import Fingerprint as Fingerprint
@dataclass(frozen=True)
class Fingerprint:
    """Everything on which a model's scores depend. It is part of every cache key and of every run."""

    uri: str
    architecture: str
    weights: str
    preprocessing: Mapping[str, Any] = ...
    dtype: str = ...
    context: int | None = ...
    prompt: str = ...
    options: Mapping[str, Any] = ...
    @property
    def key(self) -> str:
        """A hash of everything but the URI, so that two URIs of the same model share their cached results."""

# from creperie.bench.formats.format import Format as Format
@dataclass(frozen=True)
class Format:
    """A published format. It has a function that reads its files as a benchmark, and one that writes a benchmark
    as such files."""

    name: str
    title: str
    about: str
    read: Callable[[FormatSource], Benchmark]
    write: Callable[[Benchmark], _Files] | None = ...
    aliases: tuple[str, ...] = ...
    options: tuple[str, ...] = ...

# from creperie.bench.formats.format import FormatSource as FormatSource
@dataclass(frozen=True)
class FormatSource:
    """A file or folder to read, with options, written like `valse:data/valse?valid=all`."""

    path: Path
    options: Mapping[str, str] = ...
    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the value of an option. It must be one of `choices`; the first of these is the default."""

# from creperie.models.protocols import Generator as Generator
@runtime_checkable
class Generator(Model, Protocol):
    """Generates text from prompts; implemented by LLMs and chat VLMs."""

    def generate(self, prompts: Sequence[Prompt]) -> list[str]: ...

# from creperie.models.protocols import ImageEncoder as ImageEncoder
@runtime_checkable
class ImageEncoder(Model, Protocol):
    """Encodes images as L2-normalised float32 vectors (n, d). A model with q query vectors per image returns (n,
    q, d), and the vector that fits a caption best gives the score."""

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray: ...

# from creperie.making.pipeline import Maker as Maker
@dataclass(frozen=True)
class Maker:
    """The base class of makers; a subclass implements `propose`. Makers must be picklable: workers receive a
    copy."""

    name: str
    options: MakerOptions
    whole = False
    parallel = False
    chunk = 512
    parses = False
    normalises = False
    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings on which the result depends. They are recorded, and compared when a job resumes."""

    @property
    def tidies(self) -> bool:
        """True if the captions of each finished item are punctuated and capitalised alike."""

    @property
    def checks(self) -> Sequence[_Check | _BatchCheck]: ...
    @property
    def ledger(self) -> Mapping[str, Any]:
        """The calls, tokens and cost of the maker's model; empty if the model costs nothing."""

    def takes(self, kind: str) -> bool:
        """Return True if the maker takes candidates of this kind from other captions instead of writing them."""

    def keep_ledger(self, folder: Path, job: Mapping[str, Any]) -> None:
        """Record the cost in a file in this folder, so that a resumed job includes what was paid before. The base
        class does nothing here."""

    def propose(self, sources: Sequence[SourceCaption]) -> Iterable[Proposal]:
        """Return one proposal per source, in order. A proposal must not depend on the other sources."""

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return the items made from a source and its accepted candidates."""

# from creperie.making.options import MakerOptions as MakerOptions
@dataclass(frozen=True)
class MakerOptions:
    """The options that makers share. A maker ignores the ones that do not concern it."""

    seed: int = ...
    foils: int = ...
    apart: bool = ...
    as_published: bool = ...
    matched: bool = ...
    tidy: bool = ...
    parser: str = ...
    others: str = ...
    model: str = ...
    prompts: str = ...
    duplicates: str = ...
    evidence: str = ...
    lm: str = ...
    band: float = ...
    corpus: str = ...
    plausible: str = ...
    taste: bool = ...
    nli: str = ...
    judge: str = ...
    @property
    def settings(self) -> Mapping[str, Any]:
        """The options to record: those that differ from the defaults, and always the seed."""

    @property
    def model_checks(self) -> tuple[_Check | _BatchCheck, ...]:
        """The checks that ask a model. If the option `nli` is set, its classifier rejects foils that the caption
        entails. If the option `judge` is set, its model decides about foils that the rules leave open."""

# from creperie.models.protocols import Model as Model
@runtime_checkable
class Model(Protocol):
    """The protocol of all models. Each has a fingerprint."""

    @property
    def fingerprint(self) -> Fingerprint: ...

# from creperie.models.uri import ModelURI as ModelURI
@dataclass(frozen=True)
class ModelURI:
    """A parsed model URI."""

    kind: str
    name: str
    options: Mapping[str, str] = ...
    @property
    def way(self) -> str:
        """How a generative model scores: its option `score` or the default; empty if it does not score."""

    def __str__(self) -> str: ...

# from creperie.models.protocols import PairEncoder as PairEncoder
@runtime_checkable
class PairEncoder(Model, Protocol):
    """Encodes one image together with each of several captions, as L2-normalised float32 vectors (n, d)."""

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...

# from creperie.models.protocols import PairScorer as PairScorer
@runtime_checkable
class PairScorer(Model, Protocol):
    """Scores one image with several captions, as float32 numbers (n,). A higher number means a better match."""

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray: ...

# from creperie.auditing.pairs import Pairs as Pairs
@dataclass(frozen=True, eq=False)
class Pairs:
    """The true–false caption pairs of a benchmark, in columns. The pairs of an item are adjacent, and items are
    in order."""

    texts: Sequence[str]
    left: np.ndarray
    right: np.ndarray
    item: np.ndarray
    row: np.ndarray
    subset: np.ndarray
    subsets: tuple[str, ...]
    cluster: np.ndarray
    fold: np.ndarray | None = ...
    counted: Any = ...
    def __len__(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def per_item(self) -> np.ndarray:
        """The number of pairs of each item; an item without pairs cannot be attacked."""

    @property
    def balanced(self) -> np.ndarray:
        """A mask of the balanced items. An item is balanced if it has several images, and if every pair also occurs
        in it with true and false exchanged. Each of its captions is then true as often as it is false."""

    @property
    def group(self) -> np.ndarray:
        """A group number for each item. Items that share an image or a caption, directly or through other items, are
        in the same group."""

    @property
    def own_group(self) -> np.ndarray:
        """A group number for each item, like `group`, but computed within each training block (see
        `training_blocks`). The folds of a subset therefore do not depend on subsets outside its block."""

    @property
    def repeats(self) -> tuple[np.ndarray, np.ndarray]:
        """Two masks of items. The first selects items with a (true, false) pair that also occurs in another item.
        The second selects items with a pair that occurs in another item with true and false exchanged."""

    @property
    def most_positives(self) -> int:
        """The largest number of true captions in an item with at most one image; 0 if no such item has several true
        captions."""

    @property
    def unsolvable(self) -> np.ndarray:
        """A mask of the items in which the same text is both a true and a false caption. No model can get all their
        pairs right."""

    def captions_at(self, texts: np.ndarray) -> list[str]:
        """Return the captions with these indices, as strings."""

    def of_items(self, keep: np.ndarray) -> Pairs:
        """Return the pairs of the items that the mask `keep` selects. Items are renumbered; the texts and the names
        of subsets stay as they are."""

    @property
    def by_content(self) -> tuple[Pairs, np.ndarray, np.ndarray]:
        """The same pairs in an order that depends only on the captions, followed by two arrays. The first holds the
        old index of each item, and the second that of each pair, both in the new order."""

    def folds_of(self, rows: np.ndarray, k: int, seed: int) -> np.ndarray:
        """Return a fold number for each pair in `rows`. If the pairs come with folds (`fold`), return those.
        Otherwise return `k` random folds that keep groups together."""

    def of_subset(self, name: str) -> Pairs:
        """Return the pairs of one subset."""

# from creperie.making.pipeline import ParsedMaker as ParsedMaker
@dataclass(frozen=True)
class ParsedMaker(Maker):
    """A maker that parses each source and calls one function with it."""

    propose_one: _ProposeOne
    own_checks: tuple[_Check | _BatchCheck, ...] = ...
    build: _BuildItems = ...
    whole: bool = ...
    chooses: bool = ...
    parallel = True
    parses = True
    normalises = True
    @property
    def checks(self) -> Sequence[_Check | _BatchCheck]: ...
    @property
    def note(self) -> str:
        """A note to the user about how foils are chosen; empty if there is nothing to say."""

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]: ...
    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]: ...

# from creperie.models.device import Place as Place
@dataclass(frozen=True)
class Place:
    """A device and a precision for a model. Scores are float32, whatever the precision."""

    wanted: str = ...
    dtype: str = ...
    @property
    def device(self) -> str:
        """The device. `auto` is resolved on first use."""

    @property
    def torch_device(self) -> Any: ...
    @property
    def torch_dtype(self) -> Any: ...

# from creperie.models.protocols import Prompt as Prompt
@dataclass(frozen=True)
class Prompt:
    """The input of a generator: chat messages (role, text), images, and sampling settings."""

    messages: tuple[tuple[str, str], ...]
    images: tuple[Image.Image, ...] = ...
    shows: tuple[int, ...] = ...
    temperature: float = ...
    max_tokens: int = ...
    seed: int = ...
    top_p: float = ...
    min_p: float = ...
    reasoning: str = ...
    top_logprobs: int = ...
    schema: str = ...

# from creperie.making.candidate import Proposal as Proposal
@dataclass(frozen=True, slots=True)
class Proposal:
    """What a maker proposes for a source caption: candidates or, if it has none, the reason why. The number of
    model calls is also recorded."""

    candidates: Sequence[Candidate] = ...
    skipped: str = ...
    calls: int = ...
    missing: Mapping[str, str] = ...

# from creperie.making.source import SourceCaption as SourceCaption
@dataclass(frozen=True, slots=True)
class SourceCaption:
    """One source caption. `others` are other captions that are known to be true of the same image."""

    id: str
    text: str
    images: tuple[str, ...] = ...
    others: tuple[str, ...] = ...
    subset: str = ...
    tags: Mapping[str, _Tag] = ...

# from creperie.models.protocols import StagedImages as StagedImages
@runtime_checkable
class StagedImages(Protocol):
    def prepare_image(self, image: Image.Image) -> np.ndarray:
        """Return one image resized, cropped and normalised. Several threads may call this at once."""

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray: ...
    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray: ...

# from creperie.models.protocols import StagedTexts as StagedTexts
@runtime_checkable
class StagedTexts(Protocol):
    @property
    def trims(self) -> bool:
        """True if padding a batch only to its longest caption does not change the vectors."""

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]: ...
    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray: ...
    def encode_texts(self, texts: Sequence[str]) -> np.ndarray: ...

# from creperie.auditing.attackers import TextAttacker as TextAttacker
@dataclass(frozen=True)
class TextAttacker:
    """An attacker that gives every caption a score, regardless of the item it belongs to. Any `TextScorer` can
    serve as `score`."""

    name: str
    score: _ScoreTexts
    prefers: str = ...
    otherwise: str = ...
    directed: bool = ...
    batch: int = ...
    alphabetical: bool = ...
    marks: tuple[str, ...] = ...
    remembers: bool = ...
    _known: dict[str, float] = ...
    def scores(self, texts: Sequence[str], progress: _Progress = ...) -> np.ndarray:
        """Return a float32 score for each text. If the field `remembers` is True, scores are cached, so that each
        distinct text is scored only once."""

    def tell(self, scores: Mapping[str, float]) -> None:
        """Store scores that were computed elsewhere. `scores` maps each text to its score."""

    def forget(self) -> None:
        """Delete all stored scores."""

    def margins(self, pairs: Pairs, progress: _Progress = ...) -> np.ndarray: ...
    def known_margins(self, pairs: Pairs) -> np.ndarray:
        """Return the margin of each pair whose two captions both have a stored score, and NaN for all other pairs.
        If no scores are stored at all, all captions are scored."""

# from creperie.models.protocols import TextEncoder as TextEncoder
@runtime_checkable
class TextEncoder(Model, Protocol):
    """Encodes captions as L2-normalised float32 vectors (n, d). In a dual encoder, captions and images are in
    the same vector space."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray: ...

# from creperie.models.protocols import TextPairScorer as TextPairScorer
@runtime_checkable
class TextPairScorer(Model, Protocol):
    """Compares captions in pairs, without images. The similarities are float32 numbers (n,), the same in either
    order."""

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray: ...

# from creperie.models.protocols import TextScorer as TextScorer
@runtime_checkable
class TextScorer(Model, Protocol):
    """Scores captions without images, as float32 numbers (n,). A higher number is better."""

    def score_texts(self, texts: Sequence[str]) -> np.ndarray: ...

# from creperie.models.protocols import Tokens as Tokens
@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of a caption, without padding. `cut` is the number of tokens that did not fit the context."""

    ids: np.ndarray
    cut: int = ...

# from creperie.models.captions import clean_caption as clean_caption
def clean_caption(text: str, words: int) -> str:
    """Return a caption cleaned up as in the BLIP, ALBEF and ARO evaluations, and cut to its first `words` words."""

# from creperie.bench.benchmark import from_items as from_items
def from_items(name: str, items: Iterable[Item], **parts: Any) -> Benchmark:
    """Return a benchmark made of items in memory. `parts` are other fields of the `Benchmark`, such as `images`.
    Raise a DataError if two items have the same subset and id."""

# from creperie.models.weights import hash_files as hash_files
def hash_files(paths: Iterable[Path]) -> str:
    """Return one SHA-256 over the contents of files. Their names do not affect it."""

# from creperie.core.plugins import register_attacker as register_attacker
def register_attacker(plugin: Any = None, name: str = "") -> Any:
    """Register `plugin`, a function that takes an `AttackerModels` and returns an attacker. `register_attacker`
    can also be used as a decorator."""

# from creperie.core.plugins import register_format as register_format
def register_format(plugin: Any = None, name: str = "") -> Any:
    """Register a format that benchmarks can be read from. `plugin` is a `bench.Format` or a function that
    returns a benchmark; the function takes a source with the attributes `path` and `options`.
    `register_format` can also be used as a decorator."""

# from creperie.core.plugins import register_maker as register_maker
def register_maker(plugin: Any = None, name: str = "") -> Any:
    """Register `plugin`, a function of (name, options, captions) that returns a maker. `register_maker` can also
    be used as a decorator."""
