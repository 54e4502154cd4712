"""Item response theory: how hard every item is and how well it separates models, estimated from right and wrong
answers.

P(model j is right on item i) = 1 / (1 + exp(−(aᵢ·θⱼ + cᵢ))): θ is the model's ability, a the item's discrimination (one
for all items in the one-parameter model), −c/a its difficulty: the ability at which half of the answers are right.

Parameters are estimated by marginal maximum likelihood with EM. Abilities are standard normal and integrated out by
Gauss–Hermite quadrature around each model's mode, since with hundreds of items the posterior of an ability is much
narrower than the spacing of fixed nodes. After each step abilities are rescaled to mean 0 and standard deviation 1,
which speeds up EM's slow direction. With a few dozen models an item's answers say little about its discrimination, so a
and c have normal distributions over the items, estimated from all of them (empirical Bayes). A discrimination may be
negative: that is what a wrong label looks like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError

ResponseModel = Literal["2pl", "1pl"]

#: Minimum number of models for a response model; with fewer there is only the item–rest correlation.
FEWEST_MODELS = 8
#: Quadrature nodes per model.
NODES = 3
MOST_STEPS = 200
#: Largest change of an item's parameters at which EM has converged.
ENOUGH = 5e-3
#: Minimum spread of discriminations and intercepts over items.
LEAST_SPREAD = 0.05
#: Grid of the final estimate of every item, in standard deviations of log discrimination and of difficulty.
SLOPES, PLACES = np.linspace(-2.5, 2.5, 11), np.linspace(-4, 4, 41)
#: Items computed together; bounds the memory.
ITEMS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """Abilities by model; difficulty and discrimination by item, with their standard errors.

    `flipped` is the log odds that an item's label is wrong, given the answers and even prior odds: above 0 the item is
    probably mislabelled.
    """

    ability: np.ndarray
    ability_se: np.ndarray
    difficulty: np.ndarray
    difficulty_se: np.ndarray
    discrimination: np.ndarray
    discrimination_se: np.ndarray
    flipped: np.ndarray
    steps: int
    converged: bool


@dataclass
class _Items:
    """Slopes a and intercepts c of the items, and their distribution over items (mean and standard deviation)."""

    a: np.ndarray
    c: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers (items, models): 1 right, 0 wrong or unknown; `known` is the mask of known answers."""

    right: np.ndarray
    known: np.ndarray


def fit_responses(right: np.ndarray, model: ResponseModel = "2pl") -> ResponseFit:
    """Fit abilities and item parameters to a matrix (items, models): 1 right, 0 wrong, NaN not answered.

    A tie may count as a fraction.
    """
    items, models = right.shape
    if models < FEWEST_MODELS or items < 2:
        raise UsageError(
            f"{models} models on {items} items are too few for item response theory",
            hint=f"give runs of at least {FEWEST_MODELS} models; item–rest correlations need three",
        )
    answered = (~np.isnan(right)).astype(np.float64)
    answers = _Answers(np.where(answered > 0, right, 0.0), answered)
    theta, fitted = _start(answers)
    steps, change = 0, np.inf
    while change > ENOUGH and steps < MOST_STEPS:
        theta, _ = _ability(fitted, answers, theta)
        place, weight = _nodes(fitted, answers, theta)
        centre = float((weight * place).sum()) / models
        scale = float(np.sqrt((weight * (place - centre) ** 2).sum() / models))
        theta, place = (theta - centre) / scale, (place - centre) / scale
        before = np.stack([fitted.a, fitted.c])
        fitted.a, fitted.c = fitted.a * scale, fitted.c + fitted.a * centre
        variance = _step(fitted, answers, place, weight, shared=model == "1pl")
        change = float(np.abs(np.stack([fitted.a, fitted.c]) - before).max())
        steps += 1
    theta, precision = _ability(fitted, answers, theta)
    difficulty, difficulty_se, flipped = _graded(fitted, answers, theta)
    return ResponseFit(
        ability=theta,
        ability_se=1 / np.sqrt(precision),
        difficulty=difficulty,
        difficulty_se=difficulty_se,
        discrimination=fitted.a,
        discrimination_se=np.sqrt(variance[0]),
        flipped=flipped,
        steps=steps,
        converged=change <= ENOUGH,
    )


def _start(answers: _Answers) -> tuple[np.ndarray, _Items]:
    """Return starting values: abilities and intercepts from the shares of right answers."""
    wrong = answers.known - answers.right
    models, items = (np.log((answers.right.sum(axis=k) + 0.5) / (wrong.sum(axis=k) + 0.5)) for k in (0, 1))
    theta = (models - models.mean()) / max(float(models.std()), 1e-6)
    spread = np.array([0.5, max(float(items.std()), LEAST_SPREAD)])
    return theta, _Items(np.ones(len(items)), items, np.array([1.0, float(items.mean())]), spread)


def _share(items: _Items, theta: np.ndarray) -> np.ndarray:
    """Return the probability of a right answer, (items, models)."""
    logit = np.clip(np.multiply.outer(items.a, theta) + items.c[:, None], -30, 30)
    return np.asarray(1 / (1 + np.exp(-logit)))


