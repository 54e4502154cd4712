"""Paired tests, corrections, correlations and rank tables against scipy, statsmodels and hand computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.multitest import multipletests

from creperie.core import UsageError
from creperie.metrics import (
    HIT,
    MISS,
    TIE,
    VOID,
    MetricSettings,
    aligned,
    compare,
    compare_subsets,
    equivalence,
    holm,
    mcnemar,
    pearson,
    rank_table,
    sign_flip_p,
    spearman,
)
from creperie.metrics.correlation import ranks_of


@given(b=st.integers(0, 400), c=st.integers(0, 400))
def test_mcnemar_is_that_of_statsmodels(b: int, c: int) -> None:
    found = mcnemar(b, c)
    assert found.p == pytest.approx(float(sm_mcnemar([[10, b], [c, 10]], exact=True).pvalue), rel=1e-9)
    assert found.method == "exact"


@pytest.mark.parametrize(("b", "c"), [(0, 0), (4000, 4200), (30_000, 30_400), (600_000, 601_500)])
def test_mcnemar_is_exact_whatever_the_number_of_items(b: int, c: int) -> None:
    assert mcnemar(b, c).p == pytest.approx(stats.binomtest(b, b + c).pvalue if b + c else 1.0, rel=1e-8)


@pytest.mark.parametrize("size", [1, 2, 5, 20])  # few: statsmodels collects garbage at every call
def test_holm_is_that_of_statsmodels(size: int) -> None:
    p = np.round(np.random.default_rng(size).random(size) ** 3, 2).tolist()
    assert holm(p) == pytest.approx(list(multipletests(p, method="holm")[1]))


def test_holm_passes_over_what_is_not_a_number() -> None:
    assert holm([0.02, math.nan, 0.03])[0::2] == pytest.approx([0.04, 0.04])
    assert math.isnan(holm([0.02, math.nan])[1])


# -- paired comparison ----------------------------------------------------------------------------------------------


def two_models(seed: int, n: int = 400, gain: float = 0.08) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, n // 4, n)
    ease = rng.normal(size=n // 4)[clusters] + rng.normal(size=n)
    a = np.where(ease + rng.normal(size=n) / 3 + 3 * gain > 0, HIT, MISS).astype(np.int8)
    b = np.where(ease + rng.normal(size=n) / 3 > 0, HIT, MISS).astype(np.int8)
    return a, b, clusters


def test_the_paired_interval_is_close_to_plain_resampling_of_clusters() -> None:
    a, b, clusters = two_models(1)
    found = compare(a, b, clusters=clusters)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    values = []
    for _ in range(3000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        values.append(np.mean(a[drawn] == HIT) - np.mean(b[drawn] == HIT))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.008)
    assert found.difference == pytest.approx(np.mean(a == HIT) - np.mean(b == HIT))
    assert found.clusters == len(members)
    assert found.mcnemar.only_a == int(((a == HIT) & (b != HIT)).sum())


def test_the_p_value_agrees_with_the_interval() -> None:
    for seed in range(8):
        a, b, clusters = two_models(seed, gain=0.03)
        found = compare(a, b, clusters=clusters)
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


@pytest.mark.parametrize("sizes", [(3, 12), (3, 5, 100)])
def test_the_p_value_agrees_with_the_interval_of_small_subsets(sizes: tuple[int, ...]) -> None:
    """At high levels the interval became narrower again: p = 2e-08 beside an interval from −0.59 to 0.27."""
    subsets = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        clusters = rng.permutation(len(subsets)) // 5
        a, b = (np.where(rng.random(len(subsets)) < share, HIT, MISS) for share in (0.6, 0.85))
        found = compare_subsets(a, b, subsets, clusters=clusters)
        means = [np.mean([np.mean(x[subsets == k] == HIT) for k in range(len(sizes))]) for x in (a, b)]
        seen = (found.accuracy_a, found.accuracy_b, found.difference)
        assert seen == pytest.approx((*means, means[0] - means[1]))
        assert math.isnan(found.p) or (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_a_mean_over_subsets_is_tested_by_all_wins_and_losses_together() -> None:
    """6 : 0 and 1 : 1 of 50 items each: the difference 0.06 by hand over √(6 + 2) / 100, Student's t with 99 degrees;
    intervals of each subset, joined, gave 0.049."""
    gap = np.zeros(100)
    gap[:6], gap[50:52] = 1, (1, -1)
    a, b = (np.where(sign * gap > 0, HIT, MISS) for sign in (1, -1))
    found = compare_subsets(a, b, np.repeat([0, 1], 50), clusters=np.arange(100))
    assert found.difference == pytest.approx(0.06)
    assert found.p == pytest.approx(2 * stats.t.sf(6 / math.sqrt(8), 99), rel=1e-3)


def test_equal_models_differ_as_rarely_as_they_should() -> None:
    low = sum(compare(*two_models(s, gain=0)[:2]).p < 0.1 for s in range(100))
    assert 2 <= low <= 20


@pytest.mark.parametrize("share", [0.9, 0.95])
@pytest.mark.slow
def test_differences_over_eight_large_clusters_of_which_poor_ones_are_rare(share: float) -> None:
    """The second model is the first on half of the items, 5 points worse in all: held 89 and 87 % before."""
    rng, own, held = np.random.default_rng(8), np.repeat(np.arange(8), 250), 0
    for lean in rng.beta(4 * share, 4 * (1 - share), (200, 8)):
        a = (rng.random(2000) < np.repeat(lean, 250)).astype(int)
        b = np.where(rng.random(2000) < 0.5, rng.random(2000) < share - 0.1, a).astype(int)
        found = compare(a, b, clusters=own)
        assert found.low <= found.difference <= found.high
        held += found.low <= 0.05 <= found.high
    assert 0.93 <= held / 200 <= 0.995


def test_only_items_that_both_cover_are_compared() -> None:
    a = np.array([HIT, HIT, VOID, TIE, MISS], dtype=np.int8)
    b = np.array([MISS, VOID, HIT, MISS, TIE], dtype=np.int8)
    found = compare(a, b, settings=MetricSettings(ties="half"))
    assert found.n == 3
    assert (found.accuracy_a, found.accuracy_b) == pytest.approx((0.5, 1 / 6))
    assert (found.mcnemar.only_a, found.mcnemar.only_b) == (2, 1)
    assert compare(a, b).mcnemar == mcnemar(1, 0)


def test_a_model_against_itself() -> None:
    a, _, clusters = two_models(2)
    found = compare(a, a, clusters=clusters)
    assert (found.difference, found.p, found.mcnemar.p) == (0, 1, 1)
    # In none of 200 clusters do items differ: Clopper and Pearson's upper end is 1 − 0.025^(1/200) = 0.018.
    assert (found.low, found.high) == (pytest.approx(-0.018, abs=4e-3), pytest.approx(0.018, abs=4e-3))


def test_the_paired_p_of_independent_items_is_mcnemars() -> None:
    """The score test of the difference, without correction: (b − c)² / (b + c)."""
    a, b = np.full(600, MISS), np.full(600, MISS)
    a[:41], b[300:322] = HIT, HIT
    found, coin = compare(a, b), stats.binom(63, 0.5)
    assert found.p == pytest.approx(2 * stats.norm.sf(19 / math.sqrt(63)), rel=1e-4)
    assert found.p == pytest.approx(2 * coin.cdf(22) - coin.pmf(22), rel=0.15)  # the mid-p form of McNemar's test


@pytest.mark.slow
def test_one_model_better_in_small_clusters_the_other_in_large_ones() -> None:
    """Equal over all items. The sign-flip test, exact only where differences are symmetric, rejects 7.5 and 10 %."""
    rng, alarms = np.random.default_rng(4), 0
    for _ in range(400):
        sizes = np.r_[np.full(30, 2), np.full(6, 10)]
        own = np.repeat(np.arange(36), sizes)
        lead = np.where(sizes == 2, 0.2, -0.2)[own]
        a, b = (np.where(rng.random(120) < 0.7 + side * lead / 2, HIT, MISS) for side in (1, -1))
        alarms += compare(a, b, clusters=own).p < 0.05
    assert alarms / 400 <= 0.07


def test_the_paired_p_is_that_of_scipy() -> None:
    """Signs only: the binomial test. Numbers of many sizes: scipy's exhaustive permutation test."""
    values = np.random.default_rng(3).normal(0.4, 1, 12)
    enumerated = stats.permutation_test(
        (values, np.zeros(12)), lambda x, y: np.sum(x - y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip_p(values) == pytest.approx(float(enumerated), abs=2e-3)
    assert sign_flip_p(np.tile([1.0, -1.0, 1.0], 100)) == pytest.approx(stats.binomtest(200, 300).pvalue, rel=1e-6)
    assert 0 < sign_flip_p(np.ones(900)) < 1e-190


def test_paired_p_values_are_uniform_under_the_null_down_to_five_clusters() -> None:
    """At every level no more rejections than the level, and, with 40 clusters, about as many."""
    rng = np.random.default_rng(0)
    for clusters, least in ((5, 0.0), (12, 0.03), (40, 0.035)):
        draws = rng.integers(-3, 4, (1500, clusters)).astype(float)
        share = np.mean([sign_flip_p(d) <= 0.05 for d in draws])
        assert least <= share <= 0.062


def test_comparing_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="x has 2 items, y has 1"):
        compare(np.ones(2), np.ones(1), names=("x", "y"))
    with pytest.raises(UsageError, match="given 1 cluster labels for 2 items"):
        compare(np.ones(2), np.ones(2), clusters=np.zeros(1))
    with pytest.raises(UsageError, match="no covered item in common"):
        compare(np.array([VOID]), np.array([HIT]))


# -- correlations ---------------------------------------------------------------------------------------------------

COLUMN = st.lists(st.integers(-5, 5).map(float), min_size=4, max_size=30)


@given(x=COLUMN, data=st.data())
def test_correlations_are_those_of_scipy(x: list[float], data: st.DataObject) -> None:
    y = data.draw(st.lists(st.integers(-5, 5).map(float), min_size=len(x), max_size=len(x)))
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        found = ours(x, y)
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert math.isnan(found.value)
            continue
        reference = theirs(x, y)
        assert found.value == pytest.approx(float(reference.statistic), abs=1e-12)
        if ours is pearson or len(x) > 9:  # of fewer, all orders are counted
            assert found.p == pytest.approx(float(reference.pvalue), rel=1e-6, abs=1e-5)
        assert found.low <= found.value <= found.high
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


@pytest.mark.parametrize("y", [[1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 2, 3], [2, 1, 4, 3, 5], [1, 3, 2, 4, 6, 5]])
def test_the_p_value_of_few_ranks_counts_all_orders(y: list[int]) -> None:
    """A perfect order of four models: 2 of 24 orders, not p = 0 with an interval of [1, 1]."""
    x = list(range(len(y)))
    found = spearman(x, y)

    def far(order: np.ndarray) -> float:
        return abs(float(stats.spearmanr(order, y).statistic))

    exact = stats.permutation_test((x,), far, permutation_type="pairings", alternative="greater", n_resamples=np.inf)
    assert found.p == pytest.approx(float(exact.pvalue))
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
    assert found.low < found.high


def paired(wins: int, losses: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two models of which the first alone is right on `wins` items, the second alone on `losses`."""
    order = np.arange(n)
    return np.where(order < n - losses, HIT, MISS), np.where(order >= wins, HIT, MISS)


@pytest.mark.parametrize(("wins", "losses", "n"), [(12, 2, 44), (5, 14, 200), (4, 0, 200)])
def test_a_difference_has_the_score_interval_of_paired_shares(wins: int, losses: int, n: int) -> None:
    """At both ends the score test, its variance by a numerical search of the constrained likelihood, has z = ±1.96."""
    found = compare(*paired(wins, losses, n))

    def z(gap: float) -> float:
        def unlikely(lost: float) -> float:
            return -float(
                stats.multinomial.logpmf([wins, losses, n - wins - losses], n, [lost + gap, lost, 1 - 2 * lost - gap])
            )

        ends = (max(0.0, -gap) + 1e-9, (1 - gap) / 2 - 1e-9)
        lost = optimize.minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-10}).x
        return (wins - losses - n * gap) / math.sqrt(n * (2 * lost + gap - gap**2))

    assert (z(found.low), z(found.high)) == pytest.approx((1.96, -1.96), abs=1e-3)


def test_the_headline_of_few_discordant_items_is_the_score_test_and_holds_its_level() -> None:
    """4 : 0 of 200 is McNemar's z = 2. McNemar's exact test, conditional on the four, cannot go below 0.125 there; the
    score test's error, exact over all outcomes at 2 to 3 % discordant items, is below 5 % without that."""
    found = compare(*paired(4, 0, 200))
    assert found.p == pytest.approx(
        float(sm_mcnemar([[0, 4], [0, 196]], exact=False, correction=False).pvalue), abs=1e-4
    )
    assert found.mcnemar.p == 0.125
    rejects = {(w, k - w): compare(*paired(w, k - w, 200)).p < 0.05 for k in range(1, 19) for w in range(k + 1)}
    for differ in (0.01, 0.02, 0.025, 0.03):
        shares = stats.multinomial(200, [differ / 2, differ / 2, 1 - differ])
        assert sum(shares.pmf([w, v, 200 - w - v]) for (w, v), no in rejects.items() if no) < 0.052


@pytest.mark.parametrize(("n", "differ", "margin"), [(300, 0.06, 0.05), (500, 0.04, 0.03)])
def test_equivalence_of_nearly_identical_models_holds_its_level(n: int, differ: float, margin: float) -> None:
    """Models that differ by the margin are called equivalent in at most 5.5 % of all outcomes; 7.5 and 7.4 % before."""
    won, lost = (differ + margin) / 2, (differ - margin) / 2
    false = 0.0
    for wins in range(2 * int(n * won)):
        for losses in range(10):
            share = float(stats.multinomial.pmf([wins, losses, n - wins - losses], n, [won, lost, 1 - differ]))
            if share > 1e-6 and equivalence(*paired(wins, losses, n), margin).equivalent:
                false += share
    assert 0.03 < false <= 0.055


def test_fisher_interval_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=25)
    y = x + rng.normal(size=25)
    reference = stats.pearsonr(x, y).confidence_interval(0.9)
    found = pearson(x, y, MetricSettings(level=0.9))
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))
    assert found.interval == "fisher z"


