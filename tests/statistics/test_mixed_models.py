"""Estimates against R's lme4 and lmerTest (fixtures/lme4.json, made by fixtures/lme4.R), and against statsmodels."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy import stats
from scipy.optimize import minimize

from creperie.core import CreperieError
from creperie.statistics import Analysis, terms
from creperie.statistics.curvature import curvature
from creperie.statistics.design import design
from creperie.statistics.fit import Fit
from creperie.statistics.groups import Groups
from creperie.statistics.linear import fit_linear
from creperie.statistics.logistic import fit_logistic

HERE = Path(__file__).parent / "fixtures"
REFERENCE: dict[str, Any] = json.loads((HERE / "lme4.json").read_text(encoding="utf-8"))
FULL = terms("grammaticality*simplified + length")
CASES = {
    "crossed_linear": ("crossed.csv", Analysis("gap", FULL, ("image", "caption", "model"))),
    "crossed_rest": ("crossed.csv", Analysis("gap", FULL, ("image", "caption"), contrast="rest")),
    "one_factor": ("crossed.csv", Analysis("chosen", terms("grammaticality + simplified + model"), ("image",))),
    "nested_linear": ("nested.csv", Analysis("y", ("x",), ("image", "caption"))),
    "singular": ("nested.csv", Analysis("y", ("x",), ("image", "rater"))),
    "crossed_ml": ("crossed.csv", Analysis("gap", terms("grammaticality + length"), ("image", "caption"), reml=False)),
    "crossed_logistic": ("crossed.csv", Analysis("chosen", FULL, ("image", "caption", "model"), "logistic")),
    "logistic_rest": (
        "crossed.csv",
        Analysis("chosen", terms("grammaticality*simplified"), ("image", "caption"), "logistic", contrast="rest"),
    ),
}


def table(name: str) -> pa.Table:
    return pyarrow.csv.read_csv(HERE / name)


def fitted(data: pa.Table, analysis: Analysis) -> Fit:
    d = design(data, analysis)
    if analysis.family == "logistic":
        return fit_logistic(d.y, d.x, d.names, d.groups)
    return fit_linear(d.y, d.x, d.names, d.groups, reml=analysis.reml)


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_those_of_lme4(case: str) -> None:
    """Four digits; p-values and degrees of freedom to three."""
    file, analysis = CASES[case]
    fit, wanted = fitted(table(file), analysis), REFERENCE[case]
    assert fit.convergence.converged, fit.convergence.line
    assert fit.n == wanted["n"]
    for what, tolerance in {"estimate": 2e-4, "se": 2e-4, "statistic": 2e-4, "df": 1e-3, "p": 2e-3}.items():
        if what in wanted:
            ours = [getattr(c, what) for c in fit.coefficients]
            assert ours == pytest.approx(wanted[what], rel=tolerance), what
    for c in fit.coefficients:  # t, which is normal with infinite degrees of freedom
        assert (c.low, c.high) == pytest.approx(stats.t.interval(0.95, c.df, c.estimate, c.se))
    deviations = {s.name: s.sd for s in fit.spreads}
    assert deviations == pytest.approx(wanted["sd"], rel=2e-4, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(wanted["log_likelihood"], abs=1e-4)
    if "criterion" in wanted:
        assert fit.criterion == pytest.approx(wanted["criterion"], abs=2e-4)


def test_a_singular_fit_says_so() -> None:
    file, analysis = CASES["singular"]
    fit = fitted(table(file), analysis)
    assert fit.convergence.singular == ("rater",)
    assert "no variance between rater" in fit.convergence.line


def test_nested_effects_are_those_of_statsmodels() -> None:
    from statsmodels.regression.mixed_linear_model import MixedLM

    data = table("nested.csv")
    fit = fitted(data, CASES["nested_linear"][1])
    variances = {"caption": "0 + C(caption)"}
    model = MixedLM.from_formula("y ~ x", data.to_pandas(), groups="image", re_formula="1", vc_formula=variances)
    theirs = model.fit(reml=True)
    assert [c.estimate for c in fit.coefficients] == pytest.approx(list(theirs.fe_params), rel=1e-4)
    # theirs are from the curvature over all parameters, lme4's and ours from that over the fixed effects alone
    assert [c.se for c in fit.coefficients] == pytest.approx(list(theirs.bse_fe), rel=1e-2)
    deviations = {s.name: s.sd for s in fit.spreads}
    assert deviations["image"] == pytest.approx(math.sqrt(theirs.cov_re.iloc[0, 0]), rel=2e-3)
    assert deviations["caption"] == pytest.approx(math.sqrt(theirs.vcomp[0]), rel=2e-3)


def test_satterthwaite_in_a_balanced_design_counts_the_groups() -> None:
    """A factor between groups has as many degrees of freedom as the analysis of variance: groups − 2."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), 5)
    side = np.where(groups % 2 == 0, "a", "b")
    y = rng.normal(size=60) + rng.normal(0, 2, 12)[groups]
    data = pa.table({"y": y, "side": side, "image": groups.astype(str)})
    fit = fitted(data, Analysis("y", ("side",), ("image",)))
    assert fit["side[b]"].df == pytest.approx(10, rel=1e-3)


