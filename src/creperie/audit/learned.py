"""The learned attackers: what a model can learn about a benchmark from its captions alone.

Everything is out of fold: a pair is answered by a model that has seen no item with the same image. Strength is tuned
inside the training folds (nested), margins are calibrated there too, so that a margin is the log-odds of the true
caption and the bits it gives away can be counted.

- `learned-linear`: logistic regression on differences of word and character n-grams, style, lengths;
- `learned-boosted`: gradient-boosted trees on the linear answer, style, lengths and a projection of the n-grams;
- `learned`: the mean of the two.

Each subset is attacked by its own model; subsets with too few pairs to learn from are attacked together.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from creperie.audit.boosted import fit_boosted
from creperie.audit.features import PairFeatures, pair_features
from creperie.audit.folds import fold_count, grouped_folds
from creperie.audit.linear import fit_linear
from creperie.audit.pairs import Pairs
from creperie.models.protocols import TextEncoder
from creperie.progress import Advance, Progress, silent

#: A subset with fewer pairs than this does not get a model of its own.
FEW = 100


@dataclass(eq=False)
class Learner:
    """Trains the models of the learned attackers, once for each set of pairs."""

    seed: int = 0
    encoder: TextEncoder | None = None
    _answers: dict[str, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    def answers(self, pairs: Pairs, progress: Progress = silent) -> dict[str, np.ndarray]:
        """Out-of-fold calibrated margins of all pairs, by attacker; NaN where nothing could be learned."""
        key = _digest(pairs)
        if key not in self._answers:
            self._answers[key] = self._train(pairs, progress)
        return self._answers[key]

    def _train(self, pairs: Pairs, progress: Progress) -> dict[str, np.ndarray]:
        found = {name: np.full(len(pairs), np.nan, dtype=np.float32) for name in ("learned-linear", "learned-boosted")}
        blocks = _blocks(pairs)
        folds = [fold_count(int((pairs.per_item[keep] > 0).sum())) for keep in blocks]
        with progress("learned attackers", sum(folds), "folds") as advance:
            for keep in blocks:
                mine = pairs.of_items(keep)
                for name, margins in self._out_of_fold(mine, advance).items():
                    found[name][keep[pairs.item]] = margins
        both = (found["learned-linear"] + found["learned-boosted"]) / np.float32(2)
        return {"learned": both, **found}

    def _out_of_fold(self, pairs: Pairs, advance: Advance) -> dict[str, np.ndarray]:
        features = pair_features(pairs, self.encoder)
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

        groups = pairs.cluster[pairs.item]
        fold = grouped_folds(groups, fold_count(pairs.n_items), self.seed)
        linear = np.full(len(pairs), np.nan, dtype=np.float32)
        boosted = linear.copy()
        folds = int(fold.max()) + 1 if len(fold) else 0
        with threadpool_limits(1):  # the tables are small: threads inside a fit would wait for each other
            for k in range(folds if folds > 1 else 0):
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                linear[test], boosted[test] = self._one_fold(features, groups, train, test)
                advance(1)
        return {"learned-linear": linear, "learned-boosted": boosted}

    def _one_fold(
        self, features: PairFeatures, groups: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        inner = grouped_folds(groups[train], INNER_FOLDS, self.seed + 1)
        linear = fit_linear(features, train, inner, self.seed)
        boosted = fit_boosted(features, linear, train, inner, self.seed)
        return linear.margins(test), boosted.margins(test)


INNER_FOLDS = 3


@dataclass(frozen=True)
class LearnedAttacker:
    """One of the learned attackers, by name; those with the same learner share its work."""

    name: str
    learner: Learner
    prefers: str = "the caption more like the true ones of the other folds"
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        return self.learner.answers(pairs, progress)[self.name]


def _blocks(pairs: Pairs) -> list[np.ndarray]:
    """Masks over the items: one for every subset with enough pairs, one for the small subsets together."""
    count = np.bincount(pairs.subset[pairs.item], minlength=len(pairs.subsets))
    large = np.flatnonzero(count >= FEW)
    masks = [pairs.subset == s for s in large]
    rest = ~np.isin(pairs.subset, large)
    if count[count < FEW].sum():
        masks.append(rest)
    return masks


def _digest(pairs: Pairs) -> str:
    """What the answers depend on."""
    content = hashlib.sha256()
    for array in (pairs.left, pairs.right, pairs.item, pairs.subset, pairs.cluster):
        content.update(array.tobytes())
        content.update(b"|")
    content.update("\x00".join(pairs.texts).encode("utf-8", "surrogatepass"))
    return content.hexdigest()
