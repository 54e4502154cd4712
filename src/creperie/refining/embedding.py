"""A learned attacker that sees nothing but embeddings: a family that n-grams and lengths do not stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from creperie.auditing import INNER_FOLDS, PairFeatures, Pairs, fit_linear, fold_count, grouped_folds
from creperie.core import Progress, silent
from creperie.models import Fingerprint, TextEncoder
from creperie.refining.crossfit import FEWEST, one_thread

EMBEDDING = "learned-embedding"
BATCH = 256


@dataclass(frozen=True)
class Remembering:
    """A text encoder that encodes every caption once: attackers ask for the same ones before and after."""

    model: TextEncoder
    known: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def fingerprint(self) -> Fingerprint:
        return self.model.fingerprint

    def learn(self, texts: Sequence[str], progress: Progress = silent) -> None:
        """Encode what is not known yet, short captions first."""
        new = sorted(set(texts) - self.known.keys(), key=lambda t: (len(t), t))
        with progress("encode captions", len(new), "captions") as advance:
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                self.known.update(zip(batch, self.model.encode_texts(batch), strict=True))
                advance(len(batch))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.learn(texts)
        return np.stack([self.known[t] for t in texts])


@dataclass(frozen=True)
class EmbeddingAttacker:
    """Logistic regression on differences of embeddings, out of fold, a model for every subset."""

    encoder: Remembering
    seed: int = 0
    name: str = EMBEDDING
    prefers: str = "what the embeddings of the other folds' true captions look like"
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        texts = [pairs.texts[i] for i in used]
        self.encoder.learn(texts, progress)
        vectors = self.encoder.encode_texts(texts).astype(np.float64)
        dense = vectors[at[: len(pairs)]] - vectors[at[len(pairs) :]]
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), dense, 0)
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        subsets = np.unique(pairs.subset)
        with progress(self.name, len(subsets), "subsets") as advance, one_thread():
            for s in subsets:
                self._answer(features, pairs, np.flatnonzero(pairs.subset[pairs.item] == s), found)
                advance(1)
        return found

    def _answer(self, features: PairFeatures, pairs: Pairs, mine: np.ndarray, found: np.ndarray) -> None:
        """Fill in the margins of one subset's pairs."""
        groups = pairs.group[pairs.item[mine]]
        fold = grouped_folds(groups, fold_count(len(np.unique(pairs.item[mine]))), self.seed)
        for k in range(int(fold.max()) + 1 if len(fold) else 0):
            train, test = mine[fold != k], mine[fold == k]
            if len(train) >= FEWEST:
                inner = grouped_folds(groups[fold != k], INNER_FOLDS, self.seed + 1)
                found[test] = fit_linear(features, train, inner, self.seed).margins(test)
