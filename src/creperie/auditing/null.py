"""How far a learned attacker's accuracy strays from one half if chance decides which caption of a pair is true.

A learned attacker answers out of fold, but its answers are not independent: each item also trains the models that judge
the other folds. The accuracy therefore varies more than the share of heads in the same number of coin flips. How much
more depends on what the captions have in common.

The null distribution is simulated: true and false are exchanged at random, cluster by cluster, and ridge regression on
the same features is refitted out of fold. Its answers are linear in the labels, so all draws are computed at once.
research/attacker_nulls.py compares the result with learned attackers that are actually refitted.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from creperie.auditing.features import PairFeatures, pair_features
from creperie.auditing.folds import fold_count
from creperie.auditing.pairs import Pairs, one_thread, training_blocks
from creperie.core import seeded

DRAWS = 400
#: Most pairs on which the null is simulated: whole clusters, at random.
MOST = 1000
#: Fewest pairs to learn from.
FEWEST = 20
#: The spread for attackers with a symmetric kernel, many folds and equally weighted pairs: √(1 + 2/π).
BOUND = math.sqrt(1 + 2 / math.pi)


@lru_cache(maxsize=8)
def null_spreads(pairs: Pairs, seed: int = 0) -> np.ndarray:
    """Return one factor per item: the standard deviation of a learned attacker's accuracy divided by that of coin
    flips. The standard deviation is estimated by exchanging true and false at random. Items of the same training block
    (see `training_blocks`) have the same factor.
    """
    spreads = np.full(pairs.n_items, BOUND)
    ordered, items, _ = pairs.by_content
    for keep in training_blocks(ordered) if find_spec("sklearn") is not None else []:
        with one_thread():
            spreads[items[keep]] = _spread(ordered.of_items(_few_clusters(ordered, keep, seed)), seed)
    return spreads


def _few_clusters(pairs: Pairs, keep: np.ndarray, seed: int) -> np.ndarray:
    """Return the mask `keep` if it selects few enough pairs. Otherwise return a smaller mask, which keeps a random
    choice of the selected clusters.
    """
    total = int(pairs.per_item[keep].sum())
    if total <= MOST:
        return keep
    drawn = seeded(seed).random(int(pairs.cluster.max()) + 1) < MOST / total
    return keep & drawn[pairs.cluster]


def _spread(pairs: Pairs, seed: int) -> float:
    if len(pairs) < FEWEST:
        return BOUND
    fold = pairs.folds_of(np.arange(len(pairs)), fold_count(pairs.n_items), seed)
    reached, expected = null_accuracies(kernel_of(pair_features(pairs)), pairs, fold, seed)
    # Never narrower than coin flips: if an item's pairs cancel out (twins), the null does not vary at all.
    return max(1.0, float(np.sqrt(np.mean((reached - 0.5) ** 2) / max(np.mean(expected**2), 1e-12))))


def kernel_of(features: PairFeatures) -> np.ndarray:
    """Return the inner products of the pairs' features. Features other than n-gram counts are scaled to a root mean
    square of 1.
    """
    size = np.sqrt(np.mean(features.dense**2, axis=0))
    dense = features.dense / np.where(size > 0, size, 1.0)
    return np.asarray((features.sparse @ features.sparse.T).todense()) + dense @ dense.T


def null_accuracies(kernel: np.ndarray, pairs: Pairs, fold: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Exchange true and false at random, many times. Return two arrays with one entry for each draw: the out-of-fold
    accuracy of a learned attacker, and its cluster-robust standard error. `kernel` holds the similarity of every two
    pairs, and `fold` the fold of each pair.
    """
    from scipy.linalg import inv

    _, cluster = np.unique(pairs.cluster[pairs.item], return_inverse=True)
    rng = seeded(seed)
    roles = rng.choice([-1.0, 1.0], size=(int(cluster.max()) + 1, DRAWS))[cluster]
    strength = max(float(np.mean(np.diag(kernel))), 1e-9)
    inverse = inv(kernel + strength * np.eye(len(kernel)))
    left, answers = inverse @ roles, np.zeros_like(roles)
    for k in np.unique(fold):  # held-out answers of a fold follow from its block of the inverse
        test = fold == k
        answers[test] = roles[test] - np.linalg.solve(inverse[np.ix_(test, test)], left[test])
    answers[np.abs(answers) < 1e-9] = 0.0
    surplus = np.sign(answers * roles) / 2 / pairs.per_item[pairs.item][:, None]
    sums = np.zeros((int(cluster.max()) + 1, DRAWS))
    np.add.at(sums, cluster, surplus)
    items = int((pairs.per_item > 0).sum())
    return 0.5 + sums.sum(axis=0) / items, np.sqrt((sums**2).sum(axis=0)) / items
