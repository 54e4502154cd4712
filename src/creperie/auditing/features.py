"""The features of the learned attackers: differences between the two captions of a pair, and nothing else.

The differences change sign when the captions of a pair are exchanged. A model without an intercept therefore cannot
learn in which position the true caption is. Nothing is fitted here; features are scaled later, by their size in
training folds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from creperie.auditing.pairs import Pairs
from creperie.core import seeded
from creperie.lang import marks, negations, tokens

WORD_NGRAMS = 3
CHARACTER_NGRAMS = 4
#: One changed word affects a few word n-grams and some thirty character n-grams: weight the blocks about equally.
WORD_WEIGHT = 1.0
LETTER_WEIGHT = 0.3
#: Characters that no caption contains, for its start and end: n-grams then include final periods and initial capitals.
_BEGIN, _END = "\x02", "\x03"
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """The feature differences (true minus false) of every pair."""

    sparse: Any  #: scipy CSR, n-gram counts: pairs × n-grams that differ somewhere
    dense: np.ndarray  #: lengths, marks of style, counts of give-away words; or an embedding
    summary: int  #: the number of dense columns that are not an embedding
    columns: tuple[np.ndarray, ...] = ()  #: digests of the word and of the character n-gram columns

    def of(self, rows: np.ndarray) -> PairFeatures:
        """Return the features of the pairs `rows`, without the columns that are zero for all of them."""
        sparse, words = self.sparse[rows], len(self.columns[0])
        used = np.unique(sparse.indices)
        columns = self.columns[0][used[used < words]], self.columns[1][used[used >= words] - words]
        return PairFeatures(sparse[:, used], self.dense[rows], self.summary, columns)


def counted_once(pairs: Pairs) -> Pairs:
    """Return the pairs together with their features, which all learned attackers can then share. If there are too many
    pairs, return them without features.
    """
    few = len(pairs) <= TOGETHER and pairs.counted is None
    return replace(pairs, counted=(pair_features(pairs), np.arange(len(pairs)))) if few else pairs


#: Most pairs whose features are kept in memory, at about 1.2 kB each.
TOGETHER = 20_000


def pair_features(
    pairs: Pairs, rows: np.ndarray | None = None, columns: tuple[np.ndarray, ...] | None = None
) -> PairFeatures:
    """Return the features of all pairs or of those in `rows`. With `columns`, only the n-grams with these digests are
    counted.
    """
    rows = np.arange(len(pairs)) if rows is None else rows
    if pairs.counted is not None and columns is None:
        features, own = cast("tuple[PairFeatures, np.ndarray]", pairs.counted)
        return features.of(own[rows])
    used, at = np.unique(np.concatenate([pairs.left[rows], pairs.right[rows]]), return_inverse=True)
    left, right = at[: len(rows)], at[len(rows) :]
    texts = pairs.captions_at(used)
    sparse, columns = ngram_differences([texts[i] for i in left], [texts[i] for i in right], columns)
    summaries = np.array([summary(t) for t in texts], np.float64).reshape(len(texts), -1)
    return PairFeatures(sparse, summaries[left] - summaries[right], summaries.shape[1], columns)


def ngram_differences(
    left: Sequence[str], right: Sequence[str], columns: tuple[np.ndarray, ...] | None = None
) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return, for each pair of texts, the counts of n-grams in the left text minus those in the right text. N-grams are
    of lower-cased words and of characters.

    The columns are in alphabetical order. The digests of their n-grams are returned as well.
    """
    import scipy.sparse as sparse

    texts = list(zip(left, right))
    words = [
        p for a, b in texts for p in differing_parts(["^", *tokens(a), "$"], ["^", *tokens(b), "$"], WORD_NGRAMS - 1)
    ]
    letters = [
        p for a, b in texts for p in differing_parts(f"{_BEGIN}{a}{_END}", f"{_BEGIN}{b}{_END}", CHARACTER_NGRAMS - 1)
    ]
    flat, joined = [word for piece in words for word in piece], "".join(letters)
    given = columns or (None, None)
    units = token_digests(flat), [*map(len, words)], WORD_NGRAMS
    by_word = _ngram_matrix(*units, lambda i, n: " ".join(flat[i : i + n]), given[0])
    units = token_digests(joined), [*map(len, letters)], CHARACTER_NGRAMS
    by_letter = _ngram_matrix(*units, lambda i, n: joined[i : i + n], given[1])
    blocks = [by_word[0] * WORD_WEIGHT, by_letter[0] * LETTER_WEIGHT]
    return sparse.hstack(blocks, format="csr"), (by_word[1], by_letter[1])