def test_the_sparse_and_the_dense_factor_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.statistics import groups

    file, analysis = CASES["crossed_linear"]
    dense = fitted(table(file), analysis)
    monkeypatch.setattr(groups, "SMALL", 0)
    monkeypatch.setattr(groups, "DENSE", 2.0)
    sparse = fitted(table(file), analysis)
    assert sparse.criterion == pytest.approx(dense.criterion, abs=1e-7)
    assert [c.se for c in sparse.coefficients] == pytest.approx([c.se for c in dense.coefficients], rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_no_other_deviation_is_better(seed: int, family: str) -> None:
    """The criterion is flat at zero, so a search may stop there although a small deviation is better."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(40), 4)
    eta = rng.normal(0, 0.25 * (seed % 3), 40)[image] * 2
    chosen = (rng.random(160) < 1 / (1 + np.exp(-eta))).astype(int)
    data = pa.table({"chosen": chosen, "image": image.astype(str), "x": rng.normal(size=160)})
    analysis = Analysis("chosen", ("x",), ("image",), family)  # type: ignore[arg-type]
    d = design(data, analysis)
    fit = fitted(data, analysis)
    if family == "linear":
        from creperie.statistics.linear import _Criterion

        criterion = _Criterion(d.y, d.x, d.groups, reml=True)
    else:
        from creperie.statistics.logistic import _Laplace

        laplace = _Laplace(d.y, d.x, d.groups)
        beta = np.array([c.estimate for c in fit.coefficients])

        def criterion(theta: np.ndarray) -> float:
            return laplace.mode(theta, beta).criterion

    assert fit.convergence.converged
    assert min(criterion(np.array([t])) for t in np.linspace(0, 2, 41)) >= fit.criterion - 1e-5


@pytest.mark.parametrize("seed", [0, 2])
def test_logistic_standard_errors_are_those_of_the_exact_curvature(seed: int) -> None:
    """Few groups, large deviations: where lme4 and we were seen to differ by 0.6 % (0.6160, 0.6197). The reference is
    Laplace's criterion written out with dense matrices, its Hessian over all parameters extrapolated from two steps."""
    rng = np.random.default_rng(seed)
    item, model = (v.ravel() for v in np.meshgrid(np.arange(15), np.arange(6), indexing="ij"))
    x = np.stack([np.ones(90), item % 2, rng.normal(size=90), model % 2], axis=1)
    eta = 0.8 + 0.5 * x[:, 1] + rng.normal(0, 1.5, 15)[item] + rng.normal(0, 1.0, 6)[model]
    y = (rng.random(90) < 1 / (1 + np.exp(-eta))).astype(float)
    fit = fit_logistic(y, x, list("abcd"), Groups(("item", "model"), (item, model)))
    z = np.concatenate([np.eye(15)[item], np.eye(6)[model]], axis=1)

    def criterion(parameters: np.ndarray) -> float:
        scaled, u = z * np.repeat(parameters[:2], [15, 6]), np.zeros(21)
        for _ in range(9):
            mu = 1 / (1 + np.exp(-x @ parameters[2:] - scaled @ u))
            inner = scaled.T @ (scaled * (mu * (1 - mu))[:, None]) + np.eye(21)
            u = u + np.linalg.solve(inner, scaled.T @ (y - mu) - u)
        eta = x @ parameters[2:] + scaled @ u
        return float(2 * (np.logaddexp(0, eta) - y * eta).sum() + u @ u + np.linalg.slogdet(inner)[1])

    start = np.array([*(s.sd for s in fit.spreads), *(c.estimate for c in fit.coefficients)])
    assert [s.name for s in fit.spreads] == ["item", "model"]
    best = minimize(criterion, start, method="BFGS", options={"gtol": 1e-7}).x
    coarse, fine = (curvature(criterion, best, np.full(6, step)) for step in (0.02, 0.01))
    exact = np.sqrt(np.diag(2 * np.linalg.inv((4 * fine - coarse) / 3)))[2:]
    assert [c.estimate for c in fit.coefficients] == pytest.approx(best[2:], abs=5e-4 * exact.max())
    assert [c.se for c in fit.coefficients] == pytest.approx(exact, rel=4e-4)
    assert fit.criterion == pytest.approx(criterion(best), abs=1e-5)


def test_badly_scaled_numbers_change_nothing() -> None:
    data = table("crossed.csv")
    large = data.append_column("size", pa.array(1e8 + 1e7 * data["length"].to_numpy()))
    plain = fitted(data, Analysis("gap", ("length",), ("image", "caption")))
    scaled = fitted(large, Analysis("gap", ("size",), ("image", "caption")))
    assert scaled["size"].statistic == pytest.approx(plain["length"].statistic, rel=1e-5)
    assert scaled["size"].estimate * 1e7 == pytest.approx(plain["length"].estimate, rel=1e-5)


def test_separation_is_not_called_converged() -> None:
    rng = np.random.default_rng(0)
    side = np.repeat(["a", "b"], 60)
    chosen = np.where(side == "a", rng.integers(0, 2, 120), 1)
    data = pa.table({"chosen": chosen, "side": side, "image": np.tile(np.arange(20), 6).astype(str)})
    fit = fitted(data, Analysis("chosen", ("side",), ("image",), "logistic"))
    assert not fit.convergence.converged
    assert "NOT CONVERGED" in fit.convergence.line
    assert abs(fit["side[b]"].estimate) < 1000
    assert fit["side[b]"].p > 0.05  # an effect that may be infinite is not called certain


@pytest.mark.parametrize(
    ("columns", "analysis", "said"),
    [
        ({"y": [1.0, 2.0, 3.0] * 4, "g": list("aabb") * 3}, Analysis("y", ("x",), ("g",)), "unknown column 'x'"),
        ({"y": [1.0, 2.0] * 6, "g": ["a"] * 12}, Analysis("y", (), ("g",)), "one group only"),
        ({"y": [1.0, 2.0] * 3, "g": list("abcdef")}, Analysis("y", (), ("g",)), "a group for every row"),
        ({"y": [1.0, 0.0] * 3, "g": list("abcdef")}, Analysis("y", (), ("g",), "logistic"), "row: .* the residual"),
        ({"y": [1.0, 2.0] * 6, "f": ["u"] * 12, "g": list("ab") * 6}, Analysis("y", ("f",), ("g",)), "one level only"),
        (
            {"y": [1.0, 0.5] * 6, "g": list("aab") * 4},
            Analysis("y", (), ("g",), "logistic"),
            "values other than 0 and 1",
        ),
        ({"y": [1.0] * 12, "g": list("aab") * 4}, Analysis("y", (), ("g",), "logistic"), "always 1"),
        (
            {"y": [1.0] * 12, "g": list("aab") * 4},
            Analysis("y", (), ("g",)),
            "the fixed effects explain the outcome exactly",
        ),
        ({"y": ["u"] * 12, "g": list("aab") * 4}, Analysis("y", (), ("g",)), "holds string, not numbers"),
        ({"y": [None, 1.0], "g": [None, None]}, Analysis("y", (), ("g",)), "no row has all the values"),
        ({"y": [1.0, 2.0] * 6, "x": [0.0] * 12, "g": list("ab") * 6}, Analysis("y", ("log(x)",), ("g",)), "logarithm"),
    ],
)
def test_what_cannot_be_fitted_is_said(columns: dict[str, list[Any]], analysis: Analysis, said: str) -> None:
    with pytest.raises(CreperieError, match=said):
        fitted(pa.table(columns), analysis)
