"""Item response theory: how hard each item is and how well it separates models, estimated from right and wrong answers.

P(model j is right on item i) = g + (1 − g) / (1 + exp(−aᵢ·(θⱼ − bᵢ))). Here θ is the ability of the model, a the
discrimination of the item (in the one-parameter model the same for all items), b its difficulty, and g the floor: the
probability that a guess is right.

If a model's ability equals the difficulty, it knows the answer with probability one half and otherwise guesses. It is
then right with probability (1 + g) / 2, which is 75 % for a choice between two captions.

The label of an item may be wrong. Models that know the answer then choose another one, and the others guess: P = g / (1
+ exp(aᵢ·(θⱼ − bᵢ))). Both possibilities are considered for every item.

There are many items with few answers each, and few models with many answers each. Abilities are therefore estimated,
and items are integrated out on a grid of discriminations (log-normal over items) and difficulties (normal). EM finds
the abilities, and the means and standard deviations of both distributions. The abilities have mean 0 and standard
deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError

ResponseModel = Literal["2pl", "1pl"]

#: Minimum number of models for a response model; with fewer there is only the item–rest correlation.
FEWEST_MODELS = 8
#: The prior share of wrong labels.
WRONG_LABELS = 0.05
MOST_STEPS = 200
#: Largest change of abilities and distributions at which EM has converged.
ENOUGH = 2e-3
#: Minimum deviation of discriminations and difficulties over items.
LEAST_SPREAD = 0.05
#: The grid of an item, in standard deviations of log discrimination (Gauss–Hermite) and of difficulty, with weights.
SLOPES, SLOPE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
PLACES = np.linspace(-4, 4, 33)
PLACE_WEIGHTS = np.exp(-(PLACES**2) / 2)


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """The ability of each model, and the difficulty and discrimination of each item, with standard errors.

    The difficulty assumes that the item's label is right. `flipped` is the log odds that the label is wrong, given the
    answers and prior odds of one to one; the discrimination is negative if the label is probably wrong. `expected`
    (items, models) is the probability of a right answer.
    """

    ability: np.ndarray
    ability_se: np.ndarray
    difficulty: np.ndarray
    difficulty_se: np.ndarray
    discrimination: np.ndarray
    discrimination_se: np.ndarray
    flipped: np.ndarray
    expected: np.ndarray
    steps: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Level:
    """The answers with the same `floor`, the probability that a guess is right. One mask (items, models) marks all of
    these answers, another matrix the right ones among them, and a third the wrong ones.
    """

    floor: float
    cells: np.ndarray
    right: np.ndarray
    wrong: np.ndarray

    def shares(self, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays, given the probability `known` (points, models) that a model knows the answer.

        The first (2 × points, models) is the probability that the model answers right. Its first half is for items
        whose label is right, its second half for items whose label is wrong. The second array is the derivative of the
        first with respect to `known`, one number per row.
        """
        guessed = self.floor or 1.0  # without a floor, a wrong label turns right and wrong around
        change = np.repeat([1 - self.floor, -guessed], len(known))[:, None]
        start = np.repeat([self.floor, guessed], len(known))[:, None]
        return np.clip(start + change * np.tile(known, (2, 1)), 1e-9, 1 - 1e-9), change


