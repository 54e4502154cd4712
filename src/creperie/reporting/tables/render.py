"""A filled table as text, Markdown, LaTeX, CSV or HTML: one grid of cells, five ways to write it."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from creperie.core import render, unknown
from creperie.reporting.tables.filled import FilledTable, OurRow
from creperie.reporting.tables.published import Column, PublishedTable

Kind = Literal["group", "published", "run", "interval", "n", "difference"]
MARK = "▶"
WIDEST = 170  #: characters of a line of text
LEGEND = (
    f"{MARK} marks our runs. Differences are ours minus the printed figure: = the same to the last printed digit, "
    "✓ the printed figure lies in our interval, ✗ it does not."
)


@dataclass(frozen=True)
class TableLine:
    """A row of the grid: what kind it is, its label, and one cell per column."""

    kind: Kind
    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """The table ready to be written."""

    title: str
    heads: tuple[str, ...]
    units: tuple[str, ...]
    lines: tuple[TableLine, ...]
    notes: tuple[str, ...]
    groups: bool


def grid(filled: FilledTable) -> Grid:
    """Published rows in their order, ours below the row of the same model, the others at the end."""
    table = filled.table
    lines: list[TableLine] = []
    group = ""
    last_of = {row.group: row for row in table.rows if row.group}
    alone = [ours for ours in filled.ours if ours.row is None]
    for row in table.rows:
        if row.group != group and row.group:
            lines.append(TableLine("group", row.group, tuple("" for _ in table.columns)))
        group = row.group
        lines.append(TableLine("published", row.model, tuple(row.cells[c.name] for c in table.columns)))
        for ours in filled.ours:
            if ours.row is row:
                lines += _our_lines(ours, table.columns)
        if row is last_of.get(row.group):
            lines += [line for ours in alone if ours.group == row.group for line in _our_lines(ours, table.columns)]
    others = [ours for ours in alone if ours.group not in last_of]
    if others and group:
        lines.append(TableLine("group", "of no group of the paper", tuple("" for _ in table.columns)))
    lines += [line for ours in others for line in _our_lines(ours, table.columns)]
    notes = [*table.notes, *filled.notes]
    if filled.ours:
        notes.append(LEGEND)
    heads = tuple(c.title for c in table.columns)
    return Grid(_title(table), heads, tuple(c.unit for c in table.columns), tuple(lines), tuple(notes), bool(group))


def _title(table: PublishedTable) -> str:
    place = f"Table {table.number} ({table.where})" if table.number.isdigit() else table.where
    return f"{table.title}, {place}. {table.caption}"


def _our_lines(row: OurRow, columns: Sequence[Column]) -> list[TableLine]:
    lines = [TableLine("run", row.label or row.model, tuple(_value(row, c) for c in columns))]
    levels = {f.level for f in row.figures.values() if not math.isnan(f.low)}
    if levels:
        label = " / ".join(f"{100 * level:g} %" for level in sorted(levels)) + " interval"
        lines.append(TableLine("interval", label, tuple(_interval(row, c) for c in columns)))
    if any(f.n for f in row.figures.values()):
        lines.append(TableLine("n", "n", tuple(_size(row, c) for c in columns)))
    if row.row is not None and any(_difference(row, c) for c in columns):
        label = f"minus {row.row.model}"
        lines.append(TableLine("difference", label, tuple(_difference(row, c) for c in columns)))
    return lines


def _size(row: OurRow, column: Column) -> str:
    found = row.figures.get(column.name)
    return f"{found.n:,}" if found and found.n else ""


def _value(row: OurRow, column: Column) -> str:
    if column.name not in row.figures:
        return ""
    value = row.figures[column.name].value
    whole = column.unit in ("count", "") and float(value).is_integer()
    return f"{value:.0f}" if whole else f"{value:.2f}"


def _interval(row: OurRow, column: Column) -> str:
    found = row.figures.get(column.name)
    return f"[{found.low:.1f}, {found.high:.1f}]" if found and not math.isnan(found.low) else ""


def _difference(row: OurRow, column: Column) -> str:
    apart = row.difference(column.name) if column.name in row.figures else None
    if apart is None:
        return ""
    if row.equal(column.name):
        return "="
    if column.unit == "count":
        return ""
    verdict = {True: " ✓", False: " ✗", None: ""}[row.within(column.name)]
    return f"{apart:+.2f}{verdict}".replace("-", "−")


def render_table(filled: FilledTable, form: str = "text") -> str:
    """The table in one of the `FORMS`."""
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    return FORMS[form](grid(filled))


def _head(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit and unit != "%" else f"{name} %" if unit else name


# -- text ------------------------------------------------------------------------------------------------------------


def _text(g: Grid) -> str:
    """Columns side by side; where they are too many for a line, in several blocks."""
    heads = [_head(n, u) for n, u in zip(g.heads, g.units, strict=True)]
    labels = [_text_label(line) for line in g.lines]
    first = max([len(label) for label in labels] + [5])
    widths = [max(len(h), *(len(line.cells[i]) for line in g.lines)) for i, h in enumerate(heads)]
    out = [*textwrap.wrap(g.title, 116), ""]
    for start, end in _blocks(widths, WIDEST - first):
        wide = widths[start:end]
        out += [_text_row("", heads[start:end], first, wide), "─" * (first + sum(w + 2 for w in wide))]
        out += [_text_row(label, line.cells[start:end], first, wide) for label, line in zip(labels, g.lines)]
        out.append("")
    return "\n".join([*out, *_wrapped(g.notes)]) + "\n"


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Columns cut into as many blocks of about one size as the room asks for.

    >>> _blocks([8, 8, 8, 8], 25)
    [(0, 2), (2, 4)]
    """
    count = max(1, math.ceil(sum(w + 2 for w in widths) / max(room, 1)))
    size = math.ceil(len(widths) / count)
    return [(i, min(i + size, len(widths))) for i in range(0, len(widths), size)]


