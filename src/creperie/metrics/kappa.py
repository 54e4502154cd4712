"""Confidence intervals of kappa and of nominal alpha, from the likelihood of pairs of answers that agree beyond chance.

In the model, two answers about an item are the same because one copies the other (with the probability κ), or they are
drawn independently: P(k, k) = π_k (κ + (1 − κ) π_k) and P(k, l) = 2 π_k π_l (1 − κ). The likelihood is maximised over
the proportions π of the answers.

Only items with an answer other than the most common one are informative about kappa. Student's quantile therefore has
three degrees of freedom for each of these items. There is no interval if there are fewer than two of them, or if the
lower end reaches −1.

If nobody disagrees, Student's quantile alone would give too short an interval. The lower end is then at most the kappa
whose likelihood is (1 − level) / 2 of the highest likelihood. The upper tail may get more than half of the error
probability, as in `clustered_ends` (likely.py).
"""

from __future__ import annotations

import math

import numpy as np

from creperie.metrics.intervals import Confidence, inflation
from creperie.metrics.likely import peak_of
from creperie.metrics.special import student_quantile

#: Minimum number of items with an answer other than the commonest, chosen by simulation.
FEWEST = 2
#: Degrees of freedom per item with an answer other than the commonest.
FREEDOM = 3
#: The grid of kappas, denser near 1.
KAPPAS = np.r_[np.linspace(-0.9, 0.5, 57), 1 - np.geomspace(0.49, 1e-5, 60)]
#: Number of iterations (expectation maximisation) that fit the shares of answers for each kappa.
ROUNDS = 60


def nominal_confidence(
    counts: np.ndarray, value: float, pull: np.ndarray, clusters: np.ndarray, unlike: int
) -> Confidence:
    """Return the coefficient `value` with its interval. `counts` holds how often each item got each answer, and `pull`
    the influence of each item on the coefficient. `unlike` is the number of items with an answer other than the most
    common one.
    """
    likelihood, agreed = _log_likelihood(counts)
    place = -np.log(1 - KAPPAS)
    top = int(likelihood.argmax())
    peak, best = peak_of(place, likelihood, top)
    known = np.isfinite(likelihood)
    widened = math.sqrt(inflation(pull, clusters))
    distance = (np.sqrt(2 * np.maximum(best - likelihood, 0)) * np.sign(place - peak) / widened)[known]
    moved = place[known] + (-math.log(1 - value) - peak if value < 1 and top < len(place) - 1 else 0.0)
    agreed = agreed[known]

    def ends(level: float) -> tuple[float, float]:
        reach = student_quantile(0.5 + level / 2, FREEDOM * unlike)
        if value == 1:
            reach = max(reach, math.sqrt(2 * math.log(2 / (1 - level))))
        low = np.interp(-reach, distance, moved, left=-math.log(2))
        tails = np.exp(np.clip(agreed, math.log((1 - level) / 2), math.log(1 - level)))
        reaches = np.array([student_quantile(1 - tail, FREEDOM * unlike) for tail in tails])
        high = np.interp(0, distance - reaches, moved, right=math.inf)
        return max(-1.0, min(value, 1 - math.exp(-low))), max(value, 1 - math.exp(-high))

    return Confidence(value, "likelihood of pairs", ends)


def _log_likelihood(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with one value for each kappa in `KAPPAS`: the log-likelihood, and the log-probability that
    nobody disagrees. `counts` holds how often each item got each answer.
    """
    # An item with m answers counts as m / 2 pairs.
    answers = counts.sum(axis=1, keepdims=True)
    same = (counts * (counts - 1) / 2 / (answers - 1)).sum(axis=0)
    other = (counts * (answers - counts) / (answers - 1)).sum(axis=0)
    kappa = KAPPAS[:, None]
    shares = np.tile((2 * same + other) / (2 * same + other).sum(), (len(KAPPAS), 1))
    for _ in range(ROUNDS):
        independent = (1 - kappa) * shares / np.maximum(kappa + (1 - kappa) * shares, 1e-12)
        shares = same * (1 + np.clip(independent, 0, 10)) + other
        shares /= shares.sum(axis=1, keepdims=True)
    both = shares * (kappa + (1 - kappa) * shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreed = np.where(same > 0, same * np.log(both), 0.0).sum(axis=1)
        likelihood = agreed + np.where(other > 0, other * np.log(shares), 0.0).sum(axis=1)
    likelihood = likelihood + other.sum() / 2 * np.log(1 - KAPPAS)
    disagree = np.clip((1 - KAPPAS) * (1 - (shares**2).sum(axis=1)), 0, 1 - 1e-9)
    pairs = float(same.sum() + other.sum() / 2)
    return np.where(np.isnan(likelihood), -np.inf, likelihood), pairs * np.log(1 - disagree)
