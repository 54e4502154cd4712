"""Filtering against learned attackers until a new one finds nothing.

Leaving out only what an attacker gets right would make it wrong on what stays, and an attacker that is surely wrong
is as good as one that is right: train it on what was left out, and believe the opposite. So what stays has to mirror
itself: as many items that the attackers answer rightly with some sureness as items that they answer wrongly with it.

Every round trains new attackers, with new folds: some on what is kept, some on what was removed. If both are shown to
stay near one half (their intervals lie within 50 ± 5 %, not merely contain 50 %), that is the end. Otherwise their
answers become further conditions, and the largest set that mirrors itself under all conditions so far is chosen again
from all the items: an item may come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creperie.auditing import LEAST_KEPT, Pairs, item_wins
from creperie.core import Progress, silent
from creperie.metrics import MetricSettings, share_interval
from creperie.refining.crossfit import FEWEST, Trainer, sureness
from creperie.refining.optimal import optimal
from creperie.refining.select import (
    Choice,
    ChoiceSettings,
    RefinementMethod,
    Round,
    Selection,
    SelectionPool,
    Structural,
    WinShare,
    structural_cues,
)

ROUNDS = 8
#: Attackers trained for every question, each with its own folds; their answers are averaged.
REPEATS = 2
BINS = 10
#: Below so many items no learned attacker can be told from chance: nothing is left to filter.
LEAST = 40


@dataclass(frozen=True)
class Aflite:
    """What stays, and the rounds it took."""

    keep: np.ndarray
    rounds: tuple[Round, ...]
    selection: Selection | None  #: the last choice; None where nothing had to go


def aflite(
    pairs: Pairs,
    gaps: np.ndarray,
    *,
    bins: int = BINS,
    seed: int = 0,
    time_limit: float = 20.0,
    progress: Progress = silent,
) -> Aflite:
    """Keep as many items as possible on which new learned attackers are at chance, and the given gaps balance.

    `gaps` (items × attackers, possibly none) are those of the simple attackers. The best round is returned where none
    of them is at chance.
    """
    trainer = Trainer(pairs)
    everything = np.ones(pairs.n_items, dtype=bool)
    keep, chosen, columns = everything, None, [gaps]
    rounds: list[Round] = []
    best: tuple[np.ndarray, Selection | None] = (keep, None)
    with progress("aflite", ROUNDS, "rounds") as advance:
        for number in range(ROUNDS):
            answers = _attack(trainer, keep, seed + 1000 * (number + 1))
            rounds.append(_round(pairs, keep, answers, seed))
            advance(1)
            if number == 0 or rounds[-1].worst <= min(r.worst for r in rounds):
                best = keep, chosen
            # The first round has seen no gap but its own: the simple attackers have to be balanced at least once.
            balanced = number > 0 or not gaps.shape[1]
            if (rounds[-1].at_chance and balanced) or keep.sum() < LEAST:
                best = keep, chosen
                break
            columns += [sureness(pairs, margins)[:, None] for margins in answers]
            table = np.concatenate(columns, axis=1)
            chosen = optimal(table, bins=bins, seed=seed + number, time_limit=time_limit)
            keep = chosen.keep
    return Aflite(best[0], tuple(rounds), best[1])


def _attack(trainer: Trainer, keep: np.ndarray, seed: int) -> list[np.ndarray]:
    """Log-odds for all items by attackers trained on the kept items and, where there are any, on the removed."""
    everything = np.ones_like(keep)
    answers = []
    for learn_from in (keep, ~keep):
        if learn_from[trainer.pairs.item].sum() >= 2 * FEWEST:
            tries = [trainer.margins(learn_from, everything, seed + 10 * k) for k in range(REPEATS)]
            answers.append(np.mean(tries, axis=0))
    return answers


def _round(pairs: Pairs, keep: np.ndarray, answers: list[np.ndarray], seed: int) -> Round:
    shares = [_share(pairs, keep, margins, seed) for margins in answers]
    nothing = WinShare(0.5, 0.0, 1.0)
    return Round(int(keep.sum()), shares[0] if shares else nothing, shares[1] if len(shares) > 1 else None)


def _share(pairs: Pairs, keep: np.ndarray, margins: np.ndarray, seed: int) -> WinShare:
    wins = item_wins(pairs, margins)[keep]
    interval = share_interval(wins, np.ones(len(wins)), pairs.cluster[keep], MetricSettings(ties="half", seed=seed))
    return WinShare(float(wins.mean()), interval.low, interval.high)


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    simple = [k for k, name in enumerate(pool.names) if name != "learned"]  # aflite trains its own, every round
    result = aflite(
        pool.pairs,
        pool.gaps[:, simple],
        bins=settings.bins,
        seed=settings.seed,
        time_limit=settings.time_limit,
        progress=progress,
    )
    curve = tuple((f"round {k}", r.kept) for k, r in enumerate(result.rounds))
    hopeless = list(structural_cues(pool))
    left = 2 * (1 - result.rounds[0].fresh.accuracy)
    if left < LEAST_KEPT:
        hopeless.append(Structural("learned", left))
    return Choice(result.keep, curve, result.selection, result.rounds, structural=tuple(hopeless))


METHOD = RefinementMethod(
    name="aflite",
    does="filter against learned attackers until new ones are at chance",
    reason="learned",
    why="with it, learned attackers (or the simple ones) would win more items than they lose",
    choose=_choose,
    attackers=("length-words", "length-chars", "surface", "frequency", "learned"),
    bins=BINS,
    learns=True,
)
