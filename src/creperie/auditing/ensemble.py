"""All attackers together: their answers stacked out of fold. What an adversary with every tool at hand would reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.attackers import Attacker
from creperie.auditing.features import PairFeatures
from creperie.auditing.learned import linear_out_of_fold
from creperie.auditing.pairs import Pairs
from creperie.core import Progress, silent


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
        return linear_out_of_fold(features, pairs, self.seed, lambda _: None)
