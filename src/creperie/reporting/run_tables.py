"""Tables of the user's own runs in the formats of papers. Rows and columns can be any of model, benchmark, task and
subset.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from creperie.core import WIDE, Json, UsageError, check_options, csv_text, option
from creperie.metrics import Task, task, unit_of
from creperie.reporting.gather import covered, distinct, model_tail, value_and_interval
from creperie.reporting.known import COMPLETE
from creperie.reporting.written import TableCell, render_rows
from creperie.scoring import Run

DIMENSIONS = ("model", "benchmark", "task", "subset")
Labels = tuple[str, ...]


@dataclass(frozen=True)
class TableChoice:
    """What a table has as rows and columns, and how its cells are shown."""

    rows: tuple[str, ...] = option(
        ("model",), "Own table: dimensions of the rows, comma-separated.", choices=DIMENSIONS
    )
    columns: tuple[str, ...] = option(
        ("subset",), "Own table: dimensions of the columns, comma-separated.", choices=DIMENSIONS
    )
    task: str = option("", "Own table: show this task only.")
    intervals: bool = option(True, "Own table: show intervals.")
    digits: int = 1

    def __post_init__(self) -> None:
        check_options(self)
        if set(self.rows) & set(self.columns) or not self.rows or not self.columns:
            what = "rows and columns must each have a dimension, and none in common"
            raise UsageError(what, hint=f"choose from: {', '.join(DIMENSIONS)}")


@dataclass(frozen=True)
class TableValue:
    """The value of a cell: a proportion or, for ranking tasks, a rank."""

    value: float
    low: float
    high: float
    n: int
    ties: int
    void: int
    task: Task

    def text(self, digits: int) -> str:
        return self.task.text(self.value, digits)

    def span(self, digits: int) -> str:
        """Return the interval as a string. It is empty if there is no interval."""
        if math.isnan(self.low):
            return ""
        return f"[{self.task.text(self.low, digits)}, {self.task.text(self.high, digits)}]"

    @property
    def partly(self) -> str:
        """A phrase such as "90 of 100 items" if some items are not covered. Otherwise the text is empty."""
        return f"{covered(self.n, self.void)} items" if self.void else ""


@dataclass(frozen=True)
class RunTable:
    """A table of rows × columns. If no run belongs in a cell, the cell is missing."""

    choice: TableChoice
    rows: list[Labels]
    columns: list[Labels]
    cells: dict[tuple[Labels, Labels], TableValue]
    caption: str

    def best(self) -> set[tuple[Labels, Labels]]:
        """Return the best cell of every column, or all cells that tie for it. The set is empty if the table has only
        one row.

        A run that lacks more than 1 % of the items of another run is never the best: its items may be easier.
        """
        leaders: set[tuple[Labels, Labels]] = set()
        for column in self.columns if len(self.rows) > 1 else ():
            own = {row: cell for row in self.rows if (cell := self.cells.get((row, column)))}
            most = max((cell.n for cell in own.values()), default=0)
            own = {row: cell for row, cell in own.items() if cell.n >= COMPLETE * most}
            shown = {row: float(cell.text(self.choice.digits)) for row, cell in own.items() if cell.value == cell.value}
            if len(shown) > 1:
                top = (min if next(iter(own.values())).task.is_rank else max)(shown.values())
                leaders |= {(row, column) for row, value in shown.items() if value == top}
        return leaders

    def document(self) -> Json:
        cells = [
            {**dict(zip((*self.choice.rows, *self.choice.columns), (*row, *column), strict=True)), **vars(cell)}
            for (row, column), cell in self.cells.items()
        ]
        sides = {"rows": list(self.choice.rows), "columns": list(self.choice.columns)}
        return {**sides, "caption": self.caption, "cells": cells}


def run_table(runs: Sequence[Run], choice: TableChoice) -> RunTable:
    """Return the table of these runs. A dimension (model, benchmark, task or subset) that is neither in the rows nor in
    the columns may have only one value; otherwise a UsageError is raised.
    """
    if not runs:
        raise UsageError("no run given", hint="name at least one run")
    models = list(dict.fromkeys(run.model for run in runs))
    names = dict(zip(models, distinct([[model_tail(m), m] for m in models]), strict=True))
    shown = (*choice.rows, *choice.columns)
    task_name = task(choice.task).name if choice.task else ""
    records = [
        ({"model": names[run.model], "benchmark": run.benchmark, "task": r["task"], "subset": r["subset"]}, r)
        for run in runs
        for r in run.results
        if (not task_name or r["task"] == task_name) and ("subset" in shown or r["subset"] == "all") and r["n"]
    ]
    if not records:
        raise UsageError("no run has a result to show", hint="name one of the runs' tasks with `task=`")
    for name in DIMENSIONS:
        values = list(dict.fromkeys(labels[name] for labels, _ in records))
        if name not in shown and len(values) > 1:
            hint = "pass `task=`" if name == "task" else f"add it to rows or columns: --rows model,{name}"
            raise UsageError(f"the runs have several values of {name} ({', '.join(values[:4])})", hint=hint)
    cells: dict[tuple[tuple[str, ...], tuple[str, ...]], TableValue] = {}
    for labels, r in records:
        row, column = (tuple(labels[d] for d in side) for side in (choice.rows, choice.columns))
        figure = TableValue(*value_and_interval(r), int(r["n"]), int(r["ties"]), int(r["void"]), task(r["task"]))
        if cells.setdefault((row, column), figure) != figure:
            hint = "give one run per model; name models in memory with `creperie.wrap(model, name=…)`"
            raise UsageError(f"several runs have a result for {', '.join((*row, *column))}", hint=hint)
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    fixed = {d: records[0][0][d] for d in DIMENSIONS if d not in shown}
    scope = ", ".join(f"{value}" for d, value in fixed.items() if d != "subset")
    ties = sorted({str(run.document["ties"]) for run in runs})
    kind = unit_of(r["task"] for _, r in records)
    low, high = (pick(cell.n for cell in cells.values()) for pick in (min, max))
    n = f"n = {low:,}" if low == high else f"n from {low:,} to {high:,}"
    caption = f"{kind.capitalize()}{f' ({scope})' if scope else ''}; a tie counts as {' or '.join(ties)}; {n}."
    return RunTable(choice, rows, columns, cells, caption)


# -- formats ---------------------------------------------------------------------------------------------------------


def render_run_table(table: RunTable, form: str, wide: int = WIDE) -> str:
    """Return the table as text, markdown, latex, csv or html. CSV is meant for programs and has one line per cell."""
    if form == "csv":
        columns = [*table.choice.rows, *table.choice.columns, "value", "low", "high", "n", "of", "ties"]
        lines = []
        for (row, column), cell in table.cells.items():
            numbers = (None if math.isnan(v) else v for v in (cell.value, cell.low, cell.high))
            lines.append([*row, *column, *numbers, cell.n, cell.n + cell.void, cell.ties])
        return csv_text(columns, lines)
    heads = [*table.choice.rows, *(" ".join(column) for column in table.columns)]
    best = table.best()
    rows: list[list[str | TableCell]] = []
    for row in table.rows:
        cells = ((table.cells.get((row, column)), (row, column) in best) for column in table.columns)
        rows.append([*row, *(_cell(table.choice, value, bold) for value, bold in cells)])
    return render_rows(heads, rows, form, left=len(table.choice.rows), notes=[table.caption], wide=wide)


def _cell(choice: TableChoice, value: TableValue | None, best: bool) -> TableCell:
    if value is None:
        return TableCell("–")
    small = " ".join(filter(None, [value.span(choice.digits) if choice.intervals else "", value.partly]))
    return TableCell(value.text(choice.digits), small, best)
