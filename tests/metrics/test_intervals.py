"""Intervals and distribution functions against scipy, statsmodels and plain resampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from creperie.core import UsageError
from creperie.metrics import (
    MetricSettings,
    bounded_interval,
    difference_confidence,
    macro,
    normal_quantile,
    of_outcomes,
    ratio,
    share_interval,
    student_quantile,
    student_two_sided,
    wilson,
)
from creperie.metrics.detection import f1
from creperie.metrics.intervals import share_confidence, two_share_confidence
from creperie.metrics.likely import _log_likelihood
from creperie.metrics.special import fair_coin_tail


@given(n=st.integers(1, 5000), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_wilson_is_that_of_statsmodels(n: int, share: float, level: float) -> None:
    right = round(share * n)
    low, high = proportion_confint(right, n, alpha=1 - level, method="wilson")
    assert wilson(right, n, level) == pytest.approx((low, high), abs=1e-9)


def test_wilson_of_nothing_is_not_a_number() -> None:
    assert all(math.isnan(v) for v in wilson(0, 0))


@pytest.mark.parametrize("right", [60, 57, 30])
def test_a_shared_image_never_narrows_an_interval(right: int) -> None:
    answers, ones, own = (np.arange(60) < right).astype(float), np.ones(60), np.arange(60)
    shared = np.maximum(own - 1, 0)  # the first two items have one image
    for judged in (lambda c: share_confidence(answers, ones, c), lambda c: difference_confidence(ones, answers, c)):
        (low, high), (lowest, highest) = (judged(c).ends(0.95) for c in (own, shared))
        assert lowest <= low
        assert highest >= high


def test_f1_combines_the_intervals_of_its_two_shares() -> None:
    """90 of 100 captions and 80 of 100 foils are judged right, one independently of the other."""
    item, one = np.arange(100), np.ones(100)
    columns = np.stack([item % 10 > 0, item // 10 > 1, one, one], axis=1)
    (low, high), (foil_low, foil_high) = wilson(90, 100), wilson(80, 100)
    value = 180 / (90 + 20 + 100)
    others = [
        [2 * r / (r + 1 - s + 1) - value for r, s in ((a, 0.8), (0.9, b))]
        for a, b in ((low, foil_low), (high, foil_high))
    ]
    ends = value - math.hypot(*others[0]), value + math.hypot(*others[1])
    assert two_share_confidence(columns, f1, item).ends(0.95) == pytest.approx(ends)


def test_f1_of_clusters_that_fail_together_reaches_lower_than_what_its_items_lose() -> None:
    """One image in sixty is poor; that one foil in ten is wrong everywhere must not hide it."""
    own, one = np.arange(480) // 8, np.ones(480)
    columns = np.stack([own > 0, (own > 0) & (np.arange(480) % 10 > 0), one, one], axis=1)
    reached = two_share_confidence(columns, f1, own).interval(0.95)
    assert reached.low < bounded_interval(columns, f1, own, MetricSettings()).low
    assert reached.method == "mover"


def test_the_ends_of_distributions() -> None:
    assert [fair_coin_tail(k, 4) for k in (-1, 0, 3, 4, 5)] == [0, 1 / 16, 15 / 16, 1, 1]
    assert fair_coin_tail(0, 1010) * 2.0**1010 == pytest.approx(1)
    assert [normal_quantile(p) for p in (0, 0.5, 1)] == [-math.inf, 0, math.inf]
    assert (student_two_sided(math.inf, 3), student_two_sided(-1, 1)) == (0, pytest.approx(0.5))  # Cauchy's quartiles
    assert type(student_quantile(np.float64(0.975), 4.25)) is float


# -- shares in clusters ---------------------------------------------------------------------------------------------


def clustered(seed: int, clusters: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Items whose outcomes lean to their cluster's side, as items that share an image do."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, clusters)
    own = np.repeat(np.arange(clusters), sizes)
    lean = rng.beta(1.5, 1, clusters)
    return (rng.random(len(own)) < lean[own]).astype(float), own


def test_intervals_do_not_depend_on_the_order_of_items() -> None:
    right, own = clustered(2, 200, 4)
    order = np.random.default_rng(0).permutation(len(own))
    first = share_interval(right, own)
    again = share_interval(right[order], 7 * own[order] - 50)
    assert (again.low, again.high) == pytest.approx((first.low, first.high), abs=1e-12)


def test_items_that_lean_together_have_a_wider_interval() -> None:
    own = np.repeat(np.arange(100), 5)
    right = np.repeat(np.random.default_rng(0).random(100) < 0.6, 5).astype(float)
    low, high = wilson(right.sum(), 500)
    found = share_interval(right, own)
    assert (found.high - found.low) / (high - low) == pytest.approx(math.sqrt(5), rel=0.1)


@pytest.mark.parametrize(("clusters", "most"), [(8, 12), (15, 4), (80, 4), (400, 3)])
@pytest.mark.slow
def test_the_interval_holds_the_truth_about_as_often_as_it_says(clusters: int, most: int) -> None:
    """95 %, give or take the three standard errors of 600 simulations; percentiles reach 80 to 88 % with 8 clusters."""
    held = 0
    for seed in range(600):
        right, own = clustered(seed, clusters, most)
        found = share_interval(right, own)
        held += found.low <= 0.6 <= found.high  # the mean of beta(1.5, 1)
    assert 0.923 <= held / 600 <= 0.977


def test_ties_and_fractions_have_their_own_variance() -> None:
    """100 ties: not the width of 100 coins (40.4 to 59.6), and not none either; clustered or not."""
    for own in (None, np.repeat(np.arange(20), 5)):
        found = share_interval(np.full(100, 0.5), own)
        assert 0.48 < found.low < 0.49
        assert 0.51 < found.high < 0.52
    # Half of the items tied: a coin's variance halved, so the width is that of 1/√2.
    values = np.r_[np.zeros(500), np.full(1000, 0.5), np.ones(500)]
    half = share_interval(values, None)
    low, high = wilson(1000, 2000)
    assert (half.high - half.low) / (high - low) == pytest.approx(math.sqrt(0.5), rel=0.01)


def test_a_share_is_a_bounded_statistic() -> None:
    rng = np.random.default_rng(0)
    right, own = (rng.random(300) < 0.8).astype(float), rng.integers(0, 40, 300)
    columns = np.stack([right, np.ones(300)], axis=1)
    found = bounded_interval(columns, ratio, own, MetricSettings())
    wanted = share_interval(right, own)
    assert found.low < wanted.low < wanted.high < found.high  # fewer degrees of freedom: a few clusters move it most
    assert found.high - found.low < 1.25 * (wanted.high - wanted.low)
    wanted = found
    scaled = bounded_interval(columns, lambda s: 5 - 3 * ratio(s), own, MetricSettings(), (2, 5))
    assert (scaled.low, scaled.high) == pytest.approx((5 - 3 * wanted.high, 5 - 3 * wanted.low), abs=2e-3)
    empty = bounded_interval(columns, lambda s: np.full(s.shape[:-1], np.nan), own, MetricSettings())
    assert np.isnan(empty.low)
    assert empty.method == "none (nothing to average)"


def test_the_beta_binomial_likelihood_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 30, 12).astype(float)
    right = rng.binomial(n.astype(int), 0.8).astype(float)
    shares, correlations = np.array([0.6, 0.8]), np.array([0.05, 0.3])
    found = _log_likelihood(right, n, shares, correlations)
    for i, rho in enumerate(correlations):
        for j, mu in enumerate(shares):
            strength = 1 / rho - 1
            each = stats.betabinom.logpmf(right, n, mu * strength, (1 - mu) * strength)
            ways = special.gammaln(n + 1) - special.gammaln(right + 1) - special.gammaln(n - right + 1)
            assert found[i, j] == pytest.approx((each - ways).sum())


def test_clusters_in_which_no_poor_one_was_drawn_do_not_look_certain() -> None:
    """15 clusters of 20 at 97 %: 90 % with a correlation of 0.4 gives such data in one set of three."""
    right = np.array([20, 20, 20, 19, 20, 20, 18, 20, 20, 20, 17, 20, 20, 20, 20.0])
    found = share_confidence(right, np.full(15, 20.0)).interval(0.95)
    assert found.low < 0.94
    assert wilson(294, 300)[0] > 0.95
    turned = share_confidence(20 - right, np.full(15, 20.0)).interval(0.95)
    assert [1 - turned.high, 1 - turned.low] == pytest.approx([found.low, found.high], abs=1e-6)


def test_half_of_a_mean_on_one_item_has_no_interval() -> None:
    """The jackknife gave it no variance at all: the mean of 1 and 300 of 600 was 0.75 [0.73, 0.77]."""
    outcomes = np.r_[1, np.arange(600) % 2].astype(np.int8)
    row = macro(of_outcomes(outcomes, "itt"), np.r_[0, np.ones(600)])
    assert row.accuracy == 0.75
    assert math.isnan(row.low)
    assert row.interval == "none (one image decides: the smallest subset has 1 items)"


def test_subsets_of_one_item_each_are_as_uncertain_as_their_items_together() -> None:
    """Each alone has no variance of its own: what differs between them says how much they vary."""
    outcomes = np.r_[np.arange(20) % 2, np.arange(600) % 2].astype(np.int8)
    row = macro(of_outcomes(outcomes, "itt"), np.r_[np.arange(20), np.full(600, 20)])
    low, high = wilson(10, 20)
    assert row.accuracy == 0.5
    assert row.high - row.low == pytest.approx((high - low) * 20 / 21, rel=0.2)


def people(answers: np.ndarray) -> Any:
    """The average of several people's shares, who all answered the same items (a row each)."""
    rows, items = answers.shape
    own = np.tile(np.arange(items), rows)
    return macro(of_outcomes(answers.ravel().astype(np.int8), "itt"), np.repeat(np.arange(rows), items), clusters=own)


