"""Who knows the answers: the accuracy of people, and whether somebody's answers depend on the questions at all.

Accuracy is estimated by the one-coin model of Dawid and Skene (1979): a person is right with a probability of their
own, and all wrong answers are alike. Questions with a known answer take part with that answer fixed. crowd-kit has the
same model, but needs transformers and nltk, which a server for annotators does not; the tests hold its figures.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Honest people are assumed to do better than chance by at least this share of what is usual.
NEARLY = 0.9
#: People with fewer answers say nothing about what is usual.
FEWEST_ANSWERS = 5
#: Imagined answers of everybody, right and wrong, that keep estimates from a few answers sober.
PRIOR = (3.0, 1.0)
#: Two people are flagged when so much agreement has less than this probability, over all pairs.
CHANCE = 0.01


@dataclass(frozen=True)
class Votes:
    """Answers as numbers: one row each of question, person and label; `truth` is the known label, or -1."""

    question: np.ndarray
    person: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    people: int
    labels: int


@dataclass(frozen=True)
class Competence:
    """P(label of a question), P(a person is right)."""

    posterior: np.ndarray
    accuracy: np.ndarray


def dawid_skene(votes: Votes, rounds: int = 100, prior: tuple[float, float] = PRIOR) -> Competence:
    """Estimate accuracies and answers by expectation maximisation, beginning with the shares of votes.

    >>> question, person = np.divmod(np.arange(30), 3)
    >>> label = np.where(person < 2, question % 2, 0)
    >>> estimate = dawid_skene(Votes(question, person, label, np.full(10, -1), 3, 2))
    >>> estimate.posterior.argmax(axis=1).tolist(), (estimate.accuracy > 0.8).tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [True, True, False])
    """
    shares = np.full((len(votes.truth), votes.labels), 1e-9)
    np.add.at(shares, (votes.question, votes.label), 1.0)
    posterior = _with_known(shares, votes)
    answers = np.bincount(votes.person, minlength=votes.people) + sum(prior)
    open_ = votes.truth < 0
    for _ in range(rounds):
        right = np.bincount(votes.person, posterior[votes.question, votes.label], votes.people) + prior[0]
        # Who is wrong more often than by chance says nothing, rather than the opposite of what they say.
        accuracy = np.clip(right / np.maximum(answers, 1e-9), 1 / votes.labels, 1 - 1e-6)
        prevalence = posterior[open_].mean(axis=0) if open_.any() else np.ones(votes.labels)
        logs = np.repeat(np.log(np.maximum(prevalence, 1e-6))[None], len(posterior), axis=0)
        np.add.at(logs, votes.question, _likelihood(votes, accuracy))
        posterior = _with_known(_unlogged(logs), votes)
    return Competence(posterior, accuracy)


def _likelihood(votes: Votes, accuracy: np.ndarray) -> np.ndarray:
    """Log-probability of every answer under every label that its question may have."""
    own = accuracy[votes.person]
    chances = np.repeat(((1 - own) / max(1, votes.labels - 1))[:, None], votes.labels, axis=1)
    chances[np.arange(len(own)), votes.label] = own
    logs: np.ndarray = np.log(chances)
    return logs


def _unlogged(logs: np.ndarray) -> np.ndarray:
    """Weights from their logarithms, whatever these have in common."""
    weights: np.ndarray = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights


def _with_known(weights: np.ndarray, votes: Votes) -> np.ndarray:
    posterior: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    known = np.flatnonzero(votes.truth >= 0)
    posterior[known] = 0.0
    posterior[known, votes.truth[known]] = 1.0
    return posterior


def habit_odds(votes: Votes, estimate: Competence) -> np.ndarray:
    """The log-odds of two explanations of each person's answers: a habit that ignores the question, and honest work.

    Honest work gives the right answer with nearly the usual accuracy; what is right comes from the known answers and
    from the other people.
    """
    logs = np.log(np.maximum(estimate.posterior[votes.question], 1e-12)) - _likelihood(votes, estimate.accuracy)
    others = _unlogged(logs)
    others /= others.sum(axis=1, keepdims=True)
    fixed = votes.truth[votes.question] >= 0
    others[fixed] = estimate.posterior[votes.question[fixed]]
    right = others[np.arange(len(votes.label)), votes.label]
    answers = np.bincount(votes.person, minlength=votes.people)
    accuracy = np.bincount(votes.person, right, votes.people) / np.maximum(answers, 1)
    chance = 1.0 / votes.labels
    measured = accuracy[answers >= FEWEST_ANSWERS]
    usual = float(np.median(measured)) if len(measured) else chance
    expected = chance + NEARLY * max(0.0, min(usual, 0.99) - chance)
    wrong = (1 - expected) / max(1, votes.labels - 1)
    honest = np.bincount(votes.person, np.log(right * expected + (1 - right) * wrong), votes.people)
    odds: np.ndarray = _habit_evidence(votes) - honest
    return odds


def _habit_evidence(votes: Votes) -> np.ndarray:
    """Log-probability of each person's answers under some habit, all habits being possible (Krichevsky-Trofimov)."""
    counts = np.zeros((votes.people, votes.labels))
    np.add.at(counts, (votes.person, votes.label), 1.0)
    half = votes.labels / 2
    return (
        np.array([sum(math.lgamma(n + 0.5) for n in row) - math.lgamma(row.sum() + half) for row in counts])
        + math.lgamma(half)
        - votes.labels * math.lgamma(0.5)
    )


def too_alike(votes: Votes, estimate: Competence) -> list[tuple[int, int, float]]:
    """Pairs of people who agree more often than two of their accuracy would, with the probability."""
    by_question: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for question, person, label in zip(votes.question.tolist(), votes.person.tolist(), votes.label.tolist()):
        by_question[question].append((person, label))
    together: dict[tuple[int, int], list[tuple[float, bool]]] = defaultdict(list)
    for question, given in by_question.items():
        wrong = (1 - estimate.accuracy) / max(1, votes.labels - 1)
        chances = wrong[:, None] + np.outer(estimate.accuracy - wrong, estimate.posterior[question])
        for (a, x), (b, y) in itertools.combinations(sorted(given), 2):
            together[a, b].append((float(chances[a] @ chances[b]), x == y))
    bound = CHANCE / max(1, len(together))
    tails = ((a, b, _tail([p for p, _ in pair], sum(same for _, same in pair))) for (a, b), pair in together.items())
    return [one for one in tails if one[2] < bound]


def _tail(chances: Sequence[float], agreed: int) -> float:
    """The probability of at least so many agreements, each with a chance of its own.

    >>> round(_tail([0.5, 0.5], 2), 4)
    0.25
    """
    counts = np.ones(1)
    for p in chances:
        counts = np.convolve(counts, (1 - p, p))
    return float(counts[agreed:].sum())
