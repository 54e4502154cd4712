"""An attacker that was trained on the foils of another benchmark: the cheapest hack in practice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from creperie.auditing.features import pair_features
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import INNER_FOLDS, RemembersMargins, one_thread, sampled
from creperie.auditing.linear import fit_linear
from creperie.auditing.pairs import Pairs, pairs_of
from creperie.bench import load
from creperie.core import DataError, Progress

#: From fewer pairs than this nothing is learned.
FEWEST = 40


@dataclass(frozen=True)
class TransferAttacker(RemembersMargins):
    """Logistic regression on n-grams, lengths and style of other benchmarks' pairs; it never learns from these."""

    sources: tuple[str, ...]  #: specs of the benchmarks to learn from
    seed: int = 0
    name: str = "transfer"
    prefers: str = "the caption more like the true ones of other benchmarks"
    otherwise: str = ""
    directed: bool = True
    learns: bool = False
    _known: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        with progress(self.name, len(self.sources), "benchmarks") as advance, one_thread():
            both = pairs
            for source in self.sources:
                both = _joined(both, pairs_of(load(source)), pairs)
                advance(1)
            train = sampled(np.arange(len(pairs), len(both)), self.seed)
            if len(train) < FEWEST:
                where, why = ", ".join(self.sources), "captions that stand in both benchmarks are left out"
                raise DataError(f"only {len(train)} pairs to learn from ({why})", where=where, hint="name another")
            features = pair_features(both)
            inner = grouped_folds(both.group[both.item[train]], INNER_FOLDS, self.seed + 1)
            return fit_linear(features, train, inner, self.seed).margins(np.arange(len(pairs))).astype(np.float32)


def _joined(first: Pairs, second: Pairs, asked: Pairs) -> Pairs:
    """Both, one behind the other; of the second only items that share no caption with the pairs that are asked."""
    shown = {asked.texts[i] for i in np.union1d(asked.left, asked.right)}
    known = np.array([t in shown for t in second.texts], dtype=bool)
    shared = np.bincount(second.item, weights=known[second.left] | known[second.right], minlength=second.n_items) > 0
    second = second.of_items(~shared)
    texts, items, clusters = len(first.texts), first.n_items, int(first.cluster.max(initial=-1)) + 1
    return replace(
        first,
        texts=(*first.texts, *second.texts),
        left=np.r_[first.left, second.left + texts],
        right=np.r_[first.right, second.right + texts],
        item=np.r_[first.item, second.item + items],
        row=np.r_[first.row, second.row],
        subset=np.r_[first.subset, second.subset + len(first.subsets)],
        subsets=(*first.subsets, *second.subsets),
        cluster=np.r_[first.cluster, second.cluster + clusters],
        fold=None,
    )