def _ngram_matrix(
    units: np.ndarray, lengths: list[int], longest: int, text: Callable[[int, int], str], known: np.ndarray | None
) -> tuple[Any, np.ndarray]:
    """Return a matrix (pairs × n-grams) of the counts in the left text minus those in the right text, and the digest of
    each column's n-gram.

    `units` are the digests of the words or characters of all texts in the order left, right, left, right, and so on.
    `lengths` holds the number of units of each text, and `text(i, n)` returns the n units from position i as text. With
    `known`, only n-grams with these digests are counted, in this order.
    """
    import scipy.sparse as sparse

    digests, start, size = run_digests(units, np.array(lengths, np.int64), longest)
    piece = np.repeat(np.arange(len(lengths)), lengths)[start]
    names, first, column = np.unique(digests, return_index=True, return_inverse=True)
    if known is not None:
        order = np.argsort(known)
        at = np.append(order, -1)[np.searchsorted(known, names, sorter=order)]
        column = np.where(np.append(known, 0)[at] == names, at, -1)[column]
        piece, column = piece[column >= 0], column[column >= 0]
    shape = len(lengths) // 2, len(names if known is None else known)
    block = sparse.coo_matrix((np.where(piece % 2, -1.0, 1.0), (piece // 2, column)), shape).tocsr()
    block.eliminate_zeros()
    if known is not None:
        return block, known
    used = np.unique(block.indices)
    grams = [text(i, n) for i, n in zip(start[first[used]].tolist(), size[first[used]].tolist())]
    used = used[sorted(range(len(grams)), key=grams.__getitem__)]
    block = block[:, used]
    block.sort_indices()
    return block, names[used]


def token_digests(words: Sequence[str]) -> np.ndarray:
    """Return a digest of each word or character. Equal words have equal digests within one process."""
    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


@cache
def _factors() -> np.ndarray:
    """Return fixed random odd numbers by which digests are multiplied."""
    return seeded(22).integers(0, 1 << 63, 64, np.uint64) * np.uint64(2) + np.uint64(1)


def run_digests(units: np.ndarray, lengths: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the digests of all sequences of 1 to `longest` units within a text, with the start and length of each."""
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(units))  # units until the end of the piece
    runs = []
    for n in range(1, longest + 1):
        start = np.flatnonzero(left >= n)
        digest = np.zeros(len(start), np.uint64)
        for k in range(n):
            digest += units[start + k] * _factors()[8 * n + k]  # wraps around
        runs.append((digest, start, np.full(len(start), n)))
    digests, starts, sizes = (np.concatenate(part) for part in zip(*runs))
    return digests, starts, sizes


Piece = TypeVar("Piece", str, list[str])


def differing_parts(left: Piece, right: Piece, context: int) -> tuple[Piece, Piece]:
    """Return the parts of two texts that differ, with up to `context` words or characters of the shared text on either
    side.

    For n-grams of up to context + 1 units, the difference of counts between these parts is the same as between the
    whole texts.

    >>> differing_parts("a red dog runs", "a blue dog runs", 2)
    ('a red d', 'a blue d')
    """
    shortest = min(len(left), len(right))
    same = _common_prefix(left, right)
    tail = min(shortest - same, _common_prefix(left[::-1], right[::-1]))
    start = max(0, same - context)
    return left[start : len(left) - tail + context], right[start : len(right) - tail + context]


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    return next((k for k, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


@lru_cache(maxsize=1 << 14)
def summary(text: str) -> tuple[float, ...]:
    """Return features of a caption as numbers: its lengths, its style marks, and its numbers of commas, articles,
    capitals and negations.
    """
    split = text.split()
    parts = tokens(text)
    return (
        float(len(split)),
        float(len(text)),
        float(len(parts)),
        len(text) / max(1, len(split)),
        max(map(len, split), default=0),
        len(set(parts)) / max(1, len(parts)),
        float(text.count(",")),
        float(len(_ARTICLES.findall(text))),
        float(sum(map(str.isupper, text))),
        float(negations(text)),
        *map(float, marks(text).values()),
    )
