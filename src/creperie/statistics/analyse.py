"""Fitting declared analyses to a table: to the rows of all models together, and to the rows of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import TAG_PREFIX
from creperie.core import CreperieError, DataError, Progress, option, silent, with_options
from creperie.statistics.declare import Analysis
from creperie.statistics.design import Design, chosen_rows, column_of, design, grouped, with_short_names
from creperie.statistics.fit import Fit

ALL = "all models"


@dataclass(frozen=True)
class Analysed:
    """One fitted analysis. `sample` says whether it was fitted to the rows of all models or of one model."""

    label: str
    sample: str
    analysis: Analysis
    fit: Fit
    notes: tuple[str, ...] = ()
    cells: tuple[FactorCell, ...] = ()

    @property
    def name(self) -> str:
        return fit_name(self.label, self.sample)

    def document(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "sample": self.sample,
            "analysis": self.analysis.document(),
            **self.fit.document(),
            "cells": [asdict(c) for c in self.cells],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class SkippedAnalysis:
    """An analysis that could not be fitted, and the reason."""

    label: str
    sample: str
    reason: str

    @property
    def name(self) -> str:
        return fit_name(self.label, self.sample)


def fit_name(label: str, sample: str) -> str:
    """Return the name of a fit: the label of the analysis, followed by a model in brackets if only the rows of that
    model were used.

    >>> fit_name("model 1", ALL), fit_name("model 1", "llama")
    ('model 1', 'model 1 (llama)')
    """
    return label if sample == ALL else f"{label} ({sample})"


@dataclass(frozen=True)
class FittedStudy:
    """All fitted analyses. The skipped ones are listed with the reasons."""

    fits: tuple[Analysed, ...]
    skipped: tuple[SkippedAnalysis, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        return all(f.fit.convergence.converged for f in self.fits)

    def document(self) -> dict[str, Any]:
        return {
            "converged": self.converged,
            "fits": [f.document() for f in self.fits],
            "skipped": [asdict(s) for s in self.skipped],
            "notes": list(self.notes),
        }


def fit(table: pa.Table, analysis: Analysis) -> tuple[Fit, Design]:
    """Fit one analysis. Return the fit and the design matrix, whose notes say what was left out."""
    from creperie.statistics.linear import fit_linear
    from creperie.statistics.logistic import fit_logistic

    made = design(table, analysis)
    if analysis.family == "logistic":
        return fit_logistic(made.y, made.x, made.names, made.groups), made
    return fit_linear(made.y, made.x, made.names, made.groups, reml=analysis.reml), made


@dataclass(frozen=True)
class AnalysisExtras:
    """Further settings of an analysis.

    With `per_model`, the analysis is also fitted to the rows of each model. `cells` names two factors; the mean is
    estimated for each combination of their levels.

    `lenient` is for presets: terms whose column is missing or has only one level are left out, and analyses that cannot
    be fitted are skipped and reported. An analysis without the term named in `required` is skipped, too. If no analysis
    can be fitted, an error is raised.
    """

    per_model: bool = option(False, "Fit the analysis to the rows of each model as well.")
    lenient: bool = option(False, "Leave out terms that cannot be fitted, and skip analyses that cannot.")
    required: str = option("", "Skip analyses without this term.")
    cells: tuple[str, str] | None = option(None, "Two factors: estimate the mean for each combination of their levels.")


@with_options(wish=AnalysisExtras)
def fit_study(
    table: pa.Table, analyses: Mapping[str, Analysis], *, wish: AnalysisExtras, progress: Progress = silent
) -> FittedStudy:
    """Fit each analysis to all rows and, with `wish.per_model`, also to the rows of each model separately. Return the
    fits and the skipped analyses.

    Raise an error if an analysis cannot be fitted to all rows. With `wish.lenient`, raise it only if no analysis can be
    fitted.
    """
    samples = _samples(table, wish.per_model)
    fits, skipped, errors = [], [], []
    with progress("fit", len(analyses) * len(samples), "models") as advance:
        for label, analysis in analyses.items():
            for sample, rows in samples.items():
                try:
                    fits.append(_analysed(label, sample, rows, analysis, wish))
                except CreperieError as e:
                    if not wish.lenient and sample == ALL:
                        raise
                    errors.append(e)
                    skipped.append(SkippedAnalysis(label, sample, str(e)))
                    if sample == ALL:  # what all rows cannot support, some of them cannot either
                        break
                advance(1)
    if not fits:
        raise errors[0]
    return FittedStudy(tuple(fits), tuple(skipped))


def _samples(table: pa.Table, per_model: bool) -> dict[str, pa.Table]:
    names = []
    if per_model:
        if "model" not in table.column_names:
            raise DataError(
                "the table has no column 'model', so it cannot be split by model",
                hint="add the column, or leave out `per_model=`",
            )
        names = sorted(set(table.column("model").drop_null().to_pylist()))
    return {ALL: table} | {name: table.filter(pc.field("model") == name) for name in names}


def _analysed(label: str, sample: str, rows: pa.Table, analysis: Analysis, wish: AnalysisExtras) -> Analysed:
    notes: tuple[str, ...] = ()
    if wish.lenient or sample != ALL:
        analysis, left_out = bearable(rows, analysis)
        if wish.required and wish.required in left_out:
            what = f"the column {wish.required!r} is missing or has fewer than two values"
            raise DataError(
                what, hint=f"give runs or benchmarks that differ in {wish.required!r}, or name other effects"
            )
        notes = (f"not in the model: {', '.join(left_out)} (fewer than two values)",) if left_out else ()
        analysis, vague = sampled_groups(rows, analysis)
        notes += (f"no random effect of {', '.join(vague)}: the rows cannot identify it",) if vague else ()
    fitted, made = fit(rows, analysis)
    if wish.lenient:
        analysis, fitted, made, idle = _without_idle_slopes(rows, analysis, fitted, made)
        notes += (f"no slopes {', '.join(idle)}: not supported (likelihood ratio, p > 0.2)",) if idle else ()
    cells: tuple[FactorCell, ...] = ()
    if wish.cells and all(name in made.parts and made.parts[name].levels for name in wish.cells):
        cells = cell_means(made, fitted, *wish.cells)
    return Analysed(label, sample, analysis, fitted, (*notes, *made.notes), cells)


#: Slopes that lower the deviance by less are left out: p > 0.2, as half of the null distribution lies at 0.
IDLE = 0.708


def _without_idle_slopes(
    rows: pa.Table, analysis: Analysis, fitted: Fit, made: Design
) -> tuple[Analysis, Fit, Design, list[str]]:
    """Remove the random slopes that the data do not support (Matuschek et al. 2017). Return the remaining analysis, its
    fit, its design, and the removed slopes.
    """
    # If there are few models, superfluous slopes cost most of the statistical power.
    left_out = []
    # Four families cannot show that they need a slope; the others are tested beside theirs.
    for term in [term for term in analysis.random if ":" in term and not term.startswith("family:")]:
        fewer = replace(analysis, random=tuple(other for other in analysis.random if other != term))
        if not fewer.random:
            break
        refitted, again = fit(rows, fewer)
        if refitted.criterion - fitted.criterion < IDLE:
            analysis, fitted, made = fewer, refitted, again
            left_out.append(term)
    return analysis, fitted, made, left_out


def bearable(table: pa.Table, analysis: Analysis) -> tuple[Analysis, list[str]]:
    """Remove from an analysis all terms with fewer than two values in the table. Return the remaining analysis and the
    removed terms.
    """
    table = _chosen(table, analysis.where)
    terms: list[str] = []
    left_out: list[str] = []
    for term, parts in zip(analysis.fixed, analysis.factors):
        good = all(_varies(table, column_of(p), analysis.levels.get(column_of(p))) for p in parts)
        (terms if good else left_out).append(term)
    return replace(analysis, fixed=tuple(terms)), left_out


def sampled_groups(table: pa.Table, analysis: Analysis) -> tuple[Analysis, list[str]]:
    """Remove the random effects that the rows cannot identify. Return the reduced analysis and the names of the removed
    effects. At least one random effect is always kept.

    The rows cannot identify a random effect in four cases: it has a single group; every row is a group of its own;
    another effect has the same groups; one of its factors has only one level.
    """
    used = {column_of(part) for parts in analysis.factors for part in parts}
    where = {**analysis.where, **{name: levels for name, levels in analysis.levels.items() if name in used}}
    table = _chosen(table, where)
    terms = {}
    left_out = []
    for term in analysis.random:
        names = term.split(":")
        if not all(_varies(table, name, None) for name in names):
            left_out.append(term)
            continue
        codes = grouped(with_short_names(table, names), term)
        if codes.max() + 1 == len(codes) or codes.tobytes() in terms:
            left_out.append(term)
        else:
            terms[codes.tobytes()] = term
    return replace(analysis, random=tuple(terms.values()) or analysis.random[:1]), left_out


def _chosen(table: pa.Table, where: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """Return the rows with permitted values. `where` maps a column to its permitted values."""
    table = with_short_names(table, list(where))
    return table.take(pa.array(chosen_rows(table, where)))


def _varies(table: pa.Table, name: str, levels: Sequence[str] | None) -> bool:
    column = next((c for c in (name, TAG_PREFIX + name) if c in table.column_names), None)
    if column is None:
        return False
    values = set(pc.unique(table.column(column).cast(pa.string())).drop_null().to_pylist())
    return len(values & set(levels) if levels else values) > 1


@dataclass(frozen=True)
class FactorCell:
    """A combination of two factor levels: the number of rows that have it, their mean outcome, and the estimated mean
    with a 95 % interval.

    The estimated mean is a prediction for the case that all rows have these two levels and are otherwise unchanged. All
    random effects are set to zero. For a logistic model the mean is a probability.
    """

    x: str
    line: str
    n: int
    raw: float
    estimate: float
    low: float
    high: float


def cell_means(design: Design, fit: Fit, x: str, line: str) -> tuple[FactorCell, ...]:
    """Return the observed and the estimated mean for each combination of levels of the factors `x` and `line`.
    Combinations that no row has are left out.
    """
    beta = np.array([c.estimate for c in fit.coefficients])
    first, second = design.parts[x], design.parts[line]
    cells = []
    for b, line_level in enumerate(second.levels):
        for a, level in enumerate(first.levels):
            in_cell = (first.code == a) & (second.code == b)
            if not in_cell.any():
                continue
            row = design.mean_row({x: level, line: line_level})
            middle = float(row @ beta)
            reach = 1.959964 * float(np.sqrt(row @ fit.covariance @ row))
            values = [middle, middle - reach, middle + reach]
            if fit.family == "logistic":
                values = [0.5 * (1.0 + float(np.tanh(0.5 * v))) for v in values]
            cells.append(FactorCell(level, line_level, int(in_cell.sum()), float(design.y[in_cell].mean()), *values))
    return tuple(cells)
