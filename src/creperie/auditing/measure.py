"""What an attacker's margins say about a subset: accuracy, how sure, against chance, and bits given away.

An attacker such as "length" has two directions. Which one pays is chosen out of fold: on every fold the direction is
the one that does better on the others. So looking for the better direction costs nothing at chance, and a cue that
works is found whichever way it points. `raw` keeps the accuracy in the direction that the attacker is named for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from creperie.auditing.calibration import bits, fit_scale
from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.pairs import Pairs, item_mean, item_strict, item_wins, strict_chance
from creperie.metrics import MetricSettings, bootstrap, cluster_sums, ratio, share_interval

RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class AttackerMargins:
    """An attacker's margins on some pairs, in the direction that was chosen out of fold, and as log-odds."""

    pairs: Pairs
    raw: np.ndarray
    margins: np.ndarray
    log_odds: np.ndarray

    def of_items(self, keep: np.ndarray) -> AttackerMargins:
        mine = keep[self.pairs.item]
        return AttackerMargins(self.pairs.of_items(keep), self.raw[mine], self.margins[mine], self.log_odds[mine])


@dataclass(frozen=True)
class Measure:
    """One attacker on one subset. Shares are of 1; `p` is against chance, before any correction."""

    n: int
    pairs: int
    accuracy: float
    low: float
    high: float
    ties: int
    nans: int
    raw: float
    direction: int  #: 1: as the attacker is named, −1: the other way round, 0: it depends on the fold
    strict: float
    strict_chance: float
    bits: float
    bits_low: float
    bits_high: float
    p: float


def in_paying_direction(pairs: Pairs, margins: np.ndarray, *, directed: bool, seed: int = 0) -> AttackerMargins:
    """Margins in the direction that pays, and their log-odds: both learned out of fold, within each subset."""
    raw = np.asarray(margins, dtype=np.float32)
    if directed:
        return AttackerMargins(pairs, raw, raw, np.nan_to_num(raw.astype(np.float64)))
    turned, log_odds = raw.copy(), np.zeros(len(raw))
    for s in np.unique(pairs.subset):
        mine = np.flatnonzero(pairs.subset[pairs.item] == s)
        groups = pairs.cluster[pairs.item[mine]]
        fold = grouped_folds(groups, fold_count(int((pairs.subset == s).sum())), seed)
        for k in range(int(fold.max()) + 1 if len(fold) else 0):
            seen, held_out = mine[fold != k], mine[fold == k]
            sign = 1.0 if len(seen) == 0 or np.nanmean(np.sign(raw[seen])) >= 0 else -1.0
            turned[held_out] = raw[held_out] * np.float32(sign)
            scale = fit_scale(np.nan_to_num(raw[seen]), signed=True) if len(seen) else 0.0
            log_odds[held_out] = np.nan_to_num(raw[held_out].astype(np.float64)) * scale
    return AttackerMargins(pairs, raw, turned, log_odds)


def measure_attacker(answers: AttackerMargins, *, directed: bool, seed: int = 0) -> Measure:
    """All figures of an attacker on the items of its answers; items without a pair are left out."""
    pairs = answers.pairs
    there = pairs.per_item > 0
    clusters = pairs.cluster[there]
    wins = item_wins(pairs, answers.margins)[there]
    raw = item_wins(pairs, answers.raw)[there]
    how = MetricSettings(ties="half", seed=seed, resamples=RESAMPLES)
    reached = share_interval(wins, np.ones(len(wins)), clusters, how)
    given = item_mean(pairs, bits(answers.log_odds))[there]
    leaked = bootstrap(cluster_sums(np.stack([given, np.ones(len(given))], axis=1), clusters), ratio, how)
    return Measure(
        n=len(wins),
        pairs=len(pairs),
        accuracy=_mean(wins),
        low=reached.low,
        high=reached.high,
        ties=int((answers.margins == 0).sum()),
        nans=int(np.isnan(answers.margins).sum()),
        raw=_mean(raw),
        direction=_direction(answers),
        strict=_mean(item_strict(pairs, answers.margins)[there]),
        strict_chance=_strict_chance(pairs),
        bits=max(0.0, _mean(given)),
        bits_low=max(0.0, leaked.low) if not math.isnan(leaked.low) else math.nan,
        bits_high=max(0.0, leaked.high) if not math.isnan(leaked.high) else math.nan,
        p=against_chance(wins if directed else raw, clusters, two_sided=not directed),
    )


def against_chance(wins: np.ndarray, clusters: np.ndarray, *, two_sided: bool) -> float:
    """How likely so many wins are when roles mean nothing: then each cluster's surplus could as well be its opposite.

    Surpluses (wins less one half, summed over a cluster) keep their size and get random signs; items that share an
    image are turned together, so what they have in common does not count as evidence twice. Up to 16 clusters with a
    surplus all signs are tried; beyond, their sum is normal.

    >>> round(against_chance(np.array([1.0] * 8), np.arange(8), two_sided=False), 6)  # 1 / 2**8
    0.003906
    """
    if not len(wins):
        return math.nan
    surplus = cluster_sums(np.asarray(wins, dtype=np.float64)[:, None] - 0.5, clusters)[:, 0]
    surplus = surplus[np.abs(surplus) > 1e-12]
    if not len(surplus):
        return 1.0
    seen = abs(surplus.sum()) if two_sided else surplus.sum()
    if len(surplus) <= 16:
        sums = _signs(len(surplus)) @ surplus
        if two_sided:
            sums = np.abs(sums)
        return float((sums >= seen - 1e-9).mean())
    tail = 0.5 * math.erfc(seen / math.sqrt(2 * float((surplus**2).sum())))
    return min(1.0, 2 * tail) if two_sided else tail


@lru_cache(maxsize=4)
def _signs(n: int) -> np.ndarray:
    return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def smallest_seen(n: int, tests: int, level: float = 0.05) -> float:
    """The accuracy that an attacker must reach on n items to be told from chance, given so many tests.

    >>> round(smallest_seen(245, 50), 3)
    0.605
    """
    from creperie.metrics import normal_quantile

    return min(1.0, 0.5 + normal_quantile(1 - level / 2 / max(1, tests)) * math.sqrt(0.25 / n)) if n else 1.0


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _direction(answers: AttackerMargins) -> int:
    used = (answers.raw != 0) & ~np.isnan(answers.raw)
    same = np.sign(answers.raw[used]) == np.sign(answers.margins[used])
    if not len(same) or same.all():
        return 1
    return 0 if same.any() else -1


def _strict_chance(pairs: Pairs) -> float:
    """The mean over items of the chance of the strict rule, from each item's number of true and false captions."""
    chances: dict[tuple[int, int], float] = {}
    keys = np.unique(np.stack([pairs.item, pairs.row, pairs.left], axis=1), axis=0)
    trues = np.bincount(keys[:, 0], minlength=pairs.n_items)
    keys = np.unique(np.stack([pairs.item, pairs.row, pairs.right], axis=1), axis=0)
    falses = np.bincount(keys[:, 0], minlength=pairs.n_items)
    there = (pairs.per_item > 0) & ~pairs.balanced
    for shape in set(zip(trues[there].tolist(), falses[there].tolist())):
        chances[shape] = strict_chance(*shape)
    values = [chances[shape] for shape in zip(trues[there].tolist(), falses[there].tolist())]
    values += [0.0] * int(pairs.balanced.sum())  # one caption cannot be above and below another
    return float(np.mean(values)) if values else math.nan
