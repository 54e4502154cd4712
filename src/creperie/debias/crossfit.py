"""New learned attackers, trained on some items of a set and sent against others.

A refinement is only as good as the attacker that has not been seen yet. Here attackers are trained on what a
refinement kept, or on what it removed, with folds of their own each time; none answers an item whose image it saw.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.audit.boosted import fit_boosted
from creperie.audit.features import PairFeatures, pair_features
from creperie.audit.folds import fold_count, grouped_folds
from creperie.audit.learned import INNER_FOLDS
from creperie.audit.linear import fit_linear
from creperie.audit.pairs import Pairs, item_mean
from creperie.models.protocols import TextEncoder
from creperie.progress import Progress, silent

#: From fewer pairs than this nothing is learned.
FEWEST = 20


@dataclass(eq=False)
class Trainer:
    """Trains attackers on parts of one set of pairs; what the pairs look like is computed once."""

    pairs: Pairs
    encoder: TextEncoder | None = None

    @cached_property
    def features(self) -> PairFeatures:
        return pair_features(self.pairs, self.encoder)

    def margins(self, learn_from: np.ndarray, answer: np.ndarray, seed: int) -> np.ndarray:
        """Log-odds of the true caption for the pairs of the items in `answer`; NaN elsewhere.

        Both are masks over the items. An item in both is answered by a model that did not see it.
        """
        pairs = self.pairs
        groups = pairs.cluster[pairs.item]
        fold = grouped_folds(groups, fold_count(int(learn_from.sum())), seed)
        learn, ask = learn_from[pairs.item], answer[pairs.item]
        found = np.full(len(pairs), np.nan)
        with one_thread():
            for k in range(int(fold.max()) + 1 if len(fold) else 0):
                train, test = np.flatnonzero(learn & (fold != k)), np.flatnonzero(ask & (fold == k))
                if len(train) >= FEWEST and len(test):
                    found[test] = self._answers(train, test, groups, seed)
        return found

    def _answers(self, train: np.ndarray, test: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
        inner = grouped_folds(groups[train], INNER_FOLDS, seed + 1)
        linear = fit_linear(self.features, train, inner, seed)
        boosted = fit_boosted(self.features, linear, train, inner, seed)
        return np.asarray((linear.margins(test) + boosted.margins(test)) / 2)


@contextmanager
def one_thread() -> Iterator[None]:
    """The tables are small: threads inside a fit would wait for each other. Unfinished fits are good enough."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Liblinear failed to converge")
        yield


@dataclass(frozen=True)
class EmbeddingAttacker:
    """A learned attacker that sees nothing but a text encoder's vectors: another family than n-grams and lengths."""

    encoder: TextEncoder
    seed: int = 0
    name: str = "learned-embedding"
    prefers: str = "what the embeddings of the other folds' true captions look like"
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        vectors = self.encoder.encode_texts([pairs.texts[i] for i in used]).astype(np.float64)
        dense = vectors[at[: len(pairs)]] - vectors[at[len(pairs) :]]
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), dense, 0)
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        subsets = np.unique(pairs.subset)
        with progress(self.name, len(subsets), "subsets") as advance, one_thread():
            for s in subsets:
                mine = np.flatnonzero(pairs.subset[pairs.item] == s)
                self._answer(features, pairs, mine, found)
                advance(1)
        return found

    def _answer(self, features: PairFeatures, pairs: Pairs, mine: np.ndarray, found: np.ndarray) -> None:
        groups = pairs.cluster[pairs.item[mine]]
        fold = grouped_folds(groups, fold_count(len(np.unique(pairs.item[mine]))), self.seed)
        for k in range(int(fold.max()) + 1 if len(fold) else 0):
            train, test = mine[fold != k], mine[fold == k]
            if len(train) >= FEWEST:
                inner = grouped_folds(groups[fold != k], INNER_FOLDS, self.seed + 1)
                found[test] = fit_linear(features, train, inner, self.seed).margins(test)


def sureness(pairs: Pairs, log_odds: np.ndarray) -> np.ndarray:
    """The gap of every item from log-odds: the mean of 2p − 1, within [-1, 1]; 0 where there is no answer.

    Log-odds have no largest value; 2p − 1 has, so one very sure answer does not squeeze all others into one bin.
    """
    return np.nan_to_num(item_mean(pairs, np.nan_to_num(np.tanh(np.asarray(log_odds, dtype=np.float64) / 2))))