def _ability(items: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return abilities after a Newton step towards each model's posterior mode, and their precisions."""
    share = _share(items, theta)
    precision = 1 + (items.a**2) @ (answers.known * share * (1 - share))
    slope = items.a @ (answers.right - answers.known * share) - theta
    return theta + np.clip(slope / precision, -1, 1), precision


def _nodes(items: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quadrature nodes around each model's ability (nodes, models), and their posterior weights."""
    x, w = np.polynomial.hermite.hermgauss(NODES)
    _, precision = _ability(items, answers, theta)
    place = theta + np.multiply.outer(x, np.sqrt(2 / precision))
    log = (np.log(w) + x**2)[:, None] - place**2 / 2
    for k in range(NODES):
        logit = np.multiply.outer(items.a, place[k]) + items.c[:, None]
        log[k] += (answers.right * logit - answers.known * np.logaddexp(0, logit)).sum(axis=0)
    weight = np.exp(log - log.max(axis=0))
    return place, weight / weight.sum(axis=0)


def _step(fitted: _Items, answers: _Answers, place: np.ndarray, weight: np.ndarray, *, shared: bool) -> np.ndarray:
    """Take a Newton step of all item parameters and of their distribution, in place; return variances (2, items)."""
    slope = np.stack([answers.right @ (weight * place).sum(axis=0), answers.right.sum(axis=1)])
    aa, ac, cc = np.zeros((3, len(fitted.a)))
    for theta, w in zip(place, weight, strict=True):
        share = _share(fitted, theta) * answers.known
        slope -= (share @ np.stack([w * theta, w], axis=1)).T
        share *= 1 - share
        moments = (share @ np.stack([w * theta**2, w * theta, w], axis=1)).T
        aa, ac, cc = aa + moments[0], ac + moments[1], cc + moments[2]
    plain = float(slope[0].sum() / (aa - ac**2 / cc).sum())
    pull = 1 / fitted.spread**2
    slope -= (np.stack([fitted.a, fitted.c]) - fitted.mean[:, None]) * pull[:, None]
    aa, cc = aa + pull[0], cc + pull[1]
    size = aa * cc - ac**2
    if shared:
        fitted.a = fitted.a + np.clip(plain, -0.5, 0.5)
        fitted.c = fitted.c + np.clip(slope[1] / cc, -1, 1)
        variance = np.stack([np.zeros(len(cc)), 1 / cc])
    else:
        fitted.a = fitted.a + np.clip((cc * slope[0] - ac * slope[1]) / size, -1, 1)
        fitted.c = fitted.c + np.clip((aa * slope[1] - ac * slope[0]) / size, -1, 1)
        variance = np.stack([cc, aa]) / size
    values = np.stack([fitted.a, fitted.c])
    fitted.mean = values.mean(axis=1)
    fitted.spread = np.sqrt(np.maximum(((values - fitted.mean[:, None]) ** 2 + variance).mean(axis=1), LEAST_SPREAD**2))
    return variance


def _graded(fitted: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every item's difficulty (posterior mean and standard deviation) and the log odds of the opposite label.

    Computed given the abilities, on a grid of discriminations (log-normal over items) and difficulties (normal). Both
    distributions are estimated from the middle half of the items, so that a few wrong labels do not widen them.
    """
    values = np.stack([fitted.a, fitted.c])
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=1)
    spread = np.maximum((high - low) / 1.349, LEAST_SPREAD)
    typical = max(float(middle[0]), LEAST_SPREAD)
    slopes = typical * np.exp(SLOPES * np.sqrt(np.log1p((spread[0] / typical) ** 2)))
    places = (PLACES * spread[1] - middle[1]) / typical
    logit = slopes[:, None, None] * (theta - places[:, None])
    log_prior = np.add.outer(-(SLOPES**2) / 2, -(PLACES**2) / 2).ravel()
    right, wrong = (-np.logaddexp(0, sign * logit).reshape(len(log_prior), -1).T for sign in (-1, 1))
    grid = np.tile(places, len(slopes))
    parts = []
    for start in range(0, len(values[0]), ITEMS_AT_ONCE):
        y = answers.right[start : start + ITEMS_AT_ONCE]
        n = answers.known[start : start + ITEMS_AT_ONCE] - y
        weights, evidence = _normalised(y @ right + n @ wrong + log_prior)
        _, opposite = _normalised(n @ right + y @ wrong + log_prior)
        mean = weights @ grid
        parts.append((mean, np.sqrt(np.maximum(weights @ grid**2 - mean**2, 0)), opposite - evidence))
    difficulty, error, flipped = (np.concatenate(column) for column in zip(*parts, strict=True))
    return difficulty, error, flipped


def _normalised(log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights normalised to sum 1 in every row, and the log of the original sums."""
    top = log.max(axis=1, keepdims=True)
    weights = np.exp(log - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (top + np.log(total))[:, 0]
