"""How alike two captions are as strings (the door to `rapidfuzz`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from creperie.core import missing_extra
from creperie.lang.tokenizing import words


def character_similarity(left: Sequence[str], right: Sequence[str], *, workers: int = 1) -> np.ndarray:
    """1 − Levenshtein distance / length of the longer, pair by pair, on the raw characters; two empty texts are alike.

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
    found = cpdist(left, right, scorer=Levenshtein.normalized_similarity, workers=workers, dtype=np.float32)
    return np.asarray(found, dtype=np.float32)


def word_jaccard(left: str, right: str) -> float:
    """Shared words over all words, as sets.

    >>> word_jaccard("a dog chases a cat", "A cat chases the dog.")
    0.8
    """
    a, b = set(words(left)), set(words(right))
    return len(a & b) / len(a | b) if a or b else 1.0
