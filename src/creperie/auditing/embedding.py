"""A learned attacker that sees nothing but embeddings: a family that n-grams and lengths do not stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.learned import INNER_FOLDS, RemembersMargins, one_thread, training_blocks
from creperie.auditing.linear import fit_linear
from creperie.auditing.pairs import Pairs
from creperie.core import Progress
from creperie.models import TextEncoder

BATCH = 256
#: From fewer pairs than this nothing is learned.
FEWEST = 20


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
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        blocks = training_blocks(pairs)
        with progress(self.name, len(blocks), "subsets") as advance, one_thread():
            for keep in blocks:
                self._answer(features, pairs, np.flatnonzero(keep[pairs.item]), found)
                advance(1)
        return found

    def _encoded(self, texts: list[str], progress: Progress) -> np.ndarray:
        new = sorted(set(texts) - self._vectors.keys(), key=lambda t: (len(t), t))
        with progress("encode captions", len(new), "captions") as advance:
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                self._vectors.update(zip(batch, self.encoder.encode_texts(batch), strict=True))
                advance(len(batch))
        return np.stack([self._vectors[t] for t in texts]).astype(np.float64)

    def _answer(self, features: PairFeatures, pairs: Pairs, mine: np.ndarray, found: np.ndarray) -> None:
        """Fill in the margins of one block of pairs."""
        groups = pairs.group[pairs.item[mine]]
        fold = pairs.folds_of(mine, fold_count(len(np.unique(pairs.item[mine]))), self.seed)
        for k in range(int(fold.max()) + 1 if len(fold) else 0):
            train, test = mine[fold != k], mine[fold == k]
            if len(train) >= FEWEST:
                inner = grouped_folds(groups[fold != k], INNER_FOLDS, self.seed + 1)
                found[test] = fit_linear(features, train, inner, self.seed).margins(test)
