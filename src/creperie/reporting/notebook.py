"""Tables and figures of runs for notebooks. They are displayed in the cell. If a file is named, they are also written
to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import UsageError, split_names, write_text
from creperie.reporting.figures.catalog import FigureOptions, draw_figure
from creperie.reporting.figures.style import save_figure
from creperie.reporting.html_tables import run_table_html
from creperie.reporting.run_tables import RunTable, TableChoice, render_run_table, run_table
from creperie.scoring import Run, load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: suffix of a file → format of the table
FORMS = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".html": "html", ".txt": "text"}


@dataclass(frozen=True, repr=False)
class NotebookTable:
    """A table of runs that displays itself in a notebook, and can be saved as LaTeX, Markdown, CSV or HTML."""

    table: RunTable

    def __str__(self) -> str:
        return render_run_table(self.table, "markdown")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(run_table_html(self.table))

    def latex(self) -> str:
        return render_run_table(self.table, "latex")

    def save(self, path: str | Path) -> Path:
        """Write the table in the format of the file's suffix and return the path."""
        target = Path(path)
        if target.suffix not in FORMS:
            raise UsageError(
                f"a table cannot be written as {target.suffix or 'a file without suffix'}",
                hint=f"end the name in {', '.join(FORMS)}",
            )
        write_text(target, render_run_table(self.table, FORMS[target.suffix]))
        return target


def table(
    *runs: Run | str | Path | Sequence[Run | str | Path],
    rows: str | Iterable[str] = "model",
    columns: str | Iterable[str] = "subset",
    task: str = "",
    intervals: bool = True,
    digits: int = 1,
) -> NotebookTable:
    """Return a table of runs, which are given as Run objects or folders.

    `rows` and `columns` each name one or more of model, benchmark, task and subset. By default, the table has one row
    per model and one column per subset. With `task`, only results on this task are shown.
    """
    choice = TableChoice(tuple(split_names(rows)), tuple(split_names(columns)), task, intervals, digits)
    return NotebookTable(run_table(_runs(runs), choice))


def figure(
    runs: Run | str | Path | Sequence[Run | str | Path],
    name: str = "accuracy",
    *,
    options: FigureOptions | None = None,
    out: str | Path | None = None,
) -> Figure:
    """Return a figure of runs, given in memory or by folder. With `out` it is also written as SVG, PDF or PNG."""
    if not isinstance(name, str):
        raise UsageError(
            "the second argument must be the name of a figure", hint="pass several runs as a list: `figure([a, b])`"
        )
    with tempfile.TemporaryDirectory() as folder:
        saved = [run if run.path is not None else run.save(folder) for run in _runs(runs)]
        drawn = draw_figure(name, [str(run.path) for run in saved], options)
    if out is not None:
        save_figure(drawn, out)
    return drawn


def _runs(given: Any) -> list[Run]:
    """Return the runs in `given`: one or several runs or folders, or lists of these."""
    if isinstance(given, (Run, str, Path)):
        return [given if isinstance(given, Run) else load_run(given)]
    return [run for one in given for run in _runs(one)]
