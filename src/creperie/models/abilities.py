"""The table of what models can do. Planning, checks, the store's folders, messages and docs all use this table."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.models.choice import Chooser
from creperie.models.protocols import (
    Generator,
    ImageEncoder,
    PairEncoder,
    PairScorer,
    TextEncoder,
    TextPairScorer,
    TextScorer,
)


@dataclass(frozen=True)
class Ability:
    """One thing that a model can do. `takes` and `gives` tell `check_model` what the input and the output of its method
    are.
    """

    protocol: type
    method: str
    label: str  #: what a model with this ability is called
    words: str  #: what it does, as a verb phrase
    takes: str  #: images, captions, pairs (one image, several captions), caption pairs, questions or prompts
    gives: str  #: vectors, numbers, choices or text
    column: str = ""  #: the score column that it fills; empty if it fills none
    beside: str = ""  #: another ability that is needed as well to fill that column

    @property
    def needs_image(self) -> bool:
        """True if this ability needs an image."""
        return self.takes in ("images", "pairs", "questions")


ABILITIES: dict[str, Ability] = {
    "image": Ability(
        ImageEncoder, "encode_images", "image encoder", "encode images", "images", "vectors", "image_text", "text"
    ),
    "text": Ability(TextEncoder, "encode_texts", "text encoder", "encode captions", "captions", "vectors", "text_text"),
    "pair": Ability(
        PairScorer, "score_pairs", "pair scorer", "score an image with captions", "pairs", "numbers", "image_text"
    ),
    "joint": Ability(
        PairEncoder, "encode_pairs", "pair encoder", "encode captions with an image", "pairs", "vectors", "text_text"
    ),
    "between": Ability(
        TextPairScorer,
        "score_text_pairs",
        "caption comparer",
        "compare two captions",
        "caption pairs",
        "numbers",
        "text_text",
    ),
    "blind": Ability(
        TextScorer, "score_texts", "text scorer", "score captions without images", "captions", "numbers", "text"
    ),
    "choice": Ability(
        Chooser, "choose", "chooser", "choose among captions of an image", "questions", "choices", "image_text"
    ),
    "generate": Ability(Generator, "generate", "generator", "generate text", "prompts", "text"),
}


def abilities_of(model: object) -> frozenset[str]:
    """Return the names of the abilities that a model has. They are keys of `ABILITIES`."""
    return frozenset(name for name, ability in ABILITIES.items() if isinstance(model, ability.protocol))


def columns_of(abilities: frozenset[str]) -> frozenset[str]:
    """Return the score columns that a model with these abilities can fill.

    >>> sorted(columns_of(frozenset({"image"}))), sorted(columns_of(frozenset({"image", "text"})))
    ([], ['image_text', 'text_text'])
    """
    able = [ABILITIES[name] for name in abilities]
    return frozenset(a.column for a in able if a.column and (not a.beside or a.beside in abilities))


def in_words(abilities: frozenset[str] | None = None) -> str:
    """Return the named abilities in words, separated by commas, for a message. By default, all abilities are included.

    >>> in_words(frozenset({"text", "image"}))
    'encode images, encode captions'
    """
    return ", ".join(a.words for name, a in ABILITIES.items() if abilities is None or name in abilities)
