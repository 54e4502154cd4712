"""Agreement against sklearn, statsmodels and a published example."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as sm_fleiss

from creperie.core import UnknownNameError, UsageError
from creperie.metrics import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
    student_quantile,
)

_ = math.nan

#: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four observers, twelve units, values
#: 1 to 5, missing data. Printed there: nominal 0.743, ordinal 0.815, interval 0.849.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T


@pytest.mark.parametrize(("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(scale: str, value: float) -> None:
    found = krippendorff_alpha(PUBLISHED, scale)  # type: ignore[arg-type]
    assert found.value == pytest.approx(value, abs=0.0005)
    assert found.low < found.value < found.high
    assert found.n == 11  # the unit with one rating counts for nothing


RATINGS = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.integers(1, 4).map(float), min_size=raters, max_size=raters), min_size=2, max_size=25
    ).map(np.array)
)


def slow_alpha(ratings: np.ndarray, scale: str) -> float:
    """From the definition: disagreement of pairs within units over disagreement of all pairs."""
    units = [[v for v in row if not math.isnan(v)] for row in ratings]
    units = [u for u in units if len(u) > 1]
    pool = [v for u in units for v in u]

    def apart(a: float, b: float) -> float:
        if scale == "nominal":
            return float(a != b)
        if scale == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in pool)
        return (between - (pool.count(a) + pool.count(b)) / 2) ** 2 if a != b else 0.0

    seen = sum(apart(a, b) / (len(u) - 1) for u in units for i, a in enumerate(u) for j, b in enumerate(u) if i != j)
    expected = sum(apart(a, b) for i, a in enumerate(pool) for j, b in enumerate(pool) if i != j)
    return 1 - seen * (len(pool) - 1) / expected if expected else math.nan


@given(ratings=RATINGS, data=st.data(), scale=st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_is_its_definition(ratings: np.ndarray, data: st.DataObject, scale: str) -> None:
    gaps = data.draw(st.lists(st.tuples(st.integers(0, 24), st.integers(0, 4)), max_size=8))
    for i, j in gaps:
        ratings[i % len(ratings), j % ratings.shape[1]] = math.nan
    found = krippendorff_alpha(ratings, scale)  # type: ignore[arg-type]
    assert found.value == pytest.approx(slow_alpha(ratings, scale), abs=1e-9, nan_ok=True)


@given(ratings=RATINGS)
def test_fleiss_is_that_of_statsmodels(ratings: np.ndarray) -> None:
    found = fleiss_kappa(ratings)
    if len(np.unique(ratings)) == 1:
        assert math.isnan(found.value)
        return
    assert found.value == pytest.approx(float(sm_fleiss(aggregate_raters(ratings.astype(int))[0])), abs=1e-9)


@given(ratings=RATINGS, weights=st.sampled_from(["none", "linear", "quadratic"]))
def test_cohen_is_that_of_sklearn(ratings: np.ndarray, weights: str) -> None:
    a, b = ratings[:, 0], ratings[:, 1]
    found = cohen_kappa(a, b, weights)  # type: ignore[arg-type]
    assert found.kind == ("cohen kappa" if weights == "none" else f"cohen kappa ({weights} weights)")
    if len(np.unique([a, b])) == 1:
        assert math.isnan(found.value)
        return
    reference = cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
    assert found.value == pytest.approx(float(reference), abs=1e-9)


def test_percent_agreement_by_hand() -> None:
    ratings = np.array([[1, 1, 1], [1, 1, 0], [0, _, 1], [1, _, _]])
    found = percent_agreement(ratings)
    assert found.value == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.n == 3


@pytest.mark.slow
def test_interval_is_plain_resampling_of_items() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    ratings = np.where(rng.random((120, 3)) < 0.75, truth[:, None], rng.integers(0, 3, (120, 3))).astype(float)
    for coefficient in (krippendorff_alpha, fleiss_kappa):
        found = coefficient(ratings)
        drawn = [coefficient(ratings[rng.integers(0, 120, 120)]).value for _ in range(300)]
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.03)


def test_items_that_share_an_image_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    base = np.where(rng.random((40, 2)) < 0.7, 1.0, 0.0)
    ratings = np.repeat(base, 4, axis=0)
    alone = krippendorff_alpha(ratings)
    together = krippendorff_alpha(ratings, clusters=np.arange(160) // 4)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_large_ratings_keep_their_digits() -> None:
    ratings = np.array([[1.0, 1.0], [2.0, 2.5], [3.0, 3.0], [4.0, 5.0]])
    assert krippendorff_alpha(ratings + 1e7, "interval").value == pytest.approx(
        krippendorff_alpha(ratings, "interval").value, abs=1e-6
    )


def test_what_cannot_be_said() -> None:
    assert math.isnan(krippendorff_alpha(np.array([[1, _], [_, 2]])).value)
    assert math.isnan(cohen_kappa(np.array([]), np.array([])).value)
    with pytest.raises(UsageError, match="krippendorff_alpha"):
        fleiss_kappa(np.array([[1, 1, 1], [1, 0, _]]))
    with pytest.raises(UnknownNameError, match="did you mean 'ordinal'"):
        krippendorff_alpha(PUBLISHED, "ordinary")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="items × raters"):
        krippendorff_alpha(np.ones(3))


def test_one_rare_answer_says_little() -> None:
    """The docs printed 1.00 [0.84, 1.00] from one unusable item of twenty."""
    first = np.r_[1.0, np.zeros(19)]
    found = cohen_kappa(first, first)
    assert found.value == 1
    assert math.isnan(found.low)
    assert found.interval == "none (1 items have an answer other than the commonest, 2 are needed)"


def test_an_interval_that_holds_every_value_is_none() -> None:
    """`add-object` printed [-1.00, 0.95]."""
    first, second = np.zeros(12), np.zeros(12)
    first[:2], second[2:4] = 1, 1
    found = cohen_kappa(first, second)
    assert math.isnan(found.low)
    assert found.interval == "none (too few answers: any value is possible)"


@pytest.mark.parametrize("rare", [3, 6])
def test_perfect_agreement_reaches_as_low_as_the_likelihood_of_the_table(rare: int) -> None:
    """Brute force over kappa and the rare answer's share."""
    answers = np.r_[np.ones(rare), np.zeros(40 - rare)]
    found = cohen_kappa(answers, answers)
    kappa, share = np.linspace(0, 1, 1001)[:, None], np.linspace(0.001, 0.5, 500)[None, :]
    both = share * (kappa + (1 - kappa) * share), (1 - share) * (kappa + (1 - kappa) * (1 - share))
    likelihood = (rare * np.log(both[0]) + (40 - rare) * np.log(both[1])).max(axis=1)
    reach = max(student_quantile(0.975, 2 * rare) ** 2 / 2, math.log(2 / 0.05))
    lowest = kappa[likelihood >= likelihood.max() - reach].min()
    assert found.low == pytest.approx(lowest, abs=0.01)
    assert found.high == 1
