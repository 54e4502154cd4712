"""The result of a command, and how it is printed: as one JSON document, or as text for people."""

from __future__ import annotations

import functools
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, ParamSpec

import click

from creperie.core import WIDE, Advance, Json, json_text, pace, printable, write_text

P = ParamSpec("P")
SHORT = 20  #: characters of a cell that stay on one line


@dataclass(frozen=True)
class CommandResult:
    """The result of a command. `show` prints it for people. The exit code is 0 if `ok` is True and 1 if it is False,
    for example if a check found errors.

    `code` replaces this exit code: 2 for a failure, 3 if the command could not reach an answer.
    """

    document: Json
    show: Callable[[], None]
    ok: bool = True
    code: int | None = None


def answers(function: Callable[P, CommandResult]) -> Callable[..., int]:
    """Decorate a function that returns a CommandResult. The decorated function prints the result, as JSON with
    `--json`, and returns the exit code.
    """

    @click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
    @functools.wraps(function)
    def command(as_json: bool, *args: P.args, **kwargs: P.kwargs) -> int:
        apart: AbstractContextManager[Any] = redirect_stdout(sys.stderr) if as_json else nullcontext()
        with apart:  # models and libraries may print, too
            answer = function(*args, **kwargs)
        if as_json:
            echo(printable(json_text(answer.document), escaped=True))
        else:
            answer.show()
        sys.stdout.flush()
        return answer.code if answer.code is not None else 0 if answer.ok else 1

    return command


def say(line: str = "", *parts: object) -> None:
    """Print a line on stdout. The line may contain rich's markup and `{}` fields. The fields are filled with `parts` as
    in `str.format`; markup in `parts` has no effect.

    >>> say("[bold]{}[/bold]: {:,} items", "a [red] herring", 1200)
    a [red] herring: 1,200 items
    """
    from rich.console import Console
    from rich.markup import escape

    filled = line.format(*(escape(p) if isinstance(p, str) else p for p in parts)) if parts else line
    console = Console(highlight=False, emoji=False)
    whole = not console.is_terminal or "creperie " in filled  # a command to copy is not wrapped
    console.print(printable(filled), soft_wrap=whole)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on a result, one per line."""
    for note in notes:
        say("[yellow]note[/yellow]: {}", note)


def echo(line: str = "", *, error: bool = False) -> None:
    """Print a line without markup, on stdout or stderr. Control characters do not reach the terminal."""
    print(printable(line), file=sys.stderr if error else sys.stdout, flush=True)


def text_result(document: Json, text: str, out: Path | None) -> CommandResult:
    """Return the result of a command that shows a text. With `out`, the text is also written to that file."""
    if out is not None:
        write_text(out, text)
    shown = {**document, "written": str(out) if out else None}
    return CommandResult(shown, lambda: say(f"written: {out}") if out else echo(text.rstrip("\n")))


def p_value(value: float) -> str:
    if math.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def table_width() -> int:
    """Return the number of characters that a line of a table may have. This is the terminal's width or, if the output
    is a file, a larger number (at least `WIDE`).
    """
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else max(console.width, WIDE)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    brief: str = "",
) -> None:
    """Print a table. A cell is a whole number or a text without markup. Columns of numbers are aligned to the right.

    Words are never broken. Short cells (up to `SHORT` characters) are never wrapped; longer cells share the remaining
    width. Columns that do not fit are printed as a further table below, which repeats the first column. In the column
    named `brief`, cells are cut to one line.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, emoji=False, width=table_width())
    cells = [
        [f"{row[k]:,}" if isinstance(row[k], int) else printable(str(row[k])) for row in rows]
        for k in range(len(columns))
    ]
    least, whole = [], []
    for name, own in zip(columns, cells, strict=True):
        lengths = [len(cell) for cell in own]
        words = [len(w) for cell in (name, *own) for w in cell.split()]
        fixed = [n for n in lengths if n <= SHORT] if name != brief else [SHORT]
        least.append(min(max((*fixed, *(words if name != brief else ()), 0)), console.width // 2))
        whole.append(max((*lengths, *map(len, name.splitlines()), 0)))
    parts = [[0][: len(columns)]]
    for k in range(1, len(columns)):
        if parts[-1][1:] and sum(least[j] + 2 for j in (*parts[-1], k)) > console.width + 2:
            parts.append([0])
        parts[-1].append(k)
    for part in parts:
        spare = console.width + 2 - sum(least[k] + 2 for k in part)
        wants = {k: max(0, whole[k] - least[k]) for k in part}
        given = min(1.0, max(0, spare) / (sum(wants.values()) or 1))
        table = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for k in part:
            side: Literal["left", "right"] = "right" if _are_figures(cells[k]) else "left"
            cut = columns[k] == brief
            overflow: Literal["ellipsis", "fold"] = "ellipsis" if cut else "fold"
            width = least[k] + int(given * wants[k])
            table.add_column(columns[k], justify=side, overflow=overflow, no_wrap=cut, width=width)
        for r in range(len(rows)):
            table.add_row(*[Text(cells[k][r]) for k in part])
        console.print(table)


#: a cell of figures: numbers with signs and marks, perhaps with a unit; or a mark in place of a number
FIGURES = re.compile(r"([\W\de]| to )*([kMGT]?B|s|min|h|nan)?")


def _are_figures(cells: Sequence[str]) -> bool:
    """Return whether a column holds numbers. Every cell must be a number, a dash or empty, and at least one cell must
    have a digit.

    >>> _are_figures(["1,204", "12.5 %", "", "–"]), _are_figures(["first", "2"]), _are_figures(["–"])
    (True, False, False)
    """
    return all(map(FIGURES.fullmatch, cells)) and any(c.isdigit() for cell in cells for c in cell)


@contextmanager
def bar(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Show a progress bar on stderr during the block, with the rate and the remaining time. Yield a function that
    advances the bar. If stderr is not a terminal, lines are printed instead from time to time.
    """
    if not sys.stderr.isatty():
        yield _logger(label, total, unit)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{unit}: {pace(task.speed)}" if task.speed else unit)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda n: progress.advance(task, n)


def _logger(label: str, total: int | None, unit: str) -> Advance:
    """Return a function that is called with the amount of work just done. It reports progress on stderr, in one line
    every ten seconds. Work that takes less time prints nothing.
    """
    start = last = time.monotonic()
    done = 0
    lock = threading.Lock()

    def advance(n: int) -> None:
        nonlocal done, last
        with lock:
            done += n
            now = time.monotonic()
            if now - last < 10:
                return
            last = now
            rate = done / (now - start)
            left = f", {(total - done) / rate:,.0f} s left" if total and 0 < done < total else ""
            echo(f"{label}: {done:,} of {total or '?'} {unit}, {pace(rate)}{left}", error=True)

    return advance
