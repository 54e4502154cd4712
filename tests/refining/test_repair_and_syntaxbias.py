"""Repair of surface style, and SADE's filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from creperie.auditing import repaired as repair
from creperie.bench import Item, choice, from_items
from creperie.refining import syntaxbias_scores
from creperie.refining.syntaxbias import syntaxbias


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=40), min_size=2, max_size=4))
def test_repairing_twice_is_repairing_once(captions: list[str]) -> None:
    bench = from_items("b", [Item("0", "s", ("i.jpg",), tuple(captions), choice(1, len(captions) - 1))])
    once = repair(bench)
    assert [i.captions for i in repair(once)] == [i.captions for i in once]


def test_repair_gives_one_style_and_says_so() -> None:
    items = [
        Item("0", "s", ("i.jpg",), ("a dog bites a man ", "A man bites a dog."), choice(1, 1)),
        Item("1", "s", ("j.jpg",), ("Two cats .", "Two dogs."), choice(1, 1)),
    ]
    mended = repair(from_items("b", items))
    assert [i.captions for i in mended] == [("A dog bites a man.", "A man bites a dog."), ("Two cats.", "Two dogs.")]
    assert mended.provenance[-1].op == "repair"
    assert mended.provenance[-1].args["captions_changed"] == 2
    assert [i.match for i in mended] == [choice(1, 1)] * 2


@given(st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 3)), min_size=3, max_size=60))
def test_searched_threshold_passes_the_named_test(gaps: list[float]) -> None:
    found = syntaxbias(np.array(gaps))
    scores = syntaxbias_scores(np.array(gaps))
    kept = scores[found.keep]
    assert (kept <= found.threshold).all()
    assert (scores[~found.keep] > found.threshold).all()
    wins, losses = int((kept > 0).sum()), int((kept < 0).sum())
    assert found.p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0)
    assert found.accuracy == pytest.approx(np.mean(0.5 + np.sign(kept) / 2))
    tried = [syntaxbias(np.array(gaps), threshold=t) for t in sorted(set(scores), reverse=True)]
    least = min(abs(one.accuracy - 0.5) for one in tried)
    wanted = next((one for one in tried if one.balanced), None)  # the largest, or the nearest to one half
    assert wanted is None or found.threshold == wanted.threshold
    assert wanted or abs(found.accuracy - 0.5) == pytest.approx(least)


def test_a_balanced_filter_has_balanced_wins_not_only_a_balanced_mean() -> None:
    """Many small preferences for the true caption and few large ones for the foil: the mean is zero, but the model
    wins 60 % (p = 6e-15 on VL-CheckList size, and the filter called it neutral)."""
    rng = np.random.default_rng(0)
    gaps = np.r_[rng.uniform(0.01, 0.2, 1200), -rng.uniform(0.1, 0.35, 800)]
    found = syntaxbias(gaps)
    wins = gaps[found.keep] > 0
    assert found.balanced
    assert found.p_value >= 0.05
    assert 0.45 < found.low < wins.mean() < found.high < 0.55
    assert found.keep.sum() > 1500
    prefers_foils = syntaxbias(np.r_[np.full(40, 0.5), np.full(400, -0.5)], threshold=1.0)
    assert prefers_foils.mean < 0
    assert not prefers_foils.balanced


def test_the_papers_p_value_decides_the_threshold() -> None:
    """SADE, section 6.2: p < 1e-5. Of 600 wins and 400 losses, 600 have p = 1e-10; scipy says how many may stay."""
    rng = np.random.default_rng(1)
    gaps = np.r_[rng.uniform(0.01, 1, 600), -rng.uniform(0.01, 1, 400)]
    found = syntaxbias(gaps, p_value=1e-5)
    wins = int((gaps[found.keep] > 0).sum())
    tail = [stats.binomtest(w, w + 400, alternative="greater").pvalue for w in (wins, wins + 1)]
    assert tail[0] >= 1e-5 > tail[1]
    assert (found.test, found.limit, int((gaps[found.keep] < 0).sum())) == ("one-sided sign test", 1e-5, 400)
    assert found.p_value == pytest.approx(tail[0])
    assert syntaxbias(gaps[:-390], p_value=1e-5).keep.sum() > 10  # ten losses: some wins stay
    assert syntaxbias(-gaps, p_value=1e-5).keep.all()  # it prefers the foils: nothing to take from the true captions
    assert not syntaxbias(np.array([0.0, 0.0]), p_value=1e-5).keep.sum() - 2
    nothing = syntaxbias(np.ones(30), p_value=1e-5)  # always preferred: no threshold leaves anything
    assert (nothing.keep.sum(), nothing.threshold, nothing.p_value) == (0, -1.0, 1.0)
    assert np.isnan([nothing.mean, nothing.accuracy, nothing.low, nothing.high]).all()


def test_a_given_threshold_is_used_as_it_is() -> None:
    found = syntaxbias(np.array([4.0, 1.0, -2.0]), threshold=0.3)
    assert found.keep.tolist() == [False, True, True]
