"""How common words are (the door to `wordfreq`)."""

from __future__ import annotations

from functools import cache

from creperie.core import missing_extra
from creperie.lang.tokenizing import words

#: Zipf value of a word that the lists do not know: below the rarest that they do.
UNKNOWN = 0.0


@cache
def zipf(word: str) -> float:
    """The Zipf frequency of an English word: 7 is `the`, 4 once in 100,000 words, 0 unknown.

    >>> zipf("the") > zipf("dog") > zipf("dachshund") > zipf("qwrtzzk") == UNKNOWN
    True
    """
    try:
        from wordfreq import zipf_frequency
    except ImportError:
        raise missing_extra("wordfreq", "lang") from None
    return float(zipf_frequency(word, "en"))


def mean_zipf(text: str) -> float:
    """The mean Zipf frequency of a caption's words; of an empty caption, that of an unknown word."""
    values = [zipf(w) for w in words(text)]
    return sum(values) / len(values) if values else UNKNOWN


def rarest_zipf(text: str) -> float:
    """The Zipf frequency of a caption's rarest word."""
    return min((zipf(w) for w in words(text)), default=UNKNOWN)
