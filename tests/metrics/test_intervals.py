"""Intervals and distribution functions against scipy, statsmodels and plain resampling."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from creperie.core.errors import UsageError
from creperie.metrics import MetricSettings, macro, of_outcomes, percent_agreement, wilson
from creperie.metrics.detection import balanced
from creperie.metrics.intervals import bootstrap, bounded_interval, cluster_sums, ratio, resampled, share_interval
from creperie.metrics.special import (
    beta_cdf,
    chi2_tail,
    fair_coin_tail,
    normal_cdf,
    normal_quantile,
    student_quantile,
    student_two_sided,
)

#: Draws items of so many clusters and says where the true value lies.
Draw = Callable[[np.random.Generator, np.ndarray], tuple[float, float]]


@given(n=st.integers(1, 5000), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_wilson_is_that_of_statsmodels(n: int, share: float, level: float) -> None:
    right = round(share * n)
    low, high = proportion_confint(right, n, alpha=1 - level, method="wilson")
    assert wilson(right, n, level) == pytest.approx((low, high), abs=1e-9)


def test_wilson_of_nothing_is_not_a_number() -> None:
    assert all(math.isnan(v) for v in wilson(0, 0))


@given(p=st.floats(1e-12, 1 - 1e-12))
def test_normal_quantile(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(special.ndtri(p), rel=1e-9, abs=1e-12)


@given(x=st.floats(-30, 30))
def test_normal_and_chi_squared_tails(x: float) -> None:
    assert normal_cdf(x) == pytest.approx(special.ndtr(x), rel=1e-9, abs=1e-300)
    assert chi2_tail(abs(x)) == pytest.approx(stats.chi2.sf(abs(x), 1), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 11, 100, 999, 1000, 1001, 5000, 60_000])
def test_fair_coin_tail_is_the_binomial_distribution(n: int) -> None:
    for k in sorted({-1, 0, 1, n // 3, int(n / 2 - math.sqrt(n)), n // 2, n - 1, n, n + 1}):
        assert fair_coin_tail(k, n) == pytest.approx(stats.binom.cdf(k, n, 0.5), rel=1e-8, abs=1e-300)
    assert fair_coin_tail(0, 1010) * 2.0**1010 == pytest.approx(1)


@given(x=st.floats(0, 1), a=st.floats(0.1, 300), b=st.floats(0.1, 300))
def test_incomplete_beta(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-12)


@given(t=st.floats(-50, 50), df=st.integers(1, 400))
def test_student_tail(t: float, df: int) -> None:
    assert student_two_sided(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), rel=1e-7, abs=1e-300)
    assert student_quantile(0.975, df + 0.5) == pytest.approx(stats.t.ppf(0.975, df + 0.5), rel=1e-7)


# -- the cluster bootstrap ------------------------------------------------------------------------------------------


def clustered(seed: int, clusters: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Items whose outcomes lean to their cluster's side, as items that share an image do."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, clusters)
    own = np.repeat(np.arange(clusters), sizes)
    lean = rng.beta(1.5, 1, clusters)
    return (rng.random(len(own)) < lean[own]).astype(float), own


def naive_bootstrap(right: np.ndarray, own: np.ndarray, how: MetricSettings) -> tuple[float, float]:
    rng = np.random.default_rng(99)
    members = [np.flatnonzero(own == c) for c in np.unique(own)]
    values = []
    for _ in range(how.resamples):
        picks = rng.integers(0, len(members), len(members))
        values.append(right[np.concatenate([members[p] for p in picks])].mean())
    low, high = np.quantile(values, [(1 - how.level) / 2, (1 + how.level) / 2])
    return float(low), float(high)


@pytest.mark.parametrize(("clusters", "most"), [(30, 4), (400, 3)])  # both ways of drawing
def test_cluster_bootstrap_is_plain_resampling(clusters: int, most: int) -> None:
    right, own = clustered(1, clusters, most)
    how = MetricSettings(resamples=4000, interval="percentile")
    found = share_interval(right, np.ones(len(own)), own, how)
    assert (found.low, found.high) == pytest.approx(naive_bootstrap(right, own, how), abs=0.012)
    assert found.method == "cluster bootstrap (percentile)"


def test_both_ways_of_drawing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    right, own = clustered(5, 300, 3)
    sums = cluster_sums(np.stack([right, np.ones(len(own))], axis=1), own)
    assert len(np.unique(sums, axis=0)) * 8 < len(sums)  # drawn by kind …
    by_kind = ratio(resampled(sums, MetricSettings(resamples=20_000)))
    apart = np.concatenate([sums, 1e-9 * np.arange(300.0)[:, None]], axis=1)  # … and, all different, by cluster
    by_cluster = ratio(resampled(apart, MetricSettings(resamples=20_000)))
    assert by_kind.mean() == pytest.approx(by_cluster.mean(), abs=0.001)
    assert by_kind.std() == pytest.approx(by_cluster.std(), rel=0.03)
    monkeypatch.setattr("creperie.metrics.intervals.MOST_DRAWS", 100)
    assert len(resampled(apart, MetricSettings(resamples=20_000))) == 1000
    assert bootstrap(apart, ratio, MetricSettings()).method == "cluster bootstrap (percentile, 1000 resamples)"


def test_bca_is_that_of_scipy() -> None:
    rng = np.random.default_rng(4)
    sample = rng.exponential(size=60)
    reference = stats.bootstrap(
        (sample,), np.mean, n_resamples=40_000, method="BCa", rng=np.random.default_rng(0), vectorized=True
    ).confidence_interval
    found = bootstrap(np.stack([sample, np.ones(60)], axis=1), ratio, MetricSettings(interval="bca", resamples=40_000))
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.012)
    plain = bootstrap(np.stack([sample, np.ones(60)], axis=1), ratio, MetricSettings(resamples=20_000))
    assert found.high > plain.high + 0.01  # the correction for skew is there


def test_intervals_are_seeded_and_do_not_depend_on_the_order_of_items() -> None:
    right, own = clustered(2, 200, 4)
    order = np.random.default_rng(0).permutation(len(own))
    for kind in ("auto", "percentile"):
        how = MetricSettings(seed=3, interval=kind)
        first = share_interval(right, np.ones(len(own)), own, how)
        again = share_interval(right[order], np.ones(len(own)), 7 * own[order] - 50, how)
        assert (again.low, again.high) == pytest.approx((first.low, first.high), abs=1e-12)
    other = share_interval(right, np.ones(len(own)), own, MetricSettings(seed=4, interval="percentile"))
    assert other != first


def test_items_that_lean_together_have_a_wider_interval() -> None:
    own = np.repeat(np.arange(100), 5)
    right = np.repeat(np.random.default_rng(0).random(100) < 0.6, 5).astype(float)
    low, high = wilson(right.sum(), 500)
    found = share_interval(right, np.ones(500), own, MetricSettings())
    assert (found.high - found.low) / (high - low) == pytest.approx(math.sqrt(5), rel=0.1)


@pytest.mark.parametrize(("clusters", "most"), [(8, 12), (15, 4), (80, 4), (400, 3)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(clusters: int, most: int) -> None:
    """95 %, give or take the three standard errors of 600 simulations; percentiles reach 80 to 88 % with 8 clusters."""
    held = 0
    for seed in range(600):
        right, own = clustered(seed, clusters, most)
        found = share_interval(right, np.ones(len(own)), own, MetricSettings())
        held += found.low <= 0.6 <= found.high  # the mean of beta(1.5, 1)
    assert 0.923 <= held / 600 <= 0.977


def test_ties_and_fractions_have_their_own_variance() -> None:
    """100 ties: not the width of 100 coins (40.4 to 59.6), and not none either; clustered or not."""
    for own in (None, np.repeat(np.arange(20), 5)):
        found = share_interval(np.full(100, 0.5), np.ones(100), own, MetricSettings())
        assert 0.48 < found.low < 0.49
        assert 0.51 < found.high < 0.52
    # Half of the items tied: a coin's variance halved, so the width is that of 1/√2.
    values = np.r_[np.zeros(500), np.full(1000, 0.5), np.ones(500)]
    half = share_interval(values, np.ones(2000), None, MetricSettings())
    low, high = wilson(1000, 2000)
    assert (half.high - half.low) / (high - low) == pytest.approx(math.sqrt(0.5), rel=0.01)


def _macro_of(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float]:
    right = rng.random(len(own)) < rng.beta(3.6, 0.4, 8)[own]
    row = macro(of_outcomes(right.astype(np.int8), "itt"), np.arange(len(own)) % 2, clusters=own)
    return row.low, row.high


def _balanced_of(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float]:
    lean, one = rng.beta(3.6, 0.4, 8)[own], np.ones(len(own))
    sums = cluster_sums(np.stack([rng.random(len(own)) < lean, rng.random(len(own)) < lean, one, one], axis=1), own)
    found = bounded_interval(sums, balanced, sums[:, 2], MetricSettings())
    return found.low, found.high


def _agreement_of(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float]:
    lean = rng.beta(3.6, 0.4, 8)[own]
    found = percent_agreement(np.stack([rng.random(len(own)) < lean, np.ones(len(own))], axis=1), own)
    return found.low, found.high


def _rank_of(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float]:
    sums = cluster_sums(np.stack([2 - (rng.random(len(own)) < rng.beta(3.6, 0.4, 8)[own]), own >= 0], axis=1), own)
    found = bounded_interval(sums, ratio, sums[:, 1], MetricSettings(), (1, 2))
    return 2 - found.high, 2 - found.low


@pytest.mark.parametrize("draw", [_macro_of, _balanced_of, _agreement_of, _rank_of])
@pytest.mark.parametrize("items", [60, 400])
def test_other_statistics_of_eight_clusters_hold_their_level(draw: Draw, items: int) -> None:
    """A truth of 90 % (1.1 for a rank), of which eight clusters may show no poor one; a t interval holds 88 to 91 %."""
    held = 0
    for seed in range(400):
        low, high = draw(np.random.default_rng(seed), np.arange(items) % 8)
        held += low <= 0.9 <= high
    assert 0.93 <= held / 400 <= 0.985


def test_a_share_is_a_bounded_statistic() -> None:
    rng = np.random.default_rng(0)
    right, own = (rng.random(300) < 0.8).astype(float), rng.integers(0, 40, 300)
    sums = cluster_sums(np.stack([right, np.ones(300)], axis=1), own)
    found = bounded_interval(sums, ratio, sums[:, 1], MetricSettings())
    wanted = share_interval(right, np.ones(300), own, MetricSettings())
    assert (found.low, found.high, found.method) == (
        pytest.approx(wanted.low),
        pytest.approx(wanted.high),
        wanted.method,
    )
    scaled = bounded_interval(sums, lambda s: 5 - 3 * ratio(s), sums[:, 1], MetricSettings(), (2, 5))
    assert (scaled.low, scaled.high) == (pytest.approx(5 - 3 * wanted.high), pytest.approx(5 - 3 * wanted.low))
    low, _ = wilson(40, 40)
    perfect = bounded_interval(sums, lambda s: np.ones(s.shape[:-1]), sums[:, 1], MetricSettings(), (-1, 1))
    assert (perfect.low, perfect.high) == (pytest.approx(2 * low - 1), 1.0)
    empty = bounded_interval(sums, lambda s: np.full(s.shape[:-1], np.nan), sums[:, 1], MetricSettings())
    assert np.isnan(empty.low)
    assert empty.method == "none (nothing to average)"


def test_equal_halves_have_an_interval_whatever_rounding_does() -> None:
    """Sums that come out a hair below one half, and so does their mirror image."""
    sums = np.array([[0.3, 0.4, 0.0, 0.0, 0.5, 0.0], [0.3, 0.4, 0.7, 0.1, 0.7, 0.2]]).T
    assert 2 * sums[:, 0].sum() < sums[:, 1].sum() > 2 * (sums[:, 1] - sums[:, 0]).sum()
    found = bounded_interval(sums, ratio, sums[:, 1], MetricSettings())
    assert found.low < 0.5 < found.high


@settings(max_examples=40, deadline=None)
@given(right=st.lists(st.booleans(), min_size=1, max_size=40))
def test_independent_items_get_wilson(right: list[bool]) -> None:
    values = np.array(right, dtype=float)
    for own in (None, np.arange(len(values))[::-1]):
        found = share_interval(values, np.ones(len(values)), own, MetricSettings())
        assert (found.low, found.high) == wilson(values.sum(), len(values))
        assert found.method == "wilson"


def test_a_perfect_score_is_not_certain() -> None:
    found = share_interval(np.ones(60), np.ones(60), np.repeat(np.arange(20), 3), MetricSettings())
    assert (found.low, found.high) == wilson(20, 20)
    assert found.method == "wilson (clusters)"


def test_unequal_clusters_carry_what_kish_says() -> None:
    right, n = np.tile([3.0, 1, 0, 1, 0, 0], 10), np.tile([4.0, 1, 1, 1, 1, 1], 10)
    found = share_interval(right, n, np.arange(60), MetricSettings())
    share, variance = 50 / 90, 59 / 60 * (((50 - right) / (90 - n) - 50 / 90) ** 2).sum()
    effective, t = share * (1 - share) / variance, stats.t.ppf(0.975, 90**2 / 210 - 1)
    ends = np.roots([1 + t**2 / effective, -2 * share - t**2 / effective, share**2])  # Wilson's equation in the share
    assert [found.low, found.high] == pytest.approx(sorted(ends))


def test_few_clusters_near_all_right_reach_low_and_not_too_high() -> None:
    """Wilson's interval of 54 of 60 in 8 clusters held the truth in 98 % of sets, and never missed it from above."""
    right, n = np.array([8, 8, 8, 7, 7, 7, 6, 3]), np.array([8, 8, 8, 8, 7, 7, 7, 7])
    own, wins = np.repeat(np.arange(8), n), np.concatenate([np.arange(k) < r for r, k in zip(right, n)]).astype(float)
    found = share_interval(wins, np.ones(60), own, MetricSettings())
    share, variance = 54 / 60, 7 / 8 * (((54 - right) / (60 - n) - 54 / 60) ** 2).sum()
    effective, df = share * (1 - share) / variance, 60**2 / (n**2).sum() - 1
    t, one_sided = stats.t.ppf([0.975, 0.95], df)
    ends = np.roots([1 + one_sided**2 / effective, -2 * share - one_sided**2 / effective, share**2])
    # as if a tenth of an average cluster (2 · 0.9 − 1 = 0.8 of an eighth) had been drawn besides, all of it wrong
    more, sizes = np.r_[right, 0], np.r_[n, 0.1 * 60 / 8]
    lower = 54 / sizes.sum()
    variance = 8 / 9 * (((54 - more) / (sizes.sum() - sizes) - lower) ** 2).sum()
    spread = t**2 * variance / lower / (1 - lower)
    assert [found.low, found.high] == pytest.approx(
        [min(np.roots([1 + spread, -2 * lower - spread, lower**2])), max(ends)]
    )
    assert effective * (1 - found.high) / found.high < t**2  # were that the truth, all right would not be odd
    turned = share_interval(1 - wins, np.ones(60), own, MetricSettings())
    assert [1 - turned.high, 1 - turned.low] == pytest.approx([found.low, found.high])


