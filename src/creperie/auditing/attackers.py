"""Attackers: who tries to tell the true caption from the false one without the image.

An attacker has a name and one method, `margins(pairs)`: a float32 number for every true–false pair, above zero where
it prefers the true caption. Most score captions one by one (`TextAttacker`); `similarity` looks at an item's captions
together; the learned ones answer out of fold. The roles are only looked at by the learned attackers, and only on the
folds that they train on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from creperie.auditing.pairs import ArrowTexts, Pairs, item_gaps, margins_of_scores, pairs_of
from creperie.bench import Benchmark
from creperie.core import Progress, silent

if TYPE_CHECKING:
    from creperie.models import TextEncoder

#: Captions that are read at once where each is scored in microseconds.
PIECE = 65_536
ScoreTexts = Callable[[Sequence[str]], np.ndarray]


@runtime_checkable
class Attacker(Protocol):
    """Anything that answers pairs.

    `directed` says that the sign of its margins is meaningful as it stands: a learned attacker's is; "how long is the
    caption" has two directions, and the audit chooses between them out of fold.
    """

    @property
    def name(self) -> str: ...

    @property
    def directed(self) -> bool: ...

    @property
    def prefers(self) -> str:
        """What it chooses, in words: "the shorter caption"."""
        ...

    @property
    def otherwise(self) -> str:
        """What it chooses when its direction is turned round: "the longer caption"; empty where it is directed."""
        ...

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray: ...


@dataclass(frozen=True)
class TextAttacker:
    """An attacker that gives every caption one number, whatever item it is in: any `TextScorer` is one."""

    name: str
    score: ScoreTexts
    prefers: str = "the caption with the higher score"
    otherwise: str = "the caption with the lower score"
    directed: bool = False
    batch: int = 256
    alphabetical: bool = False  #: neighbours begin alike, as language models like it; else they are of like length
    remembers: bool = True  #: what it said of every caption; what counts in microseconds does not
    _known: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    _of_texts: WeakKeyDictionary[Any, np.ndarray] = field(default_factory=WeakKeyDictionary, repr=False, compare=False)

    def scores(self, texts: Sequence[str], progress: Progress = silent) -> np.ndarray:
        """A float32 score for each text; where it remembers, each distinct text is scored once in its life."""
        if not self.remembers and not self._known:
            return np.asarray(self.score(texts), dtype=np.float32)
        key = None if self.alphabetical else lambda t: (len(t), t)
        new = sorted({t for t in texts if t not in self._known}, key=key)
        with progress(self.name, len(new), "captions") as advance:
            for start in range(0, len(new), self.batch):
                batch = new[start : start + self.batch]
                self._known.update(zip(batch, np.asarray(self.score(batch), dtype=np.float32).tolist(), strict=True))
                advance(len(batch))
        return np.array([self._known[t] for t in texts], dtype=np.float32)

    def tell(self, scores: Mapping[str, float]) -> None:
        """Scores that were computed elsewhere."""
        self._known.update(scores)

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        used = np.unique(np.concatenate([pairs.left, pairs.right]))
        none = np.full(len(pairs.texts), np.nan, dtype=np.float32)
        scores = self._of_texts.setdefault(pairs.texts, none) if isinstance(pairs.texts, ArrowTexts) else none
        new = used[np.isnan(scores[used])]
        for some in [new] if self.remembers else np.array_split(new, max(1, len(new) // PIECE)):
            scores[some] = self.scores(pairs.said(some), progress)
        return margins_of_scores(pairs, scores)


def learns(attacker: Attacker) -> bool:
    """Whether an attacker's answers were learned from the benchmark that it attacks."""
    return bool(getattr(attacker, "learns", attacker.directed))


def gaps(bench: Benchmark, attacker: Attacker, progress: Progress = silent) -> np.ndarray:
    """The attacker's signed gap for every item, float32; NaN where an item has no true–false pair."""
    pairs = pairs_of(bench)
    return item_gaps(pairs, attacker.margins(pairs, progress))


def scored(function: Callable[[str], float]) -> ScoreTexts:
    """A function of one caption as a function of many."""

    def score(texts: Sequence[str]) -> np.ndarray:
        return np.array([function(t) for t in texts], dtype=np.float32)

    return score


#: Two lists of captions to their similarities, pair by pair.
Likeness = Callable[[Sequence[str], Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class OddOneOut:
    """Scores each caption of an item by its mean similarity to the item's other captions.

    Foils are edits of one true caption. With several foils the true caption is the one that all others resemble; with a
    paraphrase beside it, the foil may be nearer to the true caption than the paraphrase is. Either way the distances
    between an item's captions tell who is who. An item of two captions has one distance and gives nothing away.
    """

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
