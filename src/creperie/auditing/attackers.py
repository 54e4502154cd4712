"""Attackers: scorers that try to tell the true caption from the false one without seeing the image.

An attacker has a name and one method, `margins(pairs)`, which returns a float32 number for every true–false pair. The
number is above zero if the attacker prefers the true caption. Most attackers score captions one by one
(`TextAttacker`), and `similarity` compares the captions of an item.

The learned attackers are trained on some folds of the items and answer on the others. They see which captions are
true only in the folds that they train on; other attackers never see this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from creperie.auditing.pairs import Pairs, margins_of_scores
from creperie.auditing.registry import entry_of
from creperie.core import Progress, batched, silent

if TYPE_CHECKING:
    from creperie.models import TextEncoder

#: Captions per batch for attackers that take microseconds per caption.
PIECE = 65_536
ScoreTexts = Callable[[Sequence[str]], np.ndarray]


@runtime_checkable
class Attacker(Protocol):
    """The protocol of attackers: any object that returns a margin for each caption pair.

    `directed` is True if the sign of a margin is the attacker's answer, as it is for a learned attacker. Otherwise the
    attacker uses a cue such as caption length, which can work in either direction. The audit reports the direction that
    does better.
    """

    @property
    def name(self) -> str: ...

    @property
    def directed(self) -> bool: ...

    @property
    def prefers(self) -> str:
        """What the attacker chooses, in words, such as "the shorter caption"."""
        ...

    @property
    def otherwise(self) -> str:
        """What the attacker chooses if its rule is reversed, such as "the longer caption". The text is empty if the
        attacker's direction is fixed.
        """
        ...

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray: ...


@dataclass(frozen=True)
class TextAttacker:
    """An attacker that gives every caption a score, regardless of the item it belongs to. Any `TextScorer` can serve as
    `score`.
    """

    name: str
    score: ScoreTexts
    prefers: str = "the caption with the higher score"
    otherwise: str = "the caption with the lower score"
    directed: bool = False
    batch: int = 256
    alphabetical: bool = False  #: sort by text, so that neighbours share prefixes (for language models); else by length
    marks: tuple[str, ...] = ()  #: the marks of style that the score counts: an audit also tests each alone
    remembers: bool = True  #: cache the score of every caption; not worth it for attackers that take microseconds
    _known: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def scores(self, texts: Sequence[str], progress: Progress = silent) -> np.ndarray:
        """Return a float32 score for each text. If the field `remembers` is True, scores are cached, so that each
        distinct text is scored only once.
        """
        if not self.remembers and not self._known:
            return np.asarray(self.score(texts), np.float32)
        key = None if self.alphabetical else lambda t: (len(t), t)
        new = sorted({t for t in texts if t not in self._known}, key=key)
        with progress(self.name, len(new), "captions") as advance:
            for batch in batched(new, self.batch):
                self._known.update(zip(batch, np.asarray(self.score(batch), np.float32).tolist(), strict=True))
                advance(len(batch))
        return np.array([self._known[t] for t in texts], np.float32)

    def tell(self, scores: Mapping[str, float]) -> None:
        """Store scores that were computed elsewhere. `scores` maps each text to its score."""
        self._known.update(scores)

    def forget(self) -> None:
        """Delete all stored scores."""
        self._known.clear()

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        used = np.unique(np.concatenate([pairs.left, pairs.right]))
        scores = np.full(len(pairs.texts), np.nan, np.float32)
        for some in [used] if self.remembers else np.array_split(used, max(1, len(used) // PIECE)):
            scores[some] = self.scores(pairs.captions_at(some), progress)
        return margins_of_scores(pairs, scores)

    def known_margins(self, pairs: Pairs) -> np.ndarray:
        """Return the margin of each pair whose two captions both have a stored score, and NaN for all other pairs. If
        no scores are stored at all, all captions are scored.
        """
        if not self._known:
            return self.margins(pairs)
        return margins_of_scores(pairs, np.array([self._known.get(text, np.nan) for text in pairs.texts], np.float32))


def learns(attacker: Attacker) -> bool:
    """Return True if an attacker learns from the benchmark that it attacks."""
    return bool(getattr(attacker, "learns", attacker.directed))


def scored(function: Callable[[str], float]) -> ScoreTexts:
    """Return a function that scores a list of captions. It calls `function` on each caption."""
    return lambda texts: np.array([function(t) for t in texts], np.float32)


#: A function from two lists of captions to their similarities, pair by pair.
Likeness = Callable[[Sequence[str], Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class OddOneOut:
    """An attacker that scores each caption of an item by its mean similarity to the item's other captions.

    Foils are edits of one true caption, which thus resembles all others. If the item also has a paraphrase, the
    true caption may be closer to the foil than to the paraphrase. In both cases the similarities reveal which captions
    are true. An item with two captions has only one similarity, which reveals nothing.
    """

    likeness: Likeness
    name: str = "similarity"
    prefers: str = entry_of("similarity").prefers
    otherwise: str = entry_of("similarity").otherwise
    directed: bool = False

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        owner, text = _captions_of_items(pairs)
        a, b = _couples(owner)
        with progress(self.name, len(a), "pairs") as advance:
            alike = self.likeness(pairs.captions_at(text[a]), pairs.captions_at(text[b]))
            advance(len(a))
        total = np.bincount(a, weights=alike, minlength=len(text)) + np.bincount(b, weights=alike, minlength=len(text))
        others = np.maximum(1, np.bincount(owner)[owner] - 1)
        score = (total / others).astype(np.float32)
        keys = owner * len(pairs.texts) + text  # sorted by item, then by text
        left = np.searchsorted(keys, pairs.item * len(pairs.texts) + pairs.left)
        right = np.searchsorted(keys, pairs.item * len(pairs.texts) + pairs.right)
        return np.asarray(score[left] - score[right], np.float32)


def _captions_of_items(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return each item's distinct captions as two arrays of equal length: the items, and the indices of the captions.
    The entries are sorted by item, then by caption.
    """
    width = len(pairs.texts)
    keys = np.unique(np.concatenate([pairs.item * width + pairs.left, pairs.item * width + pairs.right]))
    return keys // max(1, width), keys % max(1, width)


def _couples(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all unordered pairs of positions with the same value in `owner`, as two arrays. `owner` must be sorted."""
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]) if len(owner) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, len(owner)])
    first, second = [], []
    for size in np.unique(sizes):
        i, j = np.triu_indices(size, 1)
        base = starts[sizes == size][:, None]
        first.append((base + i).ravel())
        second.append((base + j).ravel())
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *first]), np.concatenate([none, *second])


def by_embedding(model: TextEncoder) -> Likeness:
    """Return a function that computes the similarity of captions as the cosine of a text encoder's vectors."""

    def likeness(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        texts = sorted({*left, *right}, key=lambda t: (len(t), t))
        where = {t: i for i, t in enumerate(texts)}
        vectors = model.encode_texts(texts) if texts else np.zeros((0, 1), np.float32)
        a, b = vectors[[where[t] for t in left]], vectors[[where[t] for t in right]]
        return np.einsum("nd,nd->n", a, b, dtype=np.float32)

    return likeness
