"""The factor of Λ Z'WZ Λ + I against numpy's, whichever way it is made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creperie.core import UsageError
from creperie.statistics import groups as module
from creperie.statistics.groups import Groups


def some_groups(seed: int, n: int, nested: bool) -> Groups:
    """Images, captions (in images or across them) and models; every code occurs."""
    rng = np.random.default_rng(seed)
    image = np.unique(rng.integers(0, max(2, n // 6), n), return_inverse=True)[1]
    inner = rng.integers(0, 3, n)
    caption = np.unique(image * 3 + inner if nested else rng.integers(0, n // 3 + 1, n), return_inverse=True)[1]
    model = np.unique(rng.integers(0, 4, n), return_inverse=True)[1]
    return Groups(("image", "caption", "model"), (image, caption, model)).sorted()


def dense_z(groups: Groups) -> np.ndarray:
    z = np.zeros((len(groups.codes[0]), groups.total))
    for code, start in zip(groups.codes, groups.starts):
        z[np.arange(len(code)), start + code] = 1.0
    return z


@pytest.mark.parametrize("way", ["dense", "divided", "sparse"])
@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(12, 80),
    nested=st.booleans(),
    theta=st.lists(st.floats(0, 3), min_size=3, max_size=3),
)
def test_a_factor_is_numpys(way: str, seed: int, n: int, nested: bool, theta: list[float]) -> None:
    groups = some_groups(seed, n, nested)
    rng = np.random.default_rng(seed)
    weights = rng.random(n) + 0.01
    z, spread = dense_z(groups), groups.spread(np.array(theta))
    full = spread[:, None] * (z.T * weights @ z) * spread + np.eye(groups.total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL", 300 if way == "dense" else 0)
        patch.setattr(module, "DENSE", 2.0 if way == "sparse" else 0.2)
        factor = groups.gram(weights).factor(np.array(theta))
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-9, abs=1e-8)
    for right in (rng.normal(size=groups.total), rng.normal(size=(groups.total, 3))):
        assert factor.solve(right) == pytest.approx(np.linalg.solve(full, right), rel=1e-6, abs=1e-8)


def test_sums_and_rows_are_products_with_z() -> None:
    groups = some_groups(4, 50, nested=True)
    z = dense_z(groups)
    rng = np.random.default_rng(0)
    rows, effects = rng.normal(size=(50, 2)), rng.normal(size=groups.total)
    assert groups.sums(rows) == pytest.approx(z.T @ rows)
    assert groups.sums(rows[:, 0]) == pytest.approx(z.T @ rows[:, 0])
    assert groups.rows(effects) == pytest.approx(z @ effects)


def test_crossings_that_are_too_dense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "DENSE", 0.0)
    monkeypatch.setattr(module, "MOST_DENSE", 2)
    groups = some_groups(1, 60, nested=False)
    with pytest.raises(UsageError, match="leave out a random effect"):
        groups.gram().factor(np.ones(3))
