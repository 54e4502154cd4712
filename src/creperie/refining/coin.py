"""The coin method: each item is kept with a probability that makes its two captions equally likely to be the true one.

Attackers learn from one half of the images, which is then left out, and judge the items of the other half. If they
consider the true caption k times as likely as the false one, the item is kept with probability 1/k. If they consider
the false one more likely, it is always kept. Among the kept items, the two captions are therefore equally likely to be
true for anyone who knows what the attackers know.

Every item is drawn independently, and no attacker learned from the kept items. Balancing the counts exactly would leak:
the counts of all other items would reveal the true caption of an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from creperie.auditing import Attacker, Pairs, grouped_folds, one_thread, stacked, training_blocks
from creperie.core import Progress
from creperie.refining.select import Choice, ChoiceSettings, RefinementMethod, SelectionPool


def one_per_caption(pairs: Pairs, seed: int) -> np.ndarray:
    """Return a mask of randomly chosen items. It selects one item from each group with the same images, subset and true
    caption.
    """
    first = np.flatnonzero(np.r_[True, pairs.item[1:] != pairs.item[:-1]])
    item = np.random.default_rng(seed).permutation(pairs.item[first])
    caption = np.zeros(pairs.n_items, np.int64)
    caption[pairs.item[first]] = pairs.left[first]
    keys = np.stack([pairs.subset[item], pairs.cluster[item], caption[item]])
    mask = np.zeros(pairs.n_items, bool)
    mask[item[np.unique(keys, axis=1, return_index=True)[1]]] = True
    return mask


def held_out_odds(pairs: Pairs, attackers: Sequence[Attacker], seed: int, progress: Progress) -> np.ndarray:
    """Return the log-odds of every item's true caption, combined from all attackers; NaN for items that the attackers
    learned from.

    The attackers learn from one half of the images. The weights for combining their answers are learned from the same
    half, with answers given out of fold.
    """
    learning = grouped_folds(pairs.group, 2, seed) == 0
    half = replace(pairs, fold=(~learning).astype(np.int64))
    seen = learning[pairs.item]
    answers = np.zeros((len(pairs), len(attackers)))
    for k, attacker in enumerate(attackers):
        answers[:, k] = np.nan_to_num(attacker.margins(half if attacker.directed else pairs, progress))
        if attacker.directed:
            answers[seen, k] = np.nan_to_num(attacker.margins(pairs.of_items(learning), progress))
    odds = np.full(len(pairs), np.nan)
    with one_thread():
        for block in training_blocks(pairs):
            of_block = block[pairs.item]
            part = replace(pairs.of_items(block), counted=None)
            odds[of_block & ~seen] = stacked(part, answers[of_block], ~seen[of_block], seed)
    totals = np.bincount(pairs.item, weights=odds, minlength=pairs.n_items)
    return np.where(learning, np.nan, totals)


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    pairs, odds = pool.pairs, np.full(pool.pairs.n_items, np.nan)
    drawn = one_per_caption(pairs, settings.seed)
    odds[drawn] = held_out_odds(pairs.of_items(drawn), pool.attackers, settings.seed + 1, progress)
    thrown = np.random.default_rng(settings.seed + 2).random(len(odds))
    keep = thrown < np.exp(-np.nan_to_num(odds, nan=np.inf))
    asked = int(np.isfinite(odds).sum())
    curve = (("all", len(odds)), ("one per caption", int(drawn.sum())), ("not learned from", asked))
    return Choice(keep, (*curve, ("coin", int(keep.sum()))))


METHOD = RefinementMethod(
    name="coin",
    does="keep each item with the chance that leaves attackers even odds; they learn from the other half",
    reason="odds",
    why="attackers learned from it, another foil of its caption was drawn, or its true caption was too easy to find",
    choose=_choose,
    attackers=(
        "length-words",
        "length-chars",
        "surface",
        "frequency",
        "rarity",
        "ngram-3",
        "ngram-4",
        "ngram-5",
        "cooccurrence",
        "learned-linear",
        "learned-boosted",
    ),
    asks=True,
)
