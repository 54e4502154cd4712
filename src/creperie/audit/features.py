"""What the learned attackers see of a pair: the difference between its captions, and nothing else.

Differences turn their sign when a pair is turned round, so a model without an intercept cannot learn which side the
true caption stands on. Nothing here is fitted: counts are counts, and what is scaled is scaled on the training folds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.audit.pairs import Pairs
from creperie.errors import missing_extra
from creperie.lang.giveaways import negations
from creperie.lang.surface import marks
from creperie.lang.tokens import tokens
from creperie.models.protocols import TextEncoder

WORD_NGRAMS = 3
CHARACTER_NGRAMS = 4
#: Characters that no caption holds: where it begins and ends, so that n-grams see final periods and first capitals.
_BEGIN, _END = "\x02", "\x03"
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Differences (true minus false) of every pair."""

    sparse: Any  #: scipy CSR, n-gram counts: pairs × n-grams that differ somewhere
    dense: np.ndarray  #: lengths, marks of style, counts of give-away words; then the embedding, where there is one
    summary: int  #: how many of the dense columns are not embedding


def pair_features(pairs: Pairs, encoder: TextEncoder | None = None) -> PairFeatures:
    """The features of all pairs."""
    used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
    left, right = at[: len(pairs)], at[len(pairs) :]
    texts = [pairs.texts[i] for i in used]
    counts = ngram_counts(texts)
    sparse = counts[left] - counts[right]
    sparse.eliminate_zeros()
    sparse = sparse[:, np.unique(sparse.indices)]
    summaries = np.array([summary(t) for t in texts], dtype=np.float64).reshape(len(texts), -1)
    dense = [summaries[left] - summaries[right]]
    if encoder is not None:
        vectors = encoder.encode_texts(texts).astype(np.float64)
        dense.append(vectors[left] - vectors[right])
    return PairFeatures(sparse, np.concatenate(dense, axis=1), summaries.shape[1])


def ngram_counts(texts: Sequence[str]) -> Any:
    """Counts of word n-grams (lower-cased) and of character n-grams (as they stand), one row a text."""
    try:
        import scipy.sparse as sparse
        from sklearn.feature_extraction.text import CountVectorizer
    except ImportError as e:
        raise missing_extra(e.name or "scikit-learn", "stats") from None

    by_word = CountVectorizer(analyzer=_word_ngrams, dtype=np.float64)
    by_letter = CountVectorizer(analyzer="char", lowercase=False, ngram_range=(1, CHARACTER_NGRAMS), dtype=np.float64)
    framed = [f"{_BEGIN}{t}{_END}" for t in texts]
    blocks = [by_word.fit_transform(texts) * WORD_WEIGHT, by_letter.fit_transform(framed) * LETTER_WEIGHT]
    return sparse.hstack(blocks, format="csr")


#: A changed word changes a handful of word n-grams and some thirty letter n-grams: weigh the blocks about equally.
WORD_WEIGHT = 1.0
LETTER_WEIGHT = 0.3


def _word_ngrams(text: str) -> list[str]:
    from creperie.lang.tokens import ngrams

    return ngrams(["^", *tokens(text), "$"], WORD_NGRAMS)


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
