"""Gradient-boosted trees, which can express more than a linear model. They learn from a linear model's margin and other
features of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from creperie.auditing.features import PairFeatures
from creperie.auditing.folds import tuning_folds
from creperie.auditing.linear import Linear
from creperie.auditing.measure import fit_scale, log_loss

#: Number of directions of the n-gram differences that the trees see.
DIRECTIONS = 16
MOST_TREES = 30
EVERY = 3
FIXED = {"learning_rate": 0.15, "max_leaf_nodes": 4, "max_bins": 32, "min_samples_leaf": 20, "l2_regularization": 1.0}


@dataclass(frozen=True, eq=False)
class Boosted:
    """Fitted trees. Their features come from the linear model and from `projection`, the main directions of the n-gram
    differences.
    """

    model: Any
    linear: Linear
    projection: np.ndarray | None
    varies: np.ndarray  #: columns that vary among the training pairs; no tree uses the others
    scale: float

    def margins(self, rows: np.ndarray, features: PairFeatures) -> np.ndarray:
        """Return the calibrated log-odds of the true caption for the pairs `rows`. The features must have the same
        columns as those of the training pairs.
        """
        table = _table(features, rows, self.linear.margins(rows, features), self.projection)
        table = table[:, self.varies]
        answers = self.model.decision_function(np.concatenate([table, -table]))
        return np.asarray(answers[: len(rows)] - answers[len(rows) :]) / 2 * self.scale


def fit_boosted(features: PairFeatures, linear: Linear, train: np.ndarray, inner: np.ndarray, seed: int) -> Boosted:
    """Return trees fitted to the `train` pairs. The inner folds of these pairs determine the number of trees and the
    calibration.
    """
    projection = _directions(features, train, seed)
    table = _table(features, train, linear.inner, projection)
    varies = np.append(True, table[:, 1:].any(axis=0))  # the reversed pair has the opposite sign
    trees, held_out = _tune(table[:, varies], inner, seed)
    model = _fit(table[:, varies], trees, seed)
    return Boosted(model, linear, projection, varies, fit_scale(held_out))


def _directions(features: PairFeatures, train: np.ndarray, seed: int) -> np.ndarray | None:
    """Return the main directions (singular vectors) of the training pairs' n-gram differences; None if there are too
    few pairs or n-grams.
    """
    from sklearn.utils.extmath import randomized_svd

    rows = features.sparse[train]
    count = min(DIRECTIONS, min(rows.shape) - 1)
    if count < 1:
        return None
    directions = randomized_svd(rows, count, n_iter=1, flip_sign=False, random_state=seed)[2]
    largest = np.abs(directions).argmax(axis=1)
    return np.asarray(directions * np.sign(directions[np.arange(count), largest])[:, None]).T


def _table(features: PairFeatures, rows: np.ndarray, linear: np.ndarray, projection: np.ndarray | None) -> np.ndarray:
    columns = [linear[:, None], features.dense[rows]]
    if projection is not None:
        columns.append(np.asarray(features.sparse[rows] @ projection))
    return np.concatenate(columns, axis=1).round(9)  # a pair and its reverse may differ in the last bits


def _tune(table: np.ndarray, inner: np.ndarray, seed: int) -> tuple[int, np.ndarray]:
    """Return the number of trees that does best on held-out inner folds. Also return the margins that this number
    of trees gives to the pairs in these folds.
    """
    staged = []
    for k in tuning_folds(inner):
        seen, held_out = inner != k, inner == k
        if seen.any():
            model = _fit(table[seen], MOST_TREES, seed)
            staged.append(_stages(model, table[held_out]))
    if not staged:
        return EVERY, np.zeros(0)
    margins = np.concatenate(staged, axis=1)
    best = int(np.argmin([log_loss(m) for m in margins]))
    return (best + 1) * EVERY, margins[best]


def _stages(model: Any, table: np.ndarray) -> np.ndarray:
    """Return the margins after 3, 6, 9 … trees. A margin is half the difference between the scores of a pair and of the
    same pair with its captions exchanged.
    """
    answers = islice(model.staged_decision_function(np.concatenate([table, -table])), EVERY - 1, None, EVERY)
    return np.array([a[: len(table)] - a[len(table) :] for a in answers]) / 2


def _fit(table: np.ndarray, trees: int, seed: int) -> Any:
    """Return trees trained on every pair in both orders, so that they cannot learn from the position of the true
    caption.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False, random_state=seed, **FIXED)
    both = np.concatenate([table, -table])
    return model.fit(both, np.r_[np.ones(len(table)), np.zeros(len(table))])
