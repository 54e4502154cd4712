"""Logistic regression on pairs of captions, with one weight for every n-gram and every style mark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import tuning_folds
from creperie.auditing.measure import fit_scale, log_loss
from creperie.core import seeded

#: Inverse strengths of the L2 penalty, tried on the inner folds.
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Linear:
    """A fitted model. `inner` holds out-of-fold margins of the training pairs: these were divided into inner folds, and
    the margin of each pair comes from a model trained on the other inner folds.
    """

    sizes: np.ndarray  #: root mean squares of the dense columns
    weights: np.ndarray
    scale: float
    inner: np.ndarray
    strength: float

    def margins(self, rows: np.ndarray, features: PairFeatures) -> np.ndarray:
        """Return the calibrated log-odds of the true caption for the pairs `rows`. The features must have the same
        columns as those of the training pairs.
        """
        return _design(features, rows, self.sizes) @ self.weights * self.scale


def fit_linear(features: PairFeatures, train: np.ndarray, inner: np.ndarray, seed: int) -> Linear:
    """Return a model fitted to the `train` pairs. The inner folds of these pairs determine the penalty and the
    calibration.
    """
    sizes = np.sqrt(np.mean(features.dense[train] ** 2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    rows = _design(features, train, sizes)
    # Without an intercept a pair and its reverse are equivalent: half of them are reversed, so that there are
    # two classes to tell apart.
    side = np.where(seeded(seed).random(len(train)) < 0.5, 1.0, -1.0)
    turned = rows.copy()
    turned.data *= np.repeat(side, np.diff(rows.indptr))

    cut = [(turned[inner != k], side[inner != k], rows[inner == k]) for k in range(int(inner.max()) + 1)]

    @cache
    def answers(k: int, strength: float) -> np.ndarray:
        """Return the margins of the pairs in an inner fold, from a model trained on the other inner folds."""
        seen, sides, held_out = cut[k]
        return held_out @ _weights(seen, sides, strength)

    strength = _tuned(answers, tuning_folds(inner))
    margins = np.zeros(len(train))
    for k in range(len(cut)):
        margins[inner == k] = answers(k, strength)
    scale = fit_scale(margins)
    return Linear(sizes, _weights(turned, side, strength), scale, margins * scale, strength)


def _design(features: PairFeatures, rows: np.ndarray, sizes: np.ndarray) -> Any:
    """Return the design matrix of the pairs `rows`: n-gram counts, followed by all other features. The columns are
    scaled.
    """
    import scipy.sparse as sparse

    scaled = features.dense[rows] / sizes
    width = scaled.shape[1] - features.summary
    if width:
        scaled[:, features.summary :] *= EMBEDDING_SIZE / np.sqrt(width)
    return sparse.hstack([features.sparse[rows], sparse.csr_matrix(scaled)], format="csr")


#: The norm of a whole embedding difference, relative to single columns of size one.
EMBEDDING_SIZE = 3.0


def _tuned(answers: Callable[[int, float], np.ndarray], tried: Sequence[int]) -> float:
    """Return the strength (the inverse of the penalty) with the smallest loss on the inner folds in `tried`.
    `answers(k, strength)` returns the margins of the pairs in inner fold k.
    """
    # Strengths are tested from low to high; the search stops after two in a row without improvement.
    best, least, worse = STRENGTHS[0], np.inf, 0
    for strength in STRENGTHS:
        loss = log_loss(np.concatenate([answers(k, strength) for k in tried]))
        worse = worse + 1 if loss >= least else 0
        if worse == 2:
            break
        if loss < least:
            best, least = strength, loss
    return best


def _weights(turned: Any, side: np.ndarray, strength: float) -> np.ndarray:
    """Return the weights of a logistic regression without an intercept, fitted with liblinear.

    `side` is the class of each pair, 1 or −1. `turned` is the design matrix with the rows of class −1 multiplied by −1.
    A larger `strength` (liblinear's C) means a weaker penalty.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(side) < 2:
        return np.zeros(turned.shape[1])
    right = (side > 0).astype(np.float64)
    if (side == side[0]).all():  # a handful of pairs, all in one class
        turned, right[0] = turned.copy(), 1 - right[0]
        turned.data[: turned.indptr[1]] *= -1
    settings = {"fit_intercept": False, "solver": "liblinear", "dual": True, "tol": 1e-2, "random_state": 0}
    # thousands of small fits: checks of what is known to be finite and valid would take as long as they do
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        # a weak penalty may need more than 100 steps; tuning sees the effect and chooses another
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=strength, **settings).fit(turned, right).coef_[0]
