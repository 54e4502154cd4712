"""The odd one out: of an item's captions, the false one is the least like the others, or the true one is the hub.

Foils are edits of one true caption. With several foils the true caption is the one that all others resemble; with a
paraphrase beside it, the foil may be nearer to the true caption than the paraphrase is. Either way the distances
between an item's captions tell who is who. An item of two captions has one distance and gives nothing away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from creperie.auditing.pairs import Pairs
from creperie.core import Progress, silent

if TYPE_CHECKING:
    from creperie.models import TextEncoder

#: Two lists of captions to their similarities, pair by pair.
Likeness = Callable[[Sequence[str], Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class OddOneOut:
    """Scores each caption of an item by its mean similarity to the item's other captions."""

    likeness: Likeness
    name: str = "similarity"
    prefers: str = "the caption most like the item's others"
    otherwise: str = "the caption least like the item's others"
    directed: bool = False

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        owner, text = _captions_of_items(pairs)
        a, b = _couples(owner)
        with progress(self.name, len(a), "pairs") as advance:
            alike = self.likeness(pairs.said(text[a]), pairs.said(text[b]))
            advance(len(a))
        total = np.bincount(a, weights=alike, minlength=len(text)) + np.bincount(b, weights=alike, minlength=len(text))
        others = np.maximum(1, np.bincount(owner)[owner] - 1)
        score = (total / others).astype(np.float32)
        keys = owner * len(pairs.texts) + text  # sorted: captions lie by item, then by text
        left = np.searchsorted(keys, pairs.item * len(pairs.texts) + pairs.left)
        right = np.searchsorted(keys, pairs.item * len(pairs.texts) + pairs.right)
        return np.asarray(score[left] - score[right], dtype=np.float32)


def _captions_of_items(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """The distinct captions of every item, sorted by item and text: (item, text)."""
    width = len(pairs.texts)
    keys = np.unique(np.concatenate([pairs.item * width + pairs.left, pairs.item * width + pairs.right]))
    return keys // max(1, width), keys % max(1, width)


def _couples(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All unordered couples of positions with the same owner; `owner` is sorted."""
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]) if len(owner) else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.r_[starts, len(owner)])
    first, second = [], []
    for size in np.unique(sizes):
        i, j = np.triu_indices(size, 1)
        base = starts[sizes == size][:, None]
        first.append((base + i).ravel())
        second.append((base + j).ravel())
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *first]), np.concatenate([none, *second])


def by_embedding(model: TextEncoder) -> Likeness:
    """Cosine of a text encoder's vectors."""

    def likeness(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        texts = sorted({*left, *right}, key=lambda t: (len(t), t))
        where = {t: i for i, t in enumerate(texts)}
        vectors = model.encode_texts(texts) if texts else np.zeros((0, 1), dtype=np.float32)
        a, b = vectors[[where[t] for t in left]], vectors[[where[t] for t in right]]
        return np.einsum("nd,nd->n", a, b, dtype=np.float32)

    return likeness
