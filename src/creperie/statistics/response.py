"""Item response theory: how hard every item is and how well it separates models, from who got what right.

P(model j is right on item i) = 1 / (1 + exp(−(aᵢ·θⱼ + cᵢ))): θ is the model's ability, a the item's discrimination (one
for all items in the one-parameter model), −c/a its difficulty: the ability at which half of the answers are right.

Marginal maximum likelihood by EM. Abilities are standard normal and integrated out by Gauss–Hermite quadrature around
each model's own mode: with hundreds of items an ability is known far better than fixed nodes are apart. After each step
abilities are brought back to mean 0 and standard deviation 1, which takes EM along its slow direction. With a few dozen
models an item's own answers say little about its discrimination, so a and c have normal distributions over the items,
estimated from all of them (empirical Bayes). A discrimination may be negative: that is what a wrong label looks like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError

ResponseModel = Literal["2pl", "1pl"]

#: Models below which abilities say too little about items: then there is the item–rest correlation.
FEWEST_MODELS = 8
#: Quadrature nodes per model.
NODES = 3
MOST_STEPS = 200
#: The largest change of an item's parameters at which the search ends.
ENOUGH = 5e-3
#: The least spread of discriminations and intercepts over items.
LEAST_SPREAD = 0.05
#: Grid of the final look at every item, in standard deviations of log discrimination and of difficulty.
SLOPES, PLACES = np.linspace(-2.5, 2.5, 11), np.linspace(-4, 4, 41)
#: Items looked at together; bounds the memory.
ITEMS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """Abilities by model; difficulty and discrimination by item, with their standard errors.

    `flipped` is the log odds that an item's answers come from the opposite label, against the label as it is, where
    both are as likely beforehand: above 0 the item is probably mislabelled.
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
    """Slopes a and intercepts c of items, and their distribution over items (mean and standard deviation)."""

    a: np.ndarray
    c: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class _Answers:
    """1 right, 0 wrong or unknown (items, models); `known` says which."""

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
    known = (~np.isnan(right)).astype(np.float64)
    answers = _Answers(np.where(known > 0, right, 0.0), known)
    theta, found = _start(answers)
    steps, change = 0, np.inf
    while change > ENOUGH and steps < MOST_STEPS:
        theta, _ = _ability(found, answers, theta)
        place, weight = _nodes(found, answers, theta)
        centre = float((weight * place).sum()) / models
        scale = float(np.sqrt((weight * (place - centre) ** 2).sum() / models))
        theta, place = (theta - centre) / scale, (place - centre) / scale
        before = np.stack([found.a, found.c])
        found.a, found.c = found.a * scale, found.c + found.a * centre
        variance = _step(found, answers, place, weight, shared=model == "1pl")
        change = float(np.abs(np.stack([found.a, found.c]) - before).max())
        steps += 1
    theta, precision = _ability(found, answers, theta)
    difficulty, difficulty_se, flipped = _graded(found, answers, theta)
    return ResponseFit(
        ability=theta,
        ability_se=1 / np.sqrt(precision),
        difficulty=difficulty,
        difficulty_se=difficulty_se,
        discrimination=found.a,
        discrimination_se=np.sqrt(variance[0]),
        flipped=flipped,
        steps=steps,
        converged=change <= ENOUGH,
    )


def _start(answers: _Answers) -> tuple[np.ndarray, _Items]:
    """Abilities and intercepts from the shares of right answers."""
    wrong = answers.known - answers.right
    models, items = (np.log((answers.right.sum(axis=k) + 0.5) / (wrong.sum(axis=k) + 0.5)) for k in (0, 1))
    theta = (models - models.mean()) / max(float(models.std()), 1e-6)
    spread = np.array([0.5, max(float(items.std()), LEAST_SPREAD)])
    return theta, _Items(np.ones(len(items)), items, np.array([1.0, float(items.mean())]), spread)


def _share(found: _Items, theta: np.ndarray) -> np.ndarray:
    """The probability of a right answer, (items, models)."""
    logit = np.clip(np.multiply.outer(found.a, theta) + found.c[:, None], -30, 30)
    return np.asarray(1 / (1 + np.exp(-logit)))


