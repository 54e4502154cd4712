"""A filled table as lines: the published rows, each followed by our rows of the same model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from creperie.core import WIDE
from creperie.reporting.tables.filled import FilledTable, OurRow
from creperie.reporting.tables.published import Column, PublishedTable
from creperie.reporting.written import TableCell, render_rows

Kind = Literal["group", "published", "run", "interval", "n", "difference"]
MARK = "▶"
#: kind of line → format of its label
MARKS: dict[Kind, str] = {"group": "{}:", "published": "{}", "run": f"{MARK} {{}}"}
MARKS |= {"interval": "↳ {}", "n": "↳ {}", "difference": "↳ {}"}
FINEST = 6  #: most decimals of a number; what is smaller counts as 0
OURS = f"{MARK} marks our rows."
NONE_COMPARED = f"{MARK} marks our rows. None is compared with the paper's: each has another model or other items."
DIFFERENCES = (
    "Differences are ours minus the printed figure: = the same to the last printed digit, "
    "✓ the printed figure lies in our interval, ✗ it does not."
)
NONE_OF_OURS = "All figures are the paper's: no run fills this table."
STAND_INS = "A row of ours that shows no line of differences has another model or other items and is not compared."


@dataclass(frozen=True)
class TableLine:
    """A line of the table: its kind, its label, and one cell per column."""

    kind: Kind
    label: str
    cells: tuple[str, ...]


def _grid(filled: FilledTable) -> Iterator[TableLine]:
    """Yield the table's lines. Each published row is followed by our rows of the same model. Our other rows come
    last.
    """
    table = filled.table
    group, blank = "", ("",) * len(table.columns)
    last_of = {row.group: row for row in table.rows if row.group}
    alone = [ours for ours in filled.ours if ours.row is None]
    for row in table.rows:
        if row.group != group and row.group:
            yield TableLine("group", row.group, blank)
        group = row.group
        yield TableLine("published", row.model, tuple(row.cells[c.name] for c in table.columns))
        for ours in filled.ours:
            if ours.row is row:
                yield from _our_lines(ours, table.columns)
        if row is last_of.get(row.group):
            yield from (line for ours in alone if ours.group == row.group for line in _our_lines(ours, table.columns))
    others = [ours for ours in alone if ours.group not in last_of]
    if others and group:
        yield TableLine("group", "of no group of the paper", blank)
    for ours in others:
        yield from _our_lines(ours, table.columns)


def _notes(filled: FilledTable) -> list[str]:
    notes = [*filled.table.notes, *filled.notes]
    if filled.ours:
        compared = [any(ours.compared(name) for name in ours.figures) for ours in filled.ours]
        legend = [OURS, DIFFERENCES, "" if all(compared) else STAND_INS] if any(compared) else [NONE_COMPARED]
        notes.append(" ".join(filter(None, legend)))
    else:
        notes.append(NONE_OF_OURS)
    return notes


def _title(table: PublishedTable) -> str:
    place = f"Table {table.number} ({table.where})" if table.number.isdigit() else table.where
    return f"{table.title}, {place}. {table.caption}"


def _our_lines(row: OurRow, columns: Sequence[Column]) -> Iterator[TableLine]:
    yield TableLine("run", row.label or row.model, tuple(_value(row, c) for c in columns))
    levels = {f.level for f in row.figures.values() if not math.isnan(f.low)}
    if levels:
        label = " / ".join(f"{100 * level:g} %" for level in sorted(levels)) + " interval"
        yield TableLine("interval", label, tuple(_interval(row, c) for c in columns))
    if any(f.n for f in row.figures.values()):
        yield TableLine("n", "n", tuple(_size(row, c) for c in columns))
    apart = tuple(_difference(row, c) for c in columns)
    if row.row is not None and any(apart):
        yield TableLine("difference", f"minus {row.row.model}", apart)


def _size(row: OurRow, column: Column) -> str:
    cell = row.figures.get(column.name)
    return f"{cell.n:,}" if cell and cell.n else ""


def _value(row: OurRow, column: Column) -> str:
    if column.name not in row.figures:
        return ""
    value = row.figures[column.name].value
    _, point, digits = (row.row.cells[column.name] if row.row and not column.unit else "").partition(".")
    if point:  # columns without a unit hold rows of several: shares, ratings
        return _shown(value, len(digits))
    whole = column.unit in ("count", "") and float(value).is_integer()
    return f"{value:.0f}" if whole else _shown(value, 2)


def _shown(value: float, digits: int) -> str:
    """Return a number with `digits` decimals. A number that is not 0 but would be shown as 0 gets more decimals.

    >>> _shown(-0.0024, 2), _shown(0.0, 2), _shown(-1e-12, 2)
    ('-0.002', '0.00', '0.00')
    """
    enough = next((d for d in range(digits, FINEST + 1) if round(value, d)), digits)
    return f"{value:z.{enough}f}"


def _interval(row: OurRow, column: Column) -> str:
    cell = row.figures.get(column.name)
    digits = 1 if column.unit in ("%", "points") else 2
    return f"[{_shown(cell.low, digits)}, {_shown(cell.high, digits)}]" if cell and not math.isnan(cell.low) else ""


def _difference(row: OurRow, column: Column) -> str:
    apart = row.difference(column.name) if column.name in row.figures else None
    if apart is None:
        return ""
    if row.equal(column.name):
        return "="
    if column.unit == "count":
        return ""
    verdict = {True: " ✓", False: " ✗", None: ""}[row.within(column.name)]
    return f"{apart:+z.2f}{verdict}".replace("-", "−")


def render_table(filled: FilledTable, form: str = "text", wide: int = WIDE) -> str:
    """Return the table as text, markdown, latex, csv or html. CSV has columns for the kind and the group of a row."""
    lines = _grid(filled)
    heads = [_head(column.title, column.unit) for column in filled.table.columns]
    if form == "csv":
        plain, group = [], ""
        for line in lines:
            if line.kind == "group":
                group = line.label
            else:
                plain.append([line.kind, group, line.label, *line.cells])
        return render_rows(["kind", "group", "model", *heads], plain, form)
    rows = [[TableCell(MARKS[line.kind].format(line.label)), *map(TableCell, line.cells)] for line in lines]
    return render_rows(["", *heads], rows, form, title=_title(filled.table), notes=_notes(filled), wide=wide)


def _head(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit and unit != "%" else f"{name} %" if unit else name
