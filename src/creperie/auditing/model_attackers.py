"""Attackers made of others: logistic regression on embeddings, and the ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from creperie.auditing.attackers import Attacker, learns
from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import RemembersMargins, linear_out_of_fold, stacked
from creperie.auditing.pairs import Pairs, one_thread, training_blocks
from creperie.bench import ImageStore, open_image
from creperie.core import Progress
from creperie.models import Fingerprint, ImageEncoder, TextEncoder

BATCH = 256


@dataclass(frozen=True)
class ImageNames:
    """An image encoder that is given the names of a benchmark's images, as a text encoder is given captions."""

    model: ImageEncoder
    images: ImageStore

    @property
    def fingerprint(self) -> Fingerprint:
        return self.model.fingerprint

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.encode_images([open_image(self.images, name) for name in texts])


@dataclass(frozen=True)
class EmbeddingAttacker(RemembersMargins):
    """Logistic regression on differences of embeddings, out of fold, one model per subset."""

    encoder: TextEncoder
    name: str = "learned-embedding"
    prefers: str = "the caption whose embedding is more like those of the true captions in the other folds"
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        vectors = self._encoded(pairs.said(used), progress)
        dense = vectors[at[: len(pairs)]] - vectors[at[len(pairs) :]]
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), dense, 0)
        with progress(self.name, len(training_blocks(pairs)), "subsets") as advance:
            return linear_out_of_fold(features, pairs, self.seed, advance)

    def _encoded(self, texts: list[str], progress: Progress) -> np.ndarray:
        new = sorted(set(texts) - self._vectors.keys(), key=lambda t: (len(t), t))
        with progress("encode captions", len(new), "captions") as advance:
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                self._vectors.update(zip(batch, self.encoder.encode_texts(batch), strict=True))
                advance(len(batch))
        return np.stack([self._vectors[t] for t in texts]).astype(np.float64)


#: Parts of the items; the weights for one come from the others.
STACKING_FOLDS = 3


@dataclass(frozen=True)
class EnsembleAttacker(RemembersMargins):
    """Logistic regression on the margins of other attackers, out of fold, one model per subset.

    The weights for a fold's pairs come from the other folds alone: attackers that learn are trained once more on those
    folds, so that the answers from which the weights are learned know nothing of the roles that are asked about.
    Stacking the usual out-of-fold answers would find 52 % where roles are drawn at random (245 pairs).
    """

    members: Sequence[Attacker]
    name: str = "ensemble"
    prefers: str = "what the other attackers together prefer"

    def _parts(self, pairs: Pairs) -> Iterator[tuple[np.ndarray, Pairs | None]]:
        """A mask over the items for every fold, and the pairs of the others where something is learned from them."""
        fold = np.zeros(pairs.n_items, dtype=np.int64)
        for keep in training_blocks(pairs):
            fold[keep] = grouped_folds(pairs.own_group[keep], STACKING_FOLDS, self.seed)
        for k in np.unique(fold):
            learning = (fold != k)[pairs.item].any() and any(map(learns, self.members))
            yield fold == k, replace(pairs.of_items(fold != k), fold=None) if learning else None

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        asked = self._answers(self.members, pairs, progress)
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        mine = [keep[pairs.item] for keep in training_blocks(pairs)]
        blocks = [replace(pairs.of_items(keep), counted=None) for keep in training_blocks(pairs)]
        learning = [k for k, a in enumerate(self.members) if learns(a)]
        for fold, part in self._parts(pairs):
            known, held_out = asked.copy(), fold[pairs.item]
            if part is not None:
                known[np.ix_(~held_out, learning)] = self._answers([self.members[m] for m in learning], part, progress)
            with one_thread():
                for own, block in zip(mine, blocks):
                    found[own & held_out] = stacked(block, known[own], held_out[own], self.seed)
        return found

    def _answers(self, members: Sequence[Attacker], pairs: Pairs, progress: Progress) -> np.ndarray:
        """One column per member."""
        return np.stack([np.nan_to_num(a.margins(pairs, progress)) for a in members], axis=1).astype(np.float64)
