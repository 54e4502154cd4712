"""Functions that split captions into words and n-grams, the same way everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from creperie.core import missing_extra

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def tokens(text: str) -> list[str]:
    """Return the lower-cased words and punctuation marks, in order.

    >>> tokens("A dog's toy, isn't it?")
    ['a', "dog's", 'toy', ',', "isn't", 'it', '?']
    """
    return _TOKEN.findall(text.lower())


def words(text: str) -> list[str]:
    """Return the lower-cased words, without punctuation.

    >>> words("A dog's toy, isn't it?")
    ['a', "dog's", 'toy', "isn't", 'it']
    """
    lower = text.lower()
    plain = lower.rstrip(" .")
    return plain.split() if plain.replace(" ", "").isalpha() else _WORD.findall(lower)


#: Zipf value of a word that is not in the lists: below the rarest listed word.
UNKNOWN = 0.0


@cache
def zipf(word: str) -> float:
    """Return the Zipf frequency of an English word: 7.7 for `the`, 4 for a word that makes up one in 100,000 words of
    text, 0 for an unknown word.

    >>> zipf("the") > zipf("dog") > zipf("dachshund") > zipf("qwrtzzk") == UNKNOWN
    True
    """
    try:
        from wordfreq import zipf_frequency
    except ImportError:
        raise missing_extra("wordfreq", "lang") from None
    return float(zipf_frequency(word, "en"))


#: languages that are told apart, by their codes
LANGUAGES = ("en", "fr", "de", "es", "it", "nl", "pt", "pl", "sv", "da", "fi", "cs", "ro", "hu", "tr", "id")


@cache
def _frequencies(language: str) -> Mapping[str, float]:
    try:
        from wordfreq import get_frequency_dict
    except ImportError:
        raise missing_extra("wordfreq", "lang") from None
    return get_frequency_dict(language, "small")


def language_of(text: str) -> tuple[str, float]:
    """Return the language of a caption in Latin script, and the certainty of this judgement from 0 to 1. The language
    is the one in which the caption's words are most frequent.

    >>> language_of("Petit garçon souriant")[0], language_of("A small boy smiles")[0]
    ('fr', 'en')
    """
    spoken = words(text)
    logs = {name: sum(math.log(_frequencies(name).get(word, 1e-7)) for word in spoken) for name in LANGUAGES}
    best = max(logs, key=logs.__getitem__)
    return best, 1 / sum(math.exp(value - logs[best]) for value in logs.values())


def mean_zipf(text: str) -> float:
    """Return the mean Zipf frequency of a caption's words; for an empty caption, the frequency of an unknown word."""
    values = [zipf(w) for w in words(text)]
    return sum(values) / len(values) if values else UNKNOWN


def rarest_zipf(text: str) -> float:
    """Return the Zipf frequency of a caption's rarest word."""
    return min((zipf(w) for w in words(text)), default=UNKNOWN)


def character_similarity(left: Sequence[str], right: Sequence[str], *, workers: int = 1) -> np.ndarray:
    """Return, for each pair of texts, 1 − Levenshtein distance / length of the longer text, in characters; 1 for two
    empty texts.

    This is the lexical similarity of SugarCrepe++ and VISLA.

    >>> character_similarity(["a zebra", ""], ["a cobra", ""]).tolist()  # 2 of 7 letters change
    [0.7142857313156128, 1.0]
    """
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cpdist
    except ImportError:
        raise missing_extra("rapidfuzz", "lang") from None
    if not left:
        return np.zeros(0, dtype=np.float32)
    similarities = cpdist(left, right, scorer=Levenshtein.normalized_similarity, workers=workers, dtype=np.float32)
    return np.asarray(similarities, dtype=np.float32)


def word_jaccard(left: str, right: str) -> float:
    """Return the Jaccard similarity of two texts: the number of distinct words that occur in both, divided by the
    number of distinct words that occur in at least one. Case and punctuation do not count.

    >>> word_jaccard("a dog chases a cat", "A cat chases the dog.")
    0.8
    """
    a, b = set(words(left)), set(words(right))
    return len(a & b) / len(a | b) if a or b else 1.0