def test_people_who_answer_the_same_items_do_not_make_them_certain() -> None:
    """Two who contradict each other on four items had 50 % [50.0, 50.0], and a warning of a negative variance; two who
    are wrong on all had 0 % [0, 100]. Four items say at most what Wilson says of four."""
    apart = people(np.array([[1, 1, 0, 0], [0, 0, 1, 1]]))
    low, high = wilson(4, 8)
    assert apart.low <= low < high <= apart.high
    for items in (3, 4, 28):
        wrong = people(np.zeros((2, items)))
        assert wrong.low == 0
        assert wilson(0, items)[1] - 0.003 <= wrong.high < 0.85


@pytest.mark.parametrize(("mean", "alike"), [(0.1, 0.1), (0.5, 0.9), (0.8, 0.5)])
def test_the_average_over_people_holds_the_truth(mean: float, alike: float) -> None:
    """Simulated: two people on 4 items whose difficulty they share (intraclass correlation `alike`, beta-binomial). By
    Wilson's interval of 4, which Student's t is wider than, it would be 88 % at one half."""
    rng = np.random.default_rng(7)
    share = rng.beta(mean * (1 / alike - 1), (1 - mean) * (1 / alike - 1), (150, 4))
    found = [people(rng.random((2, 4)) < row) for row in share]
    assert np.mean([row.low <= mean <= row.high for row in found]) >= 0.93


