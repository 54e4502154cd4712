"""The learned attackers: what a model can learn about a benchmark from its captions alone.

Everything is out of fold: a pair is answered by a model that has seen no item with the same
image and none of its captions. Strength is tuned
inside the training folds (nested), margins are calibrated there too, so that a margin is the log-odds of the true
caption and the bits it gives away can be counted.

- `learned-linear`: logistic regression on differences of word and character n-grams, style, lengths;
- `learned-boosted`: gradient-boosted trees on the linear answer, style, lengths and a projection of the n-grams;
- `learned`: the mean of the two.

Each subset is attacked by its own model; subsets with too few pairs to learn from are attacked together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from creperie.auditing.boosted import fit_boosted
from creperie.auditing.features import PairFeatures, pair_features
from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.linear import fit_linear
from creperie.auditing.null import FEWEST
from creperie.auditing.pairs import Pairs, one_thread, training_blocks
from creperie.core import Advance, Progress, silent

INNER_FOLDS = 3


@dataclass(frozen=True, kw_only=True)
class RemembersMargins:
    """A learned attacker that learns once per set of pairs."""

    seed: int = 0
    otherwise: str = ""
    directed: bool = True
    _known: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        key = pairs_digest(pairs)
        if key not in self._known:
            self._known[key] = self._learn(pairs, progress)
        return self._known[key]

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        raise NotImplementedError


@dataclass(eq=False)
class Learner:
    """Trains the models of the learned attackers, once for each set of pairs."""

    seed: int = 0
    _known: dict[str, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    def answers(self, pairs: Pairs, name: str, progress: Progress = silent) -> np.ndarray:
        """Out-of-fold calibrated margins of all pairs by a learned attacker; NaN where nothing could be learned."""
        known = self._known.setdefault(pairs_digest(pairs), {})
        if name not in known:
            known |= self._learned(pairs, name != "learned-linear", progress)
        return known[name]

    def _learned(self, pairs: Pairs, with_trees: bool, progress: Progress) -> dict[str, np.ndarray]:
        linear = np.full(len(pairs), np.nan, dtype=np.float32)
        trees = linear.copy()
        with progress("learned attackers", len(pairs), "pairs") as advance:
            for keep in training_blocks(pairs):
                mine = keep[pairs.item]
                with one_thread():
                    linear[mine], trees[mine] = out_of_fold(pairs.of_items(keep), with_trees, self.seed)
                advance(int(mine.sum()))
        if not with_trees:
            return {"learned-linear": linear}
        return {"learned-linear": linear, "learned-boosted": trees, "learned": (linear + trees) / np.float32(2)}


def out_of_fold(pairs: Pairs, with_trees: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Margins of the linear and of the boosted attacker; of the second, NaN where it is not wanted."""
    pairs = pairs if len(pairs) <= MOST else replace(pairs, counted=None)
    whole = pair_features(pairs) if len(pairs) <= MOST else None
    groups = pairs.group[pairs.item]
    fold = pairs.folds_of(np.arange(len(pairs)), fold_count(pairs.n_items), seed)
    straight = np.full(len(pairs), np.nan, dtype=np.float32)
    boosted = straight.copy()
    folds = int(fold.max()) + 1 if len(fold) else 0
    for k in range(folds if folds > 1 else 0):
        train, test = sampled(np.flatnonzero(fold != k), seed), np.flatnonzero(fold == k)
        inner = grouped_folds(groups[train], INNER_FOLDS, seed + 1)
        seen, rows = (whole, train) if whole else (pair_features(pairs, train), np.arange(len(train)))
        linear = fit_linear(seen, rows, inner, seed)
        trees = fit_boosted(seen, linear, rows, inner, seed) if with_trees else None
        for some in np.array_split(test, max(1, len(test) // MOST)):
            asked = whole or pair_features(pairs, some, seen.columns)
            at = some if whole else np.arange(len(some))
            straight[some] = linear.margins(at, asked)
            if trees is not None:
                boosted[some] = trees.margins(at, asked)
    return straight, boosted


#: A model learns from at most so many pairs, drawn at random; beyond, it learns little more and takes long.
MOST = 8000


def sampled(rows: np.ndarray, seed: int) -> np.ndarray:
    """The rows, or so many of them that one model learns from."""
    if len(rows) <= MOST:
        return rows
    return np.sort(np.random.Generator(np.random.PCG64(seed)).choice(rows, MOST, replace=False))


@dataclass(frozen=True)
class LearnedAttacker:
    """One of the learned attackers, by name; those with the same learner share its work."""

    name: str
    learner: Learner
    prefers: str = "the caption more like the true captions of the other folds"
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        return self.learner.answers(pairs, self.name, progress)


def linear_out_of_fold(features: PairFeatures, pairs: Pairs, seed: int, advance: Advance) -> np.ndarray:
    """Margins of all pairs by logistic regression on features, one model per block and fold; NaN where too few."""
    found = np.full(len(pairs), np.nan, dtype=np.float32)
    with one_thread():
        for keep in training_blocks(pairs):
            mine = np.flatnonzero(keep[pairs.item])
            groups = pairs.own_group[pairs.item[mine]]
            fold = pairs.folds_of(mine, fold_count(int(keep.sum())), seed)
            for k in range(int(fold.max()) + 1 if len(fold) else 0):
                train, test = mine[fold != k], mine[fold == k]
                if len(train) >= FEWEST:
                    inner = grouped_folds(groups[fold != k], INNER_FOLDS, seed + 1)
                    found[test] = fit_linear(features, train, inner, seed).margins(test)
            advance(1)
    return found


def stacked(pairs: Pairs, known: np.ndarray, held_out: np.ndarray, seed: int) -> np.ndarray:
    """The ensemble's margins of a block's held-out pairs; NaN where there are too few others to learn from."""
    import scipy.sparse as sparse

    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    if len(train) < 2 * FEWEST:
        return np.full(len(test), np.nan)
    size = np.sqrt(np.mean(known[train] ** 2, axis=0))
    limited = np.clip(known / np.where(size > 0, size, 1.0), -4, 4)
    features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), limited, limited.shape[1])
    inner = grouped_folds(pairs.own_group[pairs.item[train]], INNER_FOLDS, seed + 1)
    return fit_linear(features, train, inner, seed).margins(test)


def pairs_digest(pairs: Pairs) -> str:
    """What the answers depend on."""
    content = hashlib.sha256()
    given = np.zeros(0) if pairs.fold is None else pairs.fold
    for array in (pairs.left, pairs.right, pairs.item, pairs.subset, pairs.cluster, given):
        content.update(array.tobytes())
        content.update(b"|")
    content.update(_texts_digest(pairs.texts))
    return content.hexdigest()


@lru_cache(maxsize=4)
def _texts_digest(texts: Sequence[str]) -> bytes:
    content = hashlib.sha256()
    for text in texts:
        content.update(text.encode("utf-8", "surrogatepass") + b"\x00")
    return content.digest()
