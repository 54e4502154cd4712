"""What a command answers with, and how it is shown: one JSON document, or text for people."""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec

import click

from creperie.core import Advance, json_text, printable

P = ParamSpec("P")


@dataclass(frozen=True)
class CommandResult:
    """A command's result. `show` prints it for people; `ok` is False when the answer is no (exit code 1).

    `code` is another exit code than these two: 2 for something that went wrong, 3 for what was not shown.
    """

    document: dict[str, Any]
    show: Callable[[], None]
    ok: bool = True
    code: int | None = None


def answers(function: Callable[P, CommandResult]) -> Callable[..., int]:
    """Add `--json` to a command and print what it answers."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
    @functools.wraps(function)
    def command(as_json: bool, *args: P.args, **kwargs: P.kwargs) -> int:
        answer = function(*args, **kwargs)
        if as_json:
            echo(printable(json_text(answer.document), escaped=True))
        else:
            answer.show()
        sys.stdout.flush()
        return answer.code if answer.code is not None else 0 if answer.ok else 1

    return command


def say(line: str = "", *parts: object) -> None:
    """Print a line for people on stdout, with rich's markup. `parts` fill its braces; texts among them are not markup.

    >>> say("[bold]{}[/bold]: {:,} items", "a [red] herring", 1200)
    a [red] herring: 1,200 items
    """
    from rich.console import Console
    from rich.markup import escape

    filled = line.format(*(escape(p) if isinstance(p, str) else p for p in parts)) if parts else line
    Console(highlight=False, soft_wrap=True, emoji=False).print(printable(filled))


def echo(line: str = "", *, error: bool = False) -> None:
    """A line as it is, without markup, on stdout or stderr. Control characters in it do not reach the terminal."""
    print(printable(line), file=sys.stderr if error else sys.stdout, flush=True)


def p_value(value: float) -> str:
    if math.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
) -> None:
    """Print a table; columns named in `right` are aligned to the right. Cells are text, not markup.

    No word is broken: columns that do not fit beside the first, at the width of their longest word, follow below.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    words = [[w for cell in (name, *(row[k] for row in rows)) for w in cell.split()] for k, name in enumerate(columns)]
    widths = [min(max(map(len, (*own, ""))), console.width // 2) + 2 for own in words]
    parts = [[0][: len(columns)]]
    for k in range(1, len(columns)):
        if parts[-1][1:] and sum(widths[j] for j in (*parts[-1], k)) > console.width + 2:
            parts.append([0])
        parts[-1].append(k)
    for part in parts:
        table = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for k in part:
            side: Literal["left", "right"] = "right" if columns[k] in right else "left"
            table.add_column(columns[k], justify=side, overflow="fold", min_width=widths[k] - 2)
        for row in rows:
            table.add_row(*[Text(printable(row[k])) for k in part])
        console.print(table)


@contextmanager
def bar(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A progress bar on stderr with rate and time left; a plain line now and then without a terminal."""
    if not sys.stderr.isatty():
        with _lines(label, total, unit) as advance:
            yield advance
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
            return Text(f"{task.speed:,.0f} {unit}/s" if task.speed else f"– {unit}/s")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda n: progress.advance(task, n)


@contextmanager
def _lines(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Progress for logs: a line every ten seconds, none for short work."""
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
            left = f", {(total - done) / rate:,.0f} s left" if total and rate else ""
            echo(f"{label}: {done:,} of {total or '?'} {unit}, {rate:,.0f}/s{left}", error=True)

    yield advance
