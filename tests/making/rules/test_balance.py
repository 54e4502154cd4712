"""Foils that neither length nor frequency tells: replacements with opposites, shuffles with the caption's own marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.making.balance import FIRM_LEAN, LOOSE_LEAN, drawn_evenly, effect, even_weights
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


@given(EFFECTS)
def test_weights_cancel_the_last_effect_and_let_no_other_lean_much(effects: list[tuple[int, ...]]) -> None:
    found = list(dict.fromkeys(effects))
    weights = even_weights(found)
    if weights is None:
        return
    assert abs(sum(weights) - 1) < 1e-2
    leans = [abs(sum(w * e[k] for w, e in zip(weights, found))) for k in range(3)]
    assert leans[-1] <= FIRM_LEAN + 1e-2
    assert max(leans) <= LOOSE_LEAN + 1e-2


@given(EFFECTS)
def test_what_has_an_opposite_can_be_drawn(effects: list[tuple[int, ...]]) -> None:
    assert drawn_evenly([*effects, *(tuple(-s for s in e) for e in effects)], [], Random(0)) is None  # no effects given
    both = [*effects, *(tuple(-s for s in e) for e in effects)]
    assert drawn_evenly(both, both, Random(0)) is not None


def test_an_effect_is_as_likely_as_its_opposite_and_the_cheapest_is_taken() -> None:
    effects = [(1, -1)] * 7 + [(-1, 1)] + [(1, 1)] * 3
    drawn = Counter(drawn_evenly(effects, effects, Random(seed)) for seed in range(2000))
    assert (1, 1) not in drawn  # it has no opposite
    assert abs(drawn[1, -1] - drawn[-1, 1]) < 120
    found = ["dear", "cheap", "other"]
    costs = {"dear": 5.0, "cheap": 1.0, "other": 0.0}
    same = [drawn_evenly(found, [(1,), (1,), (-1,)], Random(seed), cost=costs.__getitem__) for seed in range(40)]
    assert set(same) == {"cheap", "other"}


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
        assert len(found) > 20
        leans[matched] = [sum(e[k] for e in found) / len(found) for k in range(4)]
    assert max(map(abs, leans[True])) < 0.45
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
