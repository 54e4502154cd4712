"""Tables as text, Markdown, LaTeX, CSV or HTML: one grid of cells in five formats."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from creperie.core import WIDE, csv_text, render, unknown


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: its text, small print after it, and whether it is bold."""

    text: str
    small: str = ""
    best: bool = False

    def __str__(self) -> str:
        return f"{self.text} {self.small}".rstrip()


@dataclass(frozen=True)
class WrittenTable:
    """A table ready to be written. The first `left` columns hold words, the others numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    left: int
    title: str
    notes: Sequence[str]
    wide: int  #: characters per line of text


def render_rows(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | TableCell]],
    form: str,
    *,
    left: int = 1,
    title: str = "",
    notes: Sequence[str] = (),
    wide: int = WIDE,
) -> str:
    """Return rows as text, markdown, latex, csv or html. The first `left` columns hold words, the others numbers."""
    if form not in TABLE_FORMS:
        raise unknown("format", form, TABLE_FORMS)
    cells = [[c if isinstance(c, TableCell) else TableCell(c) for c in row] for row in rows]
    return TABLE_FORMS[form](WrittenTable(heads, cells, left, title, notes, wide))


def _text(table: WrittenTable) -> str:
    """Return the table as plain text. Long labels are wrapped. Columns that do not fit on a line follow in further
    blocks.
    """
    wide = max(60, table.wide)
    lines = [list(table.heads), *([str(c) for c in row] for row in table.rows)]
    labels = [_wrapped(line[0], wide // 2 if table.left == 1 else wide) for line in lines]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.heads))]
    widths[0] = max(len(part) for label in labels for part in label)
    names, figures = range(table.left), range(table.left, len(widths))
    room = wide - sum(widths[k] + 2 for k in names)
    count = max(1, math.ceil(sum(widths[k] + 2 for k in figures) / max(room, 1)))
    size = math.ceil(len(figures) / count)
    out = [*textwrap.wrap(table.title, wide), *([""] if table.title else [])]
    for start in range(table.left, len(widths), size):
        part = [*names, *range(start, min(start + size, len(widths)))]
        for number, (line, label) in enumerate(zip(lines, labels, strict=True)):
            cells = [label[0], *line[1:]]
            aligned = [cells[k].ljust(widths[k]) if k < table.left else cells[k].rjust(widths[k]) for k in part]
            out += ["  ".join(aligned).rstrip(), *label[1:]]
            out += ["─" * (sum(widths[k] + 2 for k in part) - 2)] * (number == 0)
        out.append("")
    for note in table.notes:
        out += textwrap.wrap(note, wide)
    return "\n".join(out) + "\n"


def _wrapped(label: str, most: int) -> list[str]:
    """Return the lines of a row's label, at most `most` characters each. Model URIs are not broken at hyphens."""
    if len(label) <= most:
        return [label]
    return textwrap.wrap(label, most, subsequent_indent="  ", break_on_hyphens=False)


def _markdown(table: WrittenTable) -> str:
    def cell(c: TableCell) -> str:
        text = f"**{_escaped(c.text)}**" if c.best and c.text else _escaped(c.text)
        return f"{text} {_escaped(c.small)}".rstrip()

    lines = [f"**{_escaped(table.title)}**", ""] if table.title else []
    lines.append("| " + " | ".join(_escaped(h) for h in table.heads) + " |")
    lines.append("|" + "---|" * table.left + "---:|" * (len(table.heads) - table.left))
    lines += ["| " + " | ".join(cell(c) for c in row) + " |" for row in table.rows]
    return "\n".join([*lines, "", *(f"- {_escaped(note)}" for note in table.notes), ""])


def _escaped(text: str) -> str:
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
    "↳": "hookrightarrow",
    "α": "alpha",
    "β": "beta",
    "→": "rightarrow",
}
_TEX |= {sign: rf"$\{name}$" for sign, name in _SIGNS.items()} | {sign: f"${sign}$" for sign in "<>"} | {"−": "$-$"}


def latex_text(text: str) -> str:
    r"""Return text escaped for LaTeX.

    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_TEX.get(c, c) for c in text)


def _latex(table: WrittenTable) -> str:
    def cell(c: TableCell) -> str:
        text = f"\\textbf{{{latex_text(c.text)}}}" if c.best and c.text else latex_text(c.text)
        return f"{text} {{\\scriptsize {latex_text(c.small)}}}" if c.small else text

    lines = [r"% \usepackage{booktabs, amssymb}", r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{latex_text(table.title)}}}"] if table.title else []
    lines += [rf"\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.heads) - table.left)}}}", r"\toprule"]
    lines += [" & ".join(latex_text(h) for h in table.heads) + r" \\", r"\midrule"]
    lines += [" & ".join(cell(c) for c in row) + r" \\" for row in table.rows]
    notes = [rf"\par\smallskip\footnotesize {latex_text(line)}" for note in table.notes for line in note.splitlines()]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]) + "\n"


TABLE_FORMS: dict[str, Callable[[WrittenTable], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": lambda table: csv_text(table.heads, (map(str, row) for row in table.rows)),
    "html": lambda table: render("reporting", "written.html", table=table),
}