def test_bonett_wright_interval_by_hand() -> None:
    x, y = np.arange(10.0), np.array([0, 2, 1, 4, 3, 6, 5, 8, 7, 9.0])
    found = spearman(x, y)
    r = 1 - 6 * 8 / (10 * 99)
    half = 1.959963985 * math.sqrt((1 + r * r / 2) / 7)
    assert (found.low, found.high) == pytest.approx((math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)))


def test_pairs_that_are_not_numbers_are_left_out() -> None:
    found = pearson([1, 2, math.nan, 4, 5], [1, 2, 3, math.nan, 4])
    assert found.n == 3
    assert math.isnan(found.low)  # too few for an interval
    assert not math.isnan(found.p)
    with pytest.raises(UsageError, match="2 and 3 values"):
        pearson([1, 2], [1, 2, 3])


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_ranks_are_those_of_scipy(values: list[int]) -> None:
    assert ranks_of(np.array(values, dtype=float)).tolist() == stats.rankdata(values).tolist()


def test_an_external_column_is_joined_by_name() -> None:
    names, x, y = aligned({"b": 0.2, "a": 0.1, "c": 0.3}, {"a": 60.0, "c": 70.0, "d": 80.0})
    assert names == ["a", "c"]
    assert (x.tolist(), y.tolist()) == ([0.1, 0.3], [60.0, 70.0])


