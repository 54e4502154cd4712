"""Foils that neither length nor frequency tells: replacements with opposites, shuffles with the caption's own marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.making.balance import drawn_evenly, effect
from creperie.making.options import MakerOptions
from creperie.making.run import Made

EFFECTS = st.lists(st.tuples(*[st.sampled_from((-1, 0, 1))] * 3), min_size=1, max_size=12)
CAPTIONS = [
    "A green boat and a purple kite near the river.",
    "Two horses carry a heavy box along the narrow road.",
    "A woman in a brown jacket holds a spoon.",
    "The tall giraffe eats leaves, and a bird watches.",
    "A white truck stops behind an old bicycle.",
    "A man's middle-aged dog doesn't chase the orange cat!",
]


@given(EFFECTS, st.integers(0, 99))
def test_what_is_drawn_has_an_opposite(effects: list[tuple[int, ...]], seed: int) -> None:
    drawn = drawn_evenly(effects, effects, Random(seed))
    backs = {tuple(-s for s in e) for e in effects}
    if drawn is None:
        assert not backs & set(effects)
    else:
        assert drawn in backs


def test_an_effect_is_as_likely_as_its_opposite() -> None:
    effects = [(1, -1)] * 7 + [(-1, 1)] + [(0, 0)] + [(1, 1)] * 3
    drawn = Counter(drawn_evenly(effects, effects, Random(seed)) for seed in range(2000))
    assert (1, 1) not in drawn  # it has no opposite
    assert abs(drawn[1, -1] - drawn[-1, 1]) < 120
    assert drawn[0, 0] > 400


@pytest.mark.parametrize("maker", ["rules:replace", "rules:vl-checklist"])
def test_longer_foils_are_no_more_than_shorter_ones(maker: str, previewed: Callable[..., Made], parser: str) -> None:
    """Over many seeds, the foils lean to no side; those of a few relatives that are not matched do."""
    leans = {}
    for matched in (True, False):
        found = [
            effect(item.captions[0], foil)
            for seed in range(12)
            for item in previewed(maker, CAPTIONS, MakerOptions(parser=parser, seed=seed, matched=matched)).items
            for foil in item.negatives
        ]
        assert len(found) > 40
        leans[matched] = [sum(e[k] for e in found) / len(found) for k in range(4)]
    assert max(map(abs, leans[True])) < 0.35
    if maker == "rules:replace":
        assert max(map(abs, leans[True])) < max(map(abs, leans[False]))


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
