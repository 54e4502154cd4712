"""Repair of surface style, and SADE's filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from creperie.bench import Item, choice, from_items
from creperie.debias.repair import Style, repair, restyle
from creperie.debias.syntaxbias import syntaxbias, syntaxbias_scores


@given(st.text(max_size=60), st.booleans(), st.booleans())
def test_restyling_twice_is_restyling_once(text: str, period: bool, capital: bool) -> None:
    style = Style(period, capital)
    once = restyle(text, style)
    assert restyle(once, style) == once


@given(st.lists(st.sampled_from(["a", "dog", "runs", "x-ray", "it's", "3"]), min_size=1, max_size=8))
def test_restyling_keeps_the_words(words: list[str]) -> None:
    text = " ".join(words)
    assert restyle(text + " . ").lower().rstrip(".").split() == [w.lower() for w in words]


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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 3)), min_size=3, max_size=60))
def test_searched_threshold_passes_the_named_test(gaps: list[float]) -> None:
    found = syntaxbias(np.array(gaps))
    scores = syntaxbias_scores(np.array(gaps))
    kept = scores[found.keep]
    assert (kept <= found.threshold).all()
    assert (scores[~found.keep] > found.threshold).all()
    if len(kept) > 1 and np.ptp(kept) > 1e-9:
        expected = stats.ttest_1samp(kept, 0.0).pvalue
        assert found.p_value == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert expected >= 0.05 - 1e-9 or kept.mean() <= 0


def test_a_given_threshold_is_used_as_it_is() -> None:
    found = syntaxbias(np.array([4.0, 1.0, -2.0]), threshold=0.3)
    assert found.keep.tolist() == [False, True, True]
