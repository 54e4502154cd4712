"""Tables of one's own runs: any of model, benchmark, task and subset down and across, in the formats of papers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.core import UsageError, check_options, option, percent, render, unknown
from creperie.metrics import task
from creperie.reporting.gather import distinct, model_tail
from creperie.reporting.tables.render import latex_text
from creperie.scoring import Run

DIMENSIONS = ("model", "benchmark", "task", "subset")
Labels = tuple[str, ...]


@dataclass(frozen=True)
class TableChoice:
    """What goes down and across, and what is taken of the rest."""

    rows: tuple[str, ...] = option(("model",), "Own table: what goes down, by comma.", choices=DIMENSIONS)
    columns: tuple[str, ...] = option(("subset",), "Own table: what goes across, by comma.", choices=DIMENSIONS)
    task: str = option("", "Own table: of this task only.")
    intervals: bool = option(True, "Own table: with intervals.")
    digits: int = 1

    def __post_init__(self) -> None:
        check_options(self)
        if set(self.rows) & set(self.columns) or not self.rows or not self.columns:
            raise UsageError("rows and columns share a dimension", hint=f"each takes some of: {', '.join(DIMENSIONS)}")


@dataclass(frozen=True)
class TableValue:
    """A cell: a share, or of tasks that rank, a rank."""

    value: float
    low: float
    high: float
    n: int
    ties: int
    ranks: bool = False  #: lower is better

    def text(self, digits: int) -> str:
        return _figure(self.value, self.ranks, digits)

    def span(self, digits: int) -> str:
        """The interval; empty where there is none."""
        if math.isnan(self.low):
            return ""
        return f"[{_figure(self.low, self.ranks, digits)}, {_figure(self.high, self.ranks, digits)}]"


@dataclass(frozen=True)
class RunTable:
    """Rows × columns. Cells that no run fills are missing."""

    choice: TableChoice
    rows: list[Labels]
    columns: list[Labels]
    cells: dict[tuple[Labels, Labels], TableValue]
    caption: str

    def best(self) -> set[tuple[Labels, Labels]]:
        """The best cells of every column; equal values are all best. One row alone is not."""
        found: set[tuple[Labels, Labels]] = set()
        for column in self.columns if len(self.rows) > 1 else ():
            own = {row: cell for row in self.rows if (cell := self.cells.get((row, column)))}
            shown = {row: float(cell.text(self.choice.digits)) for row, cell in own.items() if cell.value == cell.value}
            if len(shown) > 1:
                top = (min if next(iter(own.values())).ranks else max)(shown.values())
                found |= {(row, column) for row, value in shown.items() if value == top}
        return found

    def document(self) -> dict[str, Any]:
        cells = [
            {**dict(zip((*self.choice.rows, *self.choice.columns), (*row, *column), strict=True)), **vars(cell)}
            for (row, column), cell in self.cells.items()
        ]
        sides = {"rows": list(self.choice.rows), "columns": list(self.choice.columns)}
        return {**sides, "caption": self.caption, "cells": cells}


def run_table(runs: Sequence[Run], choice: TableChoice) -> RunTable:
    """The table of these runs. A dimension that is neither down nor across must have one value."""
    models = list(dict.fromkeys(run.model for run in runs))
    names = dict(zip(models, distinct([[model_tail(m), m] for m in models]), strict=True))
    shown = (*choice.rows, *choice.columns)
    wanted = task(choice.task).name if choice.task else ""
    records = [
        ({"model": names[run.model], "benchmark": run.benchmark, "task": r["task"], "subset": r["subset"]}, r)
        for run in runs
        for r in run.results
        if (not wanted or r["task"] == wanted) and ("subset" in shown or r["subset"] == "all") and r["n"]
    ]
    if not records:
        raise UsageError("the runs have no such result", hint="look at their tasks with `creperie report`")
    for name in DIMENSIONS:
        values = list(dict.fromkeys(labels[name] for labels, _ in records))
        if name not in shown and len(values) > 1:
            hint = "pass `task=`" if name == "task" else f"put it down or across: --rows model,{name}"
            raise UsageError(f"the runs have several values of {name} ({', '.join(values[:4])})", hint=hint)
    cells: dict[tuple[tuple[str, ...], tuple[str, ...]], TableValue] = {}
    for labels, r in records:
        row, column = (tuple(labels[d] for d in side) for side in (choice.rows, choice.columns))
        ranks = task(r["task"]).value in ("mean-rank", "median-rank")
        low, high = (math.nan if r[k] is None else float(r[k]) for k in ("low", "high"))
        value = math.nan if r["accuracy"] is None else float(r["accuracy"])
        figure = TableValue(value, low, high, int(r["n"]), int(r["ties"]), ranks)
        if cells.setdefault((row, column), figure) != figure:
            hint = "name models in memory: `creperie.wrap(model, name=…)`; of several runs of a model give one"
            raise UsageError(f"several runs have a result for {', '.join((*row, *column))}", hint=hint)
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    fixed = {d: records[0][0][d] for d in DIMENSIONS if d not in shown}
    told = ", ".join(f"{value}" for d, value in fixed.items() if d != "subset")
    ties = sorted({str(run.document["ties"]) for run in runs})
    caption = f"Accuracy in %{f' ({told})' if told else ''}; a tie counts as {' or '.join(ties)}."
    return RunTable(choice, rows, columns, cells, caption)


def _figure(value: float, ranks: bool, digits: int) -> str:
    return f"{value:.{max(2, digits)}f}" if ranks and value == value else percent(value, digits)


# -- formats ---------------------------------------------------------------------------------------------------------


def render_run_table(table: RunTable, form: str) -> str:
    """The table as text, markdown, latex, csv or html. CSV has one line per cell, as programs read it."""
    if form == "csv":
        return _long_csv(table)
    heads = [*table.choice.rows, *(" ".join(column) for column in table.columns)]
    best = table.best()
    rows: list[list[str | TableCell]] = []
    for row in table.rows:
        cells = ((table.cells.get((row, column)), (row, column) in best) for column in table.columns)
        rows.append([*row, *(_cell(table.choice, value, bold) for value, bold in cells)])
    return render_rows(heads, rows, form, left=len(table.choice.rows), note=table.caption)


@dataclass(frozen=True)
class TableCell:
    """A figure with what stands behind it in small print, and whether it is the best of its column."""

    text: str
    small: str = ""
    best: bool = False

    def __str__(self) -> str:
        return f"{self.text} {self.small}".rstrip()


def _cell(choice: TableChoice, value: TableValue | None, best: bool) -> TableCell:
    if value is None:
        return TableCell("–")
    return TableCell(value.text(choice.digits), value.span(choice.digits) if choice.intervals else "", best)


def render_rows(
    heads: Sequence[str], rows: Sequence[Sequence[str | TableCell]], form: str, *, left: int = 1, note: str = ""
) -> str:
    """Rows as text, markdown, latex, csv or html; the first `left` columns are words, the others figures."""
    writers: dict[str, Callable[..., str]] = {
        "text": _markdown,
        "markdown": _markdown,
        "latex": _latex,
        "csv": _csv,
        "html": _html,
    }
    if form not in writers:
        raise unknown("format", form, writers)
    cells = [[c if isinstance(c, TableCell) else TableCell(c) for c in row] for row in rows]
    return writers[form](heads, cells, left, note)


Rows = Sequence[Sequence[TableCell]]


def _markdown(heads: Sequence[str], rows: Rows, left: int, note: str) -> str:
    def cell(c: TableCell) -> str:
        text = c.text.replace("|", "\\|")
        return f"**{text}** {c.small}".rstrip() if c.best else f"{text} {c.small}".rstrip()

    lines = ["| " + " | ".join(cell(TableCell(h)) for h in heads) + " |"]
    lines.append("|" + "---|" * left + "---:|" * (len(heads) - left))
    lines += ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows]
    return "\n".join([*lines, "", *([note, ""] if note else [])])


def _latex(heads: Sequence[str], rows: Rows, left: int, note: str) -> str:
    def cell(c: TableCell) -> str:
        text = f"\\textbf{{{latex_text(c.text)}}}" if c.best else latex_text(c.text)
        return f"{text} {{\\scriptsize {latex_text(c.small)}}}" if c.small else text

    wide = "l" * left + "r" * (len(heads) - left)
    lines = ["% \\usepackage{booktabs}", f"\\begin{{tabular}}{{{wide}}}", "\\toprule"]
    lines += [" & ".join(latex_text(h) for h in heads) + " \\\\", "\\midrule"]
    lines += [" & ".join(cell(c) for c in row) + " \\\\" for row in rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", *(f"% {line}" for line in note.splitlines()), ""])


def _csv(heads: Sequence[str], rows: Rows, left: int, note: str) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(heads), *([str(c) for c in row] for row in rows)])
    return out.getvalue()


def _long_csv(table: RunTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*table.choice.rows, *table.choice.columns, "value", "low", "high", "n", "ties"])
    for (row, column), cell in table.cells.items():
        numbers = ("" if math.isnan(v) else repr(v) for v in (cell.value, cell.low, cell.high))
        writer.writerow([*row, *column, *numbers, cell.n, cell.ties])
    return out.getvalue()


def _html(heads: Sequence[str], rows: Rows, left: int, note: str) -> str:
    return render("reporting", "run_table.html", heads=heads, rows=rows, left=left, note=note)
