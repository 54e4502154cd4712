"""Terms, contrasts and design matrices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creperie.core import UsageError
from creperie.statistics import Analysis, terms
from creperie.statistics.design import NAMES, columns_of, design


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("a + b", ("a", "b")),
        ("a*b", ("a", "b", "a:b")),
        ("a*b*c", ("a", "b", "c", "a:b", "a:c", "b:c", "a:b:c")),
        ("a:b, a", ("a", "a:b")),
        ("log10(model.size)*tag.verb", ("log10(model.size)", "tag.verb", "log10(model.size):tag.verb")),
        ("", ()),
    ],
)
def test_terms(written: str, found: tuple[str, ...]) -> None:
    assert terms(written) == found


@pytest.mark.parametrize("written", ["a ~ b", "a + (1 | b)", "exp(a)", "a b"])
def test_terms_that_cannot_be_read(written: str) -> None:
    with pytest.raises(UsageError, match="cannot read the term"):
        terms(written)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=7), st.sampled_from(NAMES))
def test_coefficients_mean_what_the_contrast_says(means: list[float], contrast: str) -> None:
    """Solve for the coefficients of given level means; compare with the contrast in words."""
    k = len(means)
    columns, _ = columns_of(contrast, [str(i) for i in range(k)])
    intercept, *found = np.linalg.solve(np.column_stack([np.ones(k), columns]), means)
    assert intercept == pytest.approx(means[0] if contrast == "treatment" else np.mean(means), abs=1e-8)
    for j, coefficient in enumerate(found, start=1):
        against = {
            "treatment": means[0],
            "centred": means[0],
            "rest": np.mean([m for i, m in enumerate(means) if i != j]),
            "orthogonal": np.mean(means[:j]),
            "sum": np.mean(means),
        }[contrast]
        assert coefficient == pytest.approx(means[j] - against, abs=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_orthogonal_columns_are_orthogonal(k: int) -> None:
    columns, _ = columns_of("orthogonal", [str(i) for i in range(k)])
    product = columns.T @ columns
    assert product == pytest.approx(np.diag(np.diag(product)))
    assert columns.sum(axis=0) == pytest.approx(np.zeros(k - 1))


DATA = pa.table(
    {
        "y": [0.1, 0.5, 0.2, 0.9, 0.4, None, 0.3, 0.8],
        "kind": ["b", "a", "c", "a", "b", "a", "c", "a"],
        "flag": [True, False] * 4,
        "n": [1, 2, 3, 4, 5, 6, 7, 8],
        "twice": [2, 4, 6, 8, 10, 12, 14, 16],
        "image": list("uuvvwwxx"),
    }
)


def test_rows_with_holes_are_left_out_and_counted() -> None:
    found = design(DATA, Analysis("y", ("kind",), ("image",)))
    assert found.n == 7
    assert found.names == ("(Intercept)", "kind[b]", "kind[c]")
    assert "1 rows left out" in found.notes[0]


def test_levels_choose_and_order() -> None:
    found = design(DATA, Analysis("y", ("kind",), ("image",), levels={"kind": ("c", "a")}))
    assert found.n == 5
    assert found.names == ("(Intercept)", "kind[a]")
    assert found.x[:, 1].tolist() == [1, 0, 1, 0, 1]


def test_columns_that_say_the_same_are_left_out() -> None:
    found = design(DATA, Analysis("y", ("n", "twice", "flag"), ("image",)))
    assert found.names == ("(Intercept)", "n", "flag[true]")
    assert any("twice" in note for note in found.notes)


def test_interactions_multiply() -> None:
    found = design(DATA, Analysis("y", terms("z(n)*flag"), ("image",), contrast="rest"))
    assert found.names == ("(Intercept)", "z(n)", "flag[true]", "z(n):flag[true]")
    assert found.x[:, 3] == pytest.approx(found.x[:, 1] * found.x[:, 2])


def test_logarithms_of_numbers_below_one() -> None:
    whole = DATA.filter(DATA["y"].is_valid())
    found = design(whole, Analysis("n", ("log(y)",)))
    assert found.x[:, 1] == pytest.approx(np.log(whole["y"].to_numpy()))
