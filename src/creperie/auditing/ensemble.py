"""All attackers together: their answers stacked out of fold. What an adversary with every tool at hand would reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import Attacker
from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.learned import INNER_FOLDS, one_thread, training_blocks
from creperie.auditing.linear import fit_linear
from creperie.auditing.pairs import Pairs
from creperie.core import Progress, silent

#: From fewer pairs than this nothing is learned.
FEWEST = 20


@dataclass(frozen=True)
class EnsembleAttacker:
    """Logistic regression on the margins of other attackers, out of fold, one model per subset."""

    members: Sequence[Attacker]
    seed: int = 0
    name: str = "ensemble"
    prefers: str = "what the other attackers together prefer"
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        """Members that learn have answered out of fold already, so their answers are as good as new features."""
        import scipy.sparse as sparse

        columns = np.stack([np.nan_to_num(a.margins(pairs, progress)) for a in self.members], axis=1).astype(np.float64)
        size = np.sqrt(np.mean(columns**2, axis=0))
        limited = np.clip(columns / np.where(size > 0, size, 1.0), -4, 4)
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), limited, limited.shape[1])
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        with one_thread():
            for keep in training_blocks(pairs):
                mine = np.flatnonzero(keep[pairs.item])
                groups = pairs.group[pairs.item[mine]]
                fold = pairs.folds_of(mine, fold_count(int(keep.sum())), self.seed)
                for k in range(int(fold.max()) + 1 if len(fold) else 0):
                    train, test = mine[fold != k], mine[fold == k]
                    if len(train) >= FEWEST:
                        inner = grouped_folds(groups[fold != k], INNER_FOLDS, self.seed + 1)
                        found[test] = fit_linear(features, train, inner, self.seed).margins(test)
        return found
