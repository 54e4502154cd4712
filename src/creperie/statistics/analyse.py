"""Carry out declared analyses on a table: over all models, and for each model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import TAG_PREFIX
from creperie.core import CreperieError, DataError, Progress, silent
from creperie.statistics.declare import Analysis
from creperie.statistics.design import Design, chosen_rows, column_of, design, grouped, with_short_names
from creperie.statistics.fit import Fit

ALL = "all models"


@dataclass(frozen=True)
class Analysed:
    """One fitted analysis. `sample` says on which rows: all models, or one."""

    label: str
    sample: str
    analysis: Analysis
    fit: Fit
    notes: tuple[str, ...] = ()
    cells: tuple[FactorCell, ...] = ()

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
    """An analysis that could not be carried out, and why."""

    label: str
    sample: str
    reason: str


@dataclass(frozen=True)
class FittedStudy:
    """All that was fitted, and what was not."""

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
            "skipped": [{"label": s.label, "sample": s.sample, "reason": s.reason} for s in self.skipped],
            "notes": list(self.notes),
        }


def fit(table: pa.Table, analysis: Analysis) -> tuple[Fit, Design]:
    """Fit one analysis; with it the design, whose notes say what was left out."""
    from creperie.statistics.linear import fit_linear
    from creperie.statistics.logistic import fit_logistic

    made = design(table, analysis)
    if analysis.family == "logistic":
        return fit_logistic(made.y, made.x, made.names, made.groups), made
    return fit_linear(made.y, made.x, made.names, made.groups, reml=analysis.reml), made


@dataclass(frozen=True)
class AnalysisExtras:
    """What else a study is asked for.

    `lenient` leaves out terms that the table has no column or one level for, as presets need it, save `required`; and
    an analysis that cannot be fitted is reported, not raised, unless none can. `cells` are two factors whose
    interaction is wanted as estimated means.
    """

    per_model: bool = False
    lenient: bool = False
    required: str = ""
    cells: tuple[str, str] | None = None


def fit_study(
    table: pa.Table, analyses: Mapping[str, Analysis], wish: AnalysisExtras | None = None, progress: Progress = silent
) -> FittedStudy:
    """Fit analyses on all rows and, if asked, on each model's rows alone (the paper's sub-samples)."""
    wish = wish or AnalysisExtras()
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
                    if sample == ALL:  # what all rows cannot bear, a part of them cannot either
                        break
                advance(1)
    if not fits:
        raise errors[0]
    return FittedStudy(tuple(fits), tuple(skipped))


def _samples(table: pa.Table, per_model: bool) -> dict[str, pa.Table]:
    found = {ALL: table}
    if per_model:
        if "model" not in table.column_names:
            raise DataError("the table has no column 'model', so there is no sub-sample per model")
        for name in sorted(set(table.column("model").drop_null().to_pylist())):
            found[name] = table.filter(pc.field("model") == name)
    return found


def _analysed(label: str, sample: str, rows: pa.Table, analysis: Analysis, wish: AnalysisExtras) -> Analysed:
    notes: tuple[str, ...] = ()
    if wish.lenient or sample != ALL:
        analysis, left_out = bearable(rows, analysis)
        if wish.required and wish.required in left_out:
            raise DataError(f"the table has fewer than two values of {wish.required!r}")
        notes = (f"not in the model: {', '.join(left_out)} (one value only, or none)",) if left_out else ()
        analysis, unheld = sampled_groups(rows, analysis)
        notes += (f"no random effect of {', '.join(unheld)}: the rows cannot show it",) if unheld else ()
    fitted, made = fit(rows, analysis)
    if wish.lenient:
        analysis, fitted, made, unseen = _without_idle_slopes(rows, analysis, fitted, made)
        notes += (f"no slopes {', '.join(unseen)}: the data show none (likelihood ratio, p > 0.2)",) if unseen else ()
    cells: tuple[FactorCell, ...] = ()
    if wish.cells and all(name in made.parts and made.parts[name].levels for name in wish.cells):
        cells = cell_means(made, fitted, *wish.cells)
    return Analysed(label, sample, analysis, fitted, (*notes, *made.notes), cells)


#: A slope's deviance, below which it is left out: p > 0.2, where half of the null distribution lies at 0.
IDLE = 0.708


def _without_idle_slopes(
    rows: pa.Table, analysis: Analysis, fitted: Fit, made: Design
) -> tuple[Analysis, Fit, Design, list[str]]:
    """The analysis without the random slopes that the data do not show (Matuschek et al. 2017), its fit, and the slopes
    that were left out: with few models, slopes that are not there cost most of the power."""
    left_out: list[str] = []
    for term in [term for term in analysis.random if ":" in term]:
        fewer = replace(analysis, random=tuple(other for other in analysis.random if other != term))
        if not fewer.random:
            break
        refitted, again = fit(rows, fewer)
        if refitted.criterion - fitted.criterion < IDLE:
            analysis, fitted, made = fewer, refitted, again
            left_out.append(term)
    return analysis, fitted, made, left_out


def bearable(table: pa.Table, analysis: Analysis) -> tuple[Analysis, list[str]]:
    """The analysis without the terms that have fewer than two values in the table, and the terms that were left out."""
    table = with_short_names(table, list(analysis.where))
    table = table.take(pa.array(chosen_rows(table, analysis.where)))
    kept: list[str] = []
    left_out: list[str] = []
    for term, parts in zip(analysis.fixed, analysis.factors):
        good = all(_varies(table, column_of(p), analysis.levels.get(column_of(p))) for p in parts)
        (kept if good else left_out).append(term)
    return replace(analysis, fixed=tuple(kept)), left_out


def sampled_groups(table: pa.Table, analysis: Analysis) -> tuple[Analysis, list[str]]:
    """The analysis without random effects that the rows cannot show: one group, a group for every row, the same groups
    as another's, or a factor of one level only; and the effects that were left out. One is always kept."""
    used = {column_of(part) for parts in analysis.factors for part in parts}
    where = {**analysis.where, **{name: levels for name, levels in analysis.levels.items() if name in used}}
    table = with_short_names(table, list(where))
    table = table.take(pa.array(chosen_rows(table, where)))
    kept: dict[bytes, str] = {}
    left_out: list[str] = []
    for term in analysis.random:
        names = term.split(":")
        if not all(_varies(table, name, None) for name in names):
            left_out.append(term)
            continue
        codes = grouped(with_short_names(table, names), term)
        if codes.max() + 1 == len(codes) or codes.tobytes() in kept:
            left_out.append(term)
        else:
            kept[codes.tobytes()] = term
    return replace(analysis, random=tuple(kept.values()) or analysis.random[:1]), left_out


