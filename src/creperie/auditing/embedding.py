"""A learned attacker that sees nothing but embeddings: a family that n-grams and lengths do not stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from creperie.auditing.features import PairFeatures
from creperie.auditing.learned import RemembersMargins, linear_out_of_fold
from creperie.auditing.pairs import Pairs, training_blocks
from creperie.core import Progress
from creperie.models import TextEncoder

BATCH = 256


@dataclass(frozen=True)
class EmbeddingAttacker(RemembersMargins):
    """Logistic regression on differences of embeddings, out of fold, one model per subset."""

    encoder: TextEncoder
    seed: int = 0
    name: str = "learned-embedding"
    prefers: str = "the caption whose embedding is more like the true ones of the other folds"
    otherwise: str = ""
    directed: bool = True
    _known: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        vectors = self._encoded([pairs.texts[i] for i in used], progress)
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
