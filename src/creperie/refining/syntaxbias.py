"""SADE's filter. It removes items if a language model, which does not see the image, prefers the true caption too
clearly.

The SyntaxBias score of an item is its likelihood gap, mean log P(true) − mean log P(false), divided by the largest
absolute gap. It lies within [-1, 1], and a gap of zero gives a score of zero. Items with a score above a threshold are
removed.

The threshold may be given. Otherwise it is the largest one at which a test on the kept items shows no preference:

- with a p-value (the paper's is 1e-5), a one-sided sign test for the true caption must have at least this p-value;
- by default, a two-sided sign test at 5 % must find no preference for either caption, and the 90 % interval of the
  accuracy must lie within 50 ± 5 % (two one-sided tests at 5 %).

If no threshold meets the default, as with few items, the one that leaves the accuracy nearest to one half is used. In
small sets, a p-value leaves more items than the default. The paper says that its thresholds follow from p < 1e-5
(section 6.2), but not in which test.
"""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import replace

import numpy as np

from creperie.core import Progress
from creperie.metrics import mcnemar, share_interval
from creperie.refining.cells import unit_gaps
from creperie.refining.select import LEVEL, NEAR, Choice, ChoiceSettings, Filtered, RefinementMethod, SelectionPool


def syntaxbias_scores(gaps: np.ndarray) -> np.ndarray:
    """Return the gaps divided by the largest absolute gap.

    >>> syntaxbias_scores(np.array([2.0, -0.5, 0.0])).tolist()
    [1.0, -0.25, 0.0]
    """
    values = np.asarray(gaps, np.float64)
    largest = np.abs(values).max(initial=0.0)
    return values / largest if largest > 0 else values


def syntaxbias(gaps: np.ndarray, threshold: float | None = None, p_value: float | None = None) -> Filtered:
    """Return the items whose SyntaxBias score is at most `threshold`, with the results of tests on these items. Without
    `threshold`, the largest threshold is used at which the kept items pass a test.

    With `p_value`, they pass if a one-sided sign test for a preference for the true caption has at least this p-value.
    Without it, they pass if they are balanced (see `Filtered.balanced`).
    """
    scores = unit_gaps(syntaxbias_scores(gaps))[:, 0]
    if p_value is not None:
        return _by_p_value(scores, p_value)
    return _filtered(scores, _searched(scores) if threshold is None else threshold)


def _by_p_value(scores: np.ndarray, limit: float) -> Filtered:
    """Return the items with a score up to a threshold. It is the largest one at which a one-sided sign test on these
    items has a p-value of at least `limit`.
    """
    levels = np.unique(scores)
    losses = int((scores < 0).sum())
    wins = np.maximum(0, np.searchsorted(np.sort(scores), levels, "right") - int((scores <= 0).sum()))

    def p_of(k: int) -> float:
        return mcnemar(int(wins[k]), losses).p / 2 if wins[k] > losses else 1.0

    most = bisect(range(len(levels)), False, key=lambda k: p_of(k) < limit) - 1  # more wins, smaller p
    threshold = float(levels[most]) if most >= 0 else -1.0
    p = p_of(most) if most >= 0 else 1.0
    return replace(_filtered(scores, threshold), p_value=p, test="one-sided sign test", limit=limit)


def _filtered(scores: np.ndarray, limit: float) -> Filtered:
    keep = scores <= limit
    stays = scores[keep]
    if not len(stays):
        return Filtered(keep, float(limit), math.nan, 1.0, math.nan, math.nan, math.nan)
    wins = 0.5 + 0.5 * np.sign(stays)
    interval = share_interval(wins, level=1 - 2 * LEVEL)
    p = mcnemar(int((stays > 0).sum()), int((stays < 0).sum())).p
    return Filtered(keep, float(limit), float(stays.mean()), p, float(wins.mean()), interval.low, interval.high)


def _searched(scores: np.ndarray) -> float:
    """Return the largest threshold at which the kept items are balanced (see `Filtered.balanced`). If no
    threshold achieves this, return the one at which the accuracy on the kept items is nearest to one half.
    """
    # Lowering the threshold removes one by one the items in which the model prefers the true caption (wins), so the
    # accuracy falls steadily. The thresholds to try therefore lie around the one that leaves as many wins as losses.
    levels = np.unique(scores)
    if not len(levels):
        return 0.0
    ordered = np.sort(scores)
    left = np.searchsorted(ordered, levels, "right")
    losses = np.minimum(left, int((scores < 0).sum()))
    wins = np.maximum(0, left - int((scores <= 0).sum()))
    away = np.abs(wins - losses) / left
    for k in np.flatnonzero(away < 2 * NEAR)[::-1].tolist():
        if _filtered(scores, levels[k]).balanced:
            return float(levels[k])
    return float(levels[int(np.argmin(away[::-1])) * -1 - 1])


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    result = syntaxbias(pool.gaps[:, 0], settings.threshold, settings.p_value)
    curve = (("all", len(result.keep)), (f"score ≤ {result.threshold:.4f}", int(result.keep.sum())))
    return Choice(result.keep, curve, filtered=(result,))


METHOD = RefinementMethod(
    name="syntaxbias",
    does="leave out items whose true caption a language model prefers too clearly",
    reason="likelihood",
    why="its score lies above the threshold: the model prefers its true caption too clearly",
    choose=_choose,
    attackers=("lm-mean",),
    detail=lambda pool, item: f"score {syntaxbias_scores(pool.gaps[:, 0])[item]:.4f}",
)
