"""Items as fair coins: each is kept with the chance that makes its two captions equally likely to be the true one.

Attackers learn from one half of the images, which is then left out. About the other half they give odds: where they
hold the true caption for k times as likely as the false one, the item is kept once in k times; where they hold the
false one for likelier, always. So what stays is as often true as false to whoever knows what they know. Every item is
thrown for on its own, and nothing that is kept was learned from: a set whose counts were evened out instead gives
itself away, since whoever knows all items but one knows which caption that one needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from creperie.auditing import Attacker, Pairs, grouped_folds, one_thread, stacked, training_blocks
from creperie.core import Progress
from creperie.refining.select import Choice, ChoiceSettings, RefinementMethod, SelectionPool


def one_per_caption(pairs: Pairs, seed: int) -> np.ndarray:
    """A mask over the items: of several with the same images, subset and true caption, one, drawn at random."""
    first = np.flatnonzero(np.r_[True, pairs.item[1:] != pairs.item[:-1]])
    item = np.random.default_rng(seed).permutation(pairs.item[first])
    caption = np.zeros(pairs.n_items, dtype=np.int64)
    caption[pairs.item[first]] = pairs.left[first]
    keys = np.stack([pairs.subset[item], pairs.cluster[item], caption[item]])
    mask = np.zeros(pairs.n_items, dtype=bool)
    mask[item[np.unique(keys, axis=1, return_index=True)[1]]] = True
    return mask


def held_out_odds(pairs: Pairs, attackers: Sequence[Attacker], seed: int, progress: Progress) -> np.ndarray:
    """For every item: the log-odds of its true caption by all attackers together; NaN where these learned from it.

    Attackers learn from one half of the images; what each is worth is learned there, too, out of fold.
    """
    learning = grouped_folds(pairs.group, 2, seed) == 0
    half = replace(pairs, fold=(~learning).astype(np.int64))
    seen = learning[pairs.item]
    known = np.zeros((len(pairs), len(attackers)))
    for k, attacker in enumerate(attackers):
        known[:, k] = np.nan_to_num(attacker.margins(half if attacker.directed else pairs, progress))
        if attacker.directed:
            known[seen, k] = np.nan_to_num(attacker.margins(pairs.of_items(learning), progress))
    odds = np.full(len(pairs), np.nan)
    with one_thread():
        for block in training_blocks(pairs):
            own = block[pairs.item]
            part = replace(pairs.of_items(block), counted=None)
            odds[own & ~seen] = stacked(part, known[own], ~seen[own], seed)
    totals = np.bincount(pairs.item, weights=odds, minlength=pairs.n_items)
    return np.asarray(np.where(learning, np.nan, totals))


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
    why="attackers learned from it, another foil of its caption was drawn, or its caption was too easily told",
    choose=_choose,
    attackers=(
        *("length-words", "length-chars", "surface", "frequency", "rarity", "ngram-3", "ngram-4", "ngram-5"),
        *("cooccurrence", "learned-linear", "learned-boosted"),
    ),
    asks=True,
)
