"""The method `coin`: what is kept is even to attackers, and nothing that is kept was learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from creperie.auditing import Attacker, AttackerModels, TextAttacker, make_attackers, pairs_of
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import silent
from creperie.refining import refine
from creperie.refining.coin import held_out_odds, one_per_caption

pytest.importorskip("sklearn", reason="creperie[stats] is not installed")
COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("bus", "coat", "kite", "boat", "door", "chair")


def told_by_a_word(n: int, seed: int, foils: int = 1) -> Benchmark:
    """One colour in place of another; "red" is the true one four times in five, the others as often as not."""
    rng = np.random.default_rng(seed)
    items = []
    for k in range(n):
        a, b = rng.choice(COLOURS, 2, replace=False)
        if "red" in (a, b) and rng.random() < 0.6:
            a, b = "red", b if a == "red" else a
        thing = rng.choice(THINGS)
        for foil in [b, *(c for c in COLOURS if c not in (a, b))][:foils]:
            texts = f"the {a} {thing} of house {k}", f"the {foil} {thing} of house {k}"
            items.append(Item(f"{k}-{foil}", "s", (f"{k}.jpg",), texts, choice(1, 1)))
    return from_items("b", items)


def test_odds_of_three_to_one_are_kept_once_in_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    odds = np.where(np.arange(3000) % 3 == 0, np.log(3), np.where(np.arange(3000) % 3 == 1, -1.0, np.nan))
    monkeypatch.setattr("creperie.refining.coin.held_out_odds", lambda pairs, attackers, seed, progress: odds)
    bench = told_by_a_word(3000, 0)
    found = refine(bench, method="coin", attackers=["length-words"], held_out=["surface"], audit=False)
    kept = np.bincount([int(item.id.split("-")[0]) % 3 for item in found.bench], minlength=3)
    assert abs(kept[0] - 1000 / 3) < 3.5 * np.sqrt(1000 * 2 / 9)
    assert kept[1:].tolist() == [1000, 0]
    asked = (("one per caption", 3000), ("not learned from", 2000), ("coin", kept.sum()))
    assert found.outcomes[0].choice.curve == (("all", 3000), *asked)


def test_what_is_kept_was_not_learned_from() -> None:
    """Turn the roles of everything that is answered: every answer turns with them."""
    pairs = pairs_of(told_by_a_word(400, 1))
    odds = held_out_odds(pairs, make_attackers(["learned-linear"], AttackerModels()), 0, silent)
    asked = np.isfinite(odds)
    assert 150 < asked.sum() < 250
    swapped = asked[pairs.item]
    turned = replace(
        pairs,
        left=np.where(swapped, pairs.right, pairs.left),
        right=np.where(swapped, pairs.left, pairs.right),
    )
    again = held_out_odds(turned, make_attackers(["learned-linear"], AttackerModels()), 0, silent)
    assert np.abs(odds[asked]).max() > 0.3
    np.testing.assert_allclose(again[asked], -odds[asked], atol=1e-6)


@pytest.mark.slow
def test_a_word_that_tells_no_longer_tells() -> None:
    """Who knows that red is true four times in five is right 58 % of the time before, and half of the time after."""
    found = refine(told_by_a_word(3000, 2), method="coin", attackers=["learned-linear"], held_out=["length-words"])
    (standing,) = (s for s in found.standings if s.name == "learned-linear")
    assert standing.before["all"].low > 0.53
    assert standing.after["all"].low <= 0.5 <= standing.after["all"].high
    red = [("red" in i.captions[0]) for i in found.bench if any("red" in text for text in i.captions)]
    assert abs(np.mean(red) - 0.5) < 3 * 0.5 / np.sqrt(len(red))
    assert 900 < len(found.bench) < 1500


def test_one_foil_of_every_caption_is_drawn() -> None:
    pairs = pairs_of(told_by_a_word(60, 3, foils=4))
    mask = one_per_caption(pairs, 0)
    captions = [pairs.texts[pairs.left[k]] for k in np.flatnonzero(mask)]
    assert (len(captions), len(set(captions)), pairs.n_items) == (60, 60, 240)
    places = np.bincount(np.flatnonzero(mask) % 4, minlength=4)
    assert places.min() > 5
    assert (mask != one_per_caption(pairs, 1)).any()


def test_a_subset_of_one_image_is_left_out() -> None:
    """Its items are all in one half, so attackers that learn from the other half have nothing to learn from."""
    alike = [Item(f"t-{i.id}", "t", ("one.jpg",), i.captions, i.match) for i in told_by_a_word(120, 6)]
    pairs = pairs_of(from_items("b", [*told_by_a_word(200, 5), *alike]))
    odds = held_out_odds(pairs, make_attackers(["learned-linear"], AttackerModels()), 0, silent)
    assert np.isnan(odds[200:]).all()
    assert np.isfinite(odds[:200]).sum() == 160  # half of all


def test_attackers_without_an_opinion_remove_nothing_that_they_did_not_learn_from() -> None:
    pairs = pairs_of(told_by_a_word(200, 4))
    silent_one: Attacker = TextAttacker("same", lambda texts: np.zeros(len(texts)))
    assert np.nanmax(np.abs(held_out_odds(pairs, [silent_one], 0, silent))) == 0.0
