"""Foils that neither length nor frequency tells: tilted draws, shuffles with the caption's own marks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.making.balance import drawn_evenly, effect
from creperie.making.options import MakerOptions
from creperie.making.replace import Replacer
from creperie.making.run import Made
from creperie.making.slots import count_slots

EFFECTS = st.lists(st.tuples(*[st.sampled_from((-1, 0, 1))] * 3), min_size=1, max_size=12)
CAPTIONS = [
    "A green boat and a purple kite near the river.",
    "Two horses carry a heavy box along the narrow road.",
    "A woman in a brown jacket holds a spoon.",
    "The tall giraffe eats leaves, and a bird watches.",
    "A white truck stops behind an old bicycle.",
    "A man's middle-aged dog doesn't chase the orange cat!",
]


@given(EFFECTS)
def test_whatever_leans_one_of_them_is_drawn(effects: list[tuple[int, ...]]) -> None:
    assert drawn_evenly(effects, effects, Random(0)) in effects
    assert drawn_evenly([], [], Random(0)) is None


def test_a_tilt_draws_one_effect_more_often_and_of_it_the_cheapest() -> None:
    effects = [(1, -1)] * 7 + [(-1, 1)]
    drawn = Counter(drawn_evenly(effects, effects, Random(seed)) for seed in range(2000))
    assert abs(drawn[1, -1] - drawn[-1, 1]) < 120  # of an effect, not of how many have it
    tilted = Counter(drawn_evenly(effects, effects, Random(seed), tilt=(0, 0.5)) for seed in range(2000))
    assert abs(tilted[-1, 1] / 2000 - 1 / (1 + math.exp(-1))) < 0.04
    found = ["dear", "cheap", "other"]
    costs = {"dear": 5.0, "cheap": 1.0, "other": 0.0}
    same = [drawn_evenly(found, [(1,), (1,), (-1,)], Random(seed), cost=costs.__getitem__) for seed in range(40)]
    assert set(same) == {"cheap", "other"}


@pytest.mark.parametrize("maker", ["rules:replace", "rules:vl-checklist"])
def test_longer_foils_are_no_more_than_shorter_ones(maker: str, previewed: Callable[..., Made], parser: str) -> None:
    """Over many seeds, the foils lean to no side."""
    found = [
        effect(item.captions[0], foil)
        for seed in range(12)
        for item in previewed(maker, CAPTIONS, MakerOptions(parser=parser, seed=seed)).items
        for foil in item.negatives
    ]
    assert len(found) > 40
    assert max(abs(sum(e[k] for e in found) / len(found)) for k in range(4)) < 0.55


def test_shuffles_have_the_letters_marks_and_blanks_of_the_caption(previewed: Callable[..., Made]) -> None:
    made = previewed("rules:shuffle", CAPTIONS)
    assert len(made.items) == 12
    for item in made.items:
        caption = item.captions[0]
        for foil in item.negatives:
            assert len(foil) == len(caption)
            assert [k for k, c in enumerate(foil.split()) if c[-1] in ",.!"] == [
                k for k, c in enumerate(caption.split()) if c[-1] in ",.!"
            ]
            assert sorted(foil.lower().replace(",", "").split()[:-1] + foil[:-1].lower().split()[-1:]) == sorted(
                caption.lower().replace(",", "").split()[:-1] + caption[:-1].lower().split()[-1:]
            )


def test_what_is_said_seldom_comes_seldom() -> None:
    """Of 516 captions, 500 say `on a`, 16 `under`: (16.5 / 500.5) ^ 0.4 = 0.255 of `on → under` stay."""
    texts = ["a cat on a mat"] * 500 + ["a cat under a mat"] * 16
    for corpus, expected in ((texts, 0.255), (texts[-100:], 1.0)):
        slots = count_slots(corpus)
        rng, found = Random(0), Replacer("rules:replace", slots)
        kept = [found._comes_back("on → under", rng) for _ in range(4000)]
        assert sum(kept) / len(kept) == pytest.approx(expected, abs=0.03)
        assert all(found._comes_back("Under → On", rng) for _ in range(100))
    assert slots.times_said("in front of") == 0.5
