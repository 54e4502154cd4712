"""The accuracy of annotators, and whether a person's answers depend on the questions at all.

Accuracy is estimated with the one-coin model of Dawid and Skene (1979): each person has an individual probability of
being right, and all wrong answers are equally likely. If the right answer to a question is known, it is used.

crowd-kit has the same model but requires transformers and nltk, which an annotation server should not need. Tests
compare the results with those of crowd-kit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

#: Honest people are assumed to exceed chance by at least this share of the usual excess.
NEARLY = 0.9
#: The highest accuracy of honest people, and how many values below it are tried.
BEST, STEPS = 0.999, 12
#: People with fewer answers are left out of the usual accuracy.
FEWEST_ANSWERS = 5
#: Prior counts of right and wrong answers per person, which shrink estimates from a few answers.
PRIOR = (3.0, 1.0)
#: Two people are flagged if their agreement has a p-value below this, corrected for all pairs.
CHANCE = 0.01


@dataclass(frozen=True)
class Votes:
    """Answers as three arrays (question, person, label) with one entry per answer. `truth` is the known label of each
    question, or -1. `people` and `labels` are the numbers of people and of possible labels.
    """

    question: np.ndarray
    person: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    people: int
    labels: int


@dataclass(frozen=True)
class Competence:
    """The probability of each label for each question, and the probability that each person is right."""

    posterior: np.ndarray
    accuracy: np.ndarray


def dawid_skene(votes: Votes, rounds: int = 100, prior: tuple[float, float] = PRIOR) -> Competence:
    """Return the accuracy of each person and the label probabilities of each question. They are estimated by
    expectation maximisation, starting from the proportions of votes.

    >>> question, person = np.divmod(np.arange(30), 3)
    >>> label = np.where(person < 2, question % 2, 0)
    >>> estimate = dawid_skene(Votes(question, person, label, np.full(10, -1), 3, 2))
    >>> estimate.posterior.argmax(axis=1).tolist(), (estimate.accuracy > 0.8).tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [True, True, False])
    """
    shares = np.full((len(votes.truth), votes.labels), 1e-9)
    np.add.at(shares, (votes.question, votes.label), 1.0)
    posterior = _with_known(_softmax(np.log(shares)), votes)
    answers = np.bincount(votes.person, minlength=votes.people) + sum(prior)
    open_ = votes.truth < 0
    for _ in range(rounds):
        right = np.bincount(votes.person, posterior[votes.question, votes.label], votes.people) + prior[0]
        # Answers worse than chance count as uninformative, not as evidence for the opposite.
        accuracy = np.clip(right / np.maximum(answers, 1e-9), 1 / votes.labels, 1 - 1e-6)
        prevalence = posterior[open_].mean(axis=0) if open_.any() else np.ones(votes.labels)
        logs = np.repeat(np.log(np.maximum(prevalence, 1e-6))[None], len(posterior), axis=0)
        np.add.at(logs, votes.question, _likelihood(votes, accuracy))
        posterior = _with_known(_softmax(logs), votes)
    return Competence(posterior, accuracy)


def _likelihood(votes: Votes, accuracy: np.ndarray) -> np.ndarray:
    """Return the log-probability of every answer, for each label that its question might have."""
    own = accuracy[votes.person]
    chances = np.repeat(((1 - own) / max(1, votes.labels - 1))[:, None], votes.labels, axis=1)
    chances[np.arange(len(own)), votes.label] = own
    return np.log(chances)


def _softmax(logs: np.ndarray) -> np.ndarray:
    """Return probabilities for each row, given their logarithms up to a constant per row."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _with_known(posterior: np.ndarray, votes: Votes) -> np.ndarray:
    """Return the posterior probabilities, with 1 for the labels that are known."""
    known = np.flatnonzero(votes.truth >= 0)
    posterior[known] = np.eye(votes.labels)[votes.truth[known]]
    return posterior


def habit_odds(votes: Votes, estimate: Competence) -> np.ndarray:
    """Return, for each person, how well two explanations fit the answers: a habit that ignores the questions, and
    honest work. The result is a log-odds, above 0 if the habit fits better.

    The right answer to a question is the known one or is inferred from the other people's answers. An honest person's
    accuracy is assumed to lie between a lower limit and `BEST`; the value that makes the person's answers most likely
    is used.
    """
    # The lower limit is `NEARLY` times as far above chance as the median accuracy. `BEST` is nearly 1, so answers on
    # which all people agree are no evidence of a habit.
    logs = np.log(np.maximum(estimate.posterior[votes.question], 1e-12)) - _likelihood(votes, estimate.accuracy)
    others = _softmax(logs)
    fixed = votes.truth[votes.question] >= 0
    others[fixed] = estimate.posterior[votes.question[fixed]]
    right = others[np.arange(len(votes.label)), votes.label]
    answers = np.bincount(votes.person, minlength=votes.people)
    accuracy = np.bincount(votes.person, right, votes.people) / np.maximum(answers, 1)
    chance = 1.0 / votes.labels
    measured = accuracy[answers >= FEWEST_ANSWERS]
    usual = float(np.median(measured)) if len(measured) else chance
    expected = chance + NEARLY * max(0.0, min(usual, 0.99) - chance)
    likelihoods = []
    for own in np.linspace(expected, BEST, STEPS):
        wrong = (1 - own) / max(1, votes.labels - 1)
        likelihoods.append(np.bincount(votes.person, np.log(right * own + (1 - right) * wrong), votes.people))
    return _habit_evidence(votes) - np.max(likelihoods, axis=0)


def _habit_evidence(votes: Votes) -> np.ndarray:
    """Return the log-probability of each person's answers under an unknown habit. A habit is a fixed distribution over
    the labels (Krichevsky–Trofimov estimator).
    """
    counts = np.zeros((votes.people, votes.labels))
    np.add.at(counts, (votes.person, votes.label), 1.0)
    half = votes.labels / 2
    logs = [sum(map(math.lgamma, row + 0.5)) - math.lgamma(row.sum() + half) for row in counts]
    return np.array(logs) + math.lgamma(half) - votes.labels * math.lgamma(0.5)


def too_alike(votes: Votes, estimate: Competence) -> list[tuple[int, int, float]]:
    """Return the pairs of people whose answers agree more often than their accuracies explain. Each pair comes with the
    p-value of its agreement.
    """
    given = np.full((len(votes.truth), votes.people), -1)
    given[votes.question, votes.person] = votes.label
    wrong = (1 - estimate.accuracy) / max(1, votes.labels - 1)
    right = estimate.accuracy - wrong
    answered = given >= 0
    pairs = []
    for a, b in np.argwhere(np.triu(answered.T @ answered, 1)).tolist():
        both = answered[:, a] & answered[:, b]
        one, two = (wrong[who] + right[who] * estimate.posterior[both] for who in (a, b))
        same = given[both, a] == given[both, b]
        pairs.append((a, b, _tail((one * two).sum(axis=1), int(same.sum()))))
    return [pair for pair in pairs if pair[2] < CHANCE / len(pairs)]


def _tail(chances: Iterable[float], agreed: int) -> float:
    """Return the probability of at least `agreed` agreements. `chances` holds the probability of agreement for each
    question.

    >>> round(_tail([0.5, 0.5], 2), 4)
    0.25
    """
    counts = np.ones(1)
    for p in chances:
        counts = np.convolve(counts, (1 - p, p))
    return float(counts[agreed:].sum())
