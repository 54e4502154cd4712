"""Attackers that use logistic regression: on embeddings of the captions, or on the margins of other attackers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from creperie.auditing.attackers import Attacker, ScoreTexts, TextAttacker, learns
from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import MarginSource, linear_out_of_fold, stacked
from creperie.auditing.pairs import Pairs, one_thread, training_blocks
from creperie.auditing.registry import entry_of
from creperie.core import Progress, batched, silent

BATCH = 256


@dataclass(eq=False)
class EmbeddingLearner(MarginSource):
    """Logistic regression on differences of embeddings, with one model per subset. All answers are out of fold."""

    encode: ScoreTexts  #: from captions, or names of images, to vectors
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        vectors = self._encoded(pairs.captions_at(used), progress)
        dense = vectors[at[: len(pairs)]] - vectors[at[len(pairs) :]]
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), dense, 0)
        with progress(name, len(training_blocks(pairs)), "subsets") as advance:
            return {name: linear_out_of_fold(features, pairs, self.seed, advance)}

    def _encoded(self, texts: list[str], progress: Progress) -> np.ndarray:
        new = sorted(set(texts) - self._vectors.keys(), key=lambda t: (len(t), t))
        with progress("encode captions", len(new), "captions") as advance:
            for batch in batched(new, BATCH):
                self._vectors.update(zip(batch, self.encode(batch), strict=True))
                advance(len(batch))
        return np.stack([self._vectors[t] for t in texts]).astype(np.float64)


#: Folds of the items; the weights for one fold come from the others.
STACKING_FOLDS = 3


@dataclass(eq=False)
class Ensemble(MarginSource):
    """Logistic regression on the margins of other attackers (`members`), with one model per subset. All answers are out
    of fold.

    The weights for the pairs of a fold are learned only from the other folds. Members that learn are trained again on
    those folds; otherwise their answers would depend on which captions of the held-out fold are true. Without this
    step, the ensemble would reach an accuracy of 52 % on 245 pairs even if true and false were assigned at random.
    """

    members: Sequence[Attacker]

    def _parts(self, pairs: Pairs) -> Iterator[tuple[np.ndarray, Pairs | None]]:
        """Yield two values for each fold. The first is a mask of its items. The second is the pairs of all other folds,
        on which the members are trained; None if no member learns.
        """
        fold = np.zeros(pairs.n_items, np.int64)
        for keep in training_blocks(pairs):
            fold[keep] = grouped_folds(pairs.own_group[keep], STACKING_FOLDS, self.seed)
        for k in np.unique(fold):
            learning = (fold != k)[pairs.item].any() and any(map(learns, self.members))
            yield fold == k, replace(pairs.of_items(fold != k), fold=None) if learning else None

    def train_members(self, pairs: Pairs) -> None:
        """Train the members that learn: for every fold, they are trained on all other folds. Their margins are cached,
        and `margins` uses them.
        """
        for _, part in self._parts(pairs.by_content[0]):
            if part is not None:
                self._answers([a for a in self.members if learns(a)], part, silent)

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        asked = self._answers(self.members, pairs, progress)
        margins = np.full(len(pairs), np.nan, np.float32)
        of_blocks = [keep[pairs.item] for keep in training_blocks(pairs)]
        blocks = [replace(pairs.of_items(keep), counted=None) for keep in training_blocks(pairs)]
        learning = [k for k, a in enumerate(self.members) if learns(a)]
        for fold, part in self._parts(pairs):
            answers, held_out = asked.copy(), fold[pairs.item]
            if part is not None:
                answers[np.ix_(~held_out, learning)] = self._answers(
                    [self.members[m] for m in learning], part, progress
                )
            with one_thread():
                for of_block, block in zip(of_blocks, blocks):
                    margins[of_block & held_out] = stacked(block, answers[of_block], held_out[of_block], self.seed)
        return {name: margins}

    def _answers(self, members: Sequence[Attacker], pairs: Pairs, progress: Progress) -> np.ndarray:
        """Return the members' margins, one column per member. NaN becomes 0, also for captions that a slow member did
        not score.
        """
        margins = [
            a.known_margins(pairs)
            if isinstance(a, TextAttacker) and entry_of(a.name).sampled
            else a.margins(pairs, progress)
            for a in members
        ]
        return np.stack([np.nan_to_num(m) for m in margins], axis=1).astype(np.float64)
