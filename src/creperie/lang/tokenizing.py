"""Captions cut into words and n-grams, the same way everywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def tokens(text: str) -> list[str]:
    """Lower-cased words and punctuation marks, in order.

    >>> tokens("A dog's toy, isn't it?")
    ['a', "dog's", 'toy', ',', "isn't", 'it', '?']
    """
    return _TOKEN.findall(text.lower())


def words(text: str) -> list[str]:
    """Lower-cased words, without punctuation.

    >>> words("A dog's toy, isn't it?")
    ['a', "dog's", 'toy', "isn't", 'it']
    """
    return _WORD.findall(text.lower())


def ngrams(parts: Sequence[str], longest: int) -> list[str]:
    """Every run of 1 to `longest` tokens, joined by blanks.

    >>> ngrams(["a", "red", "hat"], 2)
    ['a', 'red', 'hat', 'a red', 'red hat']
    """
    return [" ".join(parts[i : i + n]) for n in range(1, longest + 1) for i in range(len(parts) - n + 1)]
