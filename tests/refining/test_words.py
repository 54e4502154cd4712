"""refine --method words: every word goes about as often as it comes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.auditing import AttackerModels, make_attackers, pairs_of
from creperie.bench import Benchmark, Item, choice, from_items, save
from creperie.core import UsageError, silent
from creperie.refining import RefinePlan, refine
from creperie.refining.pair import symmetric_part
from creperie.refining.select import ItemSurplus
from creperie.refining.standing import figures_of
from creperie.refining.words import surplus_of_words

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("bus", "coat", "kite", "boat", "door", "chair")


def foil(number: int, colour: str, other: str, thing: str) -> Item:
    texts = (f"a {colour} {thing} number {number}", f"a {other} {thing} number {number}")
    return Item(f"{number}-{other}", "colour", (f"{number}.jpg",), texts, choice(1, 1))


@pytest.fixture(scope="module")
def bench() -> Benchmark:
    """Half of 400 things are red, and every caption has a foil in each of the other colours."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(COLOURS, 400, p=(0.5, 0.2, 0.1, 0.1, 0.1)), rng.choice(THINGS, 400)
    items = [foil(k, c, o, t) for k, (c, t) in enumerate(zip(*drawn)) for o in COLOURS if o != c]
    return from_items("colours", items)


def learned(bench: Benchmark) -> tuple[float, float, float]:
    attackers = make_attackers(["learned-linear"], AttackerModels(lm="none", encoder="none"))
    found = figures_of(pairs_of(bench), attackers, 0, silent)["learned-linear"]["all"]
    return found.low, found.accuracy, found.high


@pytest.mark.slow
def test_what_was_learned_from_words_is_gone(bench: Benchmark) -> None:
    found = refine(bench, plan=RefinePlan(method="words", held_out=("length-chars",), audit=False))
    kept = [(i.captions[0].split()[1], i.captions[1].split()[1]) for i in found.bench]
    assert found.outcomes[0].choice.curve == (("all", len(bench)), ("even", len(kept)))
    assert len(kept) >= 160
    assert len({i.images for i in found.bench}) == len(kept), "a caption is asked about once"
    surplus = Counter(true for true, _ in kept)
    surplus.subtract(false for _, false in kept)
    assert any(surplus.values()), "a fair coin leaves no exact balance"
    assert all(abs(n) <= 3 * len(kept) ** 0.5 for n in surplus.values())
    assert learned(bench.filter(np.arange(len(bench)) % 4 == 0))[0] > 0.55
    low, _, high = learned(found.bench)
    assert low < 0.5 < high
    assert {r.reason for r in found.removed} == {"words"}
    assert found.removed[0].detail.startswith("true: ")


def test_an_exact_balance_would_give_the_last_item_away(bench: Benchmark) -> None:
    """Why a coin is thrown: where every surplus is zero, the others say what is missing."""
    surplus = [surplus_of_words(i) for i in bench]
    keep = symmetric_part(surplus)
    total = Counter[tuple[str, ...]]()
    for own in (s for s, k in zip(surplus, keep) if k):
        total.update(dict(own.pairs))
    assert not any(total.values())
    assert learned(bench.filter(keep))[2] < 0.5


def test_seeds_decide_and_nothing_is_kept_that_never_comes_back() -> None:
    ways = [ItemSurplus(((("words", "red"), n), (("words", "blue"), -n)), str(k)) for k, n in enumerate([1, -1] * 20)]
    alone = ItemSurplus(((("words", "pink"), 1), (("words", "blue"), -1)), "alone")
    first, again, other = (symmetric_part([*ways, alone], seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert not first[-1]
    assert symmetric_part([alone], seed=0).tolist() == [False]


def test_of_two_foils_of_a_caption_one_stays() -> None:
    pair = [foil(1, "red", "blue", "bus"), foil(1, "red", "blue", "bus"), foil(2, "blue", "red", "bus")]
    surplus = [surplus_of_words(i) for i in pair]
    assert symmetric_part(surplus).sum() == 2
    assert surplus[0].asks == surplus[1].asks != surplus[2].asks


def test_the_command_says_what_stays(bench: Benchmark, tmp_path: Path, command: Any) -> None:
    save(bench, tmp_path / "b")
    how = ["--method", "words", "--held-out", "length-chars", "--out", str(tmp_path / "o")]
    code, shown, _ = command("refine", tmp_path / "b", *how)
    assert "in false captions more often than by chance" in " ".join(shown.split())
    assert code == 3
    assert shown.splitlines()[-2].startswith("verdict: not shown: too few items to exclude 55 %")


def test_too_few_foils_are_told_with_what_to_do(tmp_path: Path, command: Any) -> None:
    save(from_items("b", [foil(1, "red", "blue", "bus"), foil(2, "red", "blue", "boat")]), tmp_path / "b")
    how = ["--method", "words", "--held-out", "length-chars", "--dry-run"]
    code, shown, _ = command("refine", tmp_path / "b", *how)
    assert code == 1
    assert "--foils 8 --unmatched --apart" in shown


@pytest.mark.parametrize("method", ["pair", "words", "syntaxbias"])
def test_methods_without_bins_refuse_them_and_record_none(method: str) -> None:
    with pytest.raises(UsageError, match=f"the method {method} uses no bins"):
        RefinePlan(method=method, bins=5)
    assert RefinePlan(method=method).fineness == 0


def test_plans_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="unknown method 'grit'; did you mean 'grid'"):
        RefinePlan(method="grit")
    for given in ({"method": "grid"}, {"method": "syntaxbias", "threshold": 0.1}):
        with pytest.raises(UsageError, match="`p_value=` works only with"):
            RefinePlan(**given, p_value=1e-5)  # type: ignore[arg-type]
    assert RefinePlan(method="syntaxbias", p_value=1e-5).selection(AttackerModels(lm="none")) == ("lm-mean",)
    assert "lm-mean" not in RefinePlan().selection(AttackerModels(lm="none"))
