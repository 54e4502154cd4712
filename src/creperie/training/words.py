"""Captions to whole words: the tokenizer of small models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.models import Tokens

SPECIAL = ("<pad>", "<start>", "<end>", "<unknown>")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Words and marks in lower case.

    >>> split_words("There is no cat.")
    ['there', 'is', 'no', 'cat', '.']
    """
    return _TOKEN.findall(text.lower())


@dataclass(frozen=True)
class Words:
    """A vocabulary of whole words. A caption is <start>, its words, <end>; what does not fit is cut before <end>.

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
        return Tokens(np.asarray(fitted, dtype=np.int64), max(0, len(ids) - room))


def vocabulary_of(captions: Iterable[str], context: int) -> Words:
    """The words of some captions, in alphabetical order."""
    counted = Counter(word for caption in captions for word in split_words(caption))
    return Words((*SPECIAL, *sorted(counted)), context)