def test_rank_table_of_a_published_table() -> None:
    """SugarCrepe++ Table 15, swap object: SC, P2 vs N, SC++ of five models, arrows against CLIP."""
    table = {
        "SC": {"CLIP": 59.21, "ALBEF": 63.16, "XVLM": 64.91, "BLIP": 66.22, "NegCLIP": 75.44},
        "P2": {"CLIP": 65.35, "ALBEF": 37.72, "XVLM": 42.10, "BLIP": 60.53, "NegCLIP": 64.47},
        "SC++": {"CLIP": 45.18, "ALBEF": 28.94, "XVLM": 31.14, "BLIP": 47.37, "NegCLIP": 55.25},
    }
    rows = {r.name: r for r in rank_table(table)}
    assert rows["CLIP"].ranks == (5, 1, 3)
    assert rows["CLIP"].gains == (0, 4, 2)
    assert rows["NegCLIP"].ranks == (1, 2, 1)
    assert [r.name for r in rank_table(table)] == ["NegCLIP", "BLIP", "XVLM", "ALBEF", "CLIP"]


def test_rank_table_with_ties_and_gaps() -> None:
    rows = rank_table({"x": {"a": 1, "b": 1, "c": 0, "d": 5}, "y": {"a": 2, "b": 1, "c": 3, "d": math.nan}})
    assert [(r.name, r.ranks) for r in rows] == [("a", (1, 2)), ("b", (1, 3)), ("c", (3, 1))]
    assert rank_table({}) == []
