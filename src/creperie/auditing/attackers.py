"""Attackers: who tries to tell the true caption from the false one without the image.

An attacker has a name and one method, `margins(pairs)`: a float32 number for every true–false pair, above zero where
it prefers the true caption. Most score captions one by one (`TextAttacker`); `similarity` looks at an item's captions
together; the learned ones answer out of fold. The roles are only looked at by the learned attackers, and only on the
folds that they train on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from creperie.auditing.pairs import ArrowTexts, Pairs, item_gaps, margins_of_scores, pairs_of
from creperie.bench import Benchmark
from creperie.core import Progress, silent

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