def _text_label(line: TableLine) -> str:
    if line.kind == "run":
        return f"{MARK} {line.label}"
    if line.kind == "group":
        return f"{line.label}:"
    return line.label if line.kind == "published" else f"    {line.label}"


def _text_row(label: str, cells: Sequence[str], first: int, widths: Sequence[int]) -> str:
    return (label.ljust(first) + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths, strict=True))).rstrip()


def _wrapped(notes: Sequence[str]) -> list[str]:
    return [line for note in notes for line in textwrap.wrap(note, 116, initial_indent="* ", subsequent_indent="  ")]


# -- markup ----------------------------------------------------------------------------------------------------------


def _markdown(g: Grid) -> str:
    heads = [_head(n, u) for n, u in zip(g.heads, g.units, strict=True)]
    out = [f"**{_md(g.title)}**", "", "| | " + " | ".join(map(_md, heads)) + " |", "|---|" + "---:|" * len(heads)]
    for line in g.lines:
        cells = [_md(c) for c in line.cells]
        label = _md(line.label)
        if line.kind == "run":
            label, cells = f"{MARK} **{label}**", [f"**{c}**" if c else "" for c in cells]
        elif line.kind != "published":
            label = f"*{label}*"
        out.append("| " + " | ".join([label, *cells]) + " |")
    return "\n".join([*out, "", *(f"- {_md(note)}" for note in g.notes)]) + "\n"


def _md(text: str) -> str:
    for mark in "\\`*_|<>":
        text = text.replace(mark, f"\\{mark}")
    return text


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "…": r"\ldots{}", "–": "--"}
_TEX |= {"’": "'"} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SIGNS = {
    "×": "times",
    "✓": "in",
    "✗": "notin",
    "▶": "blacktriangleright",
    "α": "alpha",
    "β": "beta",
    "→": "rightarrow",
}
_TEX |= {sign: rf"$\{name}$" for sign, name in _SIGNS.items()} | {sign: f"${sign}$" for sign in "<>"} | {"−": "$-$"}


def latex_text(text: str) -> str:
    r"""
    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_TEX.get(c, c) for c in text)


def _latex(g: Grid) -> str:
    """A booktabs table; needs the packages booktabs and amssymb."""
    heads = [latex_text(_head(n, u)) for n, u in zip(g.heads, g.units, strict=True)]
    out = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(g.title)}}}"]
    out += [rf"\begin{{tabular}}{{l{'r' * len(heads)}}}", r"\toprule", " & ".join(["", *heads]) + r" \\", r"\midrule"]
    for line in g.lines:
        cells, label = [latex_text(c) for c in line.cells], latex_text(line.label)
        if line.kind == "group":
            out += [r"\midrule", rf"\multicolumn{{{len(heads) + 1}}}{{l}}{{\emph{{{label}}}}} \\"]
            continue
        if line.kind == "run":
            label, cells = rf"\textbf{{{label}}}", [rf"\textbf{{{c}}}" if c else "" for c in cells]
        elif line.kind != "published":
            label = rf"\quad {label}"
        out.append(" & ".join([label, *cells]) + r" \\")
    notes = [rf"\par\smallskip\footnotesize {latex_text(note)}" for note in g.notes]
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]) + "\n"


def _csv(g: Grid) -> str:
    """One line per row; the first columns say what kind of row it is and of which group."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "group", "model", *(_head(n, u) for n, u in zip(g.heads, g.units, strict=True))])
    group = ""
    for line in g.lines:
        if line.kind == "group":
            group = line.label
        else:
            writer.writerow([line.kind, group, line.label, *line.cells])
    return out.getvalue()


def _html(g: Grid) -> str:
    heads = [_head(n, u) for n, u in zip(g.heads, g.units, strict=True)]
    return render("reporting", "published.html", table=g, heads=heads, mark=MARK)


FORMS: dict[str, Callable[[Grid], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "html": _html,
}
