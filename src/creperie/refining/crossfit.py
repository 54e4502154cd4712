"""New learned attackers, trained on some items of a set and sent against others.

A refinement is only as good as the attacker that has not been seen yet. Here attackers are trained on what a
refinement kept, or on what it removed, with folds of their own each time; none answers an item whose image it saw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.auditing import (
    FOLDS,
    INNER_FOLDS,
    Attacker,
    PairFeatures,
    Pairs,
    fit_boosted,
    fit_linear,
    grouped_folds,
    item_gaps,
    item_mean,
    one_thread,
    pair_features,
)
from creperie.core import Progress

#: From fewer pairs than this nothing is learned.
FEWEST = 20
#: From fewer pairs than this trees learn nothing that a straight line does not, and take most of the time.
TREES_FROM = 600


@dataclass(eq=False)
class Trainer:
    """Trains attackers on parts of one set of pairs; what the pairs look like is computed once."""

    pairs: Pairs

    @cached_property
    def features(self) -> PairFeatures:
        return pair_features(self.pairs)

    def margins(self, learn_from: np.ndarray, answer: np.ndarray, seed: int) -> np.ndarray:
        """Log-odds of the true caption for the pairs of the items in `answer`; NaN elsewhere.

        Both are masks over the items. An item in both is answered by a model that did not see it.
        """
        pairs = self.pairs
        groups = pairs.group[pairs.item]
        fold = grouped_folds(groups, FOLDS, seed)
        learn, ask = learn_from[pairs.item], answer[pairs.item]
        found = np.full(len(pairs), np.nan)
        with one_thread():
            for k in range(int(fold.max()) + 1 if len(fold) else 0):
                train, test = np.flatnonzero(learn & (fold != k)), np.flatnonzero(ask & (fold == k))
                if len(train) >= FEWEST and len(test):
                    found[test] = self._answers(train, test, groups, seed)
        return found

    def _answers(self, train: np.ndarray, test: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
        inner = grouped_folds(groups[train], INNER_FOLDS, seed + 1)
        linear = fit_linear(self.features, train, inner, seed)
        if len(train) < TREES_FROM:
            return linear.margins(test)
        boosted = fit_boosted(self.features, linear, train, inner, seed)
        return np.asarray((linear.margins(test) + boosted.margins(test)) / 2)


def sureness(pairs: Pairs, log_odds: np.ndarray) -> np.ndarray:
    """The gap of every item from log-odds: the mean of 2p − 1, within [-1, 1]; 0 where there is no answer.

    Log-odds have no largest value; 2p − 1 has, so one very sure answer does not squeeze all others into one bin.
    """
    return np.nan_to_num(item_mean(pairs, np.nan_to_num(np.tanh(np.asarray(log_odds, dtype=np.float64) / 2))))


def gap_of(pairs: Pairs, attacker: Attacker, progress: Progress) -> np.ndarray:
    """An attacker's gap for every item; no opinion is not a gap."""
    margins = attacker.margins(pairs, progress)
    if attacker.directed:
        return sureness(pairs, margins)
    return np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))).astype(np.float64)