def _ability(found: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A Newton step towards each model's most likely ability, and its precision."""
    share = _share(found, theta)
    precision = 1 + (found.a**2) @ (answers.known * share * (1 - share))
    slope = found.a @ (answers.right - answers.known * share) - theta
    return theta + np.clip(slope / precision, -1, 1), precision


def _nodes(found: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes around each model's ability (nodes, models), and their weights in its posterior."""
    x, w = np.polynomial.hermite.hermgauss(NODES)
    _, precision = _ability(found, answers, theta)
    place = theta + np.multiply.outer(x, np.sqrt(2 / precision))
    log = (np.log(w) + x**2)[:, None] - place**2 / 2
    for k in range(NODES):
        logit = np.multiply.outer(found.a, place[k]) + found.c[:, None]
        log[k] += (answers.right * logit - answers.known * np.logaddexp(0, logit)).sum(axis=0)
    weight = np.exp(log - log.max(axis=0))
    return place, weight / weight.sum(axis=0)


def _step(found: _Items, answers: _Answers, place: np.ndarray, weight: np.ndarray, *, shared: bool) -> np.ndarray:
    """A Newton step of all items' parameters and of their distribution, in place; returns variances (2, items)."""
    slope = np.stack([answers.right @ (weight * place).sum(axis=0), answers.right.sum(axis=1)])
    aa, ac, cc = np.zeros((3, len(found.a)))
    for theta, w in zip(place, weight, strict=True):
        share = _share(found, theta) * answers.known
        slope -= (share @ np.stack([w * theta, w], axis=1)).T
        share *= 1 - share
        moments = (share @ np.stack([w * theta**2, w * theta, w], axis=1)).T
        aa, ac, cc = aa + moments[0], ac + moments[1], cc + moments[2]
    plain = float(slope[0].sum() / (aa - ac**2 / cc).sum())
    pull = 1 / found.spread**2
    slope -= (np.stack([found.a, found.c]) - found.mean[:, None]) * pull[:, None]
    aa, cc = aa + pull[0], cc + pull[1]
    size = aa * cc - ac**2
    if shared:
        found.a = found.a + np.clip(plain, -0.5, 0.5)
        found.c = found.c + np.clip(slope[1] / cc, -1, 1)
        variance = np.stack([np.zeros(len(cc)), 1 / cc])
    else:
        found.a = found.a + np.clip((cc * slope[0] - ac * slope[1]) / size, -1, 1)
        found.c = found.c + np.clip((aa * slope[1] - ac * slope[0]) / size, -1, 1)
        variance = np.stack([cc, aa]) / size
    own = np.stack([found.a, found.c])
    found.mean = own.mean(axis=1)
    found.spread = np.sqrt(np.maximum(((own - found.mean[:, None]) ** 2 + variance).mean(axis=1), LEAST_SPREAD**2))
    return variance


def _graded(found: _Items, answers: _Answers, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every item's difficulty (posterior mean and standard deviation) and the log odds of the opposite label.

    On a grid of discriminations (log-normal over items) and difficulties (normal), given the abilities. The two
    distributions are those of the middle half of the items, so that a few wrong labels do not widen them.
    """
    own = np.stack([found.a, found.c])
    low, middle, high = np.quantile(own, (0.25, 0.5, 0.75), axis=1)
    spread = np.maximum((high - low) / 1.349, LEAST_SPREAD)
    typical = max(float(middle[0]), LEAST_SPREAD)
    slopes = typical * np.exp(SLOPES * np.sqrt(np.log1p((spread[0] / typical) ** 2)))
    places = (PLACES * spread[1] - middle[1]) / typical
    logit = slopes[:, None, None] * (theta - places[:, None])
    log_prior = np.add.outer(-(SLOPES**2) / 2, -(PLACES**2) / 2).ravel()
    right, wrong = (-np.logaddexp(0, sign * logit).reshape(len(log_prior), -1).T for sign in (-1, 1))
    grid = np.tile(places, len(slopes))
    parts = []
    for start in range(0, len(own[0]), ITEMS_AT_ONCE):
        y = answers.right[start : start + ITEMS_AT_ONCE]
        n = answers.known[start : start + ITEMS_AT_ONCE] - y
        weights, evidence = _normalised(y @ right + n @ wrong + log_prior)
        _, opposite = _normalised(n @ right + y @ wrong + log_prior)
        mean = weights @ grid
        parts.append((mean, np.sqrt(np.maximum(weights @ grid**2 - mean**2, 0)), opposite - evidence))
    difficulty, error, flipped = (np.concatenate(column) for column in zip(*parts, strict=True))
    return difficulty, error, flipped


def _normalised(log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights that sum to 1 in every row, and the log of what they summed to."""
    top = log.max(axis=1, keepdims=True)
    weights = np.exp(log - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (top + np.log(total))[:, 0]
