"""Captions that differ in one phrase or in their order, found by what they have in common.

A caption is its words that count, each by its dictionary form. Two captions are neighbours when they share a *key*:

- the order key: all words, sorted. The same words arranged differently;
- a deletion key for every span of one or two words: what stands before and after it. The same sentence with another
  phrase in one place.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from creperie.making.twins_words import words_of

ORDER, PHRASE = 0, 1
SPANS = (1, 2)  #: how many words a phrase may have, articles not counted
#: Longer captions are seldom a neighbour of anything, and cost a key per word and span.
MOST_WORDS = 40
#: Captions with the same words under one key that are compared, and pairs of captions under one key.
PER_FILLER, PER_KEY = 10, 1_000

Key = tuple[int, int, int]


def neighbours(texts: Iterable[str]) -> list[Key]:
    """Return pairs of caption numbers with what joined them, (left, right, kind), each pair and kind once."""
    numbers: dict[str, int] = {}
    keys, fillers, captions = (array("q") for _ in range(3))
    for caption, text in enumerate(texts):
        said = [numbers.setdefault(word.base, len(numbers)) for word in words_of(text)]
        for kind, key, filler in _keys(said) if 2 <= len(said) <= MOST_WORDS else ():
            keys.append(key >> 1 << 1 | kind)
            fillers.append(filler)
            captions.append(caption)
    rows = np.array([keys, fillers, captions], np.int64)
    rows = rows[:, np.lexsort(rows[::-1])]
    starts = np.flatnonzero(np.diff(rows[0], prepend=rows[0, :1] - 1)) if keys else np.zeros(0, np.int64)
    found: set[Key] = set()
    for start, end in zip(starts, [*starts[1:], len(keys)]):
        if end - start > 1:
            found.update(_pairs(rows[:, start:end].T.tolist()))
    return sorted(found)


def _keys(said: list[int]) -> Iterator[Key]:
    """Yield the kind, the hash of each key, and the hash of what fills the place that the key leaves open."""
    yield ORDER, hash(tuple(sorted(said))), hash(tuple(said))
    for span in SPANS:
        for at in range(len(said) - span + 1 if len(said) > span else 0):
            rest = (tuple(said[:at]), tuple(said[at + span :]))
            yield PHRASE, hash(rest), hash(tuple(said[at : at + span]))


def _pairs(rows: list[list[int]]) -> Iterator[Key]:
    """Yield the pairs under one key whose fillers differ; of many rows, each is compared with the next ones only."""
    few = [row for k, row in enumerate(rows) if k < PER_FILLER or rows[k - PER_FILLER][1] != row[1]]
    reach = max(PER_FILLER, PER_KEY // len(few))
    for k, (key, filler, caption) in enumerate(few):
        for _, other_filler, other in few[k + 1 : k + 1 + reach]:
            if filler != other_filler and caption != other:
                yield min(caption, other), max(caption, other), key & 1