def test_eight_large_clusters_of_which_poor_ones_are_rare() -> None:
    """Leans of beta(3.6, 0.4): one set in seven has no poor cluster. Wilson's equation alone held 90 % of the time."""
    rng, own = np.random.default_rng(6), np.repeat(np.arange(8), 100)
    wins = rng.random((1500, 800)) < np.repeat(rng.beta(3.6, 0.4, (1500, 8)), 100, axis=1)
    found = [share_interval(right.astype(float), np.ones(800), own, MetricSettings()) for right in wins]
    assert 0.93 <= np.mean([interval.low <= 0.9 <= interval.high for interval in found]) <= 0.975


def test_two_clusters_are_enough_for_an_interval() -> None:
    sums = np.array([[6.0, 10], [8, 10]])
    assert bootstrap(sums, ratio, MetricSettings()).low == 0.6
    found = share_interval(*sums.T, np.arange(2), MetricSettings())
    assert found.low < 0.1 < 0.9 < found.high


def test_what_cannot_be_said_is_not_a_number() -> None:
    one = share_interval(np.array([1.0, 0.0]), np.ones(2), np.zeros(2), MetricSettings())
    assert math.isnan(one.low)
    assert one.method == "none (one cluster)"
    none = share_interval(np.zeros(2), np.zeros(2), None, MetricSettings())
    assert math.isnan(none.low)
    assert none.method == "none (nothing to average)"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"level": 95}, "0.95 for 95"),
        ({"ties": "lost"}, "unknown tie rule 'lost'"),
        ({"interval": "percentil"}, "did you mean 'percentile'"),
        ({"resamples": 0}, "too few"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MetricSettings(**wrong)  # type: ignore[arg-type]
