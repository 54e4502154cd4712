"""The null of learned attackers: how far they stray from one half when roles are drawn at random."""

from __future__ import annotations

import numpy as np
import pytest
from foils import foil_bench

from creperie.auditing import Pairs, calibrated, measure_attacker, null_spreads, pairs_of
from creperie.auditing.learned import Learner
from creperie.bench import Item, from_items

pytest.importorskip("sklearn")
NOUNS = ["dog", "cat", "man", "woman", "horse", "bird", "train", "bus", "child", "boat", "cow", "clock"]
VERBS = ["sees", "chases", "holds", "follows", "near", "behind", "carries", "watches"]


def swaps(n: int, seed: int) -> Pairs:
    """Pairs of captions with their nouns exchanged; which one is true is drawn at random."""
    rng = np.random.default_rng(seed)
    items = []
    for i in range(n):
        a, b = rng.choice(NOUNS, 2, replace=False)
        verb, place = rng.choice(VERBS), rng.integers(1000)
        both = [f"a {a} {verb} a {b} at {place}", f"a {b} {verb} a {a} at {place}"]
        items.append(Item(str(i), "s", (str(i),), tuple(both[:: rng.choice([-1, 1])]), ((True, False),)))
    return pairs_of(from_items("m", items))


def test_learned_answers_vary_more_than_coins() -> None:
    spread = null_spreads(swaps(120, 0))
    assert spread.shape == (120,)
    assert 1.0 < spread[0] < 1.35


def test_unlike_pairs_vary_like_coins() -> None:
    """Where no two pairs have anything in common nothing is learned, and there is nothing to widen."""
    assert (
        null_spreads(pairs_of(foil_bench([(chr(0x4E00 + i), chr(0x5E00 + i)) for i in range(80)], "m", images="{}")))[0]
        == 1.0
        < null_spreads(swaps(80, 0))[0]
    )


def test_the_null_widens_interval_and_test() -> None:
    pairs = swaps(120, 0)
    margins = np.where(np.arange(120) % 5 < 3, 1.0, -1.0)  # right on 60 %
    learned, given = (measure_attacker(calibrated(pairs, margins, directed=True, learned=how)) for how in (True, False))
    assert learned.accuracy == given.accuracy == pytest.approx(0.6)
    assert learned.low < given.low < given.high < learned.high
    assert learned.p > given.p


@pytest.mark.slow
def test_intervals_of_refitted_attackers_cover_one_half() -> None:
    """research/attacker_nulls.py does this at length, on real captions."""
    held = 0
    for seed in range(16):
        pairs = swaps(60, seed)
        found = measure_attacker(calibrated(pairs, Learner().margins(pairs, "learned-linear"), directed=True))
        held += found.low <= 0.5 <= found.high
    assert held >= 14
