"""`creperie stats`: mixed models over items and models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.options import FILE, options_of, pairs_of
from creperie.cli.output import CommandResult, answers, bar, echo, p_value, print_table, say, show_notes
from creperie.core import Json, UsageError, as_flags
from creperie.statistics import AnalysisOptions, RunsInput

if TYPE_CHECKING:
    from creperie.statistics import Analysed, Analysis, AnalysisExtras, LongTable

TABLES = (".parquet", ".csv", ".tsv")


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…|FOLDER|TABLE")
@options_of("question", AnalysisOptions)
@options_of("source", RunsInput)
@click.option("--per-model", is_flag=True, help="Also fit each model's rows alone.")
@click.option("--table", type=FILE, metavar="FILE", help="Write the long table: .parquet, .csv.")
@click.option("--plot", type=FILE, metavar="FILE", help="An interaction plot: .svg, .pdf, .png.")
@click.option("--plot-by", default="", metavar="X,LINE", help="The two factors of the plot.")
@answers
def stats(
    runs: tuple[str, ...],
    question: AnalysisOptions,
    source: RunsInput,
    per_model: bool,
    table: Path | None,
    plot: Path | None,
    plot_by: str,
) -> CommandResult:
    """Fit mixed models over items, models and constructions: what makes models choose a caption?

    Each RUN is a folder that `score` wrote, or a folder that contains such folders. Instead of runs, one table
    (.parquet, .csv, .tsv) with one row per observation may be given. Random intercepts may be crossed. The exit code is
    1 if a fit did not converge.

    \b
    creperie stats runs/* --bench BENCH --fixed 'longer*subset + model' --random image,caption --family logistic
    creperie stats runs/* --bench BENCH --preset construction --per-model --plot construction.svg
    """
    from creperie.reporting import interactions, save_figure
    from creperie.statistics import find_analysis_preset, fit_study, with_families, write_table

    if not (question.preset or question.fixed or table):
        raise UsageError(
            "no analysis given", hint="pass --preset NAME or --fixed EFFECTS, or --table FILE to write the table only"
        )
    analyses, wish = _analyses(question, plot_by, per_model, bool(plot))
    long = _read(runs, source, bool(question.preset))
    ours = bool(question.preset) and find_analysis_preset(question.preset).ours
    ready = with_families(long.table, analyses, question.families, ours)
    families = [as_flags(note) for note in ready.notes if analyses]
    for note in families:  # before the fit, which may take minutes
        echo(f"note: {note}", error=True)
    written = write_table(ready.table, table) if table else None
    study = fit_study(ready.table, ready.analyses, wish=wish, progress=bar) if analyses else None
    drawn = save_figure(interactions(study.fits, wish.cells), plot) if study and plot and wish.cells else None
    document: Json = {"rows": len(long.table), "columns": ready.table.column_names}
    document |= study.document() if study else {}
    document["notes"] = [*long.notes, *families]
    document |= {"table": str(written) if written else None, "plot": str(drawn) if drawn else None}

    def show() -> None:
        show_notes(long.notes)
        for one in study.fits if study else ():
            _show_fit(one)
            say()
        for left in study.skipped if study else ():
            title = ", ".join(part for part in (left.label, left.sample) if part)
            say("[yellow]not fitted[/yellow]: {}: {}", title, left.reason)
        for path in (written, drawn):
            if path:
                say(f"wrote {path}")

    return CommandResult(document, show, ok=study is None or study.converged)


# -- reading the call ------------------------------------------------------------------------------------------------


def _analyses(
    question: AnalysisOptions, plot_by: str, per_model: bool, plot: bool
) -> tuple[Mapping[str, Analysis], AnalysisExtras]:
    from creperie.statistics import Analysis, AnalysisExtras, find_analysis_preset, terms

    axes = _listed(plot_by)
    if plot_by and len(axes) != 2:
        raise UsageError(
            f"--plot-by {plot_by}: expected two factors", hint="name two factors: --plot-by grammaticality,type"
        )
    if question.preset:
        if question.fixed:
            raise UsageError("a preset has its own fixed effects", hint="give --preset or --fixed")
        chosen = find_analysis_preset(question.preset)
        cells = (axes[0], axes[1]) if axes else chosen.plot
        analyses = {label: _changed(a, question) for label, a in chosen.analyses.items()}
        return analyses, AnalysisExtras(per_model, True, chosen.plot[1], cells)
    if not question.fixed:
        return {}, AnalysisExtras()
    analysis = _changed(Analysis(fixed=terms(list(question.fixed))), question)
    pairs = [t for t in analysis.factors if len(t) == 2]
    pair = (axes[0], axes[1]) if axes else (pairs[0][0], pairs[0][1]) if pairs else None
    if plot and pair is None:
        raise UsageError(
            "the analysis has no interaction of two factors to plot",
            hint="name two factors: --plot-by grammaticality,type",
        )
    return {"": analysis}, AnalysisExtras(per_model, cells=pair)


def _changed(analysis: Analysis, question: AnalysisOptions) -> Analysis:
    """Return a copy of `analysis`. Settings given on the command line (`question`) replace those of the analysis."""
    kinds = [text.partition("=") for text in question.contrasts]
    general = [name for name, sign, _ in kinds if not sign]
    return replace(
        analysis,
        outcome=question.outcome or analysis.outcome,
        random=tuple(name for text in question.random for name in _listed(text)) or analysis.random,
        family=question.family or analysis.family,
        contrast=general[-1] if general else analysis.contrast,
        contrasts={**analysis.contrasts, **{name: kind for name, sign, kind in kinds if sign}},
        levels={**analysis.levels, **_named_lists(question.levels, "--levels")},
        where={**analysis.where, **_named_lists(question.where, "--where")},
        reml=not question.ml,
    )


def _read(runs: Sequence[str], source: RunsInput, preset: bool) -> LongTable:
    from creperie.bench import load
    from creperie.reporting import runs_in
    from creperie.scoring import load_run
    from creperie.statistics import (
        LINK_GRAMMAR,
        LongTable,
        TableReading,
        judged,
        load_preference,
        long_table,
        read_table,
    )

    if any(Path(name).suffix in TABLES and not Path(name).is_dir() for name in runs):
        if len(runs) > 1 or source.bench or source.task or source.size:
            raise UsageError(
                "a table cannot be combined with runs, --bench, --task or --size", hint="leave those out, or the table"
            )
        judge = load_preference(source.grammar, equal=source.equal) if source.grammar else None
        return LongTable(judged(read_table(runs[0]), judge, bar))
    benches = [load(spec) for spec in source.bench]
    grammar = source.grammar or (LINK_GRAMMAR if preset and benches else "")
    scorer = load_preference(grammar, equal=source.equal) if grammar else None
    reading = TableReading(source.task, source.ties, scorer, _sizes(source.size))
    return long_table([load_run(r) for r in runs_in(runs)], benches, reading, bar)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.replace("+", ",").split(",") if part.strip()]


def _named_lists(texts: Sequence[str], option: str) -> dict[str, tuple[str, ...]]:
    pairs = pairs_of(texts, option, "NAME=VALUE,VALUE").items()
    return {name: tuple(v.strip() for v in values.split(",")) for name, values in pairs}


def _sizes(texts: Sequence[str]) -> dict[str, float]:
    sizes = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            sizes[name] = float(number)
        except ValueError:
            raise UsageError(f"--size {text}: not a number", hint="write --size URI=NUMBER, such as 151e6") from None
    return sizes


# -- showing ---------------------------------------------------------------------------------------------------------


def _show_fit(one: Analysed) -> None:
    from rich.markup import escape

    fit = one.fit
    title = " · ".join(part for part in (one.label, one.sample) if part)
    say(f"[bold]{escape(title)}[/bold]  {fit.family} mixed model, {fit.method}, {fit.n:,} rows")
    say(escape(one.analysis.formula))
    bounded = any(math.isfinite(c.df) for c in fit.coefficients)
    statistic = "z" if fit.family == "logistic" else "t"
    columns = ["", "estimate", "SE", statistic, *(["df"] if bounded else []), "p", "95 %"]
    rows = []
    for c in fit.coefficients:
        df = ["∞" if math.isinf(c.df) else f"{c.df:,.{0 if c.df >= 100 else 1}f}"] if bounded else []
        cells = (c.name, f"{c.estimate:.4g}", f"{c.se:.3g}", f"{c.statistic:.2f}")
        rows.append((*cells, *df, p_value(c.p), f"[{c.low:.3g}, {c.high:.3g}]"))
    print_table(columns, rows)
    spreads = [f"{s.name} {s.sd:.4g}" + (f" ({s.groups:,} groups)" if s.groups else "") for s in fit.spreads]
    say(escape("standard deviations: " + ", ".join(spreads)))
    criterion = "REML criterion" if fit.method == "REML" else "−2 log-likelihood"
    say(escape(f"{criterion} {fit.criterion:.2f}, AIC {fit.aic:.1f}; p: {fit.p_values}"))
    colour = "green" if fit.convergence.converged else "red"
    say(f"[{colour}]{escape(fit.convergence.line)}[/{colour}]")
    show_notes(one.notes)
