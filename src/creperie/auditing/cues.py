"""Which words and marks tell the true caption from the false one, with counts and examples.

A cue counts for a pair when exactly one of its captions carries it. On a benchmark without that leak it would be the
true one half of the time; only cues that beat this after correction for all the cues that were tried are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from creperie.auditing.pairs import Pairs
from creperie.lang import marks, ngrams, tokens
from creperie.metrics import normal_quantile

LONGEST = 3
#: A cue must tell at least so many pairs.
FEWEST = 5
#: With more pairs than this, cues are first counted by digests, of which there are so many.
MANY, BUCKETS = 50_000, 1 << 24
#: Captions whose cues are remembered: those of one item come after each other.
NEAR = 1024


@dataclass(frozen=True)
class Cue:
    """A word n-gram or a mark of style that one caption of a pair carries and the other does not."""

    kind: str  #: "words" or "style"
    text: str
    positives: int  #: pairs where only the true caption carries it
    negatives: int  #: pairs where only the false one does
    accuracy: float  #: of an attacker that knows this cue alone, ties half
    example: int  #: a pair that it tells

    @property
    def z(self) -> float:
        return (self.positives - self.negatives) / math.sqrt(max(1, self.positives + self.negatives))


def telling_cues(pairs: Pairs, *, most: int = 12, level: float = 0.05) -> list[Cue]:
    """The cues that tell most pairs, the most surprising first; no two that say the same."""
    found = [*_cues(pairs, "style", _marks), *_cues(pairs, "words", _ngrams)]
    if not found:
        return []
    enough = normal_quantile(1 - level / 2 / len(found))
    telling = sorted((c for c in found if abs(c.z) > enough), key=lambda c: (-abs(c.z), c.kind, c.text))
    return _different(telling, most)


def _cues(pairs: Pairs, kind: str, carried: Callable[[str], frozenset[str]]) -> list[Cue]:
    only_true: dict[str, int] = {}
    only_false: dict[str, int] = {}
    example: dict[str, tuple[int, int]] = {}
    frequent = _frequent(pairs, carried) if len(pairs) > MANY else None
    for i, (left, right) in enumerate(_differences(pairs, carried)):
        for cue in left:
            if frequent is not None and frequent[hash(cue) % BUCKETS] < FEWEST:
                continue
            only_true[cue] = only_true.get(cue, 0) + 1
            example.setdefault(cue, (i, -1))
        for cue in right:
            if frequent is not None and frequent[hash(cue) % BUCKETS] < FEWEST:
                continue
            only_false[cue] = only_false.get(cue, 0) + 1
            first, second = example.get(cue, (-1, -1))
            example[cue] = (first, i if second < 0 else second)
    cues = []
    for cue, (first, second) in example.items():
        p, n = only_true.get(cue, 0), only_false.get(cue, 0)
        if p + n >= FEWEST:
            shown = first if p >= n else second
            cues.append(Cue(kind, cue, p, n, 0.5 + abs(p - n) / 2 / len(pairs), shown))
    return cues


def _differences(
    pairs: Pairs, carried: Callable[[str], frozenset[str]]
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """For every pair, the cues that only its true caption carries, and those that only the false one does."""
    for a, b in zip(pairs.left.tolist(), pairs.right.tolist()):
        left, right = carried(pairs.texts[a]), carried(pairs.texts[b])
        yield left - right, right - left


def _frequent(pairs: Pairs, carried: Callable[[str], frozenset[str]]) -> bytearray:
    """How often cues tell a pair, up to `FEWEST`, by a digest that several may share.

    Most n-grams of many captions stand in one of them alone. They are many more than the captions, so they are left out
    before they are counted by name; what is left out tells fewer than `FEWEST` pairs for sure.
    """
    counts = bytearray(BUCKETS)
    for left, right in _differences(pairs, carried):
        for cue in (*left, *right):
            at = hash(cue) % BUCKETS
            if counts[at] < FEWEST:
                counts[at] += 1
    return counts


@lru_cache(maxsize=NEAR)
def _ngrams(text: str) -> frozenset[str]:
    """Runs of words and marks that hold a word: marks alone are style."""
    return frozenset(g for g in ngrams(tokens(text), LONGEST) if any(c.isalnum() for c in g))


@lru_cache(maxsize=NEAR)
def _marks(text: str) -> frozenset[str]:
    return frozenset(name for name, there in marks(text).items() if there)


def forget() -> None:
    """Empty the cache of captions split into n-grams."""
    _ngrams.cache_clear()
    _marks.cache_clear()


def _different(cues: Sequence[Cue], most: int) -> list[Cue]:
    """Without n-grams that hold, or are held by, a better one that tells about the same pairs."""
    kept: list[Cue] = []
    for cue in cues:
        padded = f" {cue.text} "
        same = (k for k in kept if k.kind == cue.kind and (f" {k.text} " in padded or padded in f" {k.text} "))
        if not any(k.kind == "words" for k in same):
            kept.append(cue)
        if len(kept) == most:
            break
    return kept


def surest(pairs: Pairs, margins: np.ndarray, count: int) -> list[int]:
    """The pairs that an attacker wins by the widest margin, one per item."""
    chosen: dict[int, int] = {}
    for pair in np.argsort(-np.nan_to_num(margins), kind="stable").tolist():
        if not margins[pair] > 0 or len(chosen) == count:
            break
        chosen.setdefault(int(pairs.item[pair]), pair)
    return list(chosen.values())
