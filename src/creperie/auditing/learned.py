"""The learned attackers: what a model can learn about a benchmark from its captions alone.

All answers are out of fold: the model that judges a pair was trained without items that share its image or one of its
captions. The regularisation is tuned and the margins are calibrated within the training folds (nested
cross-validation). A margin is therefore the log-odds of the true caption, which can be stated as bits of information.

- `learned-linear`: logistic regression on differences of word and character n-grams, style and lengths;
- `learned-boosted`: gradient-boosted trees on the linear margin, style, lengths and a projection of the n-grams;
- `learned`: the mean of the two.

Each subset has its own model. Subsets with too few pairs to learn from share one.
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
from creperie.auditing.registry import entry_of
from creperie.core import Advance, Progress, seeded, silent

INNER_FOLDS = 3


@dataclass(eq=False, kw_only=True)
class MarginSource:
    """The base class of models that compute the margins of one attacker or of several. A model is trained once for each
    set of pairs.
    """

    seed: int = 0
    _known: dict[str, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def learns(self) -> bool:
        """True if the model learns from the benchmark under attack."""
        return True

    def margins(self, pairs: Pairs, name: str, progress: Progress = silent) -> np.ndarray:
        """Return the margins of all pairs for the attacker with this name; NaN where nothing could be learned.

        The margins do not depend on the order of the items.
        """
        ordered, _, place = pairs.by_content
        by_name = self._known.setdefault(pairs_digest(ordered), {})
        if name not in by_name:
            by_name |= self._learned(ordered, name, progress)
        margins = np.empty_like(by_name[name])
        margins[place] = by_name[name]
        return margins

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        """Return margins by attacker's name, for `name` and for all attackers that are trained together with it."""
        raise NotImplementedError


class Learner(MarginSource):
    """Computes the margins of the n-gram models. They are out of fold and calibrated."""

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        with_trees = name != "learned-linear"
        linear = np.full(len(pairs), np.nan, np.float32)
        trees = linear.copy()
        with progress("learned attackers", len(pairs), "pairs") as advance:
            for keep in training_blocks(pairs):
                of_block = keep[pairs.item]
                with one_thread():
                    linear[of_block], trees[of_block] = out_of_fold(pairs.of_items(keep), with_trees, self.seed)
                advance(int(of_block.sum()))
        if not with_trees:
            return {"learned-linear": linear}
        return {"learned-linear": linear, "learned-boosted": trees, "learned": (linear + trees) / np.float32(2)}


def out_of_fold(pairs: Pairs, with_trees: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the margins of the linear and of the boosted attacker; the latter are NaN without `with_trees`."""
    pairs = pairs if len(pairs) <= MOST else replace(pairs, counted=None)
    whole = pair_features(pairs) if len(pairs) <= MOST else None
    groups = pairs.group[pairs.item]
    fold = pairs.folds_of(np.arange(len(pairs)), fold_count(pairs.n_items), seed)
    straight = np.full(len(pairs), np.nan, np.float32)
    boosted = straight.copy()
    for k in np.unique(fold):
        train, test = sampled(np.flatnonzero(fold != k), seed), np.flatnonzero(fold == k)
        if not len(train):
            continue
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


#: Most pairs that a model learns from, drawn at random; more would improve it little and take long.
MOST = 8000


def sampled(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows. If there are more than `MOST`, return a random sample of `MOST` rows."""
    if len(rows) <= MOST:
        return rows
    return np.sort(seeded(seed).choice(rows, MOST, replace=False))


@dataclass(frozen=True)
class LearnedAttacker:
    """An attacker whose margins come from a `MarginSource`, which it may share with other attackers."""

    name: str
    learner: MarginSource
    prefers: str = entry_of("learned").prefers
    otherwise: str = ""
    directed: bool = True

    @property
    def learns(self) -> bool:
        return self.learner.learns

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        return self.learner.margins(pairs, self.name, progress)


def linear_out_of_fold(features: PairFeatures, pairs: Pairs, seed: int, advance: Advance) -> np.ndarray:
    """Return the margins of all pairs from logistic regression. There is one model for each fold of each training block
    (see `training_blocks`). Margins are NaN if there are too few pairs.
    """
    margins = np.full(len(pairs), np.nan, np.float32)
    with one_thread():
        for keep in training_blocks(pairs):
            members = np.flatnonzero(keep[pairs.item])
            groups = pairs.own_group[pairs.item[members]]
            fold = pairs.folds_of(members, fold_count(int(keep.sum())), seed)
            for k in range(int(fold.max()) + 1 if len(fold) else 0):
                train, test = members[fold != k], members[fold == k]
                if len(train) >= FEWEST:
                    inner = grouped_folds(groups[fold != k], INNER_FOLDS, seed + 1)
                    margins[test] = fit_linear(features, train, inner, seed).margins(test, features)
            advance(1)
    return margins


def stacked(pairs: Pairs, answers: np.ndarray, held_out: np.ndarray, seed: int) -> np.ndarray:
    """Return the ensemble's margins for the `held_out` pairs. The ensemble learns from the other pairs; if these are
    too few, the result is NaN.

    `pairs` are those of one training block (see `training_blocks`), and `answers` holds the members' margins for all of
    them.
    """
    import scipy.sparse as sparse

    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    if len(train) < 2 * FEWEST:
        return np.full(len(test), np.nan)
    size = np.sqrt(np.mean(answers[train] ** 2, axis=0))
    limited = np.clip(answers / np.where(size > 0, size, 1.0), -4, 4)
    features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), limited, limited.shape[1])
    inner = grouped_folds(pairs.own_group[pairs.item[train]], INNER_FOLDS, seed + 1)
    return fit_linear(features, train, inner, seed).margins(test, features)


def pairs_digest(pairs: Pairs) -> str:
    """Return a digest of everything in the pairs that an attacker's answers depend on."""
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