def test_subsets_that_share_images_are_correlated() -> None:
    rng = np.random.default_rng(0)
    lean = rng.beta(0.7, 0.3, 40)
    right = np.concatenate([rng.random(40) < lean for _ in range(4)]).astype(np.int8)
    subset = np.repeat(np.arange(4), 40)
    apart = macro(of_outcomes(right, "itt"), subset)
    together = macro(of_outcomes(right, "itt"), subset, clusters=np.tile(np.arange(40), 4))
    assert together.high - together.low > 1.4 * (apart.high - apart.low)


def test_p_value_and_interval_agree_at_every_level() -> None:
    right, own = clustered(3, 20, 6)
    found = share_confidence(right, np.ones(len(right)), own)
    for value in (0.3, 0.5, 0.55, found.value):
        p = found.p_against(value)
        wider, narrower = found.interval(min(1 - p + 1e-6, 1 - 1e-12)), found.interval(max(1 - p - 1e-6, 1e-9))
        assert wider.low <= value <= wider.high
        assert value == found.value or not narrower.low < value < narrower.high


def test_the_p_value_of_independent_items_is_that_of_the_score_test() -> None:
    found = share_confidence(np.r_[np.ones(62), np.zeros(38)], np.ones(100))
    assert found.p_against(0.5) == pytest.approx(2 * stats.norm.sf(0.12 / 0.05), rel=1e-6)


@given(right=st.lists(st.booleans(), min_size=1, max_size=40))
def test_independent_items_get_wilson(right: list[bool]) -> None:
    values = np.array(right, dtype=float)
    for own in (None, np.arange(len(values))[::-1]):
        found = share_interval(values, own)
        assert (found.low, found.high) == wilson(values.sum(), len(values))
        assert found.method == "wilson"


def test_a_perfect_score_is_not_certain() -> None:
    found = share_interval(np.ones(60), np.repeat(np.arange(20), 3))
    assert wilson(20, 20)[0] < found.low < wilson(60, 60)[0]
    assert found.high == 1


def test_two_clusters_are_enough_for_an_interval() -> None:
    found = share_confidence(np.array([6.0, 8]), np.full(2, 10.0), np.arange(2)).interval(0.95)
    assert found.low < 0.1 < 0.9 < found.high


def test_what_cannot_be_said_is_not_a_number() -> None:
    one = share_interval(np.array([1.0, 0.0]), np.zeros(2))
    assert math.isnan(one.low)
    assert one.method == "none (one cluster)"
    none = share_confidence(np.zeros(2), np.zeros(2)).interval(0.95)
    assert math.isnan(none.low)
    assert none.method == "none (nothing to average)"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"level": 95}, "0.95 for 95"),
        ({"ties": "lost"}, "unknown tie rule 'lost'"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MetricSettings(**wrong)  # type: ignore[arg-type]
