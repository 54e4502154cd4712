"""What the learned attackers see of a pair: the difference between its captions, and nothing else.

Differences turn their sign when a pair is turned round, so a model without an intercept cannot learn which side the
true caption stands on. Nothing here is fitted: counts are counts, and what is scaled is scaled on the training folds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from creperie.auditing.pairs import Pairs
from creperie.core import missing_extra
from creperie.lang import marks, negations, ngrams, tokens

WORD_NGRAMS = 3
CHARACTER_NGRAMS = 4
#: Characters that no caption holds: where it begins and ends, so that n-grams see final periods and first capitals.
_BEGIN, _END = "\x02", "\x03"
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Differences (true minus false) of every pair."""

    sparse: Any  #: scipy CSR, n-gram counts: pairs × n-grams that differ somewhere
    dense: np.ndarray  #: lengths, marks of style, counts of give-away words; or an embedding
    summary: int  #: how many of the dense columns are not embedding


def pair_features(pairs: Pairs) -> PairFeatures:
    """The features of all pairs."""
    used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
    left, right = at[: len(pairs)], at[len(pairs) :]
    texts = [pairs.texts[i] for i in used]
    sparse = ngram_differences([texts[i] for i in left], [texts[i] for i in right])
    summaries = np.array([summary(t) for t in texts], dtype=np.float64).reshape(len(texts), -1)
    return PairFeatures(sparse, summaries[left] - summaries[right], summaries.shape[1])


#: A changed word changes a handful of word n-grams and some thirty letter n-grams: weigh the blocks about equally.
WORD_WEIGHT = 1.0
LETTER_WEIGHT = 0.3


def ngram_differences(left: Sequence[str], right: Sequence[str]) -> Any:
    """Counts in the left text less counts in the right one: word n-grams (lower-cased) beside character n-grams."""
    try:
        import scipy.sparse as sparse
        from sklearn.feature_extraction.text import CountVectorizer
    except ImportError as e:
        raise missing_extra(e.name or "scikit-learn", "stats") from None

    blocks = []
    both: tuple[tuple[Any, Any, float], ...] = (
        (_pieces_of_words(left, right), _word_ngrams, WORD_WEIGHT),
        (_pieces_of_letters(left, right), _character_ngrams, LETTER_WEIGHT),
    )
    for pieces, cut, weight in both:
        counts = CountVectorizer(analyzer=cut, dtype=np.float64).fit_transform(pieces)
        block = counts[0::2] - counts[1::2]
        block.eliminate_zeros()
        blocks.append(block[:, np.unique(block.indices)] * weight)
    return sparse.hstack(blocks, format="csr")


def _pieces_of_words(left: Sequence[str], right: Sequence[str]) -> Iterator[list[str]]:
    """Left and right in turn; made as they are counted, for all at once would fill the memory."""
    for a, b in zip(left, right):
        yield from unlike(["^", *tokens(a), "$"], ["^", *tokens(b), "$"], WORD_NGRAMS - 1)


def _pieces_of_letters(left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    for a, b in zip(left, right):
        yield from unlike(f"{_BEGIN}{a}{_END}", f"{_BEGIN}{b}{_END}", CHARACTER_NGRAMS - 1)


Piece = TypeVar("Piece", str, list[str])


def unlike(left: Piece, right: Piece, context: int) -> tuple[Piece, Piece]:
    """Where two texts differ, with so much of what they share on either side.

    n-grams of up to context + 1 have the same difference of counts in these pieces as in the whole texts.

    >>> unlike("a red dog runs", "a blue dog runs", 2)
    ('a red d', 'a blue d')
    """
    shortest = min(len(left), len(right))
    same = _alike(left, right)
    tail = min(shortest - same, _alike(left[::-1], right[::-1]))
    start = max(0, same - context)
    return left[start : len(left) - tail + context], right[start : len(right) - tail + context]


def _alike(left: Sequence[str], right: Sequence[str]) -> int:
    """How much two sequences share from their beginning on."""
    return next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


def _word_ngrams(piece: list[str]) -> list[str]:
    return ngrams(piece, WORD_NGRAMS)


def _character_ngrams(piece: str) -> list[str]:
    return [piece[i : i + n] for n in range(1, CHARACTER_NGRAMS + 1) for i in range(len(piece) - n + 1)]


def summary(text: str) -> list[float]:
    """A caption in a few numbers: lengths, marks of style, give-away words."""
    split = text.split()
    parts = tokens(text)
    return [
        float(len(split)),
        float(len(text)),
        float(len(parts)),
        len(text) / max(1, len(split)),
        max(map(len, split), default=0),
        len(set(parts)) / max(1, len(parts)),
        float(text.count(",")),
        float(len(_ARTICLES.findall(text))),
        float(sum(c.isupper() for c in text)),
        float(negations(text)),
        *map(float, marks(text).values()),
    ]
