"""What the learned attackers see of a pair: the difference between its captions, and nothing else.

Differences turn their sign when a pair is turned round, so a model without an intercept cannot learn which side the
true caption stands on. Nothing here is fitted: counts are counts, and what is scaled is scaled on the training folds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from creperie.auditing.pairs import Pairs
from creperie.core import missing_extra
from creperie.lang import marks, negations, tokens

WORD_NGRAMS = 3
CHARACTER_NGRAMS = 4
#: A changed word changes a handful of word n-grams and some thirty letter n-grams: weigh the blocks about equally.
WORD_WEIGHT = 1.0
LETTER_WEIGHT = 0.3
#: Characters that no caption holds: where it begins and ends, so that n-grams see final periods and first capitals.
_BEGIN, _END = "\x02", "\x03"
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Differences (true minus false) of every pair."""

    sparse: Any  #: scipy CSR, n-gram counts: pairs × n-grams that differ somewhere
    dense: np.ndarray  #: lengths, marks of style, counts of give-away words; or an embedding
    summary: int  #: how many of the dense columns are not embedding
    columns: tuple[np.ndarray, ...] = ()  #: of word and of letter n-grams, the digest of every column

    def of(self, rows: np.ndarray) -> PairFeatures:
        """Those of some pairs, as if they had been counted alone: in the columns where one of them differs."""
        sparse, words = self.sparse[rows], len(self.columns[0])
        used = np.unique(sparse.indices)
        columns = self.columns[0][used[used < words]], self.columns[1][used[used >= words] - words]
        return PairFeatures(sparse[:, used], self.dense[rows], self.summary, columns)


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """Some of the pairs whose features were counted together."""

    features: PairFeatures
    rows: np.ndarray

    def of(self, mine: np.ndarray) -> CountedPairs:
        return CountedPairs(self.features, self.rows[mine])


def counted_once(pairs: Pairs) -> Pairs:
    """The pairs with their features, shared by all that learn from them or from some of them, if they are few."""
    few = len(pairs) <= TOGETHER and pairs.counted is None
    return replace(pairs, counted=CountedPairs(pair_features(pairs), np.arange(len(pairs)))) if few else pairs


#: Pairs whose features are held: some 1.2 kB for each.
TOGETHER = 20_000


def pair_features(
    pairs: Pairs, rows: np.ndarray | None = None, columns: tuple[np.ndarray, ...] | None = None
) -> PairFeatures:
    """The features of all pairs, or of some; in the columns of other pairs, n-grams that these lack are left out."""
    rows = np.arange(len(pairs)) if rows is None else rows
    if pairs.counted is not None and columns is None:
        return cast("PairFeatures", pairs.counted.features.of(pairs.counted.rows[rows]))
    used, at = np.unique(np.concatenate([pairs.left[rows], pairs.right[rows]]), return_inverse=True)
    left, right = at[: len(rows)], at[len(rows) :]
    texts = pairs.said(used)
    sparse, columns = ngram_differences([texts[i] for i in left], [texts[i] for i in right], columns)
    summaries = np.array([summary(t) for t in texts], dtype=np.float64).reshape(len(texts), -1)
    return PairFeatures(sparse, summaries[left] - summaries[right], summaries.shape[1], columns)


def ngram_differences(
    left: Sequence[str], right: Sequence[str], columns: tuple[np.ndarray, ...] | None = None
) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Counts in the left text less counts in the right one: word n-grams (lower-cased) beside character n-grams.

    Columns are in alphabetical order, known by the digests of their n-grams, which are returned, too.
    """
    try:
        import scipy.sparse as sparse
    except ImportError as e:
        raise missing_extra(e.name or "scikit-learn", "stats") from None

    texts = list(zip(left, right))
    words = [p for a, b in texts for p in unlike(["^", *tokens(a), "$"], ["^", *tokens(b), "$"], WORD_NGRAMS - 1)]
    letters = [p for a, b in texts for p in unlike(f"{_BEGIN}{a}{_END}", f"{_BEGIN}{b}{_END}", CHARACTER_NGRAMS - 1)]
    flat, joined = [word for piece in words for word in piece], "".join(letters)
    codes = mixed(np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32))
    known = columns or (None, None)
    by_word = _counted(
        token_digests(flat), [*map(len, words)], WORD_NGRAMS, lambda i, n: " ".join(flat[i : i + n]), known[0]
    )
    by_letter = _counted(codes, [*map(len, letters)], CHARACTER_NGRAMS, lambda i, n: joined[i : i + n], known[1])
    blocks = [by_word[0] * WORD_WEIGHT, by_letter[0] * LETTER_WEIGHT]
    return sparse.hstack(blocks, format="csr"), (by_word[1], by_letter[1])


def _counted(
    units: np.ndarray, lengths: list[int], longest: int, text: Callable[[int, int], str], known: np.ndarray | None
) -> tuple[Any, np.ndarray]:
    """The differences of the n-grams' counts, and the digests of the columns.

    Pieces of so many units lie after each other, left and right in turn; `text` is so many units from a place on.
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
    said = [text(i, n) for i, n in zip(start[first[used]].tolist(), size[first[used]].tolist())]
    used = used[sorted(range(len(said)), key=said.__getitem__)]
    block = block[:, used]
    block.sort_indices()
    return block, names[used]


def token_digests(words: Sequence[str]) -> np.ndarray:
    """A number for every word, the same for equal ones as long as the process lives."""
    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Small numbers as digests that differ in all their bits."""
    found = (numbers.astype(np.uint64) + np.uint64(1)) * _factors()[0]
    return (found ^ (found >> np.uint64(29))) * _factors()[1]


@cache
def _factors() -> np.ndarray:
    """Odd numbers to multiply digests with."""
    return np.random.Generator(np.random.PCG64(22)).integers(0, 1 << 63, 64, np.uint64) * np.uint64(2) + np.uint64(1)


def run_digests(units: np.ndarray, lengths: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digests of all runs of 1 to `longest` units within the pieces, with where each starts and how long it is."""
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(units))  # units until the end of the piece
    found = []
    for n in range(1, longest + 1):
        start = np.flatnonzero(left >= n)
        digest = np.zeros(len(start), np.uint64)
        for k in range(n):
            digest += units[start + k] * _factors()[8 * n + k]  # wraps round
        found.append((digest, start, np.full(len(start), n)))
    digests, starts, sizes = (np.concatenate(part) for part in zip(*found))
    return digests, starts, sizes


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
    same, longest = 0, min(len(left), len(right))
    while same < longest:
        half = (same + longest + 1) // 2
        if left[same:half] == right[same:half]:
            same = half
        else:
            longest = half - 1
    return same


@lru_cache(maxsize=1 << 14)
def summary(text: str) -> tuple[float, ...]:
    """A caption in a few numbers: lengths, marks of style, give-away words."""
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