def _varies(table: pa.Table, name: str, levels: Sequence[str] | None) -> bool:
    column = next((c for c in (name, TAG_PREFIX + name) if c in table.column_names), None)
    if column is None:
        return False
    values = set(pc.unique(table.column(column).cast(pa.string())).drop_null().to_pylist())
    return len(values & set(levels) if levels else values) > 1


@dataclass(frozen=True)
class FactorCell:
    """One combination: rows, their plain mean, and the estimated mean with its 95 % interval.

    The estimate is the model's for an average group if all rows had these levels and were otherwise as they are; of a
    logistic model it is a probability.
    """

    x: str
    line: str
    n: int
    raw: float
    estimate: float
    low: float
    high: float


def cell_means(design: Design, fit: Fit, x: str, line: str) -> tuple[FactorCell, ...]:
    """The means of every combination of two factors that has rows."""
    beta = np.array([c.estimate for c in fit.coefficients])
    first, second = design.parts[x], design.parts[line]
    found = []
    for b, line_level in enumerate(second.levels):
        for a, level in enumerate(first.levels):
            mine = (first.code == a) & (second.code == b)
            if not mine.any():
                continue
            row = design.mean_row({x: level, line: line_level})
            middle = float(row @ beta)
            reach = 1.959964 * float(np.sqrt(row @ fit.covariance @ row))
            values = [middle, middle - reach, middle + reach]
            if fit.family == "logistic":
                values = [0.5 * (1.0 + float(np.tanh(0.5 * v))) for v in values]
            found.append(FactorCell(level, line_level, int(mine.sum()), float(design.y[mine].mean()), *values))
    return tuple(found)