def fit_responses(right: np.ndarray, model: ResponseModel = "2pl", floor: float | np.ndarray = 0.0) -> ResponseFit:
    """Return abilities and item parameters, fitted to a matrix (items, models): 1 for right, 0 for wrong, NaN for not
    answered.

    A tie may be given as a fraction. `floor` is the probability that a guess is right: one number for all answers, one
    per item (items, 1), or one per answer; 0 if unknown.
    """
    items, models = right.shape
    if models < FEWEST_MODELS or items < 2:
        raise UsageError(
            f"{models} models on {items} items are too few for item response theory",
            hint=f"give runs of at least {FEWEST_MODELS} models, or pass `response='none'` for correlations only",
        )
    floors = np.broadcast_to(floor, right.shape)
    answered = ~np.isnan(right)
    value = np.where(answered, right, 0.0)
    cells = {float(g): floors == g for g in np.unique(floors)}
    levels = [_Level(g, own, value * own, (answered - value) * own) for g, own in cells.items()]
    theta = _logit((value.sum(axis=0) + 0.5) / (answered.sum(axis=0) + 1))
    theta = (theta - theta.mean()) / max(float(theta.std()), 1e-6)
    slopes, weights = (np.zeros(1), np.ones(1)) if model == "1pl" else (SLOPES, SLOPE_WEIGHTS)
    prior = np.multiply.outer(weights / weights.sum(), PLACE_WEIGHTS / PLACE_WEIGHTS.sum()).ravel()
    # a grid that ends somewhere has less variance than its distribution
    stretch = 1 / np.sqrt((PLACES**2 * PLACE_WEIGHTS).sum() / PLACE_WEIGHTS.sum())
    units = np.stack([np.repeat(slopes, len(PLACES)), np.tile(PLACES * stretch, len(slopes))])
    log_prior = np.log(np.multiply.outer([1 - WRONG_LABELS, WRONG_LABELS], prior)).ravel()
    mean, spread = np.zeros(2), np.array([0.3, 1.0])
    steps, change = 0, np.inf
    while change > ENOUGH and steps < MOST_STEPS:
        points = mean[:, None] + spread[:, None] * units
        posterior, precision, moved = _step(levels, points, theta, log_prior)
        centre, scale = float(moved.mean()), float(np.sqrt(moved.var() + (1 / precision).mean()))
        before = np.concatenate([theta, mean, spread])
        theta = (moved - centre) / scale
        mean, spread = _moments(points, posterior)
        mean = np.array([mean[0] + np.log(scale), (mean[1] - centre) / scale])
        spread = np.maximum(spread / [1, scale], LEAST_SPREAD)
        change = float(np.abs(np.concatenate([theta, mean, spread]) - before).max())
        steps += 1
    points = mean[:, None] + spread[:, None] * units
    posterior, precision, _ = _step(levels, points, theta, log_prior)
    return _described(levels, points, theta, posterior, precision, (steps, change <= ENOUGH))


def _step(
    levels: list[_Level], points: np.ndarray, theta: np.ndarray, log_prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays: every item's posterior over the grid of item parameters (`points`), the precision of every
    ability, and the abilities after one step of Fisher scoring.

    The first half of a posterior is for the case that the item's label is right, the second half for the case that it
    is wrong.
    """
    known = _probability_known(points, theta)
    shares = [level.shares(known) for level in levels]
    log = log_prior + sum(v.right @ np.log(p).T + v.wrong @ np.log1p(-p).T for v, (p, _) in zip(levels, shares))
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    rise = np.tile(known * (1 - known) * np.exp(points[0])[:, None], (2, 1))
    slope, precision = -theta, np.ones(len(theta))
    for level, (p, change) in zip(levels, shares):
        right, wrong = posterior.T @ level.right, posterior.T @ level.wrong
        slope = slope + (change * rise * (right / p - wrong / (1 - p))).sum(axis=0)
        precision = precision + ((change * rise) ** 2 * (right + wrong) / (p * (1 - p))).sum(axis=0)
    return posterior, precision, theta + np.clip(slope / precision, -1, 1)


def _probability_known(points: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the probability that each model knows the answer, at each point of the grid. A point is (log
    discrimination, difficulty).
    """
    logit = np.exp(points[0])[:, None] * (theta - points[1][:, None])
    return np.asarray(0.5 * (1 + np.tanh(np.clip(logit, -30, 30) / 2)))


def _moments(points: np.ndarray, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the standard deviations of log discrimination and difficulty over all items."""
    weights = posterior.mean(axis=0).reshape(2, -1).sum(axis=0)
    mean = points @ weights
    return mean, np.sqrt((points - mean[:, None]) ** 2 @ weights)


def _described(
    levels: list[_Level],
    points: np.ndarray,
    theta: np.ndarray,
    posterior: np.ndarray,
    precision: np.ndarray,
    ended: tuple[int, bool],
) -> ResponseFit:
    size = points.shape[1]
    mislabelled = np.clip(posterior[:, size:].sum(axis=1), 1e-300, 1 - 1e-15)
    sound = posterior[:, :size] / np.maximum(posterior[:, :size].sum(axis=1, keepdims=True), 1e-300)
    difficulty, difficulty_se = _mean(sound, points[1])
    discrimination, discrimination_se = _mean(posterior, np.tile(np.exp(points[0]), 2))
    known = _probability_known(points, theta)
    expected = sum((posterior @ v.shares(known)[0]) * v.cells for v in levels)
    return ResponseFit(
        ability=theta,
        ability_se=1 / np.sqrt(precision),
        difficulty=difficulty,
        difficulty_se=difficulty_se,
        discrimination=np.where(mislabelled > 0.5, -1, 1) * discrimination,
        discrimination_se=discrimination_se,
        flipped=_logit(mislabelled) - _logit(np.array(WRONG_LABELS)),
        expected=np.asarray(expected),
        steps=ended[0],
        converged=ended[1],
    )


def _mean(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ values
    return mean, np.sqrt(np.maximum(weights @ values**2 - mean**2, 0))


def _logit(share: np.ndarray) -> np.ndarray:
    return np.log(share) - np.log1p(-share)
