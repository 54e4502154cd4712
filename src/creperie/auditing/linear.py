"""Pairwise logistic regression: a weight for every n-gram and every mark of style."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import tuning_folds
from creperie.auditing.measure import fit_scale, log_loss

#: Inverse strengths of the L2 penalty, tried on the inner folds.
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Linear:
    """A fitted model. `inner` holds the margins of the training pairs, each by a model that did not see its group."""

    features: PairFeatures
    sizes: np.ndarray  #: of the dense columns
    weights: np.ndarray
    scale: float
    inner: np.ndarray
    strength: float

    def margins(self, rows: np.ndarray, features: PairFeatures | None = None) -> np.ndarray:
        """Calibrated log-odds of the true caption: of these pairs, or of others in the same columns."""
        return np.asarray(_design(features or self.features, rows, self.sizes) @ self.weights * self.scale)


def fit_linear(features: PairFeatures, train: np.ndarray, inner: np.ndarray, seed: int) -> Linear:
    """Fit on some pairs, with the penalty and the calibration chosen on their inner folds."""
    sizes = np.sqrt(np.mean(features.dense[train] ** 2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    rows = _design(features, train, sizes)
    # Without an intercept a pair and its mirror image say the same: half of them are turned round, so that there are
    # two classes to tell apart.
    side = np.where(np.random.Generator(np.random.PCG64(seed)).random(len(train)) < 0.5, 1.0, -1.0)
    strength = _tuned(rows, side, inner)
    held_out = _inner_margins(rows, side, inner, range(int(inner.max()) + 1), strength)
    scale = fit_scale(held_out)
    return Linear(features, sizes, _weights(rows, side, strength), scale, held_out * scale, strength)


def _design(features: PairFeatures, rows: np.ndarray, sizes: np.ndarray) -> Any:
    """Some pairs' n-grams beside their scaled dense columns."""
    import scipy.sparse as sparse

    scaled = features.dense[rows] / sizes
    width = scaled.shape[1] - features.summary
    if width:
        scaled[:, features.summary :] *= EMBEDDING_SIZE / np.sqrt(width)
    return sparse.hstack([features.sparse[rows], sparse.csr_matrix(scaled)], format="csr")


#: The size of an embedding's difference as a whole, beside single columns of size one.
EMBEDDING_SIZE = 3.0


def _tuned(rows: Any, side: np.ndarray, inner: np.ndarray) -> float:
    """The strength that does best on held-out inner folds; from strict to lax, two worse ones in a row end it."""
    tried = tuning_folds(inner)
    best, least, worse = STRENGTHS[0], np.inf, 0
    for strength in STRENGTHS:
        loss = log_loss(_inner_margins(rows, side, inner, tried, strength)[np.isin(inner, tried)])
        worse = worse + 1 if loss >= least else 0
        if worse == 2:
            break
        if loss < least:
            best, least = strength, loss
    return best


def _inner_margins(rows: Any, side: np.ndarray, inner: np.ndarray, folds: Iterable[int], strength: float) -> np.ndarray:
    """The margins of some inner folds' pairs, each fold answered by a model trained on the others; zero elsewhere."""
    margins = np.zeros(len(side))
    for k in folds:
        seen, held_out = inner != k, inner == k
        if seen.any():
            margins[held_out] = rows[held_out] @ _weights(rows[seen], side[seen], strength)
    return margins


def _weights(rows: Any, side: np.ndarray, strength: float) -> np.ndarray:
    import scipy.sparse as sparse
    from sklearn.linear_model import LogisticRegression

    if (side == side[0]).all():  # a handful of pairs, all on one side
        side = side.copy()
        side[0] = -side[0]
        if len(side) < 2:
            return np.zeros(rows.shape[1])
    turned = sparse.diags(side) @ rows
    model = LogisticRegression(C=strength, fit_intercept=False, solver="liblinear", dual=True, tol=1e-2, random_state=0)
    model.fit(turned, side)
    return np.asarray(model.coef_[0])
